"""`paribus site`: render the site from the results database."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from paribus.results.run import find_root
from paribus.results.tables import DATABASE


@click.command(
    epilog="""\b
Examples:
  paribus build && paribus site
  paribus site --open
  paribus site --database build/paribus.duckdb --out public
"""
)
@click.option(
    "--database",
    type=click.Path(path_type=Path),
    help="Results database made by `paribus build`.  [default: build/paribus.duckdb]",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write into.  [default: build/site]")
@click.option("--open", "show", is_flag=True, help="Open the front page in a browser when done.")
def command(database: Path | None, out: Path | None, show: bool) -> None:
    """Render the static site from the results database.

    Pages that didn't change are left as they are. The site needs no server: open its index.html.
    """
    from paribus.site import render_site

    root = find_root()
    rendered = render_site(database or root / DATABASE, out or root / "build" / "site", root)
    for name, reason in sorted(rendered.left_out.items()):
        click.echo(f"left out, can't be shown: {name}: {reason}")
    index = (rendered.out / "index.html").resolve()
    click.echo(f"{rendered.pages} pages, {rendered.changed} changed, {rendered.removed} old files removed.")
    click.echo(f"Look at {index.as_uri()}")
    if show and not webbrowser.open(index.as_uri()):
        click.echo("No browser could be opened here: type that address into one.")
