"""Everything that the debate is about is in the catalog: runnable, or refused with a reason."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from paribus.catalog import Catalog, System
from paribus.catalog.fit import fit, unfit
from paribus.conditions import hash12

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)

MODELS = {
    "diffusiongemma-26b-a4b",
    "gemma-4-26b-a4b",
    "qwen3.6-35b-a3b",
    "clover-35b-a3b-preview",
    "mercury-2",
    "mercury-2.5",
    "mercury-3",
    "llada-8b",
    "llada2.0-mini",
    "llada2.0-flash",
    "llada2.1-mini",
    "llada2.1-flash",
    "dream-7b",
    "sdar-8b",
    "ncm",
    "duo",
    "aurora-lm",
    "mdlm",
    "sedd",
    "smollm2-135m",
}
"""Every model that is talked about (publications of June to November 2026), and the one that runs anywhere."""

SPECULATION = {
    "gemma-4-26b-a4b": {"plain", "ngram", "mtp", "eagle3", "dflash"},
    "qwen3.6-35b-a3b": {"plain", "ngram", "mtp", "dflash"},
}
ENGINES = {
    "diffusiongemma-26b-a4b": {"vllm", "sglang", "transformers", "llamacpp", "mlx", "hosted"},
    "gemma-4-26b-a4b": {"vllm", "sglang", "llamacpp", "mlx"},
    "qwen3.6-35b-a3b": {"vllm", "sglang", "llamacpp", "mlx"},
    "clover-35b-a3b-preview": {"transformers", "llamacpp", "mlx"},
    "mercury-3": {"hosted"},
    "llada2.1-mini": {"sglang"},
}
PRECISIONS = {
    "diffusiongemma-26b-a4b": {"bf16", "fp8", "nvfp4", "nvfp4-nvidia", "q4-k-m", "mlx-4bit", "mlx-8bit", "nim"},
    "gemma-4-26b-a4b": {"bf16", "fp8", "nvfp4", "nvfp4-nvidia", "q4-k-m", "mlx-4bit"},
    "qwen3.6-35b-a3b": {"bf16", "fp8", "nvfp4-nvidia", "q4-k-m", "mlx-4bit"},
    "clover-35b-a3b-preview": {"bf16", "q4-k-m", "mlx-4bit"},
}


RUNTIMES = {"vllm", "transformers", "sglang", "llamacpp", "mlx", "hosted"}
SERVICES = {"integrate.api.nvidia.com", "openrouter.ai", "api.inceptionlabs.ai"}
LEFT_OUT = ("LM Studio", "Unsloth Studio")
CARDS = {
    "h100", "h200", "b200", "gb300", "dgx-spark", "dgx-station", "rtx-5090", "rtx-4090", "rtx-6000-pro",
    "rtx-5070-ti", "a100", "m4-pro", "m3-max",
}  # fmt: skip


def some(pattern: str) -> System:
    """The first system whose name begins so."""
    return next(s for name, s in CATALOG.systems.items() if name.startswith(pattern))


def test_every_model_of_the_debate_is_in_the_catalog() -> None:
    assert set(CATALOG.models) >= MODELS


@pytest.mark.parametrize("model", SPECULATION)
def test_the_opponents_have_every_published_way_of_speculation(model: str) -> None:
    decoders = CATALOG.models[model].engines["vllm"].decoders
    assert {d.method for d in decoders.values()} == SPECULATION[model]
    assert {f"mtp-n{n}" for n in (1, 2, 3, 4)} <= set(decoders)


def test_dflash_2_is_there_for_every_engine_that_is_said_to_run_it() -> None:
    engines = CATALOG.models["qwen3.6-35b-a3b"].engines
    assert all(any(d.startswith("dflash2") for d in engines[e].decoders) for e in ("vllm", "sglang", "llamacpp", "mlx"))


@pytest.mark.parametrize("model", ENGINES)
def test_engines_are_those_of_the_debate(model: str) -> None:
    assert set(CATALOG.models[model].engines) == ENGINES[model]


@pytest.mark.parametrize("model", PRECISIONS)
def test_precisions_are_those_published(model: str) -> None:
    assert set(CATALOG.models[model].precisions) == PRECISIONS[model]


def test_every_runtime_of_the_debate_runs_something_or_is_left_out_with_a_reason() -> None:
    uses = [(engine, use) for model in CATALOG.models.values() for engine, use in model.engines.items()]
    assert {engine for engine, _ in uses} == RUNTIMES | {"transformers-4"}, "Transformers for older models' own code"
    hosts = {urlsplit(use.hosted.url or "").hostname for _, use in uses if use.hosted}
    assert hosts == SERVICES
    notes = CATALOG.models["diffusiongemma-26b-a4b"].notes
    assert all(any(note.startswith(f"{name} isn't in this file: ") for note in notes) for name in LEFT_OUT)


def test_every_card_of_the_debate_has_a_profile_and_something_that_fits_it() -> None:
    """But one: the claim on the RTX 5070 Ti (16 GB) names no precision, and no published one of the catalog fits."""
    builds = dict.fromkeys([*RUNTIMES, "transformers-4", "program:llama-server"], "b")
    cards = {name: CATALOG.hardware(name) for name in CARDS}
    nothing = {n for n, card in cards.items() if all(unfit(s, card, builds) for s in CATALOG.systems.values())}
    assert nothing == {"rtx-5070-ti"}


def test_clover_writes_in_blocks_and_token_by_token() -> None:
    decoders = CATALOG.models["clover-35b-a3b-preview"].engines["transformers"].decoders
    assert {d.method for d in decoders.values()} == {"plain", "block-diffusion"}
    assert CATALOG.models["clover-35b-a3b-preview"].sibling == "qwen3.6-35b-a3b"


def test_a_retired_model_is_kept_and_never_planned() -> None:
    assert CATALOG.models["mercury-2"].retired
    assert (some("mercury-2--").unsupported_on() or "").startswith("retired:")
    assert some("mercury-3--").unsupported_on() is None


def test_research_models_are_a_track_of_their_own_and_say_why_they_cannot_run() -> None:
    research = {name for name, model in CATALOG.models.items() if model.track == "research"}
    assert research == {"ncm", "duo", "aurora-lm", "mdlm", "sedd"}
    for name in research:
        system = some(f"{name}--")
        assert "instruction" in (system.unsupported_on() or "") or "no public weights" in (
            system.unsupported_on() or ""
        )
        assert system.declared("b", {})["track"] == "research"


def test_known_limits_are_on_file() -> None:
    diffusion = CATALOG.models["diffusiongemma-26b-a4b"]
    vllm = " ".join(diffusion.engines["vllm"].limits)
    assert "256 new tokens" in vllm
    assert diffusion.engines["vllm"].launch["max_num_seqs"] == 4
    assert "8,192" in " ".join(diffusion.engines["hosted"].limits)


def test_a_diffusion_model_has_at_most_three_lossy_settings_on_an_engine() -> None:
    """Settings of others' claims are no part of the frontier: they are planned on request only."""
    for model in CATALOG.models.values():
        for use in model.engines.values():
            assert sum(bool(d.lossy) for d in use.decoders.values() if not d.on_request) <= 3


