"""The adapter of the Transformers server: its command, its counters, what it reads back; pages recorded from it."""

import json
from pathlib import Path

import pytest

from paribus.catalog import Catalog, Decoder, EngineUse, ModelFile, System
from paribus.catalog.models import Thinking
from paribus.conditions import SystemName, UsageError
from paribus.engines import Launch, Running, engine
from paribus.engines.adapters import transformers as adapter_module

ROOT = Path(__file__).parents[2]
BASE = Catalog(ROOT).models["smollm2-135m"]

METRICS = """\
# HELP paribus_requests_total Requests answered or begun
# TYPE paribus_requests_total counter
paribus_requests_total 2
paribus_prompt_tokens_total 68
paribus_cached_prompt_tokens_total 0
paribus_generated_tokens_total 86
paribus_forward_passes_total 196
paribus_denoising_steps_total 192
paribus_committed_tokens_total 125
paribus_canvases_total 4
paribus_requests_running 1
paribus_requests_waiting 3
"""
"""Recorded: two requests to a tiny DiffusionGemma with a canvas of 32 (the gauges are made up)."""

PROPS = {
    "server": "paribus-transformers ccf588d1ea68",
    "versions": {"transformers": "5.24.0", "torch": "2.13.0+cpu", "python": "3.11.7"},
    "model": "tiny",
    "architecture": "DiffusionGemmaForBlockDiffusion",
    "family": "diffusion-gemma",
    "research_implementation": False,
    "trust_remote_code": False,
    "admitted": 1,
    "context": 2048,
    "device": "cpu",
    "threads": 1,
    "dtype": "float32",
    "attention": "sdpa",
    "cache": "dynamic",
    "compile": False,
    "draft_tokens": 0,
    "sampling_fields": ["seed"],
    "sampling_defaults": {"temperature": "0.8 to 0.4"},
    "denoising": {"canvas_length": 32, "sampler": "entropy_bound", "entropy_bound": 0.1, "max_denoising_steps": 48},
}
"""Recorded from the same server, shortened."""


def system_with(decoder: Decoder, *, thinking: Thinking | None = None, **use) -> System:
    made = EngineUse(
        precisions=list(BASE.precisions),
        launch={"context_length": 2048, **use.pop("launch", {})},
        launch_source="a test",
        decoders={"x": decoder},
        **use,
    )
    update = {"engines": {"transformers": made}} | ({"thinking": thinking} if thinking else {})
    model: ModelFile = BASE.model_copy(update=update)
    return System(model, SystemName(model.model, next(iter(model.precisions)), "transformers", "x", bool(thinking)))


def launch_of(system: System, drafter: Path | None = None, **settings) -> Launch:
    return Launch(
        root=Path("/repo"),
        python=Path("/env/bin/python"),
        system=system,
        weights=Path("/w/files"),
        settings={**system.use.launch, "threads": 2, "slots": 16, **settings},
        slots=16,
        port=8123,
        drafter=drafter,
    )


def wanted(system: System, drafter: Path | None = None, **settings) -> dict:
    command = engine("transformers").command(launch_of(system, drafter, **settings))
    assert command[:3] == ["/env/bin/python", "-u", "/repo/envs/transformers/server.py"]
    return json.loads(command[3])


PLAIN = {"alias": "smollm2-135m", "context": 2048, "host": "127.0.0.1", "model": "/w/files", "port": 8123, "threads": 2}


def test_the_command_of_plain_decoding():
    assert wanted(system_with(Decoder(method="plain"))) == PLAIN
    more = {"device": "cuda:0", "dtype": "bfloat16", "attn_implementation": "sdpa", "cache_implementation": "static"}
    said = wanted(system_with(Decoder(method="plain"), launch={**more, "compile": True}))
    assert said == PLAIN | {
        "device": "cuda:0", "dtype": "bfloat16", "attention": "sdpa", "cache": "static", "compile": True,
    }  # fmt: skip


def test_the_command_of_block_diffusion_holds_the_lossy_settings():
    lossy = {"canvas_length": 256, "max_denoising_steps": 48, "entropy_bound": 0.1}
    decoder = Decoder(method="block-diffusion", lossy=lossy)
    assert wanted(system_with(decoder)) == PLAIN | {"denoising": lossy}
    masked = Decoder(method="block-diffusion", lossy={"block_length": 32, "steps_per_block": 16})
    said = wanted(system_with(masked, launch={"family": "masked-diffusion"}))
    assert said == PLAIN | {"family": "masked-diffusion", "denoising": {"block_length": 32, "steps_per_block": 16}}


def test_drafts_come_from_an_assistant_or_from_the_model_itself():
    draft = Decoder(method="draft", acceptance="rejection", parameters={"num_assistant_tokens": 4})
    assert wanted(system_with(draft)) == PLAIN | {"drafter": "/w/files", "draft_tokens": 4}
    mtp = Decoder(method="mtp", acceptance="rejection")
    assert wanted(system_with(mtp), drafter=Path("/w/d")) == PLAIN | {"drafter": "/w/d", "draft_tokens": 5}


def test_code_of_the_weights_runs_only_where_the_file_asks_for_it():
    assert "trust_remote_code" not in wanted(system_with(Decoder(method="plain")))
    assert wanted(system_with(Decoder(method="plain"), trust_remote_code=True))["trust_remote_code"] is True


def test_the_tokens_around_thinking_are_handed_on():
    marks = {"reasoning_start": "<think>", "reasoning_end": "</think>"}
    assert wanted(system_with(Decoder(method="plain"), launch=marks))["reasoning"] == ["<think>", "</think>"]


