"""What the site is made of: the rows of the results database as frozen objects, read once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from paribus.conditions import EnvironmentFault, Flag, UsageError, decoder_method
from paribus.results.run import RunSummary
from paribus.results.tables import SCHEMA, TABLES

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One published number, as in the table `figures`. `unit` as there: ms, tok/s, x, share, points."""

    figure_id: str
    run_id: str
    other_run_id: str | None
    metric: str
    title: str
    unit: str
    better: str
    value: float
    low: float | None
    high: float | None
    basis: str
    coverage: float | None
    headline: bool
    kind_low: float | None
    kind_high: float | None
    ranked: bool
    superseded_by: str | None
    sentence: str
    detail: dict[str, Any]


@dataclass(frozen=True)
class Score:
    """One score of a quality run, as a share of 1."""

    name: str
    title: str
    value: float
    low: float | None
    high: float | None
    headline: bool
    group: bool


@dataclass(frozen=True)
class Run:
    """One run with everything that belongs to it. `row` is its row of the table `runs`."""

    row: Row
    summary: RunSummary
    figures: Mapping[str, Figure]
    """Figures of this run alone, by metric."""
    ratios: tuple[Figure, ...]
    """Figures that compare this run with another."""
    starts: tuple[Row, ...]
    kinds: tuple[Row, ...]
    flags: tuple[Flag, ...]
    scores: tuple[Score, ...]

    @property
    def id(self) -> str:
        """Permanent id."""
        return str(self.row["run_id"])

    @property
    def demo(self) -> bool:
        """Whether it comes from the demo's results folder."""
        return bool(self.row["demo"])

    @property
    def ranked(self) -> bool:
        """Whether its figures may stand in a ranking."""
        return bool(self.row["ranked"])

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with it: no invalid flag, not superseded. A sound demo run is still not ranked."""
        return not self.superseded and all(flag.severity != "invalid" for flag in self.flags)

    @property
    def superseded(self) -> bool:
        """Whether another run replaces it, or it was taken back."""
        return self.row["superseded_by"] is not None

    @property
    def preliminary(self) -> bool:
        """Whether it was measured at a scale too small for a ranking."""
        return any(flag.id == "preliminary" for flag in self.flags)

    @property
    def requests(self) -> int | None:
        """Requests at once, as declared."""
        value = self.summary.declared.get("requests_at_once")
        return value if isinstance(value, int) else None

    @property
    def decoder_method(self) -> str:
        """The decoder's method, read from its name: `ngram-simple-n4-m4` is `ngram`."""
        return decoder_method(str(self.row["decoder"]))


@dataclass(frozen=True)
class Race:
    """One race between the decoders of a stack: its candidates, tried and not tried."""

    verdict: str
    candidates: tuple[Row, ...]

    @property
    def first(self) -> Row:
        """The first candidate's row: what all share (stack, scenario, metric, date) can be read from it."""
        return self.candidates[0]

    @property
    def tried(self) -> tuple[Row, ...]:
        """Candidates with a result."""
        return tuple(c for c in self.candidates if c["value"] is not None)

    @property
    def not_tried(self) -> tuple[Row, ...]:
        """Candidates without one, each with its reason."""
        return tuple(c for c in self.candidates if c["value"] is None)


@dataclass(frozen=True)
class Content:
    """Everything read from one database."""

    database: Path
    meta: Mapping[str, str]
    runs: Mapping[str, Run]
    races: tuple[Race, ...]
    pairs: tuple[Row, ...]
    """Duels: a row a pair, machine and measure, with the two runs that meet."""
    left_out: tuple[Row, ...]
    """What the last plan left out, and why."""
    lossless: tuple[Row, ...]
    """Verdicts of the lossless gates, a row a gate, decoder and machine."""
    claims: tuple[Row, ...]
    """What others have published, and how it stands beside what was measured."""
    models: Mapping[str, Row]
    tasks: Mapping[str, Row]
    request_digests: Mapping[str, str]
    """A digest of each run's requests or answers: tells whether its page must be rendered again."""
    _connection: duckdb.DuckDBPyConnection = field(repr=False, compare=False)

    @cached_property
    def speed_runs(self) -> tuple[Run, ...]:
        """Runs of speed scenarios that stand in leaderboards: no races, nothing superseded."""
        return tuple(r for r in self.runs.values() if r.row["kind"] == "speed" and not r.superseded)

    @cached_property
    def quality_runs(self) -> tuple[Run, ...]:
        """Runs of quality tasks that nothing superseded. A canary is none: it gives a verdict, not a score."""
        return tuple(
            r
            for r in self.runs.values()
            if r.row["kind"] == "quality" and not r.superseded and all(f.id != "canary" for f in r.flags)
        )

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """Every figure by its permanent id."""
        own = (f for run in self.runs.values() for f in (*run.figures.values(), *run.ratios))
        return {f.figure_id: f for f in own}

    def requests_of(self, run_id: str) -> list[Row]:
        """The measured requests of one run, in order."""
        query = 'SELECT * FROM requests WHERE run_id = ? AND counted ORDER BY start, "index"'
        return _rows(self._connection.execute(query, [run_id]))

    def items_of(self, run_id: str) -> list[Row]:
        """The answers of one quality run, in order."""
        query = "SELECT * FROM items WHERE run_id = ? ORDER BY start, item, repeat"
        return _rows(self._connection.execute(query, [run_id]))

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def read_content(database: Path) -> Content:
    """Everything in a database made by `paribus build`.

    Raises `UsageError` when there is none and `EnvironmentFault` when it was made by another version.
    """
    if not database.is_file():
        raise UsageError(f"there is no results database {database}: run `paribus build` first")
    try:
        connection = duckdb.connect(str(database), read_only=True)
        return _read(database, connection)
    except duckdb.Error as error:
        detail = str(error).splitlines()[0]
        raise EnvironmentFault(f"can't read {database}: {detail}; run `paribus build` again") from error


