"""`paribus cite`: one figure with its conditions, ready to be cited."""

from __future__ import annotations

import click

from paribus.results.cite import cite
from paribus.results.run import find_root


@click.command(
    epilog="""\b
Examples:
  paribus cite fabc2defgh2
  paribus cite rabc2defgh2
  paribus cite rabc2defgh2 --metric time_to_100 --form bibtex"""
)
@click.argument("what", metavar="FIGURE|RUN")
@click.option("--metric", help="Another figure of the run than the one that leads it.")
@click.option("--form", type=click.Choice(["sentence", "plain", "bibtex", "all"]), default="all", show_default=True)
def command(what: str, metric: str | None, form: str) -> None:
    """One figure in one sentence: number, interval, unit, every condition, date and permanent id.

    FIGURE is a figure's id (f and ten characters). RUN is a run's id, folder or path; then its leading figure is cited.
    """
    citation = cite(find_root(), what, metric)
    parts = {"sentence": citation.sentence, "plain": citation.plain, "bibtex": citation.bibtex}
    click.echo("\n\n".join(parts.values()) if form == "all" else parts[form])
