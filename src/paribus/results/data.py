"""A sealed run with its rows, read when they are first asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from pathlib import Path

from paribus.conditions import CheckFailed, UsageError
from paribus.quality.summary import QualitySummary
from paribus.results.reading import open_parquet, read_model, shown
from paribus.results.run import RunFolder, RunSummary, read_summary, start_folders
from paribus.speed.rows import Row, read_rows
from paribus.speed.summary import SpeedSummary


@dataclass(frozen=True)
class RunData:
    """One sealed run: its summary, and the rows and summaries of its starts."""

    place: RunFolder
    summary: RunSummary

    @classmethod
    def read(cls, place: RunFolder) -> RunData:
        """Read a sealed run. Raises `CheckFailed` when it isn't one, or was scored again since."""
        data = cls(place, read_summary(place))
        data._still_its_scores()
        return data

    def _still_its_scores(self) -> None:
        """A summary's scores stand for the graded answers beside it: both are of one scoring."""
        sealed = self.summary.quality
        if sealed is not None and any(read_model(f, "score.json", QualitySummary) != sealed for f in self.folders):
            raise CheckFailed(
                f"{self.place.path} was scored again since it was sealed: its summary's scores are not those of its "
                f"graded answers; `paribus seal {self.place.path}`"
            )

    @property
    def folders(self) -> list[Path]:
        """The starts' folders, those that the summary names."""
        wanted = {record.start for record in self.summary.starts}
        folders = [f for f in start_folders(self.place.folder) if int(f.name.removeprefix("start-")) in wanted]
        if len(folders) != len(wanted):
            raise CheckFailed(f"{self.place.path}: its summary names {len(wanted)} starts, {len(folders)} are there")
        return folders

    @cached_property
    def rows(self) -> list[list[Row]]:
        """The requests of each start, from `requests-lite.parquet`."""
        return [lite_rows(folder) for folder in self.folders]

    @cached_property
    def starts(self) -> list[SpeedSummary]:
        """Each start's own summary (speed and race runs)."""
        return [read_model(folder, "summary.json", SpeedSummary) for folder in self.folders]

    @property
    def lengths(self) -> set[str]:
        """Lengths of the answers asked for: short, long."""
        return {row.length for rows in self.rows for row in rows}


_FLOATS = attrgetter(*(column.name for column in fields(Row) if "float" in str(column.type)))
"""The columns of a row that could hold a number that is none; the others are read as what they are."""


def lite_rows(folder: Path) -> list[Row]:
    """A start's `requests-lite.parquet`, written by anybody."""
    path = open_parquet(folder, "requests-lite.parquet")
    try:
        rows = read_rows(path)
    except UsageError as error:
        raise CheckFailed(str(error)) from error
    if not all(math.isfinite(value) for row in rows for value in _FLOATS(row) if value is not None):
        raise CheckFailed(f"{shown(path)} holds a number that is none (NaN or infinite)")
    return rows


def names_of(left: RunSummary, right: RunSummary) -> tuple[str, str]:
    """The shortest names that tell two runs apart: decoders within one stack, else systems, else run ids."""
    one, two = left.system.split("--"), right.system.split("--")
    if left.system == right.system:
        return left.run_id, right.run_id
    if one[:3] + one[4:] == two[:3] + two[4:]:
        return one[3], two[3]
    return left.system, right.system


def headline_ks(lengths: Sequence[str] | set[str]) -> list[int]:
    """The k of `time_to_k` that lead a comparison: 100 for short answers, 300 and 800 for long ones."""
    return ([300, 800] if "long" in lengths else []) or [100]
