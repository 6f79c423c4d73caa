"""Claims: who said what under which conditions, what was left out, and how it stands beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from paribus.results.claims import command_of
from paribus.site import words
from paribus.site.content import Row, parsed
from paribus.site.page import Page, Site, View, run_path

NOBODY = "nobody has run this yet"
CONFIRMED = {
    "primary": "seen at its source",
    "secondary": "seen in copies or reports only",
    "not found": "its source was not found",
    "estimate": "an estimate, not a measurement",
}
_CONDITIONS = {
    "card": "card",
    "precision": "precision",
    "requests_at_once": "requests at once",
    "prompts": "prompts",
    "answers": "answers",
    "engine": "engine",
    "settings": "settings",
}


@dataclass(frozen=True)
class Told:
    """What we can say beside a claim: its standing in words, a run to look at, or the command that fills the cell."""

    text: str
    href: str | None = None
    command: str | None = None
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClaimRow:
    """One claim as the table shows it."""

    id: str
    said: str
    against: str
    metric: str
    by: str
    date: str
    sources: tuple[str, ...]
    confirmed: str
    disclosed: tuple[tuple[str, str], ...]
    not_disclosed: tuple[str, ...]
    synthetic: bool
    replica: Told
    ours: Told
    remarks: tuple[tuple[str, str], ...]
    reply: tuple[str, str] | None


@dataclass(frozen=True)
class Group:
    """The claims about one system."""

    title: str
    anchor: str
    rows: tuple[ClaimRow, ...]


def pages(site: Site) -> Iterator[Page]:
    """The page of claims."""

    def view() -> View:
        return View({"groups": groups(site), "counts": counts(site)})

    yield Page("claims.html", "claims.html", view)


def groups(site: Site) -> list[Group]:
    """Claims by system, the system with most claims first; claims in the order of their ids."""
    ordered = sorted(site.content.claims, key=lambda row: (str(row["system"]), str(row["claim"])))
    found = [(name, tuple(_row(row) for row in rows)) for name, rows in groupby(ordered, lambda r: str(r["system"]))]
    found.sort(key=lambda one: (-len(one[1]), one[0]))
    return [Group(name, f"system-{place}", rows) for place, (name, rows) in enumerate(found, 1)]


def counts(site: Site) -> list[tuple[str, str]]:
    """How many claims there are, and how they stand: the front page's three lines."""
    rows = site.content.claims
    by_standing = {name: sum(r["standing"] == name for r in rows) for name in ("replicated", "approximated")}
    missed = sum(r["standing"] == "not reproduced" for r in rows)
    ran = sum(r["standing"] != "not measured" for r in rows)
    ours = sum(r["measured_run_id"] is not None for r in rows)
    replicas = (
        f"{by_standing['replicated']} replicated, {by_standing['approximated']} approximated, {missed} not reproduced"
        if ran
        else NOBODY
    )
    return [
        ("claimed by vendors and reports", f"{len(rows)} on file" if rows else "none on file yet"),
        ("run under their own conditions", replicas),
        ("measured under ours", f"{ours} have a run of ours on the same card" if ours else NOBODY),
    ]


def _row(row: Row) -> ClaimRow:
    file = parsed(row["file"])
    disclosed = file.get("disclosed") or {}
    reply = file.get("reply")
    return ClaimRow(
        id=str(row["claim"]),
        said=str(row["said"] or "no number"),
        against=str(row["against"] or ""),
        metric=str(row["metric"]),
        by=str(row["said_by"]),
        date=str(row["said_on"] or "date not known"),
        sources=tuple(file["sources"]),
        confirmed=f"{CONFIRMED[str(row['confirmed'])]}: {file['confirmed']['where']}",
        disclosed=tuple((word, str(disclosed[key])) for key, word in _CONDITIONS.items() if disclosed.get(key)),
        not_disclosed=tuple(file.get("not_disclosed") or ()),
        synthetic=bool(row["synthetic"]),
        replica=_replica(row),
        ours=_ours(row),
        remarks=tuple((one["text"], one["source"]) for one in file.get("remarks") or ()),
        reply=(reply["text"], _by_whom(reply)) if reply else None,
    )


def _by_whom(reply: dict[str, Any]) -> str:
    return ", ".join(filter(None, (reply["source"], reply.get("date"))))


def _replica(row: Row) -> Told:
    """How the claim stands under its own conditions."""
    if row["scenario"] is None:
        return Told("can't be run: too little was disclosed" if row["about"] == "speed" else "no scenario runs this")
    if row["standing"] == "not measured":
        return Told(NOBODY, command=_command(row, str(row["scenario"])))
    number = _number(row["replica_value"], row["unit"])
    differs: Sequence[str] = parsed(row["differs"]) or ()
    word = "not reproduced under this run's conditions" if row["standing"] == "not reproduced" else row["standing"]
    return Told(f"{word}: {number}", run_path(str(row["replica_run_id"])), why=tuple(differs))


def _ours(row: Row) -> Told:
    """What a run of ours on the same card found, under our conditions."""
    if row["measured_run_id"] is not None:
        number = _number(row["measured_value"], row["unit"])
        return Told(f"{number}, one request, long answers", run_path(str(row["measured_run_id"])))
    if row["about"] not in ("speed", "latency"):
        return Told("–")
    return Told(NOBODY, command=_command(row, None))


def _number(value: float, unit: str | None) -> str:
    shown = words.shown(value, None, None, "")
    return f"{shown.value} {unit or ''}".strip()


def _command(row: Row, scenario: str | None) -> str | None:
    """The command that would fill a cell."""
    return command_of(row["hardware"], parsed(row["file"]).get("ours") or (), scenario)
