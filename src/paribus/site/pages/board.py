"""Leaderboards: one page a card and scenario. The front page shows one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from paribus.results.strip import ORDER, Part, split_strip, strip_of
from paribus.site import words
from paribus.site.charts import Chart, Dot, Group, inline_mark, shape_of
from paribus.site.content import Figure, Race, Run
from paribus.site.page import Page, Site, View, board_path, figure_path, race_id, race_path, run_path
from paribus.site.pages.headline import best_ratio, board_runs, lead_metric, ordered, ranks, ratio_to_plain, shared_time
from paribus.site.pages.names import (
    CPU_TRACK,
    by_model,
    card_name,
    hardware_title,
    labels,
    metric_title,
    run_words,
    scenario_title,
)

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


@dataclass(frozen=True)
class BoardRow:
    """One run in a board: what names it, and its cells."""

    run: Run
    mark: Markup
    label: str
    model: str
    href: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Board:
    """One board, ready for its template. Links are relative to the page that it was made for."""

    hardware: str
    scenario: str
    title: str
    sentence: str
    runs: tuple[Run, ...]
    chart: Chart | None
    strip: tuple[Part, ...]
    columns: tuple[Column, ...]
    rows: tuple[BoardRow, ...]
    races: tuple[Race, ...]
    notes: tuple[str, ...]
    command: str


@dataclass(frozen=True)
class Choice:
    """One link of the choice of cards and scenarios. `runs`: how many runs wait there."""

    hardware: str
    scenario: str
    title: str
    path: str
    runs: int


def pages(site: Site) -> Iterator[Page]:
    """A page for each card and each scenario that is measured or could be."""
    for choice in choices(site):

        def view(choice: Choice = choice) -> View:
            board = make_board(site, choice.hardware, choice.scenario, "../../")
            values = {"board": board, "choices": by_hardware(site), "here": choice}
            return View(values, (board.chart,) if board.chart else ())

        yield Page(choice.path, "board.html", view)


def choices(site: Site) -> list[Choice]:
    """Every card with every headline scenario, and whatever else has runs."""
    seen = {(str(r.row["hardware"]), str(r.row["scenario_or_task"])) for r in site.content.speed_runs}
    offered = {(h, s.scenario) for h in site.hardware for s in site.scenarios.values() if s.headline}
    order = {name: place for place, name in enumerate(site.scenarios)}
    full = {card for card, _ in seen}
    pairs = sorted(
        seen | offered, key=lambda p: (p[0] not in full, p[0] == "cpu", p[0], order.get(p[1], len(order)), p[1])
    )
    return [Choice(h, s, short_title(site, s), board_path(h, s), len(board_runs(site.content, h, s))) for h, s in pairs]


def short_title(site: Site, scenario: str) -> str:
    """A scenario in as few words as a link needs: `1 request, long answers`."""
    found = site.scenarios.get(scenario)
    if found is None:
        return scenario
    thinking = ", thinking" if found.thinking else ""
    return f"{words.count(found.requests, 'request')}, {found.length} answers{thinking}"


def by_hardware(site: Site) -> list[tuple[str, list[Choice]]]:
    """The choices, a line a card."""
    grouped: dict[str, list[Choice]] = {}
    for choice in choices(site):
        grouped.setdefault(choice.hardware, []).append(choice)
    return [(hardware_title(site, name), found) for name, found in grouped.items()]


def make_board(site: Site, hardware: str, scenario: str, base: str) -> Board:
    """The board of one card and scenario, with links for a page that lies `base` below the site's folder."""
    runs = board_runs(site.content, hardware, scenario)
    metric = lead_metric(runs)
    runs = ordered(runs, metric)
    shared, differing = _conditions(runs)
    named = labels(runs)
    conditions = [name for name in differing if name in COLUMNS]
    columns, cells = _table(runs, metric, conditions, base)
    rows = tuple(
        BoardRow(
            run,
            inline_mark(shape_of(run.decoder_method)),
            named[run.id],
            site.model_title(str(run.row["model"])),
            base + run_path(run.id),
            cells[run.id],
        )
        for run in runs
    )
    return Board(
        hardware=hardware,
        scenario=scenario,
        title=scenario_title(site, scenario),
        sentence=finding(site, hardware, scenario),
        runs=tuple(runs),
        chart=_chart(site, (hardware, scenario), runs, metric, named=named, base=base),
        strip=tuple(part for part in shared if part.name not in ("decoder", "flags")),
        columns=columns,
        rows=rows,
        races=_races(site, hardware, scenario),
        notes=_notes(hardware, runs),
        command=f"snakemake --profile {hardware} --config measures={scenario}",
    )


def _conditions(runs: Sequence[Run]) -> tuple[list[Part], list[str]]:
    """What all rows share, and what differs. A model's name is in its row: only precision or thinking make a column."""
    shared, differing = split_strip([strip_of(run.summary) for run in runs])
    if "model" not in differing:
        return shared, differing
    rest = {part.text.partition(", ")[2] for run in runs for part in strip_of(run.summary) if part.name == "model"}
    if len(rest) > 1:
        return shared, differing
    place = next((i for i, part in enumerate(shared) if ORDER.index(part.name) > ORDER.index("model")), len(shared))
    shared.insert(place, Part("model", "precision", rest.pop()))
    return shared, [name for name in differing if name != "model"]


