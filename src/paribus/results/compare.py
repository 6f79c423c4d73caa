"""Two runs, like with like: gates first, then the speed-up of the same amount of text, throughput, quality.

Every ratio is "first over second": 1.2 means that the first is 1.2 times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.conditions import CheckFailed
from paribus.quality.statistics import equivalent
from paribus.results.batches import answers_a_worker
from paribus.results.data import RunData, headline_ks, names_of
from paribus.results.figures import Number
from paribus.results.gates import Difference, differences
from paribus.results.paired import paired
from paribus.results.rounding import fixed
from paribus.results.strip import Part, split_strip, strip_of
from paribus.results.words import BASIS, difference_sentence, ratio_sentence
from paribus.speed.answer_speedup import answer_speedup, answer_split, whole_on_both
from paribus.speed.metrics.answer_time import CAPPED
from paribus.speed.rows import KS, Row
from paribus.speed.speedup import Speedup, largest_k, speedup
from paribus.speed.statistics import Estimate, ratio_of_batches, ratio_of_starts

FEW = 100
"""Fewer questions than this are few, and the comparison says so."""

TOLD_BY_NAMES = frozenset(
    {"model", "weights", "weights_revision", "kind", "hosted", "engine"}
    | {"decoder", "decoder_parameters", "drafter", "lossy", "lossy_drafter"}
)
"""Conditions whose difference the two names tell already: those of systems or, within one stack, of decoders."""

Batches = Callable[[RunData], Sequence[float]]
"""Reads a run's batch means of its window: only where a side has a single start, since it reads the raw file."""


@dataclass(frozen=True)
class Comparison:
    """Two comparable runs: their names, what differs and was declared so, every ratio, and what else to know."""

    left: RunData
    right: RunData
    names: tuple[str, str]
    subject: list[Difference]
    ratios: list[Number]
    notes: list[str]

    @property
    def shared(self) -> list[Part]:
        """The parts of the conditions strip that both share."""
        return split_strip([strip_of(self.left.summary), strip_of(self.right.summary)])[0]

    def sentences(self) -> list[str]:
        """Each ratio in one sentence."""
        return [sentence(one, self.names, self.subject) for one in self.ratios]


def compare(
    left: RunData,
    right: RunData,
    subjects: Iterable[str],
    batches: Batches | None = None,
    *,
    margin: float | None = None,
) -> Comparison:
    """Compare two runs. Raises `CheckFailed` that names every difference which forbids it, with both values.

    `margin`: the largest loss of a quality task, as a share, that still counts as none; laid down before anything was
    measured, in the task's file. Without one nobody says "no loss".
    """
    if left.summary.run_id == right.summary.run_id:
        raise CheckFailed(f"both are the same run, {left.summary.run_id}")
    found = differences(left.summary, right.summary, subjects)
    refused = [difference for difference in found if difference.refused]
    if refused:
        listed = "; ".join(str(difference) for difference in refused)
        pair = f"{left.summary.run_id} and {right.summary.run_id}"
        raise CheckFailed(f"{pair} can't be compared. They differ in {listed}")
    names = names_of(left.summary, right.summary)
    notes = _notes(left, right)
    if left.summary.kind == "quality":
        ratios = _quality(left, right, notes, margin)
    else:
        ratios = [*_speedups(left, right, notes), *_throughput(left, right, batches)]
    if not ratios:
        raise CheckFailed(
            f"{left.summary.run_id} and {right.summary.run_id} share no figure: no k is reached by half of both"
        )
    return Comparison(left, right, names, found, ratios, notes)


def untold(subject: Iterable[Difference]) -> list[Difference]:
    """What differs and isn't told by the names of the two sides."""
    return [difference for difference in subject if difference.name not in TOLD_BY_NAMES]


def sentence(one: Number, names: tuple[str, str], subject: Iterable[Difference] = ()) -> str:
    """A ratio or difference in one sentence, with what its interval rests on and what else differs by declaration."""
    labels = ", ".join(difference.label for difference in untold(subject))
    return _said(one, names) + (f"; they also differ in: {labels}" if labels else "")


