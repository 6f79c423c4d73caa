"""Races: which stacks race, where a verdict lies, and which decoders a verdict sends on to be measured in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paribus.catalog.models import System
from paribus.catalog.plan import Verdict
from paribus.catalog.select import stack_name
from paribus.catalog.tasks import Scenario
from paribus.conditions import RunPath, UsageError, hash12


@dataclass(frozen=True)
class Stack:
    """Systems that differ only in lossless settings: one model, precision, engine, thinking and answer class."""

    name: str
    answer_class: str
    systems: list[System] = field(default_factory=list)

    @property
    def plain(self) -> System:
        """The representative of the answer class: the plain decoder, else the first in the model's file."""
        return next((s for s in self.systems if s.decoder.method == "plain"), self.systems[0])

    @property
    def candidates(self) -> list[System]:
        """Decoders that are tried."""
        return [s for s in self.systems if s.decoder.not_tried is None]

    @property
    def not_tried(self) -> dict[str, str]:
        """Decoders that are listed but not tried, with the reason."""
        return {s.name.decoder: s.decoder.not_tried for s in self.systems if s.decoder.not_tried is not None}

    @property
    def rivals(self) -> list[System]:
        """Candidates beside the plain one: with two or more of them only a race can tell which to measure."""
        return [s for s in self.candidates if s is not self.plain]

    @property
    def speculating(self) -> list[System]:
        """Decoders that are declared lossless, and must be seen to be: each gets its own canary."""
        return [s for s in self.candidates if s.decoder.speculates]

    @property
    def thinks(self) -> bool:
        """Whether these systems think."""
        return self.systems[0].name.think


def build_of(system: System, builds: Mapping[str, str], card: str) -> str:
    """The engine build of a system that was chosen to be planned on a card (a hardware profile)."""
    build = system.build_of(builds, card)
    if build is None:
        raise UsageError(f"{system.name} has no engine build that can be named: nothing of it can be planned")
    return build


def stacks(systems: Iterable[System], builds: Mapping[str, str], card: str) -> list[Stack]:
    """The systems grouped into stacks, in order, as they are launched on a card (a hardware profile)."""
    found: dict[tuple[str, str], Stack] = {}
    for system in systems:
        answer_class = system.answer_class_hash(build_of(system, builds, card), system.launch_on(card))
        key = stack_name(system), answer_class
        found.setdefault(key, Stack(*key)).systems.append(system)
    return list(found.values())


def race_for(scenario: str, races: Iterable[Scenario]) -> Scenario | None:
    """The race whose verdict picks the decoder that a scenario measures."""
    return next((race for race in races if scenario in race.picks_for), None)


def verdict_path(stack: Stack, measure: str, runs: list[str]) -> str:
    """Path of a race's `race.json` below the results folder. Another field of candidates is another race."""
    first = RunPath.parse(runs[0])
    name = str(stack.plain.name.with_decoder("race"))
    return f"{first.hardware}/{first.machine}/{name}/{measure}/{hash12(sorted(runs))}.{first.n}/race.json"


def read_verdict(path: Path) -> Verdict | None:
    """The verdict of a race; None when it isn't decided."""
    try:
        return Verdict.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except ValueError as error:  # not JSON, not UTF-8, or not a verdict
        raise UsageError(
            f"{path} is not a race's verdict: delete it, and the race is decided again from its runs"
        ) from error


def measured_after(stack: Stack, verdict: Verdict) -> list[System]:
    """What a verdict sends on to be measured in full: the plain system and the winner."""
    winner = next((s for s in stack.candidates if s.name.decoder == verdict.winner), None)
    if winner is None:
        raise UsageError(
            f"the verdict of {verdict.scenario} for {stack.name} names the winner {verdict.winner!r}, "
            "which is no candidate any more: delete its race.json, and the race is decided again"
        )
    return [stack.plain] if winner is stack.plain else [stack.plain, winner]
