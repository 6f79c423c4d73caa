"""`paribus show`: what is in the catalog, and what races have found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from paribus.catalog import Catalog, HardwareFile, QualityTask, Scenario, Surroundings, Verdict
from paribus.catalog.configuration import COMMITTED, NOT_COMMITTED
from paribus.catalog.fit import VERDICTS
from paribus.catalog.races import read_verdict
from paribus.cli._systems_view import matrix, reasons, rows_of
from paribus.machine import memory_gb
from paribus.results.run import find_root


def _catalog(private: Path | None = None) -> Catalog:
    return Catalog(find_root(), private)


def _print(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if Console().is_terminal else 200, highlight=False, markup=False).print(table)


@click.group(
    epilog="""\b
Examples:
  paribus show systems 'smollm2*'
  paribus show scenarios
"""
)
def command() -> None:
    """List systems, hardware profiles, scenarios and tasks, claims, or what races have found."""


@command.command(
    epilog="""\b
Examples:
  paribus show systems
  paribus show systems 'gemma-4*' --card h100
  paribus show systems --card rtx-5090 --verdict runs --all
"""
)
@click.argument("globs", required=False, default="*")
@click.option("--card", "cards", metavar="GLOBS", help="Only these hardware profiles, each with the reasons.")
@click.option("--verdict", type=click.Choice(list(VERDICTS)), help="Only systems that get this verdict.")
@click.option("--all", "every", is_flag=True, help="Each decoder and thinking mode on a line of its own.")
@click.option("--json", "as_json", is_flag=True, help="Each system on each card as JSON.")
@click.option(
    "--catalog",
    "private",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A private catalog of your own beside ours (the code of its engines runs).",
)
def systems(
    globs: str, *, cards: str | None, verdict: str | None, every: bool, as_json: bool, private: Path | None
) -> None:
    """What runs where: systems whose name (or model) matches GLOBS, on every card, and why not."""
    catalog = _catalog(private.resolve() if private else None)
    around = Surroundings.observe(catalog, "unlabelled", memory_gb=memory_gb())
    rows = [row for row in rows_of(catalog, around, globs, cards or "*") if verdict in (None, row.fit.verdict)]
    if as_json:
        click.echo(json.dumps([row.json() for row in rows], indent=1))
    elif not rows:
        click.echo(f"none of them: {verdict}")
    elif cards or every or verdict:
        click.echo("\n".join(reasons(rows, every=every)))
    else:
        click.echo("\n".join(matrix(rows)))


@command.command()
@click.argument("profile", required=False)
def hardware(profile: str | None) -> None:
    """Every hardware profile with its defaults; with PROFILE, the variants of its card and what is in doubt."""
    catalog = _catalog()
    if profile is not None:
        _show_card(catalog.hardware(profile))
        return
    names = sorted(path.parent.name for path in catalog.root.glob("hardware/*/hardware.yaml"))
    profiles = [catalog.hardware(name) for name in names]
    _print(("profile", "card", "scale", "systems"), [(p.hardware, p.card.title, p.scale, p.systems) for p in profiles])


def _show_card(profile: HardwareFile) -> None:
    """The variants by what they are proven with, then doubts and the rest of what the file says in words."""
    columns = ("variant", "PCI or chip", "cores", "GB", "GB/s", "W")
    rows = [
        (
            v.title,
            v.chip or ", ".join(v.pci_device_ids),
            *("" if n is None else f"{n:,g}" for n in (v.cores, v.memory_gb, v.bandwidth_gb_s, v.power_limit_w)),
        )
        for v in profile.card.variants
    ]
    if rows:
        _print(columns, rows)
    doubts = [f"  {v.title}: {name}: {why}" for v in profile.card.variants for name, why in v.unverified.items()]
    if doubts:
        click.echo("\n".join(["unverified:", *doubts]))
    for exclusion in profile.exclusions:
        click.echo(f"left out: {exclusion.systems}: {exclusion.reason}")
    click.echo(profile.note.strip() or profile.card.title)


def _repeats(task: QualityTask) -> str:
    """Repeats of the standard budget, and of the full one where it asks more often."""
    standard = task.repeats_of("standard")
    return str(standard) if standard == task.repeats else f"{standard} (full: {task.repeats})"


@command.command()
def scenarios() -> None:
    """Every speed scenario, quality task and scale."""
    catalog = _catalog()
    speed = [
        (s.scenario, s.title, f"{s.requests} at once, cap {s.cap:,}" + _origin(catalog, s))
        for s in catalog.scenarios.values()
    ]
    tasks = [(t.task, t.title, f"{t.data.count:,} items x {_repeats(t)}") for t in catalog.tasks.values()]
    scales = [
        (s.scale, "scale", f"{s.starts} starts, window {s.window_s:g} s" + (", preliminary" if s.preliminary else ""))
        for s in catalog.scales.values()
    ]
    _print(("id", "what", "how much"), [*speed, *tasks, *scales])


def _origin(catalog: Catalog, scenario: Scenario) -> str:
    """Where prompts that are not ours come from, and that such a scenario must be named."""
    source = catalog.prompt_sources.get(scenario.prompts)
    return f"; only when named, prompts of {source.origin}" if source else ""


@command.command()
def claims() -> None:
    """What vendors and reports have claimed about speed or quality."""
    found = _catalog().claims.values()
    if not found:
        click.echo("no claim is on file yet")
        return
    rows = [
        (c.claim, c.system, "; ".join(n.text for n in c.numbers) or c.metric, c.hardware or "", c.by) for c in found
    ]
    _print(("claim", "system", "said", "card", "by"), rows)


@command.command()
def tuning() -> None:
    """Every race that has been decided: all candidates, the winner first."""
    root = find_root()
    verdicts = sorted(path for top in (COMMITTED, NOT_COMMITTED) for path in (root / top).glob("*/*/*/*/*/race.json"))
    if not verdicts:
        click.echo("no race has been decided yet: snakemake --profile cpu tune")
    for path in verdicts:
        verdict = read_verdict(path)
        if verdict is not None:
            _show_verdict(path.relative_to(root), verdict)


def _show_verdict(place: Path, verdict: Verdict) -> None:
    click.echo(f"{verdict.stack}, {verdict.scenario} ({place.parts[-6]}, {place.parts[-5]}): {verdict.winner} wins")
    if verdict.plain_is_faster:
        click.echo("  plain decoding is faster than every candidate")
    ordered = sorted(verdict.candidates, key=lambda c: (c.decoder != verdict.winner, -(c.value or 0)))
    rows = []
    for c in ordered:
        value = "none" if c.value is None else f"{c.value:.3g} {verdict.unit}"
        interval = "" if c.low is None or c.high is None else f"{c.low:.3g} to {c.high:.3g}"
        rows.append((f"  {c.decoder}", value, interval, c.left_out or ", ".join(c.flags)))
    rows += [(f"  {name}", "not tried", "", why) for name, why in verdict.not_tried.items()]
    _print(("  decoder", verdict.metric, "95% interval", "note"), rows)
