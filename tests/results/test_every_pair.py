"""Everything that is meant to be compared can be: every pair, and plain decoding against every decoder of its stack.

What a run would declare and observe is made here as planning and measuring make it: from the catalog, each card's
launch settings and the adapters' own sampling fields. It goes through the gates; what they refuse is listed here with
its reason, and nothing else is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paribus.catalog import Catalog, HardwareFile, Pair, System
from paribus.catalog.configuration import Overrides, configure
from paribus.catalog.declare import Place, Wanted, declare_scenario, declare_task
from paribus.catalog.fit import fit
from paribus.catalog.select import stack_name
from paribus.engines import Session, engine, planned_launch, way_of
from paribus.engines.numbers import declared_numbers
from paribus.results.gates import parse_subjects, refusals
from paribus.results.pairing import DECODER, PLAIN, subjects_of
from paribus.wire import Endpoint

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
CARDS = sorted(path.name for path in (ROOT / "hardware").iterdir() if path.name != "any")
BUILD = "abcdef012345"
ALONE, TOGETHER, QUALITY = "c1-short", "c16-short", "mmlu-pro"
MEASURES = (ALONE, TOGETHER, QUALITY)

ALL = frozenset(CARDS)
RECIPE = "its recipe's max_num_seqs 4 is kept: more ran out of memory (vllm-project/vllm#50699)"
ADMITS_FEWER: dict[str, tuple[frozenset[str], str]] = {
    "diffusiongemma-26b-a4b--bf16--vllm": (ALL, RECIPE),
    "diffusiongemma-26b-a4b--fp8--vllm": (ALL, RECIPE),
    "diffusiongemma-26b-a4b--nvfp4-nvidia--vllm": (ALL, f"{RECIPE}; 8 on DGX Spark"),
    "diffusiongemma-26b-a4b--mlx-4bit--mlx": (ALL, "mlx-vlm answers diffusion requests one after the other"),
    "clover-35b-a3b-preview--bf16--transformers": (ALL, "this project's server answers one request at a time"),
    "gemma-4-26b-a4b--fp8--vllm": (frozenset({"rtx-5090"}), "its recipe's max_num_seqs 1"),
    "gemma-4-26b-a4b--nvfp4--vllm": (frozenset({"rtx-5090"}), "its recipe's max_num_seqs 4"),
    "gemma-4-26b-a4b--nvfp4-nvidia--vllm": (
        frozenset({"dgx-spark", "rtx-5090", "rtx-6000-pro"}),
        "its recipe's max_num_seqs 8, and 4 on the RTX 5090",
    ),
    "qwen3.6-35b-a3b--bf16--vllm": (frozenset({"rtx-6000-pro"}), "its recipe's max_num_seqs 8"),
    "qwen3.6-35b-a3b--nvfp4-nvidia--vllm": (
        frozenset({"dgx-spark", "rtx-5090", "rtx-6000-pro"}),
        "its recipe's max_num_seqs 8",
    ),
}
"""Sides that take fewer than sixteen requests at once: on which cards, and why. They meet nobody at sixteen."""

OTHERWISE: dict[str, tuple[str, str]] = {
    "clover-qwen3.6-bf16": ("research_implementation", "no serving engine writes Clover's blocks yet, says its note"),
}
"""Pairs that another condition forbids at every measure: which, and why."""

NOT_YET: dict[str, str] = {
    "clover-blocks-tokens": "no engine runs Clover's blocks yet",
    "clover-qwen3.6-bf16": "no engine runs Clover's blocks yet",
}
"""Pairs of which no card runs both sides: they go through the gates as if an H200 did."""


@cache
def profile(card: str) -> HardwareFile:
    return CATALOG.hardware(card)


@cache
def wanted(card: str, measure: str) -> Wanted:
    config = configure(CATALOG, profile(card), Overrides())
    if measure in CATALOG.scenarios:
        return declare_scenario(CATALOG, config, CATALOG.scenario(measure), 1)
    return declare_task(CATALOG, config, CATALOG.task(measure))


def observed(system: System, launch: dict[str, Any], at_once: int, *, quality: bool) -> dict[str, Any]:
    """What measuring this system finds: what its adapter lets through, and what its command line admits."""
    adapter = engine(system.name.engine)
    session = Session(Endpoint("http://127.0.0.1:1/v1", "m"), system, adapter, {}, Path(), {}, None)
    seeds = {"seed"} & session.accepted if quality else set()
    return {
        "sampling_accepted": sorted({*session.sampling(), *seeds}),
        "admitted": min(at_once, admits(system, launch)),
        "cached_tokens": 0,
        "streaming_interval": system.use.streaming_interval,
        "research_implementation": system.use.research_implementation or None,
        "weights_revision": system.precision.weights.revision or f"whatever {system.name.model} is",
        "engine_version": f"{system.name.engine} 1",
        **declared_numbers(system),
    }


def admits(system: System, launch: dict[str, Any]) -> int:
    """Requests that the server takes at once, as its command line says, or its adapter of a server that takes one."""
    if system.use.hosted is not None:
        return 1 << 30
    diffusion = system.decoder.method == "block-diffusion"
    if system.name.engine == "transformers" or (system.name.engine == "mlx" and diffusion):
        return 1
    adapter = engine(system.name.engine)
    words = adapter.command(planned_launch(ROOT, system, way_of(system, adapter), launch))
    flags = ("--max-num-seqs", "--max-running-requests", "--parallel")
    return next((int(value) for flag, value in pairwise(words) if flag in flags), launch["slots"])


@cache
def run(name: str, card: str, measure: str) -> Any:
    """As much of a sealed run as the gates look at."""
    system, want = CATALOG.systems[name], wanted(card, measure)
    launch = {"slots": 16, **system.launch_on(card), **want.launch}
    planned = want.planned(system, BUILD, launch, Place(card, "m-test", 1))
    quality = measure not in CATALOG.scenarios
    found = observed(system, launch, int(planned.declared["requests_at_once"]), quality=quality)
    kind = "quality" if quality else "speed"
    conditions = {"card": card} | found | planned.declared
    return SimpleNamespace(conditions=conditions, kind=kind, origin="catalog", flags=[], quality=None)


@cache
def can_run(name: str, card: str) -> bool:
    return fit(CATALOG.systems[name], profile(card), 64.0).can_run


def side(stack: str, decoder: str | None) -> list[str]:
    systems = CATALOG.systems.items()
    return [n for n, s in systems if stack_name(s) == stack and decoder in (None, s.name.decoder)]


def meetings(pair: Pair) -> Iterator[tuple[str, str, str]]:
    """Left system, right system and card: everything that the pair may come to, whichever decoder wins a race."""
    left, right = (side(*one) for one in pair.sides())
    for card in ("h200",) if pair.pair in NOT_YET else (c for c in CARDS if pair.planned_on(c)):
        for one in left:
            for other in right:
                both = pair.pair in NOT_YET or (can_run(one, card) and can_run(other, card))
                if both and one != other and (pair.left != pair.right or PLAIN in other or pair.right_decoder):
                    yield one, other, card


def expected(left: str, right: str, card: str, forbidden: str | None = None) -> dict[str, set[str]]:
    """What is listed above, by measure."""
    found: dict[str, set[str]] = {measure: {forbidden} for measure in MEASURES if forbidden}
    stacks = [stack_name(CATALOG.systems[name]).removesuffix("--think") for name in (left, right)]
    if any(card in ADMITS_FEWER[stack][0] for stack in stacks if stack in ADMITS_FEWER):
        found.setdefault(TOGETHER, set()).add("admitted")
    return found


def refused(left: str, right: str, card: str, subjects: str) -> dict[str, set[str]]:
    """By measure: the conditions that forbid comparing two systems on a card."""
    allowed = parse_subjects(subjects)
    found = {m: {d.name for d in refusals(run(left, card, m), run(right, card, m), allowed)} for m in MEASURES}
    return {measure: names for measure, names in found.items() if names}


@pytest.mark.parametrize("pair", CATALOG.pairs.pairs, ids=lambda pair: pair.pair)
def test_every_pair_passes_the_gates_or_is_listed_with_its_reason(pair: Pair) -> None:
    forbidden, _ = OTHERWISE.get(pair.pair, (None, ""))
    met = 0
    for left, right, card in meetings(pair):
        met += 1
        assert refused(left, right, card, subjects_of(pair)) == expected(left, right, card, forbidden)
    assert met


STACKS = sorted(
    {stack_name(s) for s in CATALOG.systems.values() if s.name.decoder == PLAIN and len(side(stack_name(s), None)) > 1}
)


@pytest.mark.parametrize("stack", STACKS)
def test_plain_decoding_meets_every_decoder_of_its_stack(stack: str) -> None:
    plain, *others = sorted(side(stack, None), key=lambda name: CATALOG.systems[name].name.decoder != PLAIN)
    for card in CARDS:
        for other in (name for name in others if can_run(name, card) and can_run(plain, card)):
            assert refused(other, plain, card, DECODER) == expected(other, plain, card)


def test_nothing_is_listed_that_the_gates_let_through() -> None:
    stacks = {stack_name(system) for system in CATALOG.systems.values()}
    assert ADMITS_FEWER.keys() <= stacks
    for stack, (cards, _) in ADMITS_FEWER.items():
        for card in cards if cards != ALL else ["h200"]:
            assert run(side(stack, None)[0], card, TOGETHER).conditions["admitted"] < 15
    names = {pair.pair for pair in CATALOG.pairs.pairs}
    assert {*OTHERWISE, *NOT_YET} <= names
    for pair in (pair for pair in CATALOG.pairs.pairs if pair.pair in NOT_YET):
        assert not any(can_run(one, card) and can_run(two, card) for one, two, _ in meetings(pair) for card in CARDS)


def test_a_field_that_only_one_decoder_is_sent_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net is no empty one: an adapter that leaves a field out beside speculation is caught at once."""
    plain, drafting = (f"qwen3.6-35b-a3b--fp8--vllm--{decoder}" for decoder in ("plain", "mtp-n1"))
    assert refused(drafting, plain, "h200", DECODER) == {}
    adapter = type(engine("vllm"))
    fields = adapter.sampling_fields
    monkeypatch.setattr(
        adapter, "sampling_fields", lambda self, s: fields(self, s) - ({"min_p"} if s.decoder.speculates else set())
    )
    runs = [run.__wrapped__(name, "h200", ALONE) for name in (drafting, plain)]
    assert [d.name for d in refusals(*runs, parse_subjects(DECODER))] == ["sampling_accepted"]
