"""The duels: both sides exist, a diffusion model is met at its card's settings, and half a duel is never planned."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from paribus.catalog import Catalog, Pair, Plan, Surroundings, resolve
from paribus.catalog.fit import fit
from paribus.catalog.select import stack_name
from paribus.conditions import UsageError
from paribus.results.gates import parse_subjects, refusals
from paribus.results.pairing import duels, subjects_of

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
PAIRS = {pair.pair: pair for pair in CATALOG.pairs.pairs}
BUILDS = {"vllm": "0" * 12, "mlx": "1" * 12, "transformers": "2" * 12, "llamacpp": "3" * 12}


def plan(card: str, root: Path = ROOT, builds: dict[str, str] = BUILDS, systems: str = "pairs") -> Plan:
    around = Surroundings("m-test", builds, memory_gb=64)
    return resolve(root, card, {"systems": systems, "measures": "c1-short"}, around)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda p: p.pair)
def test_both_sides_exist_and_differ(pair: Pair) -> None:
    systems = CATALOG.systems
    for stack, decoder in pair.sides():
        found = [
            n for n, s in systems.items() if "--".join(s.name.stack) + ("--think" if s.name.think else "") == stack
        ]
        assert found
        assert decoder is None or any(systems[n].name.decoder == decoder for n in found)
    assert pair.note


@pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda p: p.pair)
def test_a_diffusion_side_names_its_decoder_and_an_opponent_is_raced(pair: Pair) -> None:
    for stack, decoder in pair.sides():
        model = CATALOG.models[stack.split("--")[0]]
        assert (model.kind == "diffusion") == (decoder is not None)


@pytest.mark.parametrize("pair", [p for p in PAIRS.values() if p.kind == "controlled"], ids=lambda p: p.pair)
def test_a_controlled_pair_has_one_engine_precision_and_cache(pair: Pair) -> None:
    left, right = (stack.split("--") for stack, _ in pair.sides())
    assert left[1:3] == right[1:3]
    assert len({CATALOG.models[m].precisions[p].kv_cache for m, p in ((left[0], left[1]), (right[0], right[1]))}) == 1


@pytest.mark.parametrize("card", ["h100", "b200", "m3-max"])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda p: p.pair)
def test_what_the_catalog_declares_of_both_sides_never_forbids_their_duel(pair: Pair, card: str) -> None:
    allowed = parse_subjects(subjects_of(pair))
    left, right = ([_told(name, card) for name in _systems(*side)] for side in pair.sides())
    for one in left:
        for other in right:
            assert [str(difference) for difference in refusals(one, other, allowed)] == []


def _systems(stack: str, decoder: str | None) -> list[str]:
    systems = CATALOG.systems.items()
    return [n for n, s in systems if stack_name(s) == stack and decoder in (None, s.name.decoder)]


def _told(name: str, card: str) -> Any:
    """What is known of a system's run before it is measured, and what would be read of weights that nobody pinned."""
    system = CATALOG.systems[name]
    declared = system.declared(BUILDS[system.name.engine], system.launch_on(card))
    unpinned = {} if system.precision.weights.pinned else {"weights_revision": f"whatever {system.name.model} is"}
    return SimpleNamespace(conditions=declared | unpinned, kind="speed", origin="catalog", flags=[], quality=None)


IN_WORDS = {
    "language_model_only": "vision encoder",
    "max_num_batched_tokens": "4,096 tokens a step",
    "gpu_memory_utilization": "90% of the memory for 85%",
    "max_model_len": "context",
    "max_num_seqs": "admits 4 at once",
    "VLLM_USE_V2_MODEL_RUNNER": "second model runner",
}
"""What a pair's note says of a launch setting in which its sides differ."""


@pytest.mark.parametrize("pair", [p for p in PAIRS.values() if p.kind == "controlled"], ids=lambda p: p.pair)
def test_a_controlled_pairs_note_names_every_launch_setting_that_differs(pair: Pair) -> None:
    """Of its sides without speculation: a drafter's own settings are part of how tokens come out."""
    (stack, decoder), (other, against) = pair.sides()
    left, right = CATALOG.systems[_named(stack, decoder)], CATALOG.systems[_named(other, against)]
    for card in [None, *(path.parent.name for path in ROOT.glob("hardware/*/hardware.yaml"))]:
        if card and not (fit(left, CATALOG.hardware(card)).can_run and fit(right, CATALOG.hardware(card)).can_run):
            continue
        one, two = left.launch_on(card), right.launch_on(card)
        differing = {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)}
        said = {name for name in differing if name in IN_WORDS and IN_WORDS[name] in pair.note}
        assert differing == said, card


def _named(stack: str, decoder: str | None) -> str:
    think = "--think" if stack.endswith("--think") else ""
    return f"{stack.removesuffix(think)}--{decoder or 'plain'}{think}"


@pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda p: p.pair)
def test_a_pair_that_can_have_no_ratio_at_16_requests_says_so(pair: Pair) -> None:
    """A side that admits fewer than 15 (PROTOCOL section 2): by its own setting, or one after the other."""
    few = False
    for stack, decoder in pair.sides():
        system = CATALOG.systems[_named(stack, decoder)]
        one_by_one = system.name.engine == "mlx" and system.model.kind == "diffusion"
        few |= one_by_one or int(str(system.launch_on().get("max_num_seqs", 16))) < 15
    assert few == ("At 16 requests there is no ratio" in pair.note)


