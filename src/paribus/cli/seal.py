"""`paribus seal`: write a run's manifest and summary when all its starts are there."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.catalog import Catalog
from paribus.cli._options import catalog_option
from paribus.results.run import find_root, locate
from paribus.results.seal import seal


@click.command(
    epilog="""\b
Examples:
  paribus seal results/cpu/m-x7k2q/smollm2-135m--q4-1--llamacpp--plain/c1-short/0a1b2c3d4e5f.1
  paribus seal cpu/m-x7k2q/smollm2-135m--q4-1--llamacpp--plain/c1-short/0a1b2c3d4e5f.1"""
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@catalog_option
def command(runs: tuple[str, ...], private: Path | None) -> None:
    """Write a run's manifest.json and summary.json when all its starts are there.

    RUN is a folder, a path below a results folder, or a run id. Sealing again writes the same bytes.
    """
    root = find_root()
    catalog = Catalog(root, private)
    for text in runs:
        summary = seal(locate(root, text), catalog)
        starts = f"{len(summary.starts)} start{'' if len(summary.starts) == 1 else 's'}"
        click.echo(f"sealed {summary.run_id} {summary.run}: {starts}, {len(summary.flags)} flags")
