"""One quality start: answers into `journal.jsonl`; then, without a server, `samples.parquet` and `score.json`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paribus.catalog import Catalog, PlannedMeasure
from paribus.quality.summary import QualitySummary

if TYPE_CHECKING:
    from paribus.engines import Session, StartRecord


def generate_start(session: Session, planned: PlannedMeasure, catalog: Catalog, folder: Path) -> StartRecord:
    """Answer every item of a planned quality measure into `folder/journal.jsonl`, continuing what is there."""
    raise NotImplementedError


def score_start(folder: Path, catalog: Catalog) -> QualitySummary:
    """Score a start's journal; write `samples.parquet` and `score.json` beside it. No server is needed."""
    raise NotImplementedError


def read_score(folder: Path) -> QualitySummary:
    """The score that a start's folder holds."""
    raise NotImplementedError