@pytest.mark.parametrize("name", ["sglang", "mlx"])
def test_denoising_settings_that_a_server_does_not_tell_are_unverified(name: str) -> None:
    """SGLang's are in a file and mlx-vlm's in each request; neither server says what is in force."""
    blocks = [s for s in CATALOG.systems.values() if s.name.engine == name and s.decoder.method == "block-diffusion"]
    assert blocks
    assert [str(s.name) for s in blocks if "not read back" not in (s.decoder.unverified or "")] == []
    cards = [CATALOG.hardware(card) for card in ("h200", "b200", "m3-max")]
    assert {fit(s, card).verdict for s in blocks for card in cards} <= {"unverified", "doesn't fit", "not supported"}


def test_a_diffusion_server_admits_no_more_than_its_source_names() -> None:
    """SGLang's own default for such a model is one request (srt/dllm/config.py), and no cookbook names more."""
    blocks = [s for s in CATALOG.systems.values() if s.name.engine == "sglang" and s.model.kind == "diffusion"]
    assert {s.launch_on(card)["max_running_requests"] for s in blocks for card in (None, *CARDS)} == {1}


def test_lossy_settings_are_other_answer_classes_and_speculation_is_not() -> None:
    systems = CATALOG.systems
    card, fast, plain, mtp = (
        systems[name].answer_class_hash("b", systems[name].launch_on())
        for name in (
            "diffusiongemma-26b-a4b--bf16--vllm--diffusion-card",
            "diffusiongemma-26b-a4b--bf16--vllm--diffusion-fast",
            "gemma-4-26b-a4b--bf16--vllm--plain",
            "gemma-4-26b-a4b--bf16--vllm--mtp-n4",
        )
    )
    assert card != fast
    assert plain == mtp


def test_thinking_on_and_off_are_two_systems_with_their_own_sampling() -> None:
    off, on = (CATALOG.systems[f"qwen3.6-35b-a3b--fp8--vllm--plain{t}"] for t in ("", "--think"))
    assert (off.sampling.temperature, on.sampling.temperature) == (0.7, 1.0)
    assert off.thinking_settings == {"chat_template_kwargs": {"enable_thinking": False}}
    assert on.thinking_settings == {"chat_template_kwargs": {"enable_thinking": True}}


