"""The front page: what this is, what was found, the chart, its table, what is missing, claims, how to cite and help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from paribus.catalog import matches
from paribus.conditions import ParibusError
from paribus.site import words
from paribus.site.content import Run
from paribus.site.page import Page, Site, View, pair_path, run_path
from paribus.site.pages.board import Choice, by_hardware, choices, finding, make_board
from paribus.site.pages.headline import best_ratio, board_runs
from paribus.site.pages.names import card_name

_SAFE = re.compile(r"[A-Za-z0-9_./=*-]+")


@dataclass(frozen=True)
class GridCell:
    """One cell of the coverage grid: how many systems were measured, and the page that shows them."""

    measure: str
    title: str
    count: int
    href: str | None
    command: str


@dataclass(frozen=True)
class GridRow:
    """One stack on one card: its cells, and the command that fills the row."""

    hardware: str
    stack: str
    cells: tuple[GridCell, ...]
    command: str


def pages(site: Site) -> Iterator[Page]:
    """The front page."""

    def view() -> View:
        chosen = choose(site)
        board = make_board(site, chosen.hardware, chosen.scenario, "") if chosen else None
        values = {
            "board": board,
            "here": chosen,
            "choices": by_hardware(site),
            "found": found(site, chosen),
            "grid": coverage(site),
            "measures": [*site.scenarios, *site.tasks],
            "duels": duels(site),
            "cite": _cite(site, board.runs if board else ()),
            "measured": bool(site.content.runs),
        }
        return View(values, (board.chart,) if board and board.chart else ())

    yield Page("index.html", "index.html", view)


def choose(site: Site) -> Choice | None:
    """What the front page shows: a card before the cpu, whole results before preliminary ones, then long answers at 1."""
    open_choices = choices(site)

    def key(choice: Choice) -> tuple[bool, bool, bool, bool, str]:
        runs = board_runs(site.content, choice.hardware, choice.scenario)
        whole = any(r.ranked and not r.preliminary and not r.demo for r in runs)
        return (not runs, not whole, choice.hardware == "cpu", choice.scenario != "c1-long", choice.path)

    return min(open_choices, key=key, default=None)


def found(site: Site, chosen: Choice | None) -> str:
    """What was found on the chosen card, with one request and with several, in one sentence with intervals."""
    if chosen is None:
        return ""
    parts: list[str] = []
    length = "long" if chosen.scenario.endswith("long") else "short"
    runs: list[Run] = []
    for scenario in (f"c1-{length}", f"c16-{length}"):
        here = board_runs(site.content, chosen.hardware, scenario)
        best = best_ratio(here)
        if best is not None:
            parts.append(_clause(best[0], best[2].value, best[2].low, best[2].high, first=not parts))
            runs += here
    if not parts:
        said = finding(site, chosen.hardware, chosen.scenario)
        return said or ""
    where = (
        f"the cpu track ({card_name(site, 'cpu', runs)})"
        if chosen.hardware == "cpu"
        else f"the {card_name(site, chosen.hardware, runs)}"
    )
    return f"On {where}, {'; '.join(parts)}."


def _clause(run: Run, value: float, low: float | None, high: float | None, *, first: bool) -> str:
    """One half of the finding; the first names both decoders, the second only what changes."""
    number = words.shown(value, low, high, "x")
    many = run.requests or 1
    load = words.requests_at_once(run.requests) if first or many == 1 else f"with {many} at once"
    distinct = words.clear(low, high)
    subject = f"the best speculation tried ({run.row['decoder']})"
    if run.decoder_method == "block-diffusion":
        subject = "block diffusion"
    if distinct is False:
        between = f" between {subject} and plain decoding" if first else ""
        return f"{load} there is {words.NO_DIFFERENCE}{between} ({number.value} times as fast {number.interval})"
    if distinct is None:
        tail = "in a single start, which allows no verdict"
        if first:
            return f"{subject} wrote {number.value} times as fast as plain decoding {load} {tail}"
        return f"{load} {number.value} times as fast, {tail}"
    if first:
        return f"{subject} writes {number.value} times as fast as plain decoding {load} {number.interval}"
    return f"{load} {number.value} times as fast {number.interval}"


def duels(site: Site) -> list[tuple[str, str]]:
    """Titles and pages of the duels, for every card that has runs of them."""
    try:
        titles = {pair.pair: pair.title for pair in site.catalog.pairs.pairs}
    except ParibusError:
        return []
    seen = sorted({(str(row["hardware"]), str(row["pair"])) for row in site.content.pairs if row["pair"] in titles})
    return [(f"{titles[pair]} ({card})", pair_path(card, pair)) for card, pair in seen]


def coverage(site: Site) -> list[GridRow]:
    """What each card could measure and has: a row a stack, a column a scenario or task."""
    rows = []
    for hardware in site.hardware:
        for stack in planned_stacks(site, hardware):
            rows.append(_grid_row(site, hardware, stack))
    return rows


def planned_stacks(site: Site, hardware: str) -> list[str]:
    """Stacks that a card's profile plans: those its glob names, or those of the pairs; and whatever was measured."""
    wanted = site.hardware[hardware].systems
    names = {"--".join([*s.name.stack]) + ("--think" if s.name.think else "") for s in site.catalog.systems.values()}
    if wanted == "pairs":
        sides = {side for pair in site.catalog.pairs.pairs for side in (pair.left, pair.right)}
        planned = names & sides
    else:
        systems = [s for name, s in site.catalog.systems.items() if matches(name, wanted)]
        planned = {"--".join(s.name.stack) + ("--think" if s.name.think else "") for s in systems}
    measured = {str(r.row["stack"]) for r in site.content.runs.values() if r.row["hardware"] == hardware}
    return sorted(planned | measured)


def _grid_row(site: Site, hardware: str, stack: str) -> GridRow:
    glob = f"{stack.removesuffix('--think')}--*" + ("--think" if stack.endswith("--think") else "")
    command = f"snakemake --profile {hardware} --config {_quoted(f'systems={glob}')}"
    cells = []
    for measure, title in _measures(site).items():
        runs = [
            r
            for r in (*site.content.speed_runs, *site.content.quality_runs)
            if r.row["hardware"] == hardware and r.row["stack"] == stack and r.row["scenario_or_task"] == measure
        ]
        href = run_path(runs[0].id) if runs else None
        if runs and measure in site.scenarios:
            href = f"board/{hardware}/{measure}.html"
        systems = len({r.row["decoder"] for r in runs})
        cells.append(GridCell(measure, title, systems, href, f"{command} measures={measure}"))
    return GridRow(hardware, stack, tuple(cells), command)


def _measures(site: Site) -> dict[str, str]:
    speed = {name: s.title for name, s in site.scenarios.items()}
    return {**speed, **{name: t.title for name, t in site.tasks.items()}}


def _quoted(argument: str) -> str:
    """An argument for a shell: quoted, and only if it is made of plain characters (names are, hostile ones are not)."""
    return f"'{argument}'" if _SAFE.fullmatch(argument) else "'systems=*'"


def _cite(site: Site, runs: tuple[Run, ...]) -> str:
    dates = sorted(words.date(run.row["started_at"]) for run in runs)
    when = f", measured {dates[-1]}" if dates else ""
    return f"Paribus. {site.edition}{when}."
