"""A duel's side is met at its best run that can be compared; what was passed over for it is told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from synthetic_runs import Clone

from paribus.catalog import Pair
from paribus.conditions import flag
from paribus.results.build import DATABASE, build
from paribus.results.pairing import Decided, Duel, duels
from paribus.results.seal import seal
from paribus.site import render_site
from paribus.site.pages.front import _stands_in

ROOT = Path(__file__).parents[2]
LEFT, RIGHT = "diffusion--bf16--vllm", "classic--bf16--vllm"
PAIR = Pair(pair="p", title="t", kind="controlled", left=LEFT, right=RIGHT, left_decoder="diffusion-card")
INVALID, SMALL = flag("throttled", "9% of the window, thermal"), flag("preliminary", "full, with 2 starts,")


def run(stack: str, decoder: str, speed: float, *flags: Any) -> Any:
    """As much of a sealed run as pairing looks at."""
    told = SimpleNamespace(
        throughput=SimpleNamespace(value=None, whole_run=0.0), output_speed_standard=SimpleNamespace(value=speed)
    )
    summary = SimpleNamespace(
        system=f"{stack}--{decoder}", hardware="h100", machine="m", measure="c1-short", run=decoder, n=1, speed=told,
        declared={"scenario": "c1-short", "requests_at_once": 1}, starts=[SimpleNamespace(started_at="2026-12-01")],
        kind="speed", flags=list(flags), ranked=not flags,
    )  # fmt: skip
    return SimpleNamespace(place=SimpleNamespace(demo=False), summary=summary)


def met(*classic: Any, winner: str | None = None, pair: Pair = PAIR) -> Duel:
    """The duel of the diffusion model with these runs of the other side."""
    verdict: Any = SimpleNamespace(stack=RIGHT, scenario="race-c1-short", winner=winner)
    decided = [Decided(False, "h100", "m", "", verdict)] if winner else []
    runs = [run(LEFT, "diffusion-card", 300), *classic]
    [duel] = duels(runs, [pair], decided, {"race-c1-short": ["c1-short"]})
    return duel


def decoder(side: Any) -> str:
    return str(side.summary.system).rsplit("--", 1)[1]


@pytest.mark.parametrize(
    ("classic", "winner", "taken", "told"),
    [
        ([run(RIGHT, "mtp-n4", 350), run(RIGHT, "ngram-n4", 250)], None, "mtp-n4", None),
        ([run(RIGHT, "mtp-n4", 350, INVALID), run(RIGHT, "ngram-n4", 250)], None, "ngram-n4", "throttled"),
        ([run(RIGHT, "mtp-n4", 350, SMALL), run(RIGHT, "ngram-n4", 250)], None, "ngram-n4", "preliminary"),
        ([run(RIGHT, "mtp-n4", 350, INVALID), run(RIGHT, "ngram-n4", 250, SMALL)], None, "ngram-n4", "throttled"),
        ([run(RIGHT, "mtp-n4", 350), run(RIGHT, "ngram-n4", 250)], "ngram-n4", "ngram-n4", None),
        ([run(RIGHT, "mtp-n4", 350), run(RIGHT, "ngram-n4", 250, INVALID)], "ngram-n4", "mtp-n4", "throttled"),
        ([run(RIGHT, "mtp-n4", 350, INVALID), run(RIGHT, "plain", 200)], "mtp-n4", "plain", "throttled"),
        # Plain decoding is not its stack's best: where a speculation can be compared, it takes no place.
        ([run(RIGHT, "mtp-n4", 350, SMALL), run(RIGHT, "plain", 200)], "mtp-n4", "mtp-n4", None),
        # Nothing can be compared: the refusal is of what would lead.
        ([run(RIGHT, "mtp-n4", 350, INVALID), run(RIGHT, "plain", 900, INVALID)], None, "mtp-n4", None),
    ],
)
def test_a_side_is_met_at_its_best_run_that_can_be_ranked(
    classic: list[Any], winner: str | None, taken: str, told: str | None
) -> None:
    duel = met(*classic, winner=winner)
    assert decoder(duel.match.right) == taken
    assert len(duel.passed_over) == (told is not None)
    if told is not None:
        (said,) = duel.passed_over
        assert said.startswith(f"{RIGHT}: {taken} stands in for ")
        assert told in said


def test_a_decoder_that_the_pair_names_is_met_whatever_is_wrong_with_it() -> None:
    named = PAIR.model_copy(update={"right_decoder": "mtp-n4"})
    duel = met(run(RIGHT, "mtp-n4", 350, INVALID), run(RIGHT, "ngram-n4", 250), pair=named)
    assert decoder(duel.match.right) == "mtp-n4"


def test_beside_plain_decoding_of_its_own_stack_a_side_is_never_plain() -> None:
    own = Pair(pair="p", title="t", kind="controlled", left=RIGHT, right=RIGHT)
    runs = [run(RIGHT, "mtp-n4", 350, INVALID), run(RIGHT, "plain", 200)]
    [duel] = duels(runs, [own], [], {})
    assert (decoder(duel.match.left), decoder(duel.match.right)) == ("mtp-n4", "plain")


def test_the_page_says_what_was_passed_over(clone: Clone, tmp_path: Path) -> None:
    plain, fast, slower = (clone.run(decoder, drop=drop, words=40) for decoder, drop in (
        ("plain", None), ("ngram-simple-n4-m4", 3), ("ngram-map-k-n4-m4", None)
    ))  # fmt: skip
    for each in (plain, fast, slower):
        seal(each, clone.catalog)
    build(clone.root)
    with duckdb.connect(str(clone.root / DATABASE), read_only=True) as database:
        ((left, refused),) = database.execute("SELECT left_run_id, refused FROM pairs").fetchall()
    assert (left, refused) == (slower.run_id, None)
    (clone.root / "site").symlink_to(ROOT / "site")
    render_site(clone.root / DATABASE, tmp_path / "site", clone.root)
    page = (tmp_path / "site" / "pair" / "cpu" / "smollm2-plain-speculation.html").read_text()
    assert "ngram-map-k-n4-m4 stands in for ngram-simple-n4-m4, whose run is not ranked (failures" in page


@pytest.mark.parametrize(
    ("stack", "own", "others", "stands_in"),
    [
        (RIGHT, "plain", ["mtp"], True),
        (RIGHT, "plain", ["plain"], False),
        (RIGHT, "mtp", ["plain"], False),
        (LEFT, "plain", ["mtp"], True),
    ],
)
def test_a_front_page_is_not_led_by_what_stands_in(stack: str, own: str, others: list[str], stands_in: bool) -> None:
    def one(method: str) -> Any:
        row = {"stack": stack, "hardware": "h100", "machine": "m", "measure": "c1-short", "demo": False}
        return SimpleNamespace(row=row, decoder_method=method)

    site: Any = SimpleNamespace(content=SimpleNamespace(speed_runs=[one(method) for method in others]))
    assert _stands_in(site, PAIR, one(own)) is stands_in
    named = PAIR.model_copy(update={"left_decoder": "plain", "right_decoder": "plain"})
    assert not _stands_in(site, named, one(own))
