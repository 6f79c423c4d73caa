"""Resolve catalog, hardware and configuration into a `Plan`: every job, run and race with its paths and costs.

`resolve` reads the catalog and what exists below the results folder; it writes nothing. The same function serves
`paribus plan`, `paribus status` and the Snakefile, so that what is announced is what runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paribus.catalog.configuration import Configuration, configure, open_catalog, read_overrides
from paribus.catalog.declare import Place, Wanted, declare_scenario, declare_task, measure_name
from paribus.catalog.domains import all_too_long, too_long
from paribus.catalog.envs import drafter_marker, environment_marker, image_marker, weights_marker
from paribus.catalog.estimate import Estimator, totals
from paribus.catalog.load import Catalog
from paribus.catalog.models import CONTEXT_SETTINGS, Scalar, System
from paribus.catalog.order import interleave
from paribus.catalog.plan import Excluded, Job, Plan, PlannedMeasure, PlannedRun, Race
from paribus.catalog.races import Stack, build_of, measured_after, race_for, read_verdict, stacks, verdict_path
from paribus.catalog.select import Selection, select
from paribus.catalog.surroundings import Part, Surroundings
from paribus.catalog.tasks import Scale, Scenario
from paribus.conditions import canonical, run_id

Kind = Literal["race", "speed", "quality"]
RACE_STARTS = 3
"""A race takes at most so many starts of each candidate: it picks, the full measurement follows."""


def resolve(
    root: Path,
    hardware: str,
    overrides: Mapping[str, Any] | None = None,
    around: Surroundings | None = None,
    catalog: Catalog | None = None,
) -> Plan:
    """The plan of one hardware profile. `overrides`: keys of `--config`. Raises `UsageError` in one sentence.

    `catalog`: what `open_catalog` gives for them, where it was read already.
    """
    given = read_overrides(overrides or {})
    catalog = catalog or open_catalog(root, given)
    profile = catalog.hardware(hardware)
    if around is not None:
        profile = profile.with_found(around.card)
    config = configure(catalog, profile, given)
    scale = catalog.scale(config.scale)
    around = around or Surroundings.observe(catalog, "unlabelled")
    selection = select(catalog, profile, config, scale, around)
    parts = {task.task: part for task in selection.tasks if (part := around.part_of(task)) is not None}
    estimator = Estimator(catalog, scale, profile.speeds, {name: part.count for name, part in parts.items()})
    return _Resolution(catalog, config, scale, around, selection, estimator, parts).plan()


@dataclass
class _Draft:
    """A job before its place in the order is known."""

    kind: Kind
    system: System
    start: int
    measures: list[PlannedMeasure]
    launch: dict[str, Scalar]
    done: list[bool]

    @property
    def whole(self) -> bool:
        return all(self.done)

    @property
    def lead(self) -> int:
        return 0 if self.whole else self.done.index(False)


@dataclass
class _Resolution:
    """One resolution: collects drafts of jobs, races and what waits for them, and turns them into a plan."""

    catalog: Catalog
    config: Configuration
    scale: Scale
    around: Surroundings
    selection: Selection
    estimator: Estimator
    parts: Mapping[str, Part]
    """Tasks of which the data hold only a part."""
    drafts: list[_Draft] = field(default_factory=list)
    races: list[Race] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    waiting_seconds: float = 0.0
    excluded: list[Excluded] = field(default_factory=list)
    declared: dict[str, Wanted] = field(default_factory=dict)

    def plan(self) -> Plan:
        groups = stacks(self.selection.systems, self.around.builds, self.config.hardware)
        simulator = self.around.user_simulator
        wanted = [
            (t.canary is None, declare_task(self.catalog, self.config, t, self.parts.get(t.task), simulator))
            for t in self.selection.tasks
        ]
        tasks, canaries = ([w for own, w in wanted if own is plain] for plain in (True, False))
        for n in range(1, self.config.repeat + 1):
            for stack in groups:
                self._speed(stack, n)
            for stack in groups:
                self._jobs("quality", stack.plain, self._fitting(stack.plain, tasks, n), 1, n)
                for system in stack.speculating if canaries else ():
                    self._jobs("quality", system, self._fitting(system, canaries, n), 1, n)
        jobs = self._ordered()
        return Plan(
            edition=self.catalog.pairs.edition,
            protocol=self.catalog.pairs.protocol,
            hardware=self.config.hardware,
            machine=self.around.machine,
            scale=self.config.scale,
            results=self.config.results,
            catalog=str(self.catalog.extra) if self.catalog.extra else None,
            committed=self.scale.committed,
            races=self.races,
            jobs=jobs,
            runs=_runs(jobs),
            excluded=[*self.selection.excluded, *self.excluded],
            waiting=self.waiting,
            totals=totals(jobs, self.estimator, self.waiting_seconds, self._power_w()),
        )

    def _power_w(self) -> float | None:
        return self.catalog.hardware(self.config.hardware).card.power_limit_w

    def _speed(self, stack: Stack, n: int) -> None:
        """Races of one stack, and the scenarios of the decoders that are measured in full."""
        starts = self.config.starts
        scenarios = [s for s in self.selection.scenarios if s.thinking == stack.thinks]
        winners = self._races(stack, n)
        wanted: dict[str, list[Wanted]] = {}
        for scenario in scenarios:
            race = race_for(scenario.scenario, self.selection.races)
            if len(stack.rivals) < 2:
                systems = [stack.plain, *stack.rivals]
            elif race is None or race.scenario not in winners:
                systems = [stack.plain]
                self._left_out(stack, scenario.scenario)
            else:
                systems = winners[race.scenario] or [stack.plain]
            for system in systems:
                wanted.setdefault(str(system.name), []).append(self._declared(scenario, starts))
        for name, measures in wanted.items():
            planned = self._jobs("speed", self.catalog.systems[name], measures, starts, n)
            if name == str(stack.plain.name):
                self._expect_winners(
                    stack, [race for race in self.selection.races if winners.get(race.scenario, ()) is None], planned
                )

    def _expect_winners(self, stack: Stack, undecided: list[Scenario], plain: list[PlannedMeasure]) -> None:
        """Say what waits for a race, and estimate it as if the winner were as slow as the plain system."""
        for race in undecided:
            measures = [measure for measure in plain if measure.id in race.picks_for]
            names = ", ".join(measure.id for measure in measures)
            self.waiting.append(f"{names} of the winner of {race.scenario} for {stack.name}")
            self.waiting_seconds += self.config.starts * self.estimator.job_seconds("speed", measures)

    def _declared(self, scenario: Scenario, starts: int) -> Wanted:
        """A scenario as a wanted measure; the same for every system, hence made once."""
        if scenario.scenario not in self.declared:
            self.declared[scenario.scenario] = declare_scenario(self.catalog, self.config, scenario, starts)
        return self.declared[scenario.scenario]

    def _left_out(self, stack: Stack, scenario: str) -> None:
        reason = f"no race picks a decoder for {scenario}: only {stack.plain.name.decoder} is measured"
        self.excluded.append(Excluded(name=stack.name, reason=reason))

    def _races(self, stack: Stack, n: int) -> dict[str, list[System] | None]:
        """Plan the races of one stack. Per race scenario: what is measured in full, None while it isn't decided."""
        scenarios = [race for race in self.selection.races if race.thinking == stack.thinks]
        if len(stack.rivals) < 2 or not scenarios:
            return {}
        starts = min(RACE_STARTS, self.config.starts)
        wanted = [self._declared(race, starts) for race in scenarios]
        runs: dict[str, list[str]] = {race.scenario: [] for race in scenarios}
        for system in stack.candidates:
            for measure in self._jobs("race", system, wanted, starts, n):
                runs[measure.id].append(measure.run)
        return {race.scenario: self._race(stack, race, runs[race.scenario]) for race in scenarios}

    def _race(self, stack: Stack, race: Scenario, runs: list[str]) -> list[System] | None:
        measure = measure_name(race.scenario, self.config)
        place = f"{self.config.results}/{verdict_path(stack, measure, runs)}"
        verdict = read_verdict(self.catalog.root / place)
        self.races.append(
            Race(
                verdict=place,
                stack=stack.name,
                scenario=race.scenario,
                measure=measure,
                runs=runs,
                candidates=[s.name.decoder for s in stack.candidates],
                not_tried=stack.not_tried,
                decided=verdict is not None,
            )
        )
        return measured_after(stack, verdict) if verdict is not None else None

    def _jobs(self, kind: Kind, system: System, wanted: list[Wanted], starts: int, n: int) -> list[PlannedMeasure]:
        """Draft the jobs of one system: one a launch configuration and start. Returns the measures."""
        groups: dict[bytes, tuple[dict[str, Scalar], list[Wanted]]] = {}
        for index, want in enumerate(wanted):
            launch = self._launch(system, want)
            # A decoder that keeps state from earlier requests gets a fresh server for each scenario.
            key = canonical([launch, index if system.decoder.keeps_state else 0])
            groups.setdefault(key, (launch, []))[1].append(want)
        planned: list[PlannedMeasure] = []
        for launch, wants in groups.values():
            launch.setdefault("slots", self._slots(system, kind))
            build = build_of(system, self.around.builds, self.config.hardware)
            place = Place(self.config.hardware, self.around.machine, n)
            measures = [w.planned(system, build, launch, place) for w in wants]
            planned += measures
            for start in range(1, starts + 1):
                done = [self._exists(f"{m.run}/start-{start}/manifest.json") for m in measures]
                self.drafts.append(_Draft(kind, system, start, measures, dict(launch), done))
        return planned

    def _launch(self, system: System, want: Wanted) -> dict[str, Scalar]:
        """A system's launch settings for one measure; a context that is too short for it is widened."""
        launch = {**system.launch_on(self.config.hardware), **want.launch}
        if want.context is not None:
            room = min(want.context, system.model.context or want.context)
            launch |= {n: max(room, int(launch[n])) for n in CONTEXT_SETTINGS if launch.get(n)}
        return launch

    def _fitting(self, system: System, wanted: list[Wanted], n: int) -> list[Wanted]:
        """Tasks that the system's engine can serve, and of which at least a domain fits its context; says, once, which
        don't."""
        fitting = []
        for want in wanted:
            task, context = self.catalog.task(want.id), system.context_of(self._launch(system, want))
            if want.launch.get("prefix_caching") and not system.use.prefix_caching:
                reason = f"it needs prefix caching, and {system.name.engine} keeps nothing between requests"
                self.excluded += [Excluded(name=f"{want.id}, {system.name}", reason=reason)] if n == 1 else []
                continue
            reasons = too_long(task, context)
            if n == 1:
                self.excluded += [Excluded(name=f"{want.id}, {system.name}", reason=each) for each in reasons.values()]
            if not all_too_long(task, context):
                fitting.append(want)
        return fitting

    def _slots(self, system: System, kind: Kind) -> int:
        """Requests that the server admits at once: the most that any measure of this kind asks of such a system."""
        if kind == "quality":
            tasks = self.catalog.tasks.values()
            return max((declare_task(self.catalog, self.config, task).requests for task in tasks), default=1)
        return max(s.requests for s in self.catalog.scenarios.values() if s.thinking == system.name.think)

    def _exists(self, below_results: str) -> bool:
        return (self.catalog.root / self.config.results / below_results).exists()

    def _items(self, measures: Iterable[PlannedMeasure]) -> list[str]:
        """Markers of the items that must be fetched from the hub, and of the harnesses that must be built."""
        tasks = [self.catalog.task(m.id) for m in measures if "task" in m.declared]
        markers = [f(task) for task in tasks for f in (self.around.fetched_marker, self.around.harness_marker)]
        return [marker for marker in markers if marker is not None]

    def _ordered(self) -> list[Job]:
        ordered = interleave(self.drafts, lambda d: d.kind, lambda d: str(d.system.name), lambda d: d.start)
        return [self._job(draft, len(ordered) - place) for place, draft in enumerate(ordered)]

    def _job(self, draft: _Draft, priority: int) -> Job:
        name = draft.system.name
        missing = [m for m, done in zip(draft.measures, draft.done, strict=True) if not done]
        made = _needs(draft.system, self.around.builds, self.config.hardware)
        needs = [*made, *self._items(missing)] if missing else []
        return Job(
            job=f"{run_id(draft.measures[draft.lead].run)}-{draft.start}",
            kind=draft.kind,
            system=str(name),
            start=draft.start,
            lead=draft.lead,
            measures=draft.measures,
            launch=draft.launch,
            engine=name.engine,
            done=draft.whole,
            needs=needs,
            priority=priority,
            seconds=self.estimator.job_seconds(draft.kind, missing) if missing else 0.0,
        )


def _needs(system: System, builds: Mapping[str, str], card: str) -> list[str]:
    """What must be built or fetched before a job of a system on a card: nothing for one that somebody else serves."""
    name = system.name
    if system.use.hosted is not None:
        return []
    build = build_of(system, builds, card)
    made = {
        "image": [image_marker(name.engine, build)],
        "binary": [],
    }.get(system.use.how or "env", [environment_marker(name.engine, build)])
    drafter = [drafter_marker(system.drafter)] if system.drafter else []
    return [*made, weights_marker(system), *drafter]


def _runs(jobs: Iterable[Job]) -> list[PlannedRun]:
    """The runs that the jobs' starts make up, in the jobs' order; sentinels in the order of the starts."""
    found: dict[str, list[Job]] = {}
    about: dict[str, PlannedMeasure] = {}
    for job in jobs:
        for measure in job.measures:
            found.setdefault(measure.run, []).append(job)
            about[measure.run] = measure
    return [
        PlannedRun(
            run=run,
            kind=starts[0].kind,
            system=starts[0].system,
            measure=about[run].measure,
            starts=len(starts),
            sentinels=[job.sentinel for job in sorted(starts, key=lambda job: job.start)],
        )
        for run, starts in found.items()
    ]
