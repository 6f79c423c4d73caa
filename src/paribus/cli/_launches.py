"""Launches of a plan, shown to the engines' adapters: what an engine does not know is told before a server starts."""

from __future__ import annotations

from paribus.catalog import Catalog, Plan, System
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.launching import check_launch, planned_launch
from paribus.engines.opening import way_of
from paribus.engines.registry import engine


def check_launches(catalog: Catalog, plan: Plan) -> None:
    """Every server that a plan would start, one a system and launch configuration.

    Raises `UsageError` with the model's file and what its engine doesn't know: a launch setting, a decoder's
    parameter, a way to be had, the engine itself.
    """
    _known_engines(catalog, plan)
    seen: set[tuple[str, str]] = set()
    for job in plan.jobs:
        key = job.system, repr(sorted(job.launch.items()))
        if job.done or key in seen:
            continue
        seen.add(key)
        system = catalog.system(job.system)
        try:
            adapter = engine(system.name.engine, catalog.extra)
            check_launch(adapter, planned_launch(catalog.root, system, way_of(system, adapter), job.launch))
        except UsageError as error:
            raise UsageError(f"{_place(catalog, system)}: {error}") from error
        except EnvironmentFault:
            # What is fetched or built later can't be read yet; the job itself reads it.
            continue


def _known_engines(catalog: Catalog, plan: Plan) -> None:
    """Of what was asked for and left out: an engine that nobody knows is a mistake, no want of this machine."""
    for excluded in plan.excluded:
        system = catalog.systems.get(excluded.name)
        if system is None or system.unsupported_on(plan.hardware):
            continue
        try:
            engine(system.name.engine, catalog.extra)
        except UsageError as error:
            raise UsageError(f"{_place(catalog, system)}: {error}") from error


def _place(catalog: Catalog, system: System) -> str:
    """The file and the keys that describe how a system is launched."""
    file = catalog.model_file(system.name.model)
    home = next((root for root in (catalog.extra, catalog.root) if root and file.is_relative_to(root)), None)
    named = file.relative_to(home) if home == catalog.root else file
    return f"{named}, engines.{system.name.engine}, decoder {system.name.decoder}"
