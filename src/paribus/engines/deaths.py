"""A race's candidate whose engine dies: kept as a result, so that the race is decided among the others.

It may die while loading (`not_started`) or while it is measured (`died`). Only what the engine itself is the reason for
counts. A missing environment or weights, a port, a full disk, a card that is gone, a card or memory that somebody else
holds are mistakes to mend: they fail the job. So does plain decoding, without which there is no race, and an engine of
which no other candidate has run here: then the engine, not the candidate, may be broken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.catalog import Job, Plan, PlannedMeasure, System
from paribus.conditions import EnvironmentFault, inside
from paribus.engines.base import StartRecord
from paribus.engines.logs import kept_log, last_words, log_end
from paribus.engines.starts import MANIFEST, Measured, StartFolder, manifest_of, now
from paribus.machine import observe_machine, scrub_value, write_atomic
from paribus.machine.held import memory_held

WriteUnasked = Callable[[PlannedMeasure, Path, Mapping[str, str]], object]
"""Writes the files of a start without requests into its folder (no manifest); why there are none: `EngineDied.why`."""

_DISK_FULL = re.compile(r"(?i)no space left on device|disk quota exceeded|errno 28\b")
_CARD_LOST = re.compile(
    r"(?i)fallen off the bus|gpu is lost|no cuda-capable device|devices? (?:are|is) busy or unavailable"
    r"|uncorrectable ecc error"
)
"""What CUDA and its driver say of a card that is gone, broken, or taken by somebody else."""
_TOLD_TO_END = (1, 2, 3, 15)
"""Signals by which somebody ends a program: hang-up, interrupt, quit, terminate."""


class EngineDied(EnvironmentFault):
    """An engine that was given what it needs ended, or never answered. `reason`: one line, scrubbed.

    `measuring`: whether it was being measured; else it was loading. `versions` and `observed`: what was known of it.
    `record`: what the measure had found until then, `folder`: where it wrote.
    """

    def __init__(self, text: str, reason: str, *, measuring: bool = False) -> None:
        super().__init__(text)
        self.reason = reason
        self.measuring = measuring
        self.versions: dict[str, str] = {}
        self.observed: dict[str, Any] = {}
        self.record = StartRecord()
        self.folder: Path | None = None

    @property
    def why(self) -> dict[str, str]:
        """The observed condition, which is a flag's name too, that a start without (all) its requests carries."""
        return {"died" if self.measuring else "not_started": self.reason}


def death(said: str, exit_code: int, log: Path, *, measuring: bool = False) -> EnvironmentFault:
    """What to raise when an engine ended: `EngineDied`, or a plain fault where somebody or something else ended it."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if exit_code - 128 in _TOLD_TO_END or _DISK_FULL.search(text) or _CARD_LOST.search(text):
        return EnvironmentFault(f"{said}; {log_end(log)}")
    return EngineDied(f"{said}; {log_end(log)}", f"{said}: {last_words(log)}", measuring=measuring)


def how(exit_code: int) -> str:
    """An exit code in words: 128 + n when signal n ended the program."""
    hint = "; the system may have run out of memory" if exit_code == 137 else ""
    return (f"signal {exit_code - 128}" if exit_code > 128 else f"exit code {exit_code}") + hint


def is_result(root: Path, plan: Plan, job: Job, system: System) -> bool:
    """Whether the death of a job's engine is a result of its race; else it is a failure of the job.

    Asked when nothing of the engine runs any more.
    """
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


def keep_dead(todo: Sequence[tuple[StartFolder, PlannedMeasure]], death: Death, write: WriteUnasked) -> None:
    """Seal every open start of a job, the lead last: the one that was being measured with what there is of it, the
    others without requests."""
    for folder, planned in todo:
        why: dict[str, str] = scrub_value(death.error.why, root=folder.root)
        # Whoever measures writes the summary last: with it there are requests, without it nothing that counts. In the
        # folders of measures whose turn never came it is what an earlier job left.
        asked = folder.path == death.error.folder and (folder.path / "summary.json").is_file()
        if not asked:
            folder.prepare()
            write(planned, folder.path, why)
        record = death.error.record if asked else StartRecord()
        write_atomic(folder.path / "engine.log", kept_log(death.log, folder.root).encode())
        measured = Measured(
            planned=planned,
            record=record,
            observed=observe_machine() | death.observed | death.error.observed | why,
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
    what = "died while it was measured" if error.measuring else "did not start"
    return (
        f"{job.job}: {job.system} {what}; this is kept as its result, and its race goes on without it: {error}\n"
        f"To try it again, remove its runs and what was decided without it, and run the workflow:\n{again}"
    )