def test_a_card_plans_the_pairs_of_which_it_runs_both_sides() -> None:
    made = plan("h100")
    stacks = {job.system.rsplit("--", 1)[0] for job in made.jobs if "--think" not in job.system}
    both = {f"{m}--{p}--vllm" for m in ("diffusiongemma-26b-a4b", "gemma-4-26b-a4b") for p in ("bf16", "fp8")}
    assert stacks == {*both, "qwen3.6-35b-a3b--fp8--vllm"}
    diffusion = {job.system for job in made.jobs if job.system.startswith("diffusion")}
    assert {name.removesuffix("--think").rsplit("--", 1)[1] for name in diffusion} == {"diffusion-card"}
    raced = {job.system.rsplit("--", 1)[1] for job in made.jobs if job.kind == "race"}
    assert {"plain", "ngram-n5", "mtp-n1", "mtp-n4", "dflash-n15"} <= raced


def test_a_pair_is_left_out_whole_with_the_reason() -> None:
    reasons = {excluded.name: excluded.reason for excluded in plan("h100").excluded}
    assert "NVFP4 needs a Blackwell card" in reasons["diffusiongemma-gemma4-nvfp4"]
    assert "its block diffusion is a generate function of its own" in reasons["clover-qwen3.6-bf16"]
    assert "smollm2-plain-speculation" not in reasons
    assert not any(job.system.startswith("qwen3.6-35b-a3b--bf16") for job in plan("h200").jobs)
    without = plan("h100", builds={})
    assert without.jobs == []
    assert {e.name for e in without.excluded} >= set(PAIRS) - {"smollm2-plain-speculation"}


def test_a_decoder_on_request_is_planned_only_where_its_name_is_spelled_out() -> None:
    name = "diffusiongemma-26b-a4b--fp8--vllm--diffusion-pinned-16"
    for globs in ("diffusiongemma*", "*", "diffusiongemma-26b-a4b--fp8--vllm--*"):
        assert not any(job.system == name for job in plan("h100", systems=globs).jobs)
    assert {job.system for job in plan("h100", systems=name).jobs} == {name}


def test_the_cpu_pair_is_planned_on_a_cpu_only() -> None:
    assert {job.system.split("--")[0] for job in plan("cpu").jobs} == {"smollm2-135m"}
    for card in ("h100", "m3-max", "rtx-4090"):
        assert not any(job.system.startswith("smollm2") for job in plan(card).jobs)


def test_a_pair_that_names_nothing_is_told_with_its_name(tmp_path: Path) -> None:
    for folder in ("systems", "hardware", "tasks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    data = yaml.safe_load((ROOT / "pairs.yaml").read_text(encoding="utf-8"))
    data["pairs"][0]["left_decoder"] = "diffusion-warp"
    (tmp_path / "pairs.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(UsageError, match=r"diffusiongemma-gemma4-bf16 names .* diffusion-warp"):
        plan("h100", tmp_path)


@dataclass
class Run:
    """As much of a sealed run as pairing looks at."""

    place: Any
    summary: Any


def run(system: str, tokens_a_second: float) -> Run:
    speed = SimpleNamespace(
        throughput=SimpleNamespace(value=None, whole_run=0.0),
        output_speed_standard=SimpleNamespace(value=tokens_a_second),
    )
    summary = SimpleNamespace(
        system=system, hardware="h100", machine="m", measure="c1-short", run=system, n=1, speed=speed,
        declared={"scenario": "c1-short", "requests_at_once": 1}, starts=[SimpleNamespace(started_at="2026-12-01")],
        kind="speed", flags=[], ranked=True, quality=None,
    )  # fmt: skip
    return Run(SimpleNamespace(demo=False), summary)


def test_a_duel_meets_the_named_decoder_even_where_a_lossy_one_is_faster() -> None:
    diffusion, gemma = "diffusiongemma-26b-a4b--bf16--vllm--{}", "gemma-4-26b-a4b--bf16--vllm--{}"
    runs = [
        run(diffusion.format("diffusion-card"), 300), run(diffusion.format("diffusion-fast"), 600),
        run(gemma.format("plain"), 200), run(gemma.format("mtp-n4"), 350),
    ]  # fmt: skip
    [duel] = duels(runs, [PAIRS["diffusiongemma-gemma4-bf16"]], [], {})  # type: ignore[arg-type]
    sides = [side.summary.system.rsplit("--", 1)[1] for side in (duel.match.left, duel.match.right)]
    assert sides == ["diffusion-card", "mtp-n4"]
    assert duels(runs[1:], [PAIRS["diffusiongemma-gemma4-bf16"]], [], {}) == []  # type: ignore[arg-type]


def test_blocks_meet_tokens_of_the_same_stack() -> None:
    clover = "clover-35b-a3b-preview--bf16--transformers--{}"
    runs = [run(clover.format("plain"), 50), run(clover.format("block-32"), 100)]
    [duel] = duels(runs, [PAIRS["clover-blocks-tokens"]], [], {})  # type: ignore[arg-type]
    assert duel.match.left.summary.system.endswith("block-32")
    assert duel.match.right.summary.system.endswith("plain")
