"""`paribus check`: recompute every number of a run from its raw observations; or check a catalog file."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.conditions import CheckFailed
from paribus.results.check import check, table
from paribus.results.findings import Report
from paribus.results.run import find_root


@click.command(
    epilog="""\b
Examples:
  paribus check results/cpu
  paribus check rabc2defgh2
  paribus check systems/smollm2-135m.yaml tasks/speed/prompts/own-v1.jsonl"""
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--grade", is_flag=True, help="Run the answers' code again too, in the sandbox.")
@click.option(
    "--catalog",
    "private",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A private catalog of your own beside ours (the code of its engines runs).",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only what doesn't hold.")
def command(paths: tuple[str, ...], grade: bool, private: Path | None, quiet: bool) -> None:
    """Recompute every number from the raw observations, without a GPU, and say what holds and what doesn't.

    PATH is a run (folder, path below a results folder, or id), a folder of runs, or a file of the catalog or one
    of its folders. Ends with 1 when anything fails.
    """
    report = check(find_root(), paths, grade=grade, private=private.resolve() if private else None)
    for line in lines(report, quiet=quiet):
        click.echo(line)
    if report.failed:
        raise CheckFailed(f"{report.count('fails')} of {len(report.findings)} checks fail")


def lines(report: Report, *, quiet: bool) -> list[str]:
    """What doesn't hold, one line each, then the table of counts."""
    shown = [f for f in report.findings if f.verdict == "fails" or (f.verdict != "holds" and not quiet)]
    told = dict.fromkeys(f"{f.verdict.upper()}  {f.where}: {f.text}" for f in shown)
    if quiet:
        return list(told)
    heading = f"{'subject':<12} {'holds':>6} {'fails':>6} {'warns':>6} {'open':>6}  meaning"
    rows = [f"{s:<12} {h:>6} {b:>6} {w:>6} {n:>6}  {meaning}" for s, h, b, w, n, meaning in table(report)]
    return [*told, *([""] if told else []), heading, *rows]
