"""The graded answers of a quality run, from `samples.parquet` of its starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.conditions import CheckFailed
from paribus.results.data import RunData
from paribus.results.reading import read_rows


def sample_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a start's `samples.parquet`, with the columns that we need. Written by anybody."""
    rows = read_rows(folder, "samples.parquet")
    for row in rows:
        if not isinstance(row.get("item"), str) or not isinstance(row.get("repeat"), int):
            raise CheckFailed(f"{folder.name}/samples.parquet lacks the columns item and repeat")
    return rows


def grades(data: RunData) -> list[tuple[str, float]]:
    """(question, grade) of every answer; an unanswered one counts 0."""
    return [(row["item"], grade(row)) for folder in data.folders for row in sample_rows(folder)]


def grade(row: Mapping[str, Any]) -> float:
    """The grade of one answer, a share of 1. Raises `CheckFailed` for anything else."""
    value = row.get("correct")
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise CheckFailed(f"samples.parquet grades {row.get('item')!r} {value!r}: grades lie between 0 and 1")
    return float(value)