def _said(one: Number, names: tuple[str, str]) -> str:
    basis = f" ({BASIS[one.basis]})" if one.basis in ("prompts", "kinds", "batches", "starts") else ""
    if one.unit == "points":
        return difference_sentence(names, one.title, _hundredth(one.estimate)) + basis + seen_words(one.detail)
    spread = one.detail.get("kinds")
    kinds = ""
    if spread:
        kinds = f"; over kinds of text {fixed(min(spread.values()), 2)} to {fixed(max(spread.values()), 2)}"
    return ratio_sentence(names, one.title, one.estimate) + basis + kinds


def _hundredth(estimate: Estimate) -> Estimate:
    low, high = (None if bound is None else bound / 100 for bound in (estimate.low, estimate.high))
    return Estimate(estimate.value / 100, low, high, estimate.basis)


def seen_words(detail: Mapping[str, Any]) -> str:
    """What the comparison could have seen, and whether it shows that nothing is lost (an equivalence test)."""
    smallest, margin = detail.get("detectable"), detail.get("margin")
    words = "" if smallest is None else f"; differences under {fixed(smallest, 1)} points could not be seen"
    if smallest is None and "detectable" in detail:
        words = "; not one question differs, so that there is no interval and no smallest difference that could be seen"
    if detail.get("no_loss"):
        test = "equivalence test" if smallest is not None else "rule of three"
        words += f"; no loss within {fixed(margin or 0, 1)} points ({test}, 5%)"
    return words


def counted(data: RunData) -> list[list[Row]]:
    """The measured rows of each start."""
    return [[row for row in rows if row.counted] for rows in data.rows]


def _speedups(left: RunData, right: RunData, notes: list[str]) -> list[Number]:
    fast, base = _on_common_prompts(left, right, notes)
    wanted = headline_ks(left.lengths)
    found = [one for k in wanted if (one := speedup(base, fast, k)) is not None and one.value is not None]
    if not found:
        k = largest_k([fast, base], [k for k in KS if k > 1])
        instead = speedup(base, fast, k) if k is not None else None
        if instead is None or instead.value is None:
            return []
        asked = " or ".join(str(k) for k in wanted)
        notes.append(
            f"too few answers reach k = {asked} (half of both must); k = {k} is the largest that half of both reach"
        )
        found = [instead]
    return [_ratio(one, headline=place == 0) for place, one in enumerate(found)] + _answers(fast, base, notes)


def _ratio(one: Speedup, headline: bool) -> Number:
    assert one.value is not None
    detail = {"k": one.k, "kinds": dict(one.kinds), "prompts": one.prompts}
    return Number(
        f"speedup_time_to_{one.k}",
        f"Speed-up over the first {one.k} standard tokens",
        "x",
        "higher",
        one.value,
        one.low,
        one.high,
        one.basis,
        one.share,
        headline,
        detail,
    )


def _answers(fast: list[list[Row]], base: list[list[Row]], notes: list[str]) -> list[Number]:
    """Whole answers, where few were cut: the ratio of their times, split into first wait, length and rate."""
    sides = [[row for rows in side for row in rows if row.ok] for side in (fast, base)]
    if any(not rows or sum(row.capped for row in rows) > CAPPED * len(rows) for rows in sides):
        return []
    split, total = answer_split(sides[1], sides[0]), answer_speedup(base, fast)
    if split is None or total is None:
        return []
    asked = {row.prompt_id for rows in base for row in rows}
    if out := len(asked - whole_on_both(sides[1], sides[0])):
        notes.append(
            f"{out} of {len(asked)} prompts have no whole answer on one side: they are not in the speed-up of whole "
            "answers"
        )
    detail = {"first_wait": split.first_wait, "length": split.length, "rate": split.rate}
    title = "Speed-up of whole answers"
    low, high = total.low, total.high
    return [Number("speedup_answer_time", title, "x", "higher", total.value, low, high, total.basis, detail=detail)]


