"""Launch settings that decide the answers, and what each may say; variables that a file may set.

Quality belongs to an answer class, and launch settings are no part of it (PROTOCOL rules 2 to 5), but for the kernels
of quantised weights (`KERNEL_SETTINGS`), which may be set and are counted. Any other that would change the answers is
therefore refused, unless it only repeats what the answer class says already: the precision's own type of keys and
values, its quantisation, its type of numbers. Each adapter has a table of such settings (`Adapter.deciding`) and a list
of the variables that a file may give its process (`Adapter.variables`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.catalog import Scalar, System
from paribus.conditions import UsageError
from paribus.engines.numbers import NOT_SAID, declared_numbers, word

if TYPE_CHECKING:
    from paribus.engines.base import Engine, Launch

OF_TORCH = frozenset({"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
OF_NCCL = frozenset({"NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE"})
"""Variables of libraries that several engines stand on and a file may set: how memory is kept, which links are used."""

Allows = Callable[[System, str, Scalar], bool]


@dataclass(frozen=True)
class Deciding:
    """A rule for a launch setting that decides the answers: whether a value may stand, and where it belongs instead."""

    allows: Allows
    instead: str


def check_allowed(engine: Engine, launch: Launch) -> None:
    """Refuse launch settings that would change the answers, and variables that the engine's adapter doesn't list."""
    system = launch.system
    for name in sorted(launch.settings.keys() & engine.deciding.keys()):
        rule, value = engine.deciding[name], launch.settings[name]
        if not rule.allows(system, name, value):
            raise UsageError(
                f"{system.name}: the launch setting {name}: {value} would change the answers, and such settings are "
                f"no part of what quality belongs to: {rule.instead}"
            )
    unknown = sorted(launch.variables.keys() - engine.variables)
    if unknown:
        known = ", ".join(sorted(engine.variables)) or "none at all"
        raise UsageError(f"{system.name}: {unknown[0]} is no variable that a file may set for {engine.name}: {known}")


def own(which: str) -> Deciding:
    """It may repeat what the precision declares, by a name of `NUMBERS`. What says nothing may stand."""

    def allows(system: System, name: str, value: Scalar) -> bool:  # noqa: ARG001 (a rule's signature)
        return word(value) in NOT_SAID or word(value) == declared_numbers(system).get(which)

    return Deciding(allows, f"it may only repeat what the precision declares as {which}")


def one_of(*values: Scalar, instead: str) -> Deciding:
    """It may have one of some values that change no answer."""
    return Deciding(lambda system, name, value: value in values, instead)  # noqa: ARG005


def keys(*known: str) -> Deciding:
    """A JSON object whose keys all only choose how the same answers are computed."""

    def allows(system: System, name: str, value: Scalar) -> bool:  # noqa: ARG001
        try:
            read = json.loads(str(value))
        except ValueError:
            return True  # what isn't JSON is the adapter's to refuse
        return not isinstance(read, dict) or read.keys() <= set(known)

    return Deciding(allows, f"it may have the keys {', '.join(known)}")
