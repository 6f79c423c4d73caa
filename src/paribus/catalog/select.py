"""Which systems and measures a configuration wants, and why the others are left out."""

from __future__ import annotations

from dataclasses import dataclass

from paribus.catalog.configuration import Configuration
from paribus.catalog.envs import items_marker
from paribus.catalog.fit import unfit
from paribus.catalog.hardware import HardwareFile
from paribus.catalog.load import Catalog, matches
from paribus.catalog.models import System
from paribus.catalog.plan import Excluded
from paribus.catalog.simulator import lacks_simulator
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
    if config.systems == PAIRS:
        return _paired(catalog, profile, around, excluded)
    asked = [s for s in catalog.systems.values() if matches(str(s.name), config.systems)]
    wanted = [s for s in asked if not s.decoder.on_request or _named(s, config.systems)]
    if not wanted:
        raise UsageError(f"systems={config.systems!r} names no system; `paribus show systems` lists them")
    reasons = {str(s.name): unfit(s, profile, around.builds, around.memory_gb) for s in wanted}
    excluded += [Excluded(name=name, reason=reason) for name, reason in reasons.items() if reason]
    return [s for s in wanted if reasons[str(s.name)] is None]


def _named(system: System, globs: str) -> bool:
    """Whether a glob that matches a system spells its decoder out."""
    parts = (glob.split("--") for glob in globs.replace(",", " ").split() if matches(str(system.name), glob))
    return any(len(glob) > 3 and glob[3] == system.name.decoder for glob in parts)


def _paired(catalog: Catalog, profile: HardwareFile, around: Surroundings, excluded: list[Excluded]) -> list[System]:
    """The systems of the pairs that this machine can run both sides of, in catalog order.

    A pair of which it can't run one side is left out whole: half a duel says nothing.
    """
    chosen: set[str] = set()
    reasons: dict[str, str] = {}
    for pair in catalog.pairs.pairs:
        if not pair.planned_on(profile.hardware):
            continue
        runnable: set[str] = set()
        against: dict[str, str] = {}
        for stack, decoder in pair.sides():
            systems = _side(catalog, pair.pair, stack, decoder)
            found = {str(s.name): unfit(s, profile, around.builds, around.memory_gb) for s in systems}
            refused = {name: reason for name, reason in found.items() if reason}
            runnable |= set(found) - set(refused)
            if len(refused) == len(found):
                excluded.append(Excluded(name=pair.pair, reason=f"{stack}: {next(iter(refused.values()))}"))
                break
            against |= refused
        else:
            chosen |= runnable
            reasons |= against
    excluded += [Excluded(name=name, reason=reason) for name, reason in reasons.items()]
    return [s for s in catalog.systems.values() if str(s.name) in chosen]


def _side(catalog: Catalog, pair: str, stack: str, decoder: str | None) -> list[System]:
    """The systems of one side of a pair; the pairs' file is at fault when there is none."""
    systems = [s for s in catalog.systems.values() if stack_name(s) == stack and decoder in (None, s.name.decoder)]
    if not systems:
        raise UsageError(
            f"pairs.yaml: the pair {pair} names {stack} {decoder or ''}, and no model's file has it".strip()
        )
    return systems


def stack_name(system: System) -> str:
    """`<model>--<precision>--<engine>[--think]`: what candidates of one race share, and a side of a pair."""
    return "--".join(system.name.stack) + ("--think" if system.name.think else "")


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
    with_items = [
        t
        for t in real
        if around.has_data(t)
        or (scale.committed and (around.carries_items(t) or (t.data.hub and (around.hub or _fetched(catalog, t)))))
    ]
    if with_items or scale.committed:
        chosen = with_items
        for task in real:
            if task not in with_items:
                excluded.append(Excluded(name=task.task, reason=_without_items(task, around)))
    else:
        chosen = [t for t in asked if t.stand_in]
    return [t for t in chosen if _runnable(t, around, excluded)]


def _fetched(catalog: Catalog, task: QualityTask) -> bool:
    return (catalog.root / items_marker(task)).is_file()


def _without_items(task: QualityTask, around: Surroundings) -> str:
    """Why a task has no items here."""
    if task.data.hub and not around.hub:
        off = "the hub is off (PARIBUS_OFFLINE or HF_HUB_OFFLINE)"
        return f"its items are not below PARIBUS_DATA, not fetched yet, and {off}"
    return "its items are neither below PARIBUS_DATA nor on the hub"


def _runnable(task: QualityTask, around: Surroundings, excluded: list[Excluded]) -> bool:
    reason = None
    if (lacking := lacks_simulator(task, around.user_simulator)) is not None:
        reason = lacking
    elif task.sandbox and not around.sandbox:
        reason = "it runs programs that a model wrote, and this machine has no sandbox (install bubblewrap)"
    if reason is not None:
        excluded.append(Excluded(name=task.task, reason=reason))
    return reason is None