def _read(database: Path, connection: duckdb.DuckDBPyConnection) -> Content:
    tables = {name: _table(connection, name) for name in TABLES if name not in ("requests", "items", "dictionary")}
    meta = {str(row["key"]): str(row["value"]) for row in tables["meta"]}
    if meta.get("schema", str(SCHEMA)) != str(SCHEMA):
        raise EnvironmentFault(f"{database} has schema {meta['schema']}, this is {SCHEMA}: run `paribus build` again")
    own = {name: _by_run(tables[name]) for name in ("figures", "starts", "kinds", "flags", "scores")}
    runs = {str(row["run_id"]): _run(row, own) for row in tables["runs"]}
    return Content(
        database=database,
        meta=meta,
        runs=runs,
        races=_races(tables["races"]),
        pairs=tuple(tables["pairs"]),
        left_out=tuple(tables["left_out"]),
        lossless=tuple(tables["lossless"]),
        claims=tuple(tables["claims"]),
        models={str(row["model"]): row for row in tables["models"]},
        tasks={str(row["id"]): row for row in tables["tasks"]},
        request_digests=_digests(connection),
        _connection=connection,
    )


def _table(connection: duckdb.DuckDBPyConnection, name: str) -> list[Row]:
    order = ", ".join(f'"{column.strip(chr(34))}"' for column in TABLES[name].order)
    return _rows(connection.execute(f'SELECT * FROM "{name}" ORDER BY {order}'))  # noqa: S608 (names of our own tables)


def _rows(cursor: duckdb.DuckDBPyConnection) -> list[Row]:
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def _by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[str(row["run_id"])].append(row)
    return grouped


def _digests(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    found: dict[str, str] = {}
    for table, order in (("requests", 'r.start, r."index"'), ("items", "r.start, r.item, r.repeat")):
        rows = f"SELECT run_id, md5(string_agg(r::VARCHAR, chr(10) ORDER BY {order})) FROM {table} r GROUP BY 1"  # noqa: S608
        found |= {str(run): str(digest) for run, digest in connection.execute(rows).fetchall()}
    return found


def _run(row: Row, own: Mapping[str, Mapping[str, list[Row]]]) -> Run:
    name = str(row["run_id"])
    figures = [_figure(f) for f in own["figures"].get(name, [])]
    return Run(
        row=row,
        summary=RunSummary.model_validate(_json(row["summary"])),
        figures={f.metric: f for f in figures if f.other_run_id is None},
        ratios=tuple(f for f in figures if f.other_run_id is not None),
        starts=tuple(own["starts"].get(name, [])),
        kinds=tuple(own["kinds"].get(name, [])),
        flags=tuple(
            Flag(id=str(f["flag"]), severity=f["severity"], text=str(f["text"])) for f in own["flags"].get(name, [])
        ),
        scores=tuple(_score(s) for s in own["scores"].get(name, [])),
    )


def _figure(row: Row) -> Figure:
    fields = {name: row[name] for name in Figure.__dataclass_fields__ if name not in ("detail", "superseded_by")}
    # A database of an earlier version has no such column, and no figure of it is superseded.
    return Figure(**fields, superseded_by=row.get("superseded_by"), detail=_json(row["detail"]) or {})


def _score(row: Row) -> Score:
    return Score(**{name: row[name] for name in Score.__dataclass_fields__})


def _races(rows: Iterable[Row]) -> tuple[Race, ...]:
    grouped: dict[tuple[bool, str], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[bool(row["demo"]), str(row["verdict"])].append(row)
    return tuple(Race(verdict, tuple(candidates)) for (_, verdict), candidates in sorted(grouped.items()))


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def parsed(value: Any) -> Any:
    """A JSON column's value, parsed; an empty one is an empty mapping."""
    return _json(value) or {}