def finding(site: Site, hardware: str, scenario: str) -> str:
    """What one card and scenario say about speculation, in a sentence; empty when nothing can be said."""
    runs = board_runs(site.content, hardware, scenario)
    best = best_ratio(runs)
    if best is None:
        return ""
    run, plain, figure = best
    subject = f"the best speculation tried ({run.row['decoder']})"
    if run.decoder_method == "block-diffusion":
        subject = run_words(run)
    said = words.speedup_sentence(
        subject, run_words(plain), requests=run.requests, ratio=(figure.value, figure.low, figure.high)
    )
    return words.opening(f"{said}.")


def _chart(
    site: Site, place: tuple[str, str], runs: Sequence[Run], metric: str | None, *, named: dict[str, str], base: str
) -> Chart | None:
    if metric is None:
        return None
    hardware, scenario = place
    drawn = [run for run in runs if metric in run.figures]
    groups = []
    for model, group in sorted(by_model(drawn).items(), key=lambda item: (site.model_family(item[0]), item[0])):
        dots = tuple(figure_dot(run.figures[metric], run, named[run.id], base) for run in ordered(group, metric))
        groups.append(Group(site.model_title(model), dots))
    first = drawn[0].figures[metric]
    better = {"higher": "more is better", "lower": "less is better"}.get(first.better, "")
    unit = "s" if first.unit == "ms" else words.shown(1, unit=first.unit).unit
    title = metric_title(metric, unit)
    return Chart(
        name=f"board-{hardware}-{scenario}",
        title=title,
        summary=f"{title} on {card_name(site, hardware, drawn)}, {scenario_title(site, scenario).lower()}: "
        + "; ".join(f"{d.label} {d.printed}" for g in groups for d in g.dots),
        axis=", ".join(part for part in (unit, better, "95% intervals") if part),
        unit=unit,
        groups=tuple(groups),
    )


def figure_dot(figure: Figure, run: Run, label: str, base: str) -> Dot:
    """A figure as a dot; milliseconds become seconds, so that all dots of a chart share one unit."""
    scale = 0.001 if figure.unit == "ms" else 1.0
    unit = "s" if figure.unit == "ms" else figure.unit
    value, low, high = (None if v is None else v * scale for v in (figure.value, figure.low, figure.high))
    return Dot(
        label=label,
        shape=shape_of(run.decoder_method),
        value=value,
        low=low,
        high=high,
        printed=str(words.shown(value, low, high, unit)),
        href=base + run_path(run.id),
    )


def _table(
    runs: Sequence[Run], metric: str | None, conditions: Sequence[str], base: str
) -> tuple[tuple[Column, ...], dict[str, tuple[Cell, ...]]]:
    """The table behind the chart; columns without a single number are left out."""
    placed = ranks(runs, metric) if metric else {}
    strips = {run.id: {part.name: part.text for part in strip_of(run.summary)} for run in runs}
    made: list[tuple[Column, dict[str, Cell]]] = []
    if placed:
        made.append((Column("Rank"), {r.id: Cell(placed.get(r.id, "not ranked")) for r in runs}))
    for name in dict.fromkeys(m for m in (metric, "throughput", "output_speed_standard", shared_time(runs)) if m):
        made.append((_heading(name, runs), {r.id: figure_cell(r.figures.get(name), base) for r in runs}))
        if name == metric:
            ratios = {r.id: figure_cell(ratio_to_plain(r, runs), base) for r in runs}
            made.append((Column("Beside plain", "times as fast"), ratios))
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
    names = {"throughput": "All requests together", "output_speed": "One answer", "output_speed_standard": "One answer"}
    standard = "standard " if metric != "output_speed" else ""
    return Column(names.get(metric, metric), standard + unit)


def figure_cell(figure: Figure | None, base: str) -> Cell:
    """A figure in a table: value, interval below, linked to its permanent page. Times in seconds."""
    if figure is None:
        return Cell("–")
    scale = 0.001 if figure.unit == "ms" else 1.0
    low, high = (None if bound is None else bound * scale for bound in (figure.low, figure.high))
    number = words.shown(figure.value * scale, low, high, "s" if figure.unit == "ms" else figure.unit)
    return Cell(
        number.value + ("%" if number.unit == "%" else ""),
        number.interval,
        figure.value,
        base + figure_path(figure.figure_id),
    )


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


def _races(site: Site, hardware: str, scenario: str) -> tuple[Race, ...]:
    """Races on this card whose winners are measured in this scenario."""
    picks = {s.scenario for s in site.catalog.scenarios.values() if scenario in s.picks_for}
    return tuple(
        r
        for r in site.content.races
        if r.first["hardware"] == hardware and (r.first["scenario"] in picks or r.first["scenario"] == scenario)
    )


def _notes(hardware: str, runs: Sequence[Run]) -> tuple[str, ...]:
    notes = []
    if any(f.basis in ONE_START for run in runs for f in (*run.figures.values(), *run.ratios)):
        notes.append("Intervals of runs with one start say nothing about what differs between starts.")
    if hardware == "cpu":
        notes.append(CPU_TRACK)
    if any(run.demo for run in runs):
        rows = "All rows are" if all(run.demo for run in runs) else "Rows marked so are"
        notes.append(f"{rows} from the demo: a few prompts, one start, on the machine that made this page.")
    elif any(run.preliminary for run in runs):
        notes.append("Preliminary rows were measured at a scale too small for a ranking.")
    return tuple(notes)


__all__ = ["Board", "Choice", "by_hardware", "choices", "finding", "make_board", "pages", "race_id", "race_path"]


def plain_values(run: Run) -> list[Any]:
    """Everything of a run that decides how it is shown elsewhere, as JSON values."""
    return [dict(run.row), [f.figure_id for f in run.figures.values()], [f.id for f in run.flags]]
