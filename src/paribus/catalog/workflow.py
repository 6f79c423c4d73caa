"""The plan as the workflow's rules see it: functions of wildcards, and the targets.

Rules hold no logic. What depends on a job (its needs, its id, its place in the order) they get from a `Workflow`'s
functions, each one look-up in a dict. (Snakemake's own `lookup()` walks the whole mapping for each key: with 1,000
jobs that alone takes seconds.) When a race has been decided, `refresh` resolves the plan again in place.
"""

from __future__ import annotations

import fcntl
import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Protocol

from paribus.catalog.plan import Job, Plan, PlannedRun, Race
from paribus.conditions import UsageError
from paribus.conditions.naming import CONDITIONS, SLUG, SYSTEM

PLAN_FILE = "build/plan.json"
NOTHING = "(?!)"
"""A regular expression that matches nothing."""


class Wildcards(Protocol):
    """Snakemake's wildcards, of any of our rules."""

    hardware: str
    machine: str
    system: str
    measure: str
    conditions: str
    start: str


@dataclass(repr=False)  # Snakemake formats the functions it gets, and a whole plan in words takes a second
class Workflow:
    """One Snakemake process's view of the plan.

    `again` resolves the plan from what exists now; `write` puts it on disk; `checkpoints` are
    Snakemake's; `cards` is how many of the machine's
    accelerators a job takes; `began` is when the first job was started (seconds since the epoch).
    """

    root: Path
    plan: Plan
    again: Callable[[], Plan]
    write: Callable[[Path, Plan], None]
    checkpoints: Any = None
    cards: int = 0
    database: str = "build/paribus.duckdb"
    site: str = "build/site/index.html"
    began: float = 0.0
    started: bool = False
    _jobs: dict[str, Job] = field(default_factory=dict)
    _runs: dict[str, PlannedRun] = field(default_factory=dict)
    _races: dict[str, Race] = field(default_factory=dict)
    _lock: TextIOWrapper | None = None

    def __post_init__(self) -> None:
        self._index()

    def _index(self) -> None:
        self._jobs.update({job.sentinel: job for job in self.plan.jobs})
        self._runs.update({run.run: run for run in self.plan.runs})
        self._races.update({race.verdict: race for race in self.plan.races})

    # What the rules are made of.

    @property
    def folder(self) -> str:
        """A run's folder as a pattern of wildcards."""
        return self.plan.results + "/{hardware}/{machine}/{system}/{measure}/{conditions}"

    @property
    def constraints(self) -> dict[str, str]:
        """What each wildcard may be."""
        slugs = dict.fromkeys(("hardware", "machine", "measure", "model", "precision", "engine", "task"), SLUG)
        return {**slugs, "system": SYSTEM, "conditions": CONDITIONS, "start": "[1-9][0-9]*", "build": "[0-9a-f]{12}"}

    def measures(self, *kinds: str) -> str:
        """A regular expression of the measures of some kinds of job."""
        names = {measure.measure for job in self.plan.jobs if job.kind in kinds for measure in job.measures}
        # A race's winner is measured after the plan was read: its scenarios are those of the plain system, listed here.
        return "|".join(re.escape(name) for name in sorted(names)) or NOTHING

    @property
    def proof(self) -> str:
        """The file that says that this machine is what the profile says."""
        return f"build/machine/{self.plan.hardware}.json"

    @property
    def private(self) -> str:
        """The option that names the private catalog, with a blank before it; nothing where there is none."""
        return f" --catalog {shlex.quote(self.plan.catalog)}" if self.plan.catalog else ""

    # Functions of wildcards.

    def run_of(self, wildcards: Wildcards) -> str:
        """A run's folder."""
        return f"{self.plan.results}/{self._run_path(wildcards)}"

    def needs(self, wildcards: Wildcards) -> list[str]:
        """What a job needs first; nothing when it is done."""
        job = self._job(wildcards)
        return job.needs if job else []

    def job_of(self, wildcards: Wildcards) -> str:
        """A job's id in the plan."""
        job = self._job(wildcards)
        return job.job if job else "none"

    def order(self, wildcards: Wildcards) -> int:
        """A job's place in the order: the largest comes first."""
        job = self._job(wildcards)
        return job.priority if job else 0

    def says(self, wildcards: Wildcards) -> str:
        """What a job measures, in words."""
        job = self._job(wildcards)
        return ", ".join(measure.id for measure in job.measures) if job else wildcards.measure

    def answers(self, wildcards: Wildcards) -> list[str]:
        """What scoring waits for: the job that generates a run's answers."""
        run = self._runs.get(self._run_path(wildcards))
        return [self._below(path) for path in run.sentinels] if run else []

    def starts(self, wildcards: Wildcards) -> list[str]:
        """What sealing waits for: all starts of a run, scored where there are answers; nothing when it is sealed."""
        run = self._runs.get(self._run_path(wildcards))
        if run is None or self._sealed(run):
            return []
        if run.kind == "quality":
            return [self._below(f"{run.run}/start-{k}/score.json") for k in range(1, run.starts + 1)]
        return [self._below(path) for path in run.sentinels]

    def candidates(self, wildcards: Wildcards) -> list[str]:
        """What a race waits for: its candidates' sealed runs; nothing when it is decided."""
        race = self._races.get(f"{self.run_of(wildcards)}/race.json")
        return [] if race is None or race.decided else [self._below(f"{run}/manifest.json") for run in race.runs]

    # Targets.

    def fetched(self) -> list[str]:
        """Everything that open jobs need."""
        return sorted({need for job in self.plan.jobs for need in job.needs})

    def verdicts(self) -> list[str]:
        """The races' verdicts."""
        return [race.verdict for race in self.plan.races]

    def sealed(self, *kinds: str) -> list[str]:
        """The sealed runs of some kinds of job (none named: of all)."""
        return [self._below(f"{r.run}/manifest.json") for r in self.plan.runs if not kinds or r.kind in kinds]

    def claimed(self) -> list[str]:
        """The sealed runs of scenarios that run a claim under its own conditions."""
        claims = [run for run in self.plan.runs if run.measure.startswith("claim-")]
        return [self._below(f"{run.run}/manifest.json") for run in claims]

    def shown(self) -> list[str]:
        """The site, where looking at it is part of the default target: not for results that go into git."""
        return [] if self.plan.committed else [self.site]

    def open_races(self) -> list[dict[str, str]]:
        """Wildcards of the races that aren't decided."""
        names = ("hardware", "machine", "system", "measure", "conditions")
        places = [race.verdict.split("/")[-6:-1] for race in self.plan.races if not race.decided]
        return [dict(zip(names, place, strict=True)) for place in places]

    def sealed_after_races(self, wildcards: object) -> list[str]:  # noqa: ARG002 (Snakemake's interface)
        """All sealed runs. Behind a race that isn't decided they aren't known: then Snakemake asks again after it."""
        self.refresh()
        return self.sealed()

    def speed_sealed_after_races(self, wildcards: object) -> list[str]:  # noqa: ARG002 (Snakemake's interface)
        """All sealed speed runs, known as `sealed_after_races` says."""
        self.refresh()
        return self.sealed("race", "speed")

    def refresh(self) -> None:
        """Resolve the plan again in place when a race has been decided; Snakemake is stopped here while it hasn't."""
        undecided = self.open_races()
        for race in undecided:
            self.checkpoints.race.get(**race)
        if undecided:
            self.plan = self.again()
            self._index()
            if self.started:
                self.write(self.root / PLAN_FILE, self.plan)

    def start(self) -> None:
        """Before the first job: one workflow a clone at a time, and the plan on disk for the jobs to read."""
        lock = _try_lock(self.root)
        if lock is None:
            raise UsageError("another Snakemake is running in this folder: wait until it has ended")
        self._lock = lock
        self.started = True
        self.write(self.root / PLAN_FILE, self.plan)

    def _job(self, wildcards: Wildcards) -> Job | None:
        return self._jobs.get(f"{self._run_path(wildcards)}/start-{wildcards.start}/manifest.json")

    def _sealed(self, run: PlannedRun) -> bool:
        """Whether a run's manifest lists all the starts that are planned."""
        try:
            manifest = json.loads((self.root / self._below(run.run) / "manifest.json").read_bytes())
            return len(manifest["starts"]) >= run.starts
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _below(self, path: str) -> str:
        return f"{self.plan.results}/{path}"

    @staticmethod
    def _run_path(w: Wildcards) -> str:
        return f"{w.hardware}/{w.machine}/{w.system}/{w.measure}/{w.conditions}"


