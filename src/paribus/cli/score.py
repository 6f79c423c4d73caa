"""`paribus score`: score generated answers; no server is needed."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.catalog import Catalog
from paribus.cli._options import catalog_option
from paribus.cli._quality_view import Counting, report
from paribus.conditions import UsageError
from paribus.results.run import find_root, run_at
from paribus.results.seal import seal


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@catalog_option
def command(folder: Path, private: Path | None) -> None:
    """Score the answers in FOLDER: a run (with start-1, ...), one start, or the --out of `paribus quality`.

    \b
    Reads journal.jsonl and writes samples.parquet, samples-lite.parquet (the grades alone) and score.json beside it.
    Programs run in a sandbox only. The same journal gives the same scores; a score by another version of the scorer is
    kept beside the new one. What was generated where there is no sandbox can be scored on another machine: copy the
    folder, name it here, from anywhere.

    \b
    Examples:
      paribus score results/cpu/m-x7k2q/smollm2-135m--q4.1--llamacpp--plain/smoke-aime.demo/0123456789ab.1
      paribus score out/smoke

    Exit codes: 0 scored, 1 the journal is broken or empty, 2 wrong usage or other items, 3 no sandbox.
    """
    from paribus.quality.run import score_start

    starts = starts_of(folder)
    catalog = Catalog(_clone(folder), private)
    for start in starts:
        click.echo(report(score_start(start, catalog, Counting("graded"))))
    run = run_at(folder)
    if run is not None and (run.folder / "summary.json").is_file():
        summary = seal(run, catalog)
        click.echo(f"sealed {summary.run_id} {summary.run} again")


def _clone(folder: Path) -> Path:
    """The clone whose tasks score a run: where we are, else where the run lies, else the one this program is from."""
    for start in (None, folder):
        try:
            return find_root(start)
        except UsageError:
            continue
    return find_root(Path(__file__).parent)


def starts_of(folder: Path) -> list[Path]:
    """The folders below (or at) a folder that hold a journal."""
    if (folder / "journal.jsonl").is_file():
        return [folder]
    starts = sorted(path.parent for path in folder.glob("start-*/journal.jsonl"))
    if not starts:
        raise UsageError(f"{folder} holds no journal.jsonl, nor do folders start-1, start-2, ... in it")
    return starts
