"""The table behind a chart: its columns, and a cell for every run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paribus.results.strip import strip_of
from paribus.site import words
from paribus.site.content import Figure, Run
from paribus.site.page import figure_path
from paribus.site.pages.headline import ranks, ratio_to_plain, shared_time

COLUMNS = {
    "card": "Card",
    "model": "Model, precision",
    "engine": "Engine",
    "requests": "Requests",
    "answers": "Answers",
    "prompts": "Prompts",
    "sampling": "Sampling",
    "date": "Date",
    "trials": "n, trials",
}
"""Headings of conditions that differ between rows. Decoder and flags are always columns."""


ONE_START = ("prompts", "kinds", "batches")
"""What an interval rests on when there is a single start."""

THESE_PROMPTS = "All requests together: the intervals hold for these prompts; how other prompts would do isn't in them."
"""What a reader must know where a throughput stands with its interval."""


def of_these_prompts(figures: Iterable[Figure | None]) -> bool:
    """Whether any of the figures has an interval that says nothing of other prompts: over starts, or over batches."""
    return any(f is not None and f.low is not None and f.basis in ("starts", "batches") for f in figures)


@dataclass(frozen=True)
class Cell:
    """One cell of a table: printed text, a second, muted text, the number it is sorted by, where it leads."""

    text: str
    small: str = ""
    sort: float | None = None
    href: str | None = None


@dataclass(frozen=True)
class Column:
    """One column: heading, unit below it, whether it holds numbers."""

    title: str
    unit: str = ""
    number: bool = True


def board_table(
    runs: Sequence[Run], metric: str | None, conditions: Sequence[str], base: str
) -> tuple[tuple[Column, ...], dict[str, tuple[Cell, ...]]]:
    """The table behind the chart; columns without a single number are left out."""
    placed = ranks(runs, metric) if metric else {}
    strips = {run.id: {part.name: part.text for part in strip_of(run.summary)} for run in runs}
    made: list[tuple[Column, dict[str, Cell]]] = []
    if placed:
        made.append((Column("Rank"), {r.id: Cell(placed.get(r.id, "not ranked")) for r in runs}))
    # A window's throughput stands in no column beside rows that have none: see `lead_metric`.
    together = "throughput" if all("throughput" in run.figures for run in runs) else None
    for name in dict.fromkeys(m for m in (metric, together, "output_speed_standard", shared_time(runs)) if m):
        made.append((_heading(name, runs), {r.id: figure_cell(r.figures.get(name), base) for r in runs}))
        if name == metric:
            ratios = {r.id: figure_cell(ratio_to_plain(r, runs), base) for r in runs}
            made.append((Column(_beside_plain(runs), "times as fast"), ratios))
    made += [
        (Column("First text after", "ms, median"), {r.id: _speed(r, "ttft") for r in runs}),
        (Column("Answer's length", "tokens, mean"), {r.id: _speed(r, "length") for r in runs}),
        (Column("Checked answers", "right of verifiable"), {r.id: _checked(r) for r in runs}),
        *((Column(COLUMNS[c], number=False), {r.id: Cell(strips[r.id][c]) for r in runs}) for c in conditions),
        (Column("Flags", number=False), {r.id: _flags(r) for r in runs}),
    ]
    kept = [(column, cells) for column, cells in made if any(c.text not in ("", "–") for c in cells.values())]
    return tuple(c for c, _ in kept), {run.id: tuple(cells[run.id] for _, cells in kept) for run in runs}


def _heading(metric: str, runs: Sequence[Run]) -> Column:
    figure = next((r.figures[metric] for r in runs if metric in r.figures), None)
    unit = words.shown(1, unit=figure.unit).unit if figure else ""
    if metric.startswith("time_to_"):
        return Column(f"First {metric.removeprefix('time_to_')} tokens after", "s" if unit == "ms" else unit)
    names = {
        "throughput": "All requests together",
        "throughput_whole_run": "All requests together, whole run, rise and fall included",
        "output_speed": "One answer",
        "output_speed_standard": "One answer",
    }
    return Column(names.get(metric, metric), unit)


def figure_cell(figure: Figure | None, base: str) -> Cell:
    """A figure in a table: value, interval below, linked to its permanent page. Times in seconds."""
    if figure is None:
        return Cell("–")
    scale = 0.001 if figure.unit == "ms" else 1.0
    low, high = (None if bound is None else bound * scale for bound in (figure.low, figure.high))
    number = words.shown(figure.value * scale, low, high, "s" if figure.unit == "ms" else figure.unit)
    return Cell(
        number.value + ("%" if number.unit == "%" else ""),
        "; ".join(part for part in (number.interval, _reached(figure)) if part),
        figure.value,
        base + figure_path(figure.figure_id),
    )


def _beside_plain(runs: Sequence[Run]) -> str:
    """The heading of the ratios: what they are of, then that plain decoding is the other side."""
    ratios = [ratio_to_plain(run, runs) for run in runs]
    names = {r.metric for r in ratios if r is not None}
    texts = {
        f"first {n.removeprefix('speedup_time_to_')} tokens"
        if n.startswith("speedup_time_to_")
        else words.measure_of(n)
        for n in names
    }
    return words.opening(", ".join([" or ".join(sorted(texts)), "beside plain"]))


def _reached(figure: Figure) -> str:
    """Of how many prompts a time to k tokens tells: the others' answers were shorter."""
    if not figure.metric.startswith("time_to_"):
        return ""
    reached, asked = figure.detail.get("reached"), figure.detail.get("asked")
    if isinstance(reached, int) and isinstance(asked, int):
        return f"{reached} of {words.count(asked, 'prompt')}"
    return "" if figure.coverage is None else f"{words.shown(figure.coverage, unit='share').amount} of requests"


BESIDE = {
    "null-agent": "doing nothing gets",
    "lenient": "lenient reading",
    "official": "official rule",
}


def beside(run: Run) -> tuple[str, ...]:
    """What belongs beside a headline score: its budget, the do-nothing floor, and the benchmark's other readings."""
    quality = run.summary.quality
    cut = words.shown(quality.capped_share, unit="share") if quality is not None and quality.capped else None
    budget = quality.within if quality is not None else ""
    said = (f"{budget}: " if budget else "") + f"the cap cut {cut}" if cut is not None else ""
    others = (
        f"{BESIDE[s.name]} {words.shown(s.value, s.low, s.high, 'share')}" for s in run.scores if s.name in BESIDE
    )
    return tuple(text for text in (said, *others) if text)


def _speed(run: Run, what: str) -> Cell:
    summary = run.summary.speed
    if summary is None:
        return Cell("–")
    value = summary.ttft_ms.p50 if what == "ttft" else summary.tokens.mean
    return Cell("–") if value is None else Cell(words.fixed(value, 0), sort=value)


def _checked(run: Run) -> Cell:
    summary = run.summary.speed
    if summary is None or not summary.requests.checked:
        return Cell("–")
    counts = summary.requests
    return Cell(f"{counts.check_passed} of {counts.checked}", sort=counts.check_passed / counts.checked)


def _flags(run: Run) -> Cell:
    names = list(dict.fromkeys(flag.id for flag in run.flags))
    return Cell(", ".join(names) or "none")
