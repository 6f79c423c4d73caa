"""The adapter of SGLang: golden command lines, and what it reads back from pages as the engine's source writes them.

Not run on real hardware. Every page and line here follows the source of sglang 0.5.23 (its wheel on PyPI); each test
names the file. The page of metrics in `test_counters.py` is the example of its documentation.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from paribus.catalog import Catalog, Decoder, Sampling, System
from paribus.conditions import SystemName, UsageError
from paribus.engines import Compilation, Running, check_launch, engine, planned_launch, way_of
from paribus.engines.readback import read_back

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
SGLANG = engine("sglang")
DRAFTER = {"source": "hub", "repository": "a/drafter"}
COMMON = (
    "PYTHON -m sglang.launch_server --model-path WEIGHTS --served-model-name {model} --host 127.0.0.1 --port 8000 "
    "--enable-metrics --enable-cache-report --sampling-defaults openai "
)


def system_with(decoder: Decoder, sampling: dict | None = None, **use) -> System:
    model = CATALOG.models["qwen3.6-35b-a3b"]
    changed = model.engines["sglang"].model_copy(update={"decoders": {"x": decoder}, **use})
    update = {"engines": {"sglang": changed}, "sampling": Sampling(**(sampling or {"top_p": 0.8}), source="a test")}
    return System(model.model_copy(update=update), SystemName(model.model, "bf16", "sglang", "x"))


def command(system: System, **settings) -> str:
    launch = planned_launch(ROOT, system, "env", settings)
    check_launch(SGLANG, launch)
    return " ".join(SGLANG.command(launch))


@pytest.mark.parametrize(
    ("decoder", "settings", "expected"),
    [
        (Decoder(method="plain"), {}, "--max-running-requests 16 --disable-radix-cache"),
        (Decoder(method="plain"), {"prefix_caching": True, "slots": 4}, "--max-running-requests 4"),
        (
            Decoder(method="plain"),
            {"attention_backend": "fa3", "disable_overlap_schedule": True, "enable_mixed_chunk": False, "slots": 2},
            "--max-running-requests 2 --disable-radix-cache --attention-backend fa3 --disable-overlap-schedule",
        ),
        (
            Decoder(method="ngram", acceptance="strict", parameters={"speculative_num_draft_tokens": 8}),
            {},
            "--max-running-requests 16 --disable-radix-cache --speculative-algorithm NGRAM "
            "--speculative-num-draft-tokens 8",
        ),
        (
            Decoder(
                method="mtp",
                acceptance="rejection",
                parameters={"speculative_num_steps": 3, "speculative_eagle_topk": 1},
            ),
            {},
            "--max-running-requests 16 --disable-radix-cache --speculative-algorithm NEXTN "
            "--speculative-eagle-topk 1 --speculative-num-steps 3",
        ),
        (
            Decoder(
                method="dflash",
                acceptance="rejection",
                parameters={"speculative_num_draft_tokens": 16},
                drafter=DRAFTER,
            ),
            {},
            "--max-running-requests 16 --disable-radix-cache --speculative-algorithm DFLASH "
            "--speculative-draft-model-path DRAFTER --speculative-num-draft-tokens 16",
        ),
        (
            Decoder(method="eagle3", acceptance="rejection", drafter=DRAFTER),
            {},
            "--max-running-requests 16 --disable-radix-cache --speculative-algorithm EAGLE3 "
            "--speculative-draft-model-path DRAFTER",
        ),
        (
            Decoder(
                method="eagle3",
                acceptance="approximate",
                lossy={"speculative_accept_threshold_single": 0.5},
                drafter=DRAFTER,
            ),
            {},
            "--max-running-requests 16 --disable-radix-cache --speculative-algorithm EAGLE3 "
            "--speculative-draft-model-path DRAFTER --speculative-accept-threshold-single 0.5",
        ),
    ],
)
def test_command_lines(decoder, settings, expected):
    """Flags: sglang/srt/arg_groups/fields/{model,serving,schedule,exec_,spec}.py."""
    assert command(system_with(decoder), **settings) == COMMON.format(model="qwen3.6-35b-a3b") + expected


def test_denoising_settings_go_into_a_file_of_the_algorithms_own_form():
    """Sections of the file: Gemma4Renoise.__init__ in sglang/srt/dllm/algorithm/gemma4_renoise.py."""
    system = CATALOG.system("diffusiongemma-26b-a4b--bf16--sglang--diffusion-card")
    launch = planned_launch(ROOT, system, way_of(system, SGLANG), system.launch_on())
    assert " ".join(SGLANG.command(launch)).endswith(
        "--dllm-algorithm Gemma4Renoise --dllm-algorithm-config FILES/dllm.yaml"
    )
    assert yaml.safe_load(SGLANG.files(launch)["dllm.yaml"]) == {
        "max_denoising_steps": 48,
        "sampler_config": {"entropy_bound": 0.1},
        "temperature_schedule": {"t_min": 0.4, "t_max": 0.8},
        "stopping_config": {"confidence_threshold": 0.005, "stability_threshold": 1},
    }


def test_gemmas_tags_stay_in_a_diffusion_models_text_for_the_parser_of_its_thinking():
    """They are special tokens: `is_gemma4` in serving_chat.py keeps them for gemma4, and not for diffusion_gemma."""
    for name, fields in (
        ("diffusiongemma-26b-a4b--bf16--sglang--diffusion-card", {"skip_special_tokens": False}),
        ("gemma-4-26b-a4b--bf16--sglang--plain", {}),
        ("llada2.0-mini--bf16--sglang--diffusion-card", {}),
    ):
        system = CATALOG.system(name)
        launch = planned_launch(ROOT, system, way_of(system, SGLANG), system.launch_on())
        assert SGLANG.request_fields(launch) == fields
        assert ("--reasoning-parser gemma4" in " ".join(SGLANG.command(launch))) == ("gemma" in name)


@pytest.mark.parametrize(
    ("algorithm", "lossy", "parameters", "config"),
    [
        ("LowConfidence", {"threshold": 0.95, "block_size": 32}, {}, {"threshold": 0.95, "block_size": 32}),
        (
            "JointThreshold",
            {"threshold": 0.7, "edit_threshold": 0.5, "max_post_edit_steps": 16, "penalty_lambda": 0},
            {"vectorized_decoding": True},
            {
                "threshold": 0.7,
                "edit_threshold": 0.5,
                "max_post_edit_steps": 16,
                "penalty_lambda": 0,
                "vectorized_decoding": True,
            },
        ),
        ("JointThresholdInDel", {"threshold": 0.5}, {"dllm_fdfo": False}, {"threshold": 0.5}),
    ],
)
def test_each_diffusion_algorithm_takes_its_own_settings(algorithm, lossy, parameters, config):
    """Names: the algorithms in sglang/srt/dllm/algorithm/*.py; --dllm-fdfo: sglang/srt/arg_groups/fields/exec_.py."""
    decoder = Decoder(method="block-diffusion", lossy={"algorithm": algorithm, **lossy}, parameters=parameters)
    launch = planned_launch(ROOT, system_with(decoder), "env", {})
    assert json.loads(SGLANG.files(launch)["dllm.yaml"]) == config
    assert ("--no-dllm-fdfo" in SGLANG.command(launch)) == ("dllm_fdfo" in parameters)


@pytest.mark.parametrize(
    ("decoder", "settings", "said"),
    [
        (Decoder(method="plain"), {"max_num_seqs": 4}, "sglang knows no launch setting max_num_seqs"),
        (Decoder(method="plain", parameters={"n": 1}), {}, "no parameter of plain decoding n"),
        (Decoder(method="suffix"), {}, "knows no decoding method suffix"),
        (Decoder(method="dflash", acceptance="rejection"), {}, "dflash needs a drafter"),
        (Decoder(method="ngram", acceptance="synthetic"), {}, "no synthetic acceptance"),
        (Decoder(method="ngram", parameters={"size_n": 3}), {}, "no parameter of ngram size_n"),
        (Decoder(method="block-diffusion"), {}, "needs lossy: {algorithm: ...}"),
        (Decoder(method="block-diffusion", lossy={"algorithm": "Dream"}), {}, "the file says 'Dream'"),
        (
            Decoder(method="block-diffusion", lossy={"algorithm": "LowConfidence", "entropy_bound": 0.1}),
            {},
            "no lossy setting of LowConfidence entropy_bound; known: block_size, threshold",
        ),
    ],
)
def test_what_the_engine_does_not_know_is_refused(decoder, settings, said):
    with pytest.raises(UsageError, match=said):
        command(system_with(decoder), **settings)


def test_a_diffusion_model_gets_no_sampling_fields_and_a_seed_only_where_it_counts():
    """Gemma4Renoise refuses penalties, min_p and seeds with 400 and ignores the rest (gemma4_renoise.py); the others
    take the most likely token (low_confidence.py). Seeds: sglang/srt/sampling/sampling_batch_info.py."""
    diffusion = CATALOG.system("llada2.0-mini--bf16--sglang--diffusion-card")
    assert SGLANG.sampling_fields(diffusion) == frozenset()
    plain = system_with(Decoder(method="plain"))
    assert "seed" not in SGLANG.sampling_fields(plain)
    exact = system_with(Decoder(method="plain"), launch={"enable_deterministic_inference": True})
    assert SGLANG.sampling_fields(exact) - SGLANG.sampling_fields(plain) == {"seed"}


INFO = {
    "version": "0.5.23",
    "max_running_requests": None,
    "attention_backend": "triton",
    "mem_fraction_static": 0.8,
    "sampling_defaults": "openai",
    "disable_overlap_schedule": True,
    "speculative_algorithm": None,
    "speculative_num_draft_tokens": None,
    "dllm_algorithm": "LowConfidence",
    "internal_states": [
        {
            "effective_max_running_requests_per_dp": 1,
            "memory_usage": {
                "weight": 30.1,
                "kvcache": 12.5,
                "startup_available": 78.9,
                "token_capacity": 100000,
                "token_capacity_swa": None,
                "graph": {"decode": 0.25, "prefill": 0.5},
            },
        }
    ],
}
"""`/server_info`: http_server.py, scheduler_components/internal_state.py and memory_usage.py; shortened."""


def observed(system: System, info: dict, monkeypatch, **settings) -> dict:
    def page(url, body=None, **_):
        if url.endswith("/detokenize"):
            return {"text": f"<|user|>hello<|assistant|>{body['tokens']}"}
        pages = {"/server_info": info, "/v1/models": {"data": [{"id": "m", "max_model_len": 32768}]}}
        return pages.get(url[18:], {"tokens": [1, 2], "count": 2, "max_model_len": 32768})

    monkeypatch.setattr("paribus.engines.adapters.sglang.ask_json", page)
    launch = planned_launch(ROOT, system, "env", settings)
    read = SGLANG.observe(Running("http://127.0.0.1:1", "", launch))
    return read | read_back(SGLANG, launch, read)


def test_the_running_server_is_read_back(monkeypatch):
    system = CATALOG.system("llada2.0-mini--bf16--sglang--diffusion-card")
    found = observed(system, INFO, monkeypatch, mem_fraction_static=0.8, attention_backend="flashinfer")
    assert found["engine_version"] == "sglang 0.5.23"
    assert found["admitted"] == 1, "one request at once, unless told otherwise"
    assert found["context_per_slot"] == 32768
    # /tokenize with messages and /detokenize: entrypoints/openai/serving_tokenize.py and protocol.py.
    assert found["rendered_prompt"] == "<|user|>hello<|assistant|>[1, 2]"
    assert found["server_memory_gb"] == {"weights": 30.1, "cache": 12.5, "graphs": 0.75}
    assert found["settings_differ"] == ["attention_backend triton where flashinfer was declared"]
    assert found["effective_settings"]["algorithm"] == "LowConfidence"


def test_another_algorithm_than_declared_is_a_fault(monkeypatch):
    system = CATALOG.system("llada2.0-mini--bf16--sglang--diffusion-card")
    with pytest.raises(Exception, match="declared is algorithm LowConfidence, but sglang runs with JointThreshold"):
        observed(system, INFO | {"dllm_algorithm": "JointThreshold"}, monkeypatch)


LOG = """\
[10:00:00] Load weight end. elapsed=41.22 s, type=LLaDA2MoeModelLM, avail mem=47.10 GB, mem usage=30.10 GB.
[10:00:05] Capture target prefill CUDA graph begin. backend=piecewise, num_tokens=[4, 8], avail mem=33.00 GB
[10:00:17] Capture target prefill CUDA graph end. elapsed=12.40 s, mem usage=0.50 GB, avail mem=32.50 GB.
[10:00:18] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=32, avail mem=32.50 GB
[10:00:25] Capture target decode CUDA graph end. bs=[1, 2], elapsed=7.10 s, mem usage=0.25 GB, avail mem=32.25 GB.
[10:00:26] Capture Frozen-KV MTP draft cuda graph begin.
[10:00:27] Capture Frozen-KV MTP draft cuda graph end.
[10:00:28] Compiling a graph for dynamic shape takes 3.25 s
[10:00:29] The server is fired up and ready to roll!
"""
"""Lines as model_runner.py, model_runner_components/cuda_graph_setup.py, speculative/frozen_kv_mtp_worker_v2.py and
compilation/backend.py format them."""


def test_captures_and_compilations_are_found_with_their_seconds():
    assert SGLANG.compilations(LOG) == [
        Compilation("Capture target prefill CUDA graph", 12.4),
        Compilation("Capture target decode CUDA graph", 7.1),
        Compilation("Capture Frozen-KV MTP draft cuda graph", None),
        Compilation("Compiling a graph for dynamic shape", 3.25),
    ]
    assert SGLANG.compilations("Decode batch, #running-req: 4, gen throughput (token/s): 812.10\n") == []


def test_every_supported_system_of_the_catalog_has_a_command():
    systems = [s for s in CATALOG.systems.values() if s.name.engine == "sglang" and not s.unsupported_on()]
    assert len(systems) >= 8
    for system in systems:
        check_launch(SGLANG, planned_launch(ROOT, system, way_of(system, SGLANG), system.launch_on()))


@pytest.mark.parametrize("method", ["ngram", "mtp", "eagle3", "dflash", "draft"])
@pytest.mark.parametrize("penalty", [{"presence_penalty": 1.5}, {"repetition_penalty": 1.1}])
def test_drafts_under_a_penalty_are_refused_since_the_engine_checks_them_by_another(method, penalty):
    """sglang/srt/speculative/eagle_utils.py ("a relaxed version of penalties"), dflash_utils.py (reads what is never
    set): the answers would be another model's, and no gate at temperature 0 would see it."""
    drafting = Decoder(method=method, acceptance="rejection", drafter=DRAFTER)
    name, value = next(iter(penalty.items()))
    with pytest.raises(UsageError, match=rf"drafts are not supported with the card's {name} {value}: SGLang 0.5.23 "):
        command(system_with(drafting, penalty))
    assert "--speculative-algorithm" in command(system_with(drafting, {"presence_penalty": 0, "repetition_penalty": 1}))
    assert "--speculative" not in command(system_with(Decoder(method="plain"), penalty))
