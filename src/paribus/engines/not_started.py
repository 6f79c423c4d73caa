"""A race's candidate whose engine doesn't start: kept as a result, so that the race is decided among the others.

Only what the engine itself is the reason for counts. A missing environment or weights, a port, a full disk, a card or
memory that somebody else holds are mistakes to mend: they fail the job. So does plain decoding, without which there
is no race, and an engine of which no other candidate has run here: then the engine, not the candidate, may be broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.catalog import Job, Plan, PlannedMeasure, System
from paribus.conditions import EnvironmentFault, inside
from paribus.engines.base import StartRecord
from paribus.engines.logs import kept_log
from paribus.engines.starts import MANIFEST, Measured, StartFolder, manifest_of, now
from paribus.machine import observe_machine, scrub_value, write_atomic
from paribus.machine.held import memory_held

WriteNotStarted = Callable[[PlannedMeasure, Path, str], object]
"""Writes the files of a start without requests into its folder (no manifest); the last argument is the reason."""


class EngineDied(EnvironmentFault):
    """An engine that was given what it needs ended while loading, or never answered. `reason`: one line, scrubbed.

    `versions` and `observed`: what was known before it was started.
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.versions: dict[str, str] = {}
        self.observed: dict[str, Any] = {}


def is_result(root: Path, plan: Plan, job: Job, system: System) -> bool:
    """Whether the death of a job's engine is a result of its race; else it is a failure of the job."""
    if job.kind != "race" or system.decoder.method == "plain" or memory_held(system.memory_gb) is not None:
        return False
    own = {measure.run for measure in job.measures}
    others = {run for race in plan.races if own & set(race.runs) for run in race.runs} - own
    # The first start that a race keeps is one that ran: nobody is left out before.
    results = inside(root, plan.results)
    return any(path.is_file() for run in others for path in (inside(results, run)).glob(f"start-*/{MANIFEST}"))


@dataclass(frozen=True)
class Death:
    """An engine's death in a job: the error, its log, when the job began, what the card's proof observed."""

    error: EngineDied
    log: Path
    began: str
    seconds: float
    observed: dict[str, Any]


def keep_not_started(todo: Sequence[tuple[StartFolder, PlannedMeasure]], death: Death, write: WriteNotStarted) -> None:
    """Seal every open start of a job as one that didn't start, the lead last."""
    for folder, planned in todo:
        reason = str(scrub_value(death.error.reason, root=folder.root))
        folder.prepare()
        write(planned, folder.path, reason)
        write_atomic(folder.path / "engine.log", kept_log(death.log, folder.root).encode())
        measured = Measured(
            planned=planned,
            record=StartRecord(),
            observed=observe_machine() | death.observed | death.error.observed | {"not_started": reason},
            versions=death.error.versions,
            started_at=death.began,
            ended_at=now(),
            engine_start=0.0,
            elapsed=death.seconds,
        )
        folder.seal(manifest_of(folder, measured))


def told(plan: Plan, job: Job, error: EngineDied) -> str:
    """What to say about it, and how the candidate gets another try."""
    runs = [measure.run for measure in job.measures]
    verdicts = [race.verdict for race in plan.races if set(runs) & set(race.runs)]
    again = "\n".join(f"  rm -rf {path}" for path in [*(f"{plan.results}/{run}" for run in runs), *verdicts])
    return (
        f"{job.job}: {job.system} did not start; this is kept as its result, and its race goes on without it: {error}\n"
        f"To try it again, remove its runs and what was decided without it, and run the workflow:\n{again}"
    )
