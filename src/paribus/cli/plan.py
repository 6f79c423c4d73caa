"""`paribus plan`: what a profile would run, before anything starts."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table

from paribus.catalog import Plan
from paribus.catalog.workflow import PLAN_FILE, is_running
from paribus.cli._options import config_option, profile_option, read_settings, resolve_here
from paribus.cli._planning import announcement, duration, write_plan
from paribus.results.run import find_root


@click.command(
    epilog="""\b
Examples:
  paribus plan --profile cpu
  paribus plan --profile cpu --config scale=small --config measures='c1-*'
  paribus plan --json | jq .totals
"""
)
@profile_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(profile: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Show what a profile would run: jobs, hours, downloads, disk. Writes build/plan.json; starts nothing."""
    root = find_root()
    plan = resolve_here(root, profile, read_settings(settings), check=True)
    if is_running(root):
        click.echo(f"a workflow is running here: {PLAN_FILE} stays as it is", err=True)
    else:
        write_plan(root / PLAN_FILE, plan)
    if as_json:
        click.echo(plan.model_dump_json(indent=1))
        return
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    if plan.jobs:
        console.print(jobs_table(plan))
    console.print(announcement(plan), markup=False, soft_wrap=not console.is_terminal)


def jobs_table(plan: Plan) -> Table:
    """One row a job, in the order in which they run."""
    table = Table(box=None, pad_edge=False)
    for heading, justify in (("kind", "left"), ("system", "left"), ("start", "right"), ("measures", "left")):
        table.add_column(heading, justify="right" if justify == "right" else "left", overflow="fold")
    table.add_column("estimate", justify="right")
    for job in plan.jobs:
        names = ", ".join(measure.id for measure in job.measures)
        cost = "done" if job.done else duration(job.seconds)
        table.add_row(job.kind, job.system, str(job.start), names, cost)
    return table
