"""`runs` means that a source shows it: this engine, these weights, this way of decoding, this card.

What nobody was seen to run is `unverified`, with the reason: also where a file names no source at all. Each entry below
names who has seen the runs that it stands for; of these models no other cell may be shown as one that runs (another
model is its own file's affair).
"""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest
from pydantic import ValidationError

from paribus.catalog import Catalog, ModelFile
from paribus.catalog.fit import fit
from paribus.catalog.shown import Shown

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
CARDS = [CATALOG.hardware(path.parent.name) for path in sorted(ROOT.glob("hardware/*/hardware.yaml"))]
NEW, STATION = "dgx-spark dgx-station rtx-5090 rtx-6000-pro", "dgx-spark dgx-station rtx-6000-pro"

SEEN = {
    # vllm-project/recipes models/Google/gemma-4-26B-A4B-it.yaml (03eb3d2): supported_hardware by variant, MTP among the
    # features, one A100 in the guide; vllm-project/recipes#438 (MTP on A100 and H100), eugr/spark-vllm-docker#343.
    "gemma-4-26b-a4b--bf16--vllm--{plain,mtp-n?}": f"h100 h200 a100 {STATION}",
    "gemma-4-26b-a4b--fp8--vllm--{plain,mtp-n?}": f"h100 h200 {NEW}",
    "gemma-4-26b-a4b--nvfp4--vllm--{plain,mtp-n?}": NEW,
    "gemma-4-26b-a4b--nvfp4-nvidia--vllm--{plain,mtp-n?}": "dgx-station rtx-6000-pro",
    # sgl-project/sglang docs_new/cookbook/autoregressive/Google/Gemma4.mdx, 3.2
    "gemma-4-26b-a4b--bf16--sglang--plain": "h200",
    # vllm-project/recipes models/Qwen/Qwen3.6-35B-A3B.yaml (00a8aa9): meta.hardware, prerequisites, MTP by card
    "qwen3.6-35b-a3b--bf16--vllm--{plain,mtp-n?}": f"h200 {STATION}",
    "qwen3.6-35b-a3b--fp8--vllm--{plain,mtp-n?}": f"h100 h200 {STATION}",
    "qwen3.6-35b-a3b--nvfp4-nvidia--vllm--{plain,mtp-n?}": NEW,
    # The card of z-lab/Qwen3.6-35B-A3B-DFlash, for vLLM and SGLang: 16-bit weights on Hopper and B200
    "qwen3.6-35b-a3b--bf16--vllm--dflash-n15": "h200",
    "qwen3.6-35b-a3b--bf16--sglang--plain": "h200 b200",
    # vllm-project/recipes models/Google/diffusiongemma-26B-A4B-it.yaml (18dbfdd), meta.hardware; fast and careful are
    # other numbers of the same settings.
    "diffusiongemma-26b-a4b--{bf16,fp8}--vllm--diffusion-{card,fast,careful}": "h100 h200 dgx-spark",
    "diffusiongemma-26b-a4b--nvfp4*--vllm--diffusion-{card,fast,careful}": "dgx-spark",
    # This project's own `make demo` and `make test-engines`
    "smollm2-135m--q4-1--llamacpp--*": "cpu",
}


def globs(pattern: str) -> list[str]:
    """A pattern with `{a,b}` as the patterns that it stands for."""
    before, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    choices, _, after = rest.partition("}")
    return [glob for choice in choices.split(",") for glob in globs(before + choice + after)]


def seen(name: str, card: str) -> bool:
    return any(
        fnmatch.fnmatchcase(name, glob)
        for pattern, cards in SEEN.items()
        if card in cards.split()
        for glob in globs(pattern)
    )


def running() -> list[tuple[str, str]]:
    """Every system of these models and card that the matrix shows as one that runs; thinking changes no verdict."""
    models = {pattern.partition("--")[0] for pattern in SEEN}
    here = [s for s in CATALOG.systems.values() if s.name.model in models]
    cells = {(str(s.name).removesuffix("--think"), c.hardware) for s in here for c in CARDS
             if fit(s, c, 16).verdict == "runs"}  # fmt: skip
    return sorted(cells)


def test_what_is_shown_to_run_was_seen_to_run() -> None:
    assert [cell for cell in running() if not seen(*cell)] == []


