"""Rows that don't come from a run: the catalog, what was superseded, the list of columns, and what the database is."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import paribus
from paribus.catalog import Catalog, Plan
from paribus.catalog.workflow import PLAN_FILE
from paribus.conditions import UsageError, figure_id
from paribus.results.reading import read_bytes, read_model
from paribus.results.rows import TableRow
from paribus.results.tables import SCHEMA, TABLES

Tables = dict[str, list[TableRow]]


def superseded(root: Path) -> list[TableRow]:
    """The lines of `results/superseded.csv`: old, new, date, reason. Runs are named by id or by path."""
    folder = root / "results"
    if not (folder / "superseded.csv").is_file():
        return []
    text = read_bytes(folder, "superseded.csv").decode("utf-8", "replace")
    rows = list(csv.DictReader(io.StringIO(text)))
    for number, row in enumerate(rows, 2):
        if set(row) != {"old", "new", "date", "reason"} or not row["old"] or not row["reason"]:
            raise UsageError(f"results/superseded.csv, line {number}: a line is old,new,date,reason; new may be empty")
    return [dict(row) for row in rows]


def left_out(root: Path) -> list[TableRow]:
    """What the last plan left out (`build/plan.json`): a reader must see that it is missing, and why."""
    if not (root / PLAN_FILE).is_file():
        return []
    place = (root / PLAN_FILE).parent
    plan = read_model(place, Path(PLAN_FILE).name, Plan)
    return [
        {"name": one.name, "hardware": plan.hardware, "scale": plan.scale, "reason": one.reason}
        for one in plan.excluded
    ]


def replacements(ids: Mapping[str, str], lines: Iterable[TableRow]) -> dict[str, str]:
    """Id of every superseded run to that of its replacement (empty: it was taken back). `ids`: of all runs, by path.

    Raises `UsageError` for a line about a run that isn't there: a slip would leave what was taken back in a ranking.
    """
    named = [(str(row["old"]), str(row["new"])) for row in lines]
    found = {ids.get(old, old): ids.get(new, new) for old, new in named}
    if unknown := found.keys() - set(ids.values()):
        raise UsageError(f"results/superseded.csv names {min(unknown)}: there is no sealed run of that id or path")
    return found


def supersede(rows: Tables, replaced: Mapping[str, str], newer: Mapping[str, str]) -> None:
    """Superseded runs and ratios stay, name what takes their place, and leave the rankings.

    `replaced`: see `replacements`. `newer`: id of a run to that of the repeat which stands in its place; its own
    numbers stand, while a ratio is always of the last sound repeats.
    """
    for row in rows["runs"]:
        if row["run_id"] in replaced:
            row["superseded_by"], row["ranked"] = replaced[row["run_id"]], False
    known = {row["figure_id"] for row in rows["figures"]}
    for row in rows["figures"]:
        ids = [name for name in (row["run_id"], row["other_run_id"]) if name is not None]
        now = [_now(name, replaced, newer if len(ids) > 1 else {}) for name in ids]
        if now != ids:
            by = figure_id(now, row["metric"])
            row["superseded_by"], row["ranked"] = by if by in known else "", False


def _now(run: str, replaced: Mapping[str, str], newer: Mapping[str, str]) -> str:
    """The run that stands in a run's place today; empty where it was taken back."""
    seen = set()
    while run in replaced and run not in seen:
        seen.add(run)
        run = replaced[run]
    return newer.get(run, run)


def catalog_rows(catalog: Catalog) -> Tables:
    """The tables `models` and `tasks`."""
    models: list[TableRow] = [
        {
            **{name: getattr(m, name) for name in TABLES["models"].names if name != "file"},
            "file": m.model_dump(mode="json"),
        }
        for m in catalog.models.values()
    ]
    speed: list[TableRow] = [
        {
            "id": s.scenario,
            "kind": "race" if s.race else "speed",
            "title": s.title,
            "requests": s.requests,
            "length": s.length,
            "thinking": s.thinking,
            "cap": s.cap,
            "headline": s.headline,
            "file": s.model_dump(mode="json"),
        }
        for s in catalog.scenarios.values()
    ]
    quality: list[TableRow] = [
        {
            "id": t.task,
            "kind": "quality",
            "title": t.title,
            "requests": t.concurrency,
            "cap": t.cap,
            "headline": not t.stand_in,
            "stand_in": t.stand_in,
            "file": t.model_dump(mode="json"),
        }
        for t in catalog.tasks.values()
    ]
    return {"models": models, "tasks": speed + quality}


def about(rows: Tables, catalog: Catalog) -> Tables:
    """The tables `dictionary` and `meta`."""
    dictionary: list[TableRow] = [
        {
            "table_name": table.name,
            "position": place,
            "column_name": column.name,
            "type": column.type,
            "doc": column.doc,
        }
        for table in TABLES.values()
        for place, column in enumerate(table.columns, 1)
    ]
    facts = {
        "schema": SCHEMA,
        "version": paribus.__version__,
        "edition": catalog.pairs.edition,
        "protocol": catalog.pairs.protocol,
        "licence": "CC-BY-4.0",
        "runs": len(rows["runs"]),
        "content": content_hash(rows),
    }
    return {"dictionary": dictionary, "meta": [{"key": key, "value": str(value)} for key, value in facts.items()]}


def content_hash(rows: Mapping[str, Iterable[TableRow]]) -> str:
    """12 hex digits over all rows, whatever their order: two builds of the same runs agree."""
    lines = sorted(
        json.dumps([table, row], sort_keys=True, ensure_ascii=True, default=str)
        for table, found in rows.items()
        if table != "meta"
        for row in found
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
