"""`paribus build`: build the results database."""

from __future__ import annotations

import click

from paribus.results.build import build
from paribus.results.run import RESULTS_ROOTS, find_root
from paribus.results.tables import DATA, DATABASE


@click.command(
    epilog="""\b
Examples:
  paribus build
  duckdb build/paribus.duckdb "SELECT system, measure, value FROM figures JOIN runs USING (run_id) WHERE headline"
"""
)
def command() -> None:
    """Build build/paribus.duckdb and build/data/ from every sealed run below results/ and build/demo-results/."""
    built = build(find_root())
    for run in built.unsealed:
        click.echo(f"left out, not sealed yet: {run}")
    for name, reason in sorted(built.unreadable.items()):
        click.echo(f"left out, can't be read: {name}: {reason}")
    if not built.runs:
        click.echo(f"no sealed runs below {' or '.join(RESULTS_ROOTS)}: the database holds the catalog only")
    click.echo(f"{DATABASE}: {built.runs} runs, {len(built.rows['figures'])} figures; data files in {DATA}/")