def _on_common_prompts(left: RunData, right: RunData, notes: list[str]) -> tuple[list[list[Row]], list[list[Row]]]:
    """The measured rows of both sides, of the prompts that both ran: one may have left some out as too long for it.

    The hash of the prompts is gated; a row file that holds others is not what it says it is.
    """
    sides = counted(left), counted(right)
    one, two = ({row.prompt_id: row.kind for rows in side for row in rows} for side in sides)
    clash = sorted(p for p in one.keys() & two.keys() if one[p] != two[p])
    if clash:
        raise CheckFailed(f"the prompt {clash[0]!r} is of one kind in the first run and of another in the second")
    if apart := len(one.keys() ^ two.keys()):
        notes.append(
            f"{apart} of {len(one.keys() | two.keys())} prompts were measured on one side only: they are in no "
            "speed-up, and a throughput of either side rests on other texts"
        )
    fast, base = ([[row for row in rows if row.prompt_id in one.keys() & two.keys()] for rows in s] for s in sides)
    return fast, base


def _throughput(left: RunData, right: RunData, batches: Batches | None) -> list[Number]:
    if not _several(left):
        return []
    sides = [[s.throughput.value for s in data.starts if s.throughput.value] for data in (left, right)]
    if any(len(side) < len(data.starts) for side, data in zip(sides, (left, right), strict=True)):
        return _whole_run(left, right)
    estimate = ratio_of_starts(sides[0], sides[1])
    if min(map(len, sides)) == 1 and batches is not None:
        # One start on a side: batch means inside it are all there is, and the sentence says so.
        parts = [list(batches(data)) for data in (left, right)]
        if all(len(part) > 1 and min(part) > 0 for part in parts):
            inside = ratio_of_batches(parts[0], parts[1], (answers_a_worker(left), answers_a_worker(right)))
            estimate = Estimate(estimate.value, inside.low, inside.high, inside.basis)
    title = "Throughput ratio"
    low, high = estimate.low, estimate.high
    return [Number("ratio_throughput", title, "x", "higher", estimate.value, low, high, estimate.basis)]


def _whole_run(left: RunData, right: RunData) -> list[Number]:
    """Where a side has no steady window: both by the whole run, and by no batches."""
    sides = [[s.throughput.whole_run for s in data.starts if s.throughput.whole_run] for data in (left, right)]
    if not all(sides):
        return []
    found = ratio_of_starts(sides[0], sides[1])
    title = "Throughput ratio over the whole run, rise and fall included,"
    name = "ratio_throughput_whole_run"
    return [Number(name, title, "x", "higher", found.value, found.low, found.high, found.basis)]


def _several(data: RunData) -> bool:
    return (data.summary.declared.get("requests_at_once") or 1) > 1


def _quality(left: RunData, right: RunData, notes: list[str], margin: float | None) -> list[Number]:
    found = paired(left, right)
    if found is None:
        return []
    gap = found.difference
    if gap.questions < FEW:
        notes.append(f"{gap.questions} questions are few: only large differences could be seen")
    low, high, detectable = (None if share is None else share * 100 for share in (gap.low, gap.high, gap.detectable))
    whole = not any(side.summary.quality and side.summary.quality.partial for side in (left, right))
    if margin is not None and not whole:
        notes.append("a part of the task only: no loss is claimed from it, whatever the difference")
    detail = {"questions": gap.questions, "detectable": detectable}
    if margin is not None:
        detail |= {"margin": margin * 100, "no_loss": whole and equivalent(gap, margin)}
    return [
        Number(
            f"difference_{found.score}",
            "Difference in score",
            "points",
            "higher",
            gap.value * 100,
            low,
            high,
            "questions" if low is not None else "none",
            headline=True,
            detail=detail,
        )
    ]


def _notes(left: RunData, right: RunData) -> list[str]:
    notes = []
    a, b = left.summary, right.summary
    if a.machine != b.machine:
        notes.append(f"two machines, {a.machine} and {b.machine}: what differs between them is in the ratio")
    for side in (a, b):
        if side.flags:
            notes.append(f"{side.run_id} carries flags: {', '.join(dict.fromkeys(f.id for f in side.flags))}")
    return notes
