"""`paribus claim`: one published claim, its conditions, what was left out, and how to run it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from paribus.catalog import Catalog
from paribus.catalog.claims import Claim
from paribus.conditions import UsageError
from paribus.results.claims import command_of
from paribus.results.run import find_root
from paribus.results.tables import DATABASE


@click.command(
    epilog="""\b
Examples:
  paribus claim c008
  paribus claim c008 --json
  paribus show claims"""
)
@click.argument("name", metavar="CLAIM")
@click.option("--json", "as_json", is_flag=True, help="Print the claim's file and its standing as JSON.")
def command(name: str, as_json: bool) -> None:
    """Who said what under which conditions, what was left out, how it stands here, and the command that runs it.

    CLAIM is an id (`paribus show claims` lists them). How it stands comes from the last `paribus build`.
    """
    root = find_root()
    claims = Catalog(root).claims
    claim = claims.get(name.lower())
    if claim is None:
        raise UsageError(
            f"there is no claim {name!r}: `paribus show claims` lists {len(claims)}, from {min(claims)} on"
        )
    standing, differs = _standing(root / DATABASE, claim.claim)
    if as_json:
        told = claim.model_dump(mode="json", exclude_none=True) | {"standing": standing, "differs": differs}
        click.echo(json.dumps(told, ensure_ascii=False, indent=1))
        return
    for label, text in lines(claim, standing, differs):
        click.echo(f"{label:<15} {text}")


def lines(claim: Claim, standing: str, differs: list[str]) -> Iterator[tuple[str, str]]:
    """The claim as labels and texts."""
    numbers = "; ".join(number.text for number in claim.numbers) or "no number"
    yield "claim", f"{claim.claim}: {claim.system}, {claim.metric}: {numbers}"
    if claim.against:
        yield "against", "; ".join(number.text for number in claim.against)
    yield "by", f"{claim.by}, {claim.date or 'date not known'}"
    given = claim.disclosed.model_dump(exclude_none=True)
    yield "disclosed", "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in given.items()) or "nothing"
    yield "not disclosed", ", ".join(claim.not_disclosed) or "nothing that we know of"
    yield "seen", f"{claim.confirmed.status}: {claim.confirmed.where}"
    for source in claim.sources:
        yield "source", source
    for remark in claim.remarks:
        yield "remark", f"{remark.text} ({remark.source})"
    if claim.reply:
        yield "reply", f"{claim.reply.text} ({claim.reply.source})"
    yield "stands", standing + (f"; differs: {'; '.join(differs)}" if differs else "")
    yield "to run it", how_to_run(claim)


def how_to_run(claim: Claim) -> str:
    """The command that runs the claim's scenario on its card, or why there is none."""
    command = command_of(claim.hardware, claim.ours, claim.scenario) if claim.scenario else None
    return command or "too little was disclosed for a scenario of its own"


def _standing(database: Path, name: str) -> tuple[str, list[str]]:
    """How a claim stood at the last build."""
    if not database.is_file():
        return "not measured (nothing has been built here: `paribus build`)", []
    import duckdb

    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            row = connection.execute("SELECT standing, differs FROM claims WHERE claim = ?", [name]).fetchone()
    except duckdb.Error:
        row = None
    if row is None:
        return "not known: the database was built before this claim, run `paribus build` again", []
    return str(row[0]), list(json.loads(row[1] or "[]"))
