"""What is missing: a grid of what each measured card has, and the cards that nobody has measured yet."""

from __future__ import annotations

from dataclasses import dataclass

from paribus.catalog import matches
from paribus.catalog.fit import fit
from paribus.catalog.select import stack_name
from paribus.conditions import ParibusError
from paribus.site.page import Site, run_path
from paribus.site.pages.joining import quoted
from paribus.site.pages.names import hardware_title


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


@dataclass(frozen=True)
class Unmeasured:
    """A card without a run: how many stacks of the catalog it could measure, and the command that does."""

    title: str
    stacks: int
    command: str


def grid(site: Site) -> list[GridRow]:
    """What the cards with runs could measure and have: a row a stack, a column a scenario or task."""
    return [_row(site, hardware, stack) for hardware in sorted(_seen(site)) for stack in stacks(site, hardware)]


def unmeasured(site: Site) -> list[Unmeasured]:
    """Cards of the catalog that nobody has measured, by name."""
    names = sorted(set(site.hardware) - _seen(site))
    return [Unmeasured(hardware_title(site, n), len(stacks(site, n)), f"snakemake --profile {n}") for n in names]


def _seen(site: Site) -> set[str]:
    return {str(run.row["hardware"]) for run in site.content.runs.values()}


def stacks(site: Site, hardware: str) -> list[str]:
    """Stacks that a card's profile plans and can run (its glob's, or those of the pairs), and whatever was measured."""
    measured = {str(r.row["stack"]) for r in site.content.runs.values() if r.row["hardware"] == hardware}
    profile = site.hardware.get(hardware)
    if profile is None:
        return sorted(measured)
    able = {name: stack_name(s) for name, s in site.catalog.systems.items() if fit(s, profile).can_run}
    if profile.systems == "pairs":
        planned = set(able.values()) & _sides(site, hardware)
    else:
        planned = {stack for name, stack in able.items() if matches(name, profile.systems)}
    return sorted(planned | measured)


def _sides(site: Site, hardware: str) -> set[str]:
    try:
        pairs = site.catalog.pairs.pairs
    except ParibusError:
        return set()
    return {side for pair in pairs if pair.planned_on(hardware) for side in (pair.left, pair.right)}


def _row(site: Site, hardware: str, stack: str) -> GridRow:
    glob = f"{stack.removesuffix('--think')}--*" + ("--think" if stack.endswith("--think") else "")
    command = f"snakemake --profile {hardware} --config {quoted(f'systems={glob}', 'systems=*')}"
    cells = []
    for measure, title in measures(site).items():
        runs = [
            r
            for r in (*site.content.speed_runs, *site.content.quality_runs)
            if r.row["hardware"] == hardware
            and r.row["stack"] == stack
            and r.row["scenario_or_task"] == measure
            and not r.summary.part
        ]
        href = run_path(runs[0].id) if runs else None
        if runs and measure in site.scenarios:
            href = f"board/{hardware}/{measure}.html"
        systems = len({r.row["decoder"] for r in runs})
        cells.append(GridCell(measure, title, systems, href, f"{command} measures={measure}"))
    return GridRow(hardware, stack, tuple(cells), command)


def measures(site: Site) -> dict[str, str]:
    """What the grid has a column for: all that is planned unasked, and what was measured because it was named."""
    seen = {str(run.row["scenario_or_task"]) for run in site.content.speed_runs}
    speed = {name: s.title for name, s in site.scenarios.items() if not s.external or name in seen}
    return {**speed, **{name: t.title for name, t in site.tasks.items() if t.canary is None}}