def test_a_hosted_models_effort_is_part_of_its_answer_class() -> None:
    off, on = (CATALOG.systems[f"mercury-3--hosted--hosted--undisclosed{t}"] for t in ("", "--think"))
    assert off.answer_class("hosted", {})["effort"] == {"reasoning_effort": "none"}
    assert on.answer_class("hosted", {})["effort"] == {"reasoning_effort": "medium"}
    assert off.request_model == "inception/mercury-3"
    assert off.use.hosted is not None
    assert off.use.hosted.api_key_env == "OPENROUTER_API_KEY"


def test_the_hashes_of_the_system_that_has_been_measured_have_not_moved() -> None:
    """Runs are found again by them: what a file may leave out is in a hash only where it is set."""
    expected = {
        "plain": "be3b6a3cde9d",
        "ngram-simple-n4-m4": "ca15888dce07",
        "ngram-map-k-n4-m4": "a621d07b4512",
        "ngram-map-k4v-n4-m4": "064f7f100374",
        "ngram-cache": "98dc67a3707f",
        "ngram-mod-n24": "5a9343bbcd94",
    }
    for decoder, system_hash in expected.items():
        system = CATALOG.systems[f"smollm2-135m--q4-1--llamacpp--{decoder}"]
        launch = {**system.launch_on("cpu"), "slots": 16}
        assert system.answer_class_hash("0123456789ab", launch) == "bcf17191a0c1"
        assert hash12(system.declared("0123456789ab", launch)) == system_hash


def test_launch_settings_differ_by_card_precision_and_decoder() -> None:
    def launch(name: str, card: str | None = None) -> dict[str, object]:
        return dict(CATALOG.systems[name].launch_on(card))

    gemma = "gemma-4-26b-a4b--{}--vllm--{}"
    assert "kv_cache_dtype" not in launch(gemma.format("bf16", "plain"))
    assert launch(gemma.format("fp8", "plain"))["kv_cache_dtype"] == "fp8"
    assert launch(gemma.format("fp8", "plain"), "rtx-5090")["max_num_seqs"] == 1
    assert "max_num_seqs" not in launch(gemma.format("fp8", "plain"), "h100")
    assert launch(gemma.format("bf16", "dflash-n15"), "h100")["max_num_batched_tokens"] == 32768
    assert launch(gemma.format("bf16", "plain"), "dgx-spark")["VLLM_USE_V2_MODEL_RUNNER"] == "1"
    spark = launch("diffusiongemma-26b-a4b--nvfp4-nvidia--vllm--diffusion-card", "dgx-spark")
    assert (spark["max_num_seqs"], spark["attention_backend"]) == (8, "TRITON_ATTN")


@pytest.mark.parametrize(
    "card", [None, "h100", "b200", "gb300", "dgx-spark", "dgx-station", "rtx-5090", "rtx-6000-pro"]
)
@pytest.mark.parametrize("precision", ["bf16", "fp8", "nvfp4-nvidia"])
def test_a_drafters_own_launch_settings_hold_on_every_card(precision: str, card: str | None) -> None:
    """Recipes for plain decoding on a card come before what the drafter's card asks for (z-lab/dflash, "vLLM")."""
    drafting = CATALOG.systems[f"qwen3.6-35b-a3b--{precision}--vllm--dflash-n15"]
    launch = drafting.launch_on(card)
    assert (launch["attention_backend"], launch["max_num_batched_tokens"]) == ("FLASH_ATTN", 32768)
    assert "attention_config" not in launch
    if precision == "nvfp4-nvidia" and card:
        assert fit(drafting, CATALOG.hardware(card)).verdict in ("unverified", "not supported")
        assert "no run with both was seen" in " ".join(drafting.unverified_on(card))


def test_overrides_name_profiles_and_decoders_that_exist() -> None:
    profiles = {path.parent.name for path in ROOT.glob("hardware/*/hardware.yaml")}
    for model in CATALOG.models.values():
        for use in model.engines.values():
            for override in use.overrides:
                for globs, names in (
                    (override.cards, profiles),
                    (override.precisions, use.precisions),
                    (override.decoders, use.decoders),
                ):
                    for glob in globs:
                        assert fnmatch.filter(names, glob), f"{model.model}: {glob} names nothing"


def test_models_whose_own_code_ends_on_transformers_5_run_on_4() -> None:
    """DreamLM/Dream#83 and ML-GSAI/LLaDA#130; what they miss is in 4.57.6's source (envs/transformers-4/README.md)."""
    ours = {"transformers", "transformers-cpu", "transformers-4"}
    own_code = {
        model.model: name
        for model in CATALOG.models.values()
        for name, use in model.engines.items()
        if name in ours and use.trust_remote_code
    }
    assert own_code == {
        "clover-35b-a3b-preview": "transformers",  # made for 5.19.0, its README says
        "dream-7b": "transformers-4",
        "llada-8b": "transformers-4",
    }
    lock = (ROOT / "envs/transformers-4/requirements.txt").read_text(encoding="utf-8")
    assert "\ntransformers==4.57.6 " in lock
