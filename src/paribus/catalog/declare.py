"""What is declared about a measure before it runs, and the hashes that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paribus.catalog.configuration import Configuration
from paribus.catalog.load import Catalog
from paribus.catalog.models import Scalar, System
from paribus.catalog.plan import PlannedMeasure
from paribus.catalog.simulator import simulator_condition
from paribus.catalog.surroundings import Part
from paribus.catalog.tasks import QualityTask, Scenario
from paribus.conditions import RunPath, conditions_hash, hash12

DEFAULT_SCALE = "full"
NOT_HASHED = ("starts",)
"""Declared facts that name no other run: more starts continue a run, they don't make another."""


@dataclass(frozen=True)
class Place:
    """What of a run's path is neither its system nor its measure: hardware profile, machine's label, repeat."""

    hardware: str
    machine: str
    n: int


@dataclass(frozen=True)
class Wanted:
    """One measure as the configuration wants it: its id in the catalog, its name in paths, what it declares.

    `requests`: how many requests it keeps open; `launch`: launch settings it needs beside the system's own.
    """

    id: str
    measure: str
    requests: int
    launch: dict[str, Scalar]
    declared: dict[str, Any]
    context: int | None = None
    """Tokens that one request should be able to hold, where the system's launch settings allow fewer."""

    def planned(self, system: System, build: str, launch: Mapping[str, Scalar], place: Place) -> PlannedMeasure:
        """This measure of one system under one launch configuration: its run's path, conditions and hashes."""
        about_system = system.declared(build, dict(launch))
        served = self.declared["sampling_profile"] == "served"
        sampling = system.sampling.fields() if served else {"temperature": 0}
        about_measure = {**self.declared, "sampling": sampling}
        if "task" in self.declared:
            about_measure["cap"] = _smaller(self.declared["cap"], system.model.quality_cap)
        system_hash = hash12(about_system)
        measure_hash = hash12({key: value for key, value in about_measure.items() if key not in NOT_HASHED})
        conditions = conditions_hash(system_hash, measure_hash)
        path = RunPath(place.hardware, place.machine, str(system.name), self.measure, conditions, place.n)
        return PlannedMeasure(
            measure=self.measure,
            id=self.id,
            run=str(path),
            declared={**about_system, **about_measure},
            hashes={
                "answer_class": system.answer_class_hash(build, launch),
                "system_hash": system_hash,
                "measure_hash": measure_hash,
                "conditions": conditions,
            },
        )


def measure_name(identity: str, config: Configuration) -> str:
    """The measure's name in paths: `.greedy` and `.<scale>` where they are not the default."""
    greedy = ".greedy" if config.sampling == "greedy" else ""
    return identity + greedy + (f".{config.scale}" if config.scale != DEFAULT_SCALE else "")


def declare_scenario(catalog: Catalog, config: Configuration, scenario: Scenario, starts: int) -> Wanted:
    """A speed scenario as a wanted measure."""
    scale = catalog.scale(config.scale)
    cap = scale.cap_of(scenario)
    declared = {
        **_common(catalog, config, starts),
        "scenario": scenario.scenario,
        "requests_at_once": scenario.requests,
        "cap": cap,
        "prompts": scenario.prompts,
        "prompts_hash": catalog.scenario_prompts_hash(scenario, scale),
        "window": scale.window_s if scenario.requests > 1 else None,
    }
    launch: dict[str, Scalar] = {"prefix_caching": True} if scenario.prefix_caching else {}
    return Wanted(scenario.scenario, measure_name(scenario.scenario, config), scenario.requests, launch, declared)


def declare_task(
    catalog: Catalog, config: Configuration, task: QualityTask, part: Part | None = None, simulator: str | None = None
) -> Wanted:
    """A quality task as a wanted measure. One start: a task's repeats are its own.

    `part`: the data are only a part of the task; then its hash is in the measure's name, and nothing of it meets the
    whole. A scale's limit of items is the scale's: it is in the name as such. `simulator`: where a dialogue task's user
    simulator is served.
    """
    scale = catalog.scale(config.scale)
    repeats = _smaller(task.repeats_of(config.quality_budget), scale.quality_repeats) or 1
    # A few items never fill the task's own concurrency: declared is what can be under way at once.
    count = part.count if part else task.data.count
    at_once = min(task.concurrency, (_smaller(count, scale.quality_items) or 1) * repeats)
    declared = {
        **_common(catalog, config, 1),
        "task": task.task,
        "requests_at_once": at_once,
        "cap": _smaller(task.cap, scale.quality_cap),
        "repeats": repeats,
        "items_hash": part.hash if part else task.data.items_hash,
        "scorer": task.scorer,
        "user_simulator": simulator_condition(task, simulator),
    }
    launch: dict[str, Scalar] = {"prefix_caching": True} if task.settings.get("prefix_caching") else {}
    name = measure_name(part_name(task.task, part.hash) if part else task.task, config)
    return Wanted(task.task, name, at_once, launch, declared, task.settings.get("context"))


def part_name(task: str, items_hash: str) -> str:
    """`<task>.partial-<hash8>`: the name of a part of a task."""
    return f"{task}.partial-{items_hash[:8]}"


def _common(catalog: Catalog, config: Configuration, starts: int) -> dict[str, Any]:
    return {
        "edition": catalog.pairs.edition,
        "protocol": catalog.pairs.protocol,
        "hardware": config.hardware,
        "scale": config.scale,
        "sampling_profile": config.sampling,
        "starts": starts,
    }


def _smaller(own: int | None, scale: int | None) -> int | None:
    given = [value for value in (own, scale) if value is not None]
    return min(given) if given else None