def test_no_source_stands_here_for_nothing() -> None:
    cells = running()
    used = {
        pattern for pattern in SEEN for name, _ in cells for glob in globs(pattern) if fnmatch.fnmatchcase(name, glob)
    }
    assert used == SEEN.keys()


@pytest.mark.parametrize(
    ("name", "card", "reason"),
    [
        ("qwen3.6-35b-a3b--fp8--vllm--dflash-n15", "h100", "no run beside Qwen's FP8 weights was seen"),
        ("qwen3.6-35b-a3b--bf16--vllm--dflash-n15", "dgx-spark", "names Hopper and B200 only"),
        ("qwen3.6-35b-a3b--bf16--vllm--ngram-n5", "h200", "no run with this one was seen"),
        ("qwen3.6-35b-a3b--fp8--vllm--plain", "b200", "verified on"),
        ("gemma-4-26b-a4b--bf16--vllm--eagle3-n3", "h100", "says of no card that it ran there"),
        ("gemma-4-26b-a4b--bf16--vllm--plain", "gb300", "of none of its variants"),
        ("gemma-4-26b-a4b--nvfp4-nvidia--vllm--plain", "rtx-5090", "neither as supported nor as validated"),
        ("diffusiongemma-26b-a4b--bf16--transformers--diffusion-card", "h100", "was not seen with these"),
        ("gemma-4-26b-a4b--mlx-4bit--mlx--plain", "m4-pro", "no source names a chip of this catalog"),
        ("qwen3.6-35b-a3b--mlx-4bit--mlx--plain", "m3-max", "on an Apple M5 Pro, which is no chip of this catalog"),
        ("smollm2-135m--q4-1--llamacpp--plain", "any", "it is shown on cpu alone"),
    ],
)
def test_what_nobody_was_seen_to_run_says_so(name: str, card: str, reason: str) -> None:
    found = fit(CATALOG.systems[name], CATALOG.hardware(card))
    assert found.verdict == "unverified"
    assert reason in found.reason


def without_sources(model: ModelFile) -> ModelFile:
    """A model whose file names nobody who shows an engine running it, and no doubt."""
    silent = {
        name: use.model_copy(update={"shown": [], "unverified": None, "unsupported": None})
        for name, use in model.engines.items()
    }
    return model.model_copy(update={"engines": silent})


@pytest.mark.parametrize("name", sorted({pattern.partition("--")[0] for pattern in SEEN}))
def test_a_file_that_names_no_source_runs_nowhere_and_can_be_planned_as_before(name: str) -> None:
    model = CATALOG.models[name]
    for given, silent in zip(model.systems(), without_sources(model).systems(), strict=True):
        for card in CARDS:
            before, found = fit(given, card, 16), fit(silent, card, 16)
            assert found.verdict != "runs", f"{silent.name} on {card.hardware}"
            assert found.can_run or not before.can_run, "what can be planned stays so"
            if before.verdict == "runs":
                assert found.reason == "no source is named that shows this engine running it"


@pytest.mark.parametrize(
    "source",
    [
        "https://example.org/recipes/one.yaml",
        "https://example.org/recipes/one.yaml (its guide)",
        "results/cpu/m-one/tiny--q4--llamacpp--plain/c1-short/0123456789ab.1",
        "make demo (on any machine)",
    ],
)
def test_who_shows_it_is_an_address(source: str) -> None:
    assert Shown(cards=["cpu"], source=source).covers("cpu", "q4", "plain")


@pytest.mark.parametrize("source", ["", "seen by us", "the maker's recipe", "https://example.org", "results/../x y"])
def test_what_is_no_address_shows_nothing(source: str) -> None:
    with pytest.raises(ValidationError, match="source"):
        Shown(cards=["cpu"], source=source)


def test_a_source_that_names_no_card_shows_nothing() -> None:
    with pytest.raises(ValidationError, match="cards"):
        Shown(cards=[], source="https://example.org/recipe")


def test_a_card_a_precision_and_a_decoder_are_shown_together_or_not_at_all() -> None:
    one = Shown(cards=["h100"], precisions=["fp8"], decoders=["mtp*"], source="https://example.org/recipe")
    assert one.covers("h100", "fp8", "mtp-n3")
    assert not any(one.covers(*other) for other in (("h200", "fp8", "mtp-n3"), ("h100", "bf16", "mtp-n3")))
    assert not one.covers("h100", "fp8", "plain")