def _try_lock(root: Path) -> TextIOWrapper | None:
    """The clone's workflow lock, held until the handle is closed or the process ends; None when it is taken."""
    place = root / "build" / "workflow.lock"
    place.parent.mkdir(parents=True, exist_ok=True)
    handle = place.open("w", encoding="ascii")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


def is_running(root: Path) -> bool:
    """Whether a workflow is running in this clone."""
    handle = _try_lock(root)
    if handle is None:
        return True
    handle.close()
    return False


def check_profile(root: Path, catalog: Path | None, config: Mapping[str, object], files: list[Path]) -> str:
    """The hardware profile that a Snakemake configuration names; refused when it belongs to another clone.

    `files`: configuration files that the profile or the command line gave; `catalog`: a private catalog's folder.
    """
    known = sorted(p.parent.name for p in root.glob("hardware/*/hardware.yaml"))
    name = config.get("hardware")
    if not isinstance(name, str):
        raise UsageError(f"no hardware profile is set: type snakemake --profile NAME with one of: {', '.join(known)}")
    homes = [root] + ([catalog] if catalog else [])
    for file in files:
        if file.name == "hardware.yaml" and not any(file.resolve().is_relative_to(h.resolve()) for h in homes):
            raise UsageError(
                f"the profile {name!r} belongs to another clone ({file.resolve().parent.parent.parent}): "
                "type `make setup` here to point it at this one, or use --profile hardware/" + name
            )
    return name
