"""`paribus compare`: compare two runs, like with like."""

from __future__ import annotations

import dataclasses
import json

import click

from paribus.catalog import Catalog
from paribus.conditions import UsageError
from paribus.results.batches import window_batches
from paribus.results.compare import Comparison, compare
from paribus.results.data import RunData
from paribus.results.gates import SUBJECTS, parse_subjects
from paribus.results.lossless import marked_on_disk
from paribus.results.paired import margin_of
from paribus.results.run import find_root, locate
from paribus.results.strip import strip_line, strip_of


@click.command(
    epilog=f"""\b
What may be the subject: {", ".join(SUBJECTS)}.

\b
Examples:
  paribus compare rabc2defgh2 rijk3lmnop3 --subject decoder
  paribus compare results/h100/A/... results/h100/B/... --subject model,decoder,denoising"""
)
@click.argument("left", metavar="RUN")
@click.argument("right", metavar="RUN")
@click.option("--subject", default="", help="What may differ, separated by commas; it is then named in the sentence.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(left: str, right: str, subject: str, as_json: bool) -> None:
    """Compare two runs, like with like: how many times as fast the first is as the second.

    RUN is a folder, a path below a results folder, or a run id. Ends with 1 and names every difference when the two
    can't be compared.
    """
    root = find_root()
    subjects = parse_subjects(subject)
    runs = [locate(root, text) for text in (left, right)]
    if runs[0].run_id == runs[1].run_id:
        raise UsageError(f"{left} and {right} are the same run, {runs[0].run_id}: give two")
    catalog = Catalog(root)
    sides = marked_on_disk(root, [RunData.read(run) for run in runs], catalog)
    margin = margin_of(catalog, sides[0].summary)
    made = compare(sides[0], sides[1], subjects, window_batches, margin=margin)
    click.echo(json.dumps(as_data(made), indent=1, ensure_ascii=False) if as_json else as_text(made))


def as_text(made: Comparison) -> str:
    """The comparison for a reader: sentences, what differs, notes, and both strips."""
    lines = [text + "." for text in made.sentences()]
    if made.subject:
        lines += ["", "What differs, as declared:", *(f"  {difference}" for difference in made.subject)]
    if made.notes:
        lines += ["", "To know:", *(f"  {note}" for note in made.notes)]
    lines.append("")
    for data, name in zip((made.left, made.right), made.names, strict=True):
        lines.append(f"{name}: {data.summary.run_id}  {strip_line(strip_of(data.summary))}")
    return "\n".join(lines)


def as_data(made: Comparison) -> dict[str, object]:
    """The comparison as JSON."""
    return {
        "left": made.left.summary.run_id,
        "right": made.right.summary.run_id,
        "subject": [{"condition": d.name, "left": d.left, "right": d.right} for d in made.subject],
        "ratios": [
            {**dataclasses.asdict(one), "sentence": said}
            for one, said in zip(made.ratios, made.sentences(), strict=True)
        ],
        "notes": made.notes,
    }
