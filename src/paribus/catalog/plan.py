"""The plan's types: one row a job with its paths and costs. `build/plan.json` is a `Plan` as JSON.

A *job* owns one server from start to stop and measures every measure that shares its launch configuration. Its
sentinel is the manifest of its *lead*: the first of its measures whose manifest was missing when the plan was made
(the first of all when none was). A job writes its lead's manifest last, so the lead stands for the whole job.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from paribus.catalog.models import Scalar, Spec


class PlannedMeasure(Spec):
    """One measure of a job: where its start goes, and what is declared about it."""

    measure: str
    """Measure id as in paths, with `.greedy` and `.<scale>` where not the default."""
    id: str
    """Scenario or task id in the catalog."""
    run: str
    """Run's path below the results folder."""
    declared: dict[str, Any]
    hashes: dict[str, str]
    """answer_class, system_hash, measure_hash, conditions."""


class Job(Spec):
    """One server, started once: what it measures and what it needs."""

    job: str
    """`<run id of the lead>-<start>`; unique in the plan."""
    kind: Literal["race", "speed", "quality"]
    system: str
    start: int = Field(ge=1)
    lead: int = Field(ge=0)
    """Index of the lead in `measures`."""
    measures: list[PlannedMeasure] = Field(min_length=1)
    launch: dict[str, Scalar]
    engine: str
    done: bool
    needs: list[str]
    """Files to build or fetch first (markers of environment, weights, items); empty when the job is done."""
    priority: int
    seconds: float
    """Estimated duration."""

    @property
    def hardware(self) -> str:
        """The hardware profile that it is planned for: the first name of its runs' paths."""
        return self.measures[0].run.partition("/")[0]

    @property
    def sentinel(self) -> str:
        """The lead's manifest, below the results folder."""
        return f"{self.measures[self.lead].run}/start-{self.start}/manifest.json"


class PlannedRun(Spec):
    """One run: all starts of one measure of one system; `sentinels` are the manifests that must exist to seal it."""

    run: str
    kind: Literal["race", "speed", "quality"]
    system: str
    measure: str
    starts: int
    sentinels: list[str]


class Race(Spec):
    """One race: candidates of one stack on one race scenario; `verdict` is the path of its `race.json`."""

    verdict: str
    stack: str
    scenario: str
    measure: str
    runs: list[str]
    candidates: list[str]
    not_tried: dict[str, str]
    decided: bool


class Verdict(Spec):
    """`race.json`: every candidate's result, and the winner among those with speculation."""

    schema_version: Literal[1] = 1
    stack: str
    scenario: str
    measure: str
    metric: str
    unit: str
    candidates: list[Candidate]
    winner: str
    """Decoder slug of the best speculative candidate (the best of all where none speculates)."""
    plain_is_faster: bool
    not_tried: dict[str, str]
    runs: list[str]
    decided_at: str


class Candidate(Spec):
    """One candidate of a race: the race metric with its interval, flags, and why it was left out if it was."""

    decoder: str
    run: str
    value: float | None
    low: float | None = None
    high: float | None = None
    acceptance_length: float | None = None
    flags: list[str] = []
    left_out: str | None = None


class Totals(Spec):
    """What the plan costs before anything starts."""

    jobs: int
    jobs_done: int
    hours: float
    download_gb: float
    disk_gb: float
    unknown_sizes: list[str] = []
    """What is fetched too, but nobody has said how large it is."""
    power_limit_w: float | None = None
    """Of the cards together, by default; None where it isn't known."""

    @property
    def energy_kwh(self) -> float | None:
        """An upper bound of the cards' energy: the hours times their power limit. None where that isn't known."""
        return self.hours * self.power_limit_w / 1000 if self.power_limit_w is not None else None


class Excluded(Spec):
    """A system or measure that was asked for but isn't planned, with the reason."""

    name: str
    reason: str


class Plan(Spec):
    """Everything that one hardware profile with one configuration will do."""

    schema_version: Literal[1] = 1
    edition: str
    protocol: int
    hardware: str
    machine: str
    scale: str
    results: str
    """Results folder relative to the repository's root."""
    catalog: str | None = None
    """Folder of the private catalog beside ours, as `--config catalog=DIR` gave it."""
    committed: bool = True
    """Whether results of this scale belong into git; the others are shown at once on a site below build/."""
    races: list[Race]
    jobs: list[Job]
    runs: list[PlannedRun]
    excluded: list[Excluded]
    waiting: list[str]
    """What can't be listed yet, in words: runs behind races that haven't run."""
    totals: Totals


Verdict.model_rebuild()
