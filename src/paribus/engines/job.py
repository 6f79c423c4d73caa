"""One job: one server from start to stop, and every measure that shares its launch configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paribus.catalog import Plan, PlannedMeasure
from paribus.engines.base import StartRecord
from paribus.engines.session import Session

Measure = Callable[[Session, PlannedMeasure, Path], StartRecord | None]
"""Measures one planned measure into its start folder (no manifest). Returns a record, or fills `session.record`."""


def run_job(root: Path, plan: Plan, job_id: str, measure_one: Measure) -> None:
    """Run one job of the plan: measure what isn't done, write manifests, the lead's last."""
    raise NotImplementedError
