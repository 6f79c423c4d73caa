"""One figure in one sentence with everything that belongs to it, ready to be cited."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from paribus.conditions import UsageError
from paribus.results.lossless import NOT_LOSSLESS
from paribus.results.run import locate
from paribus.results.strip import SEPARATOR
from paribus.results.tables import DATABASE
from paribus.results.words import BASIS, with_interval
from paribus.speed.statistics import Estimate

FIGURE = re.compile(r"f[a-z2-7]{10}")
NOT_FOR_CITING = "A demo figure, not for citing"


@dataclass(frozen=True)
class Citation:
    """A figure ready to be cited: the sentence, a plain reference and a BibTeX entry."""

    figure_id: str
    sentence: str
    plain: str
    bibtex: str


def cite(root: Path, text: str, metric: str | None = None) -> Citation:
    """Cite a figure by its id, or a run's headline figure (or another metric of it).

    Raises `UsageError` when there is no database, no such figure, or no such run.
    """
    path = root / DATABASE
    if not path.is_file():
        raise UsageError(f"there is no {DATABASE} yet: run `paribus build`")
    connection = duckdb.connect(str(path), read_only=True)
    try:
        figure = _by_id(connection, text) if FIGURE.fullmatch(text) else _of_run(connection, root, text, metric)
        runs = [_row(connection, "runs", "run_id", figure[name]) for name in ("run_id", "other_run_id") if figure[name]]
        marks = "SELECT DISTINCT text FROM flags WHERE flag = ? AND run_id IN (?, ?) ORDER BY text"
        ids = [run["run_id"] for run in runs]
        cut = [str(text) for (text,) in connection.execute(marks, [NOT_LOSSLESS, ids[0], ids[-1]]).fetchall()]
        version = connection.execute("SELECT value FROM meta WHERE key = 'edition'").fetchone()
    finally:
        connection.close()
    return _citation(figure, runs, str(version[0]) if version else "", cut)


def _row(connection: duckdb.DuckDBPyConnection, table: str, column: str, value: str) -> dict[str, Any]:
    found = connection.execute(f'SELECT * FROM "{table}" WHERE "{column}" = ?', [value])  # noqa: S608 (our own names)
    names = [description[0] for description in found.description or []]
    row = found.fetchone()
    if row is None:
        raise UsageError(
            f"the database has no {column.replace('_', ' ')} {value}: run `paribus build`, or check the id"
        )
    return dict(zip(names, row, strict=True))


def _by_id(connection: duckdb.DuckDBPyConnection, figure_id: str) -> dict[str, Any]:
    return _row(connection, "figures", "figure_id", figure_id)


def _of_run(connection: duckdb.DuckDBPyConnection, root: Path, text: str, metric: str | None) -> dict[str, Any]:
    run = locate(root, text)
    found = connection.execute(
        "SELECT metric, figure_id, headline FROM figures WHERE run_id = ? AND other_run_id IS NULL ORDER BY metric",
        [run.run_id],
    ).fetchall()
    if not found:
        raise UsageError(f"{run.path} has no figure in the database: `paribus seal` it, then `paribus build`")
    chosen = [f for f in found if (f[0] == metric if metric else f[2])]
    if not chosen:
        known = ", ".join(f[0] for f in found)
        raise UsageError(f"{run.run_id} has no figure {metric or 'that leads it'}: give --metric, one of {known}")
    return _by_id(connection, str(chosen[0][1]))


def _citation(figure: dict[str, Any], runs: list[dict[str, Any]], edition: str, cut: list[str]) -> Citation:
    dates = sorted({run["started_at"][:10] for run in runs})
    ids = " and ".join(f"{run['system']} ({run['run_id']})" for run in runs)
    fate = superseded_words(figure.get("superseded_by"))
    unranked = fate + ("" if figure["ranked"] else ", not ranked")
    figure_id = figure["figure_id"]
    demo = any(run["demo"] for run in runs)
    warning = (f"{NOT_FOR_CITING}. " if demo else "") + "".join(f"{text} " for text in cut)
    sentence = (
        f"{warning}{_number(figure, len(runs))}. Conditions: {conditions([run['strip'] for run in runs])}. "
        f"Measured {' and '.join(dates)}: {ids}; Paribus, edition {edition}, figure {figure_id}{unranked}."
    )
    title = f"{figure['title']}: {' and '.join(run['system'] for run in runs)}"
    source = f"Paribus results, edition {edition}, figure {figure_id}{fate}, measured {dates[-1]}, CC-BY-4.0."
    plain = f"{warning}Paribus contributors ({dates[-1][:4]}). {title}. {source}"
    return Citation(figure_id, sentence, plain, _bibtex(figure_id, title, edition, dates[-1], demo=demo))


def superseded_words(by: str | None) -> str:
    """What became of a figure, to go on after its id: nothing where it stands."""
    return "" if by is None else f", superseded by figure {by}" if by else ", superseded, no newer one takes its place"


def _number(figure: dict[str, Any], runs: int) -> str:
    """The number with its interval, unit and what the interval rests on. A comparison has its own sentence."""
    if runs > 1:
        return str(figure["sentence"])
    estimate = Estimate(figure["value"], figure["low"], figure["high"], figure["basis"])
    basis = f", 95% interval {BASIS.get(figure['basis'], figure['basis'])}" if figure["low"] is not None else ""
    return f"{figure['title']}: {with_interval(estimate, figure['unit'])}{basis}"


def conditions(strips: list[str]) -> str:
    """The conditions of one run, or of several: where they differ, each part names them all."""
    columns = zip(*(strip.split(SEPARATOR) for strip in strips), strict=False)
    return SEPARATOR.join(" against ".join(dict.fromkeys(column)) for column in columns)


def _bibtex(figure_id: str, title: str, edition: str, date: str, *, demo: bool) -> str:
    warning = f"{NOT_FOR_CITING}. " if demo else ""
    fields = {
        "author": "{Paribus contributors}",
        "title": f"{{{_escape(title)}}}",
        "year": date[:4],
        "howpublished": f"Paribus results, edition {edition}",
        "note": f"{warning}Figure {figure_id}, measured {date}, CC-BY-4.0",
    }
    body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{paribus-{figure_id},\n{body}\n}}"


def _escape(text: str) -> str:
    return re.sub(r"([%&#_$])", r"\\\1", text)
