"""The published numbers of one run: each metric with its interval, ready for the table `figures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from paribus.quality.summary import BY_EXAM_YEAR, QualitySummary
from paribus.results.data import RunData
from paribus.speed.metrics import metrics
from paribus.speed.metrics.answer_time import CAPPED
from paribus.speed.metrics.checked_pass import checked_share
from paribus.speed.rows import KS, READERS, Row
from paribus.speed.speedup import level
from paribus.speed.statistics import Cell, Estimate, ratio_of_sums, throughput_estimate
from paribus.speed.summary import Interval, SpeedSummary

Starts = Sequence[Sequence[Row]]


@dataclass(frozen=True)
class Number:
    """One metric of one run, or one ratio of two. `better`: higher, lower or "" (neither). `coverage`: a share."""

    metric: str
    title: str
    unit: str
    better: str
    value: float
    low: float | None = None
    high: float | None = None
    basis: str = "none"
    coverage: float | None = None
    headline: bool = False
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def estimate(self) -> Estimate:
        """Value and bounds."""
        return Estimate(self.value, self.low, self.high, self.basis)  # type: ignore[arg-type]


def numbers(data: RunData) -> list[Number]:
    """Every number that a run publishes."""
    if data.summary.quality is not None:
        return list(_scores(data.summary.quality))
    if data.summary.speed is not None:
        return list(_speed(data, data.summary.speed))
    return []


def _speed(data: RunData, speed: SpeedSummary) -> Iterator[Number]:
    starts = [[row for row in rows if row.counted] for rows in data.rows]
    several = (data.summary.declared.get("requests_at_once") or 1) > 1
    for k in KS:
        yield from _time_to(starts, speed, k)
    for tag, cell in _MEANS.items():
        yield from _number(tag, mean_of(starts, cell))
    yield from _number("checked_pass", checked_share(starts))
    yield from _whole_answers(starts)
    # The headline: with one request what it writes a second, with several what all of them write together.
    yield from _interval("output_speed", speed.output_speed)
    yield from _interval("output_speed_standard", speed.output_speed_standard, headline=not several)
    yield from _interval("decode_speed", speed.decode_speed, coverage=speed.decode_speed.coverage)
    yield from _interval("throughput", speed.throughput, headline=several)
    if several:
        whole = [one.throughput.whole_run for one in data.starts if one.throughput.whole_run is not None]
        estimate = throughput_estimate(whole, []) if whole and len(whole) == len(data.starts) else None
        yield from _number("throughput_whole_run", estimate, headline=speed.throughput.value is None)
    if speed.acceptance is not None:
        yield from _plain("acceptance_length", speed.acceptance.acceptance_length)
        yield from _plain("tokens_per_pass", speed.acceptance.tokens_per_pass)
    yield from _plain("stall", speed.stall_ms.p99)


def _time_to(starts: Starts, speed: SpeedSummary, k: int) -> Iterator[Number]:
    published, found = speed.time_to_k_ms.get(str(k)), level(starts, k)
    if published is None or found is None:
        return
    scale = 1e3
    low, high = (None if bound is None else bound * scale for bound in (found.low, found.high))
    title = "Time to the first standard token" if k == 1 else f"Time to {k} standard tokens"
    asked = {row.prompt_id for rows in starts for row in rows}
    reached = {row.prompt_id for rows in starts for row in rows if row.ok and row.time_to(k) is not None}
    detail = {"k": k, "mean_ms": published.mean, "p50_ms": published.p50, "reached": len(reached), "asked": len(asked)}
    yield Number(
        f"time_to_{k}",
        title,
        "ms",
        "lower",
        found.seconds * scale,
        low,
        high,
        found.basis,
        published.share,
        detail=detail,
    )


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


_MEANS: dict[str, Callable[[Row], float | None]] = {
    "ttft": lambda row: _ms(row.ttft_ns) if row.ok else None,
    "ttfa": lambda row: _ms(row.ttfa_ns) if row.ok else None,
    **{
        f"reader_wait_{speed}": (lambda row, speed=speed: row.reader_wait(speed) if row.ok else None)  # type: ignore[misc]
        for speed in READERS
    },
    "tokens_per_answer": lambda row: float(row.standard_tokens) if row.ok else None,
}


def mean_of(starts: Starts, cell: Callable[[Row], float | None]) -> Estimate | None:
    """A mean over requests: bootstrap over starts, then prompts inside their kind, however many were asked at once."""
    cells = [
        Cell(start, row.prompt_id, value, 1.0, row.kind)
        for start, rows in enumerate(starts)
        for row in rows
        if (value := cell(row)) is not None
    ]
    return ratio_of_sums(cells)


def _whole_answers(starts: Starts) -> Iterator[Number]:
    answered = [row for rows in starts for row in rows if row.ok]
    if answered and sum(row.capped for row in answered) <= CAPPED * len(answered):
        estimate = mean_of(starts, lambda r: _ms(r.e2e_ns) if r.ok and not r.capped else None)
        yield from _number("answer_time", estimate)


_TITLES = {
    "tokens_per_answer": ("Standard tokens an answer", "standard tokens", ""),
    "tokens_per_pass": ("Tokens a forward pass", "tokens", "higher"),
    "throughput_whole_run": ("Throughput of the whole run, rise and fall included", "standard tokens/s", "higher"),
    "stall": ("Longest gaps between arrivals (p99)", "ms", "lower"),
    **{f"reader_wait_{s}": (f"A reader at {s} tokens/s waits", "s", "lower") for s in READERS},
}


def words_of(tag: str) -> tuple[str, str, str]:
    """Title, unit and better direction of a metric."""
    if tag in _TITLES:
        return _TITLES[tag]
    known = metrics()[tag]
    return known.title, known.unit, known.better


def _number(
    tag: str, estimate: Estimate | None, *, coverage: float | None = None, headline: bool = False
) -> Iterator[Number]:
    if estimate is not None:
        title, unit, better = words_of(tag)
        low, high = estimate.low, estimate.high
        yield Number(tag, title, unit, better, estimate.value, low, high, estimate.basis, coverage, headline)


def _interval(tag: str, given: Interval, *, coverage: float | None = None, headline: bool = False) -> Iterator[Number]:
    if given.value is not None:
        rests: Any = given.basis or "none"
        estimate = Estimate(given.value, given.low, given.high, rests)
        yield from _number(tag, estimate, coverage=coverage, headline=headline)


def _plain(tag: str, value: float | None) -> Iterator[Number]:
    if value is not None:
        yield from _number(tag, Estimate(value, None, None, "none"))


def _scores(quality: QualitySummary) -> Iterator[Number]:
    for score in quality.scores:
        sampled = "exam years" if score.name == BY_EXAM_YEAR else "questions"
        basis = sampled if score.low is not None else "none"
        yield Number(
            f"score_{score.name}",
            score.title,
            "share",
            "higher",
            score.value,
            score.low,
            score.high,
            basis,
            headline=score.headline,
        )