@pytest.mark.parametrize(
    ("decoder", "launch", "said"),
    [
        ({"method": "plain"}, {"max_num_seqs": 4}, "knows no launch setting max_num_seqs; known: attn_impl"),
        ({"method": "plain"}, {"prefix_caching": True}, "has no prefix caching"),
        ({"method": "plain"}, {"reasoning_start": "<think>"}, "needs both reasoning_start and reasoning_end"),
        ({"method": "plain", "parameters": {"n": 1}}, {}, "no parameter of plain decoding n"),
        ({"method": "plain", "lossy": {"steps": 1}}, {}, "lossy settings for diffusion models only"),
        ({"method": "ngram"}, {}, "the catalog says ngram"),
        ({"method": "mtp"}, {}, "mtp needs the weights of an assistant model"),
        ({"method": "draft", "parameters": {"n": 1}}, {}, "parameter of draft n; known: num_assistant_tokens"),
        ({"method": "block-diffusion", "parameters": {"n": 1}}, {}, "no parameter of block diffusion n"),
        ({"method": "block-diffusion", "lossy": {"stepz": 1}}, {}, "no denoising setting stepz; known: block_length"),
        (
            {"method": "block-diffusion", "lossy": {"entropy_bound": 0.1}},
            {"family": "masked-diffusion"},
            "no denoising setting entropy_bound",
        ),
    ],
)
def test_what_the_server_cannot_do_is_refused_in_words(decoder, launch, said):
    with pytest.raises(UsageError, match=said):
        wanted(system_with(Decoder(**decoder)), **launch)


def test_sampling_fields_depend_on_the_family():
    fields = engine("transformers").sampling_fields
    assert fields(system_with(Decoder(method="plain"))) == {"temperature", "top_p", "top_k", "min_p", "seed"}
    block = Decoder(method="block-diffusion")
    assert fields(system_with(block)) == {"seed"}
    assert fields(system_with(block, launch={"family": "diffusion-gemma"})) == {"seed"}
    assert fields(system_with(block, launch={"family": "masked-diffusion"})) == {"temperature", "seed"}


def test_counters_and_gauges_have_our_names():
    adapter = engine("transformers")
    assert adapter.counters(METRICS) == {
        "prompt_tokens": 68,
        "cached_prompt_tokens": 0,
        "generated_tokens": 86,
        "forward_passes": 196,
        "denoising_steps": 192,
        "committed_tokens": 125,
    }
    assert adapter.gauges(METRICS) == {"running": 1, "waiting": 3}


def test_a_cpu_has_an_environment_and_so_a_build_of_its_own():
    assert engine("transformers-cpu").name == "transformers-cpu"
    system = system_with(Decoder(method="plain"))
    commands = [engine(name).command(launch_of(system)) for name in ("transformers", "transformers-cpu")]
    assert commands[0] == commands[1]
    locks = {
        name: (ROOT / "envs" / name / "requirements.txt").read_text() for name in ("transformers-cpu", "transformers")
    }
    assert "torch==2.13.0+cpu" in locks["transformers-cpu"]
    assert "+cpu" not in locks["transformers"]


def test_what_torch_compiled_is_read_from_the_log():
    log = "serving at 127.0.0.1:8711\ncompiled 3 graphs\nhe said: compiled 4 graphs\ncompiled 1 graphs\n"
    assert [each.what for each in engine("transformers").compilations(log)] == ["3 graphs", "1 graphs"]


def observed(monkeypatch, system, props=PROPS):
    asked = []

    def ask(url, body=None, **_):
        asked.append((url, body))
        return props if url.endswith("/props") else {"prompt": "<turn>user\nhello\n<turn>assistant\n"}

    monkeypatch.setattr(adapter_module, "ask_json", ask)
    monkeypatch.setattr("paribus.engines.thinking.ask_json", ask)
    found = engine("transformers").observe(Running("http://127.0.0.1:1", "", launch_of(system)))
    return found, asked


def test_everything_in_force_is_read_back(monkeypatch):
    system = system_with(Decoder(method="block-diffusion"))
    found, asked = observed(monkeypatch, system)
    assert found["engine_version"] == "transformers 5.24.0, torch 2.13.0+cpu, paribus-transformers ccf588d1ea68"
    assert found["admitted"] == 1
    assert found["settings"]["context_length"] == 2048
    assert found["settings"]["max_denoising_steps"] == 48
    assert found["attention_backend"] == "sdpa"
    assert found["sampling_defaults"] == {"temperature": "0.8 to 0.4"}
    assert found["rendered_prompt"].endswith("<turn>assistant\n")
    assert "research_implementation" not in found
    assert asked[1][1] == {"messages": [{"role": "user", "content": "hello"}]}


def test_a_research_implementation_says_so(monkeypatch):
    system = system_with(Decoder(method="block-diffusion"))
    found, _ = observed(monkeypatch, system, PROPS | {"research_implementation": True})
    assert found["research_implementation"] is True


def test_the_switch_for_thinking_is_in_the_rendered_prompt(monkeypatch):
    on, off = ({"chat_template_kwargs": {"enable_thinking": value}} for value in (True, False))
    system = system_with(Decoder(method="plain"), thinking=Thinking(switch="chat_template", on=on, off=off))
    _, asked = observed(
        monkeypatch, system, PROPS | {"sampling_fields": ["seed", "temperature", "top_p", "top_k", "min_p"]}
    )
    assert asked[1][1]["chat_template_kwargs"] == {"enable_thinking": True}


def test_a_server_of_another_family_than_its_sampling_fields_say_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="takes no min_p, temperature, top_k, top_p, which its family diffusion-gemma"):
        observed(monkeypatch, system_with(Decoder(method="plain")))
