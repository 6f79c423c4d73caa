"""`paribus export`: quality runs in the formats of others."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.catalog import Catalog
from paribus.conditions import UsageError
from paribus.results.run import RunSummary, all_runs, find_root, locate, read_summary


@click.group()
def command() -> None:
    """Quality runs in the formats of others."""


@command.command(
    epilog="""\b
Examples:
  paribus export eee rabc2defgh2 --out out/eee
  paribus export eee --all --out out/eee"""
)
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every published quality run (the demo's are left out).")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder to write below.")
def eee(runs: tuple[str, ...], every: bool, out: Path) -> None:
    """Write sealed quality runs as `every_eval_ever` 0.3.0: an aggregate record a run, an instance record an answer.

    RUN is a folder, a path below a results folder, or a run id. Texts of items whose licence doesn't allow it (AIME,
    LiveCodeBench) are not written: ids and hashes stand in their place. Writing again gives the same bytes.
    """
    from paribus.results.eee_files import write_run

    if every == bool(runs):
        raise UsageError("give the runs to export, or --all for every published one")
    root = find_root()
    places = [locate(root, text) for text in runs] if runs else [run for run in all_runs(root) if not run.demo]
    sealed = [place for place in places if runs or (place.folder / "summary.json").is_file()]
    chosen = [place for place in sealed if runs or _is_score(read_summary(place))]
    if not chosen:
        raise UsageError("there is no published quality run yet")
    catalog = Catalog(root)
    for place in chosen:
        path, count = write_run(place, catalog, out)
        click.echo(f"{path}: {count} answers of {place.run_id}")


def _is_score(run: RunSummary) -> bool:
    """Whether a run is a quality run that gives a score: a canary gives a verdict on a decoder."""
    return run.kind == "quality" and all(flag.id != "canary" for flag in run.flags)
