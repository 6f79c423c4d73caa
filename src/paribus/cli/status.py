"""`paribus status`: what is done, what runs, what is missing; and the account that a workflow ends with."""

from __future__ import annotations

import time
from pathlib import Path

import click

from paribus.catalog import Plan
from paribus.catalog.workflow import PLAN_FILE, is_running
from paribus.cli._account import account, failed_log
from paribus.cli._options import config_option, read_settings, resolve_here
from paribus.cli._planning import announcement, as_it_stands, read_plan
from paribus.conditions import harmless
from paribus.results.run import find_root

LAST_LINES = 8


@click.command(
    epilog="""\b
Examples:
  paribus status
  paribus status --profile cpu --config scale=small
"""
)
@click.option("--profile", help="Hardware profile.  [default: what was started last in this folder]")
@config_option
@click.option(
    "--closing", is_flag=True, help="The account of the workflow that just ended: where time went, where to look."
)
@click.option("--failed", is_flag=True, help="The end of the log of the step that failed last.")
@click.option("--since", type=float, default=0.0, help="Only what happened since then (seconds since the epoch).")
def command(profile: str | None, settings: tuple[str, ...], closing: bool, failed: bool, since: float) -> None:
    """Say what is done, what is running and what is missing."""
    root = find_root()
    if closing:
        click.echo(account(root, read_plan(root / PLAN_FILE), since, time.time()))
    elif failed:
        click.echo(failure(root, since), err=True)
    else:
        click.echo(overview(root, _plan(root, profile, settings)))


def _plan(root: Path, profile: str | None, settings: tuple[str, ...]) -> Plan:
    if profile is None and not settings and (root / PLAN_FILE).exists():
        return as_it_stands(root, read_plan(root / PLAN_FILE))
    return resolve_here(root, profile or "cpu", read_settings(settings))


def overview(root: Path, plan: Plan) -> str:
    """Jobs by kind, runs sealed, races decided, and what comes next."""
    lines = [announcement(plan)]
    for kind in ("race", "speed", "quality"):
        jobs = [job for job in plan.jobs if job.kind == kind]
        if jobs:
            lines.append(f"{kind}: {sum(job.done for job in jobs)} of {len(jobs)} server starts measured")
    sealed = sum((root / plan.results / run.run / "manifest.json").exists() for run in plan.runs)
    lines.append(f"runs sealed: {sealed} of {len(plan.runs)}")
    if plan.races:
        lines.append(f"races decided: {sum(race.decided for race in plan.races)} of {len(plan.races)}")
    running = is_running(root)
    lines.append("a workflow is running in this folder" if running else "no workflow is running in this folder")
    following = next((job for job in plan.jobs if not job.done), None)
    if following is not None:
        measures = ", ".join(measure.id for measure in following.measures)
        lines.append(f"{'now' if running else 'next'}: {following.system}, start {following.start}: {measures}")
    return "\n".join(lines)


def failure(root: Path, since: float) -> str:
    """What went wrong, in the failed step's own words, and what to type next."""
    log = failed_log(root, since)
    if log is None:
        return "Stopped before a step began. What is measured is kept: the same command continues."
    shown = "\n".join(f"  {harmless(line)}" for line in _heart(log)) or "  (the log is empty)"
    return (
        f"Stopped. The last step's log ends with:\n{shown}\n"
        f"All of it: {log.relative_to(root)}\n"
        "What is measured is kept: the same command continues."
    )


def _heart(log: Path) -> list[str]:
    """What a log says about a failure: from the command's own sentence on, else its last lines."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [number for number, line in enumerate(lines) if line.startswith("paribus: ")]
    if not said:
        return lines[-LAST_LINES:]
    rest = lines[said[-1] + 1 :]
    return [lines[said[-1]], *rest[-LAST_LINES:]]
