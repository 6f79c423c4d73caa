"""`paribus schemas`: write the JSON Schemas of every file format."""

from __future__ import annotations

from pathlib import Path

import click

from paribus.conditions import CheckFailed
from paribus.machine.files import write_atomic
from paribus.results.run import find_root
from paribus.results.schemas import SCHEMAS, drifted, schema_path, schema_text


@click.command(
    epilog="""\b
Examples:
  paribus schemas           write schemas/
  paribus schemas --check   say what is out of date"""
)
@click.option("--check", is_flag=True, help="Write nothing; end with 1 when a schema is out of date.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to (default: schemas/ of the clone).",
)
def command(check: bool, out: Path | None) -> None:
    """Write the JSON Schemas of every file format, generated from the types."""
    folder = out or find_root() / "schemas"
    if check:
        faults = drifted(folder)
        if faults:
            raise CheckFailed(f"{'; '.join(faults)}: run `paribus schemas`")
        click.echo(f"{len(SCHEMAS)} schemas are up to date")
        return
    for name in SCHEMAS:
        write_atomic(schema_path(folder, name), schema_text(name).encode())
    click.echo(f"wrote {len(SCHEMAS)} schemas to {folder.name}/")
