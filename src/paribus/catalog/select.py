"""Which systems and measures a configuration wants, and why the others are left out."""

from __future__ import annotations

from dataclasses import dataclass

from paribus.catalog.configuration import Configuration
from paribus.catalog.fit import unfit
from paribus.catalog.hardware import HardwareFile
from paribus.catalog.load import Catalog, matches
from paribus.catalog.models import System
from paribus.catalog.plan import Excluded
from paribus.catalog.surroundings import Surroundings
from paribus.catalog.tasks import QualityTask, Scale, Scenario
from paribus.conditions import UsageError

PAIRS = "pairs"


@dataclass(frozen=True)
class Selection:
    """What is wanted (in catalog order) and what was left out, with reasons."""

    systems: list[System]
    scenarios: list[Scenario]
    races: list[Scenario]
    tasks: list[QualityTask]
    excluded: list[Excluded]


def select(
    catalog: Catalog, profile: HardwareFile, config: Configuration, scale: Scale, around: Surroundings
) -> Selection:
    """Everything that the configuration asks for and this machine can run."""
    excluded: list[Excluded] = []
    systems = _systems(catalog, profile, config, around, excluded)
    scenarios, races = _scenarios(catalog, config)
    tasks = _tasks(catalog, config, scale, around, excluded) if config.quality else []
    if not scenarios and not tasks and not excluded:
        raise UsageError(
            f"measures={config.measures!r} names no scenario and no task; `paribus show scenarios` lists them"
        )
    return Selection(systems, scenarios, races, tasks, excluded)


def _systems(
    catalog: Catalog, profile: HardwareFile, config: Configuration, around: Surroundings, excluded: list[Excluded]
) -> list[System]:
    wanted = [s for s in catalog.systems.values() if _asked_for(catalog, config, s)]
    if not wanted:
        raise UsageError(f"systems={config.systems!r} names no system; `paribus show systems` lists them")
    chosen: list[System] = []
    for system in wanted:
        reason = unfit(system, profile, around.builds, around.memory_gb)
        if reason is None:
            chosen.append(system)
        else:
            excluded.append(Excluded(name=str(system.name), reason=reason))
    return chosen


def stack_name(system: System) -> str:
    """`<model>--<precision>--<engine>[--think]`: what candidates of one race share, and a side of a pair."""
    return "--".join(system.name.stack) + ("--think" if system.name.think else "")


def _asked_for(catalog: Catalog, config: Configuration, system: System) -> bool:
    if config.systems == PAIRS:
        return any(stack_name(system) in (pair.left, pair.right) for pair in catalog.pairs.pairs)
    return matches(str(system.name), config.systems)


def _scenarios(catalog: Catalog, config: Configuration) -> tuple[list[Scenario], list[Scenario]]:
    """Scenarios to measure, and the races that pick a decoder for one of them.

    `*` leaves out synthetic claims and scenarios with prompts that are not ours: they must be named.
    """
    every = catalog.scenarios.values()
    naming = _naming(config)
    wanted = [
        s for s in every if not s.race and matches(s.scenario, naming if s.synthetic or s.external else config.measures)
    ]
    names = {s.scenario for s in wanted}
    return wanted, [s for s in every if s.race and names & set(s.picks_for)]


def _naming(config: Configuration) -> str:
    """The measures that were asked for by a name, or the beginning of one: not by `*` alone."""
    return ",".join(glob for glob in config.measures.replace(",", " ").split() if glob.strip("*"))


def _tasks(
    catalog: Catalog, config: Configuration, scale: Scale, around: Surroundings, excluded: list[Excluded]
) -> list[QualityTask]:
    """Quality tasks: the real ones where their items are, else the stand-ins; never both in one plan."""
    naming = _naming(config)
    asked = [t for t in catalog.tasks.values() if matches(t.task, naming if t.on_request else config.measures)]
    real = [t for t in asked if not t.stand_in]
    # What is committed is never a stand-in, so that the hub's items are meant; a demo doesn't reach for the network.
    with_items = [t for t in real if around.has_data(t) or (scale.committed and around.hub and t.data.hub)]
    if with_items or scale.committed:
        chosen = with_items
        for task in real:
            if task not in with_items:
                reason = "its items are neither below PARIBUS_DATA nor on the hub"
                excluded.append(Excluded(name=task.task, reason=reason))
    else:
        chosen = [t for t in asked if t.stand_in]
    return [t for t in chosen if _runnable(t, around, excluded)]


def _runnable(task: QualityTask, around: Surroundings, excluded: list[Excluded]) -> bool:
    reason = None
    if task.family == "tau2" and not task.stand_in:
        reason = "running Tau2 itself is not built yet"
    elif task.sandbox and not around.sandbox:
        reason = "it runs programs that a model wrote, and this machine has no sandbox (install bubblewrap)"
    if reason is not None:
        excluded.append(Excluded(name=task.task, reason=reason))
    return reason is None
