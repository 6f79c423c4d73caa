"""Leaderboards: one page a card and scenario. The front page shows one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from paribus.results.lossless import NOT_LOSSLESS
from paribus.results.strip import ORDER, Part, split_strip, strip_of
from paribus.site import words
from paribus.site.charts import Chart, Dot, Group, inline_mark, shape_of
from paribus.site.content import Figure, Race, Run
from paribus.site.page import Page, Site, View, board_path, run_path
from paribus.site.pages.headline import best_ratio, board_runs, lead_metric, ordered
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
from paribus.site.pages.table import (
    COLUMNS,
    ONE_START,
    THESE_PROMPTS,
    Cell,
    Column,
    board_table,
    of_these_prompts,
)

SAME = ("edition", "protocol", "track", "scale", "cap", "prompts", "prompts_hash", "sampling_profile", "window")
"""Declared conditions that all rows of one ranking share."""
SAME_CARD = ("card", "card_variant", "card_count", "power_limit_w", "clock_state")
"""Observed ones: a profile's card has variants, and its limits can be set; none of them meet in one ranking."""


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
class BoardPart:
    """Runs that may meet in one ranking: same edition, track, scale, prompts, caps; published or of the demo."""

    title: str
    demo: bool
    runs: tuple[Run, ...]
    chart: Chart | None
    strip: tuple[Part, ...]
    columns: tuple[Column, ...]
    rows: tuple[BoardRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Board:
    """One card and scenario, ready for its template; the part that matters most first. Links fit the page it is for."""

    hardware: str
    scenario: str
    title: str
    sentence: str
    parts: tuple[BoardPart, ...]
    races: tuple[Race, ...]
    notes: tuple[str, ...]
    command: str

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts of all parts."""
        return tuple(part.chart for part in self.parts if part.chart is not None)


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
            lines = by_hardware(site, choice.hardware)
            values = {"board": board, "choices": lines, "rest": first_choices(site, choice.hardware), "here": choice}
            return View(values, board.charts)

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


def by_hardware(site: Site, here: str | None = None) -> list[tuple[str, list[Choice]]]:
    """The choices of every card with runs, and of the card that is shown: a line a card."""
    grouped: dict[str, list[Choice]] = {}
    for choice in choices(site):
        grouped.setdefault(choice.hardware, []).append(choice)
    shown = {name: found for name, found in grouped.items() if name == here or any(choice.runs for choice in found)}
    return [(hardware_title(site, name), found) for name, found in shown.items()]


def first_choices(site: Site, here: str | None = None) -> list[tuple[str, Choice]]:
    """The cards that nobody has measured yet, each with its first choice."""
    firsts: dict[str, Choice] = {}
    measured = {choice.hardware for choice in choices(site) if choice.runs} | {here}
    for choice in choices(site):
        if choice.hardware not in measured:
            firsts.setdefault(choice.hardware, choice)
    return [(hardware_title(site, name), choice) for name, choice in firsts.items()]


def make_board(site: Site, hardware: str, scenario: str, base: str) -> Board:
    """The board of one card and scenario, with links for a page that lies `base` below the site's folder."""
    runs = board_runs(site.content, hardware, scenario)
    groups = comparable(runs)
    cards = [_card(group[0]) for group in groups]
    parts = [
        _part(
            site,
            f"board-{hardware}-{scenario}{f'-{number}' if number else ''}",
            group,
            base,
            several=len(groups) > 1,
            card=card if len(set(cards)) > 1 else "",
        )
        for number, (group, card) in enumerate(zip(groups, cards, strict=True))
    ]
    return Board(
        hardware=hardware,
        scenario=scenario,
        title=scenario_title(site, scenario),
        sentence=finding(site, hardware, scenario),
        parts=tuple(parts),
        races=_races(site, hardware, scenario),
        notes=(CPU_TRACK,) if hardware == "cpu" else (),
        command=f"snakemake --profile {hardware} --config measures={scenario}",
    )


def comparable(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs in groups that may meet in one ranking: published before demo, whole before preliminary, newest first."""
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        seen = (run.summary.observed.get(name) for name in SAME_CARD)
        key = repr([run.demo, *(run.summary.declared.get(name) for name in SAME), *seen])
        grouped.setdefault(key, []).append(run)

    def order(group: list[Run]) -> tuple[bool, bool, int, str]:
        newest = max(words.date(run.row["started_at"]) for run in group)
        return (group[0].demo, all(r.preliminary for r in group), -int(newest.replace("-", "") or 0), group[0].id)

    return sorted(grouped.values(), key=order)


def _card(run: Run) -> str:
    """The card of a run, as its conditions strip has it."""
    return next((part.text for part in strip_of(run.summary) if part.name == "card"), "")


def _part(site: Site, name: str, group: Sequence[Run], base: str, *, several: bool, card: str) -> BoardPart:
    metric = lead_metric(group)
    runs = ordered(group, metric)
    shared, differing = _conditions(runs)
    named = labels(runs)
    columns, cells = board_table(runs, metric, [c for c in differing if c in COLUMNS], base)
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
    kind = "Demo run" if runs[0].demo else "Published"
    return BoardPart(
        title=f"{kind}, {runs[0].row['scale']} scale{f', {card}' if card else ''}" if several else "",
        demo=runs[0].demo,
        runs=tuple(runs),
        chart=_chart(site, name, runs, metric, named=named, base=base),
        strip=tuple(part for part in shared if part.name not in ("decoder", "flags")),
        columns=columns,
        rows=rows,
        notes=_notes(runs),
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
        subject,
        run_words(plain),
        requests=run.requests,
        ratio=(figure.value, figure.low, figure.high),
        measure=words.measure_of(figure.metric),
    )
    return words.opening(f"{said}.")


def _chart(
    site: Site, name: str, runs: Sequence[Run], metric: str | None, *, named: dict[str, str], base: str
) -> Chart | None:
    if metric is None:
        return None
    hardware, scenario = str(runs[0].row["hardware"]), str(runs[0].row["scenario_or_task"])
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
        name=name,
        title=title,
        summary=f"{title} on {card_name(site, hardware, drawn)}, {scenario_title(site, scenario).lower()}: "
        + "; ".join(f"{d.label} {d.printed}" for g in groups for d in g.dots),
        axis=", ".join(part for part in (unit, better) if part),
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
        printed=words.short(words.shown(value, low, high, unit)),
        href=base + run_path(run.id),
    )


def _races(site: Site, hardware: str, scenario: str) -> tuple[Race, ...]:
    """Races on this card whose winners are measured in this scenario."""
    picks = {s.scenario for s in site.catalog.scenarios.values() if scenario in s.picks_for}
    return tuple(
        r
        for r in site.content.races
        if r.first["hardware"] == hardware and (r.first["scenario"] in picks or r.first["scenario"] == scenario)
    )


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    notes = []
    if any(run.demo for run in runs):
        notes.append("From the demo: a few prompts, one start, on the machine that made this page.")
    elif any(run.preliminary for run in runs):
        notes.append("Preliminary: measured at a scale too small for a ranking.")
    notes += [f"{run.row['decoder']}: {f.text}" for run in runs for f in run.flags if f.id == NOT_LOSSLESS]
    if any(f.basis in ONE_START for run in runs for f in (*run.figures.values(), *run.ratios)):
        notes.append("One start: the intervals say nothing about what differs between starts.")
    if of_these_prompts(run.figures.get("throughput") for run in runs):
        notes.append(THESE_PROMPTS)
    return tuple(notes)
