"""The graded answers of a quality run, from its starts' samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.conditions import CheckFailed
from paribus.quality.samples import LITE, SAMPLES, UNDONE
from paribus.results.data import RunData
from paribus.results.reading import read_rows


def graded(data: RunData) -> bool:
    """Whether the grades of all its starts are here."""
    return all(_named(folder, (LITE, SAMPLES)) is not None for folder in data.folders)


def sample_rows(folder: Path) -> list[dict[str, Any]]:
    """The answers of a start, written by anybody: from `samples.parquet`, else their grades alone, else none."""
    name = _named(folder, (SAMPLES, LITE))
    return [] if name is None else _rows(folder, name)


def grades(data: RunData, *, came: bool = False) -> list[tuple[str, float]]:
    """(question, grade) of every answer; an unanswered one counts 0. `came`: without those that never came.

    Read from the file that is kept everywhere, so that two clones say the same. `CheckFailed` where there is none.
    """
    found = [(folder, _named(folder, (LITE, SAMPLES)) or LITE) for folder in data.folders]
    rows = (row for folder, name in found for row in _rows(folder, name))
    return [(row["item"], grade(row)) for row in rows if not came or row.get("status") not in UNDONE]


def _named(folder: Path, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if (folder / name).is_file()), None)


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    rows = read_rows(folder, name)
    for row in rows:
        if not isinstance(row.get("item"), str) or not isinstance(row.get("repeat"), int):
            raise CheckFailed(f"{folder.name}/{name} lacks the columns item and repeat")
    return rows


def grade(row: Mapping[str, Any]) -> float:
    """The grade of one answer, a share of 1. Raises `CheckFailed` for anything else."""
    value = row.get("correct")
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise CheckFailed(f"the samples grade {row.get('item')!r} {value!r}: grades lie between 0 and 1")
    return float(value)
