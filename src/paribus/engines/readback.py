"""Declared and effective: what the running server says of its own settings, held against the catalog's.

A lossy setting (canvas, denoising steps, thresholds), a launch setting that decides the answers, a context, or a type
of numbers (cache, quantisation) that reads back differently is a fault: the answers would belong to another answer
class, or other prompts would fit. So is a context that no file declares and that holds less than the plan counts on:
longer answers would be cut and nobody would see it. Any other setting only moves the speed: it is recorded and flagged
(`settings_differ`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from paribus.catalog.models import CONTEXT_SETTINGS
from paribus.conditions import EnvironmentFault
from paribus.engines.base import Engine, Launch
from paribus.engines.bounds import size_of
from paribus.engines.numbers import (
    NOT_SAID,
    NOT_TOLD,
    UNREAD,
    Choice,
    declared_numbers,
    other_numbers,
    told_numbers,
    word,
)


def differing(declared: Mapping[str, Any], effective: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings that were declared and read back as something else: declared and effective, by name.

    Numbers are compared as numbers (`25G` as the bytes that it stands for), words without regard to case, to `-` or `_`
    and to names of one type (`fp8`, `fp8_e4m3`), a JSON object by the keys that it names, a member of an enumeration by
    its name or its value. What only one side has is passed over, as is what's left to the engine (`auto`) or told in a
    form that isn't understood.
    """
    both = {n for n in declared.keys() & effective.keys() if word(declared[n]) not in NOT_SAID}
    return {n: (declared[n], effective[n]) for n in sorted(both) if not _same(declared[n], effective[n])}


def _same(one: Any, two: Any) -> bool:
    if isinstance(two, str) and two == UNREAD:
        return True
    if isinstance(two, Choice):
        return word(one) == word(two) or (not isinstance(one, bool) and one == two.value)
    if isinstance(two, Mapping):
        wanted = _object(one)
        return wanted is not None and all(name in two and _same(wanted[name], two[name]) for name in wanted)
    if isinstance(one, bool) or isinstance(two, bool):
        return str(one).lower() == str(two).lower()
    if isinstance(one, str) and isinstance(two, int) and (size := size_of(one)) is not None:
        return size == two
    try:
        return abs(float(one) - float(two)) <= 1e-6 * max(1.0, abs(float(one)))
    except (TypeError, ValueError):
        return word(one) == word(two)


def _object(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    try:
        read = json.loads(str(value))
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def read_back(engine: Engine, launch: Launch, observed: Mapping[str, Any]) -> dict[str, Any]:
    """What is observed of the settings: `effective_settings`, `settings_differ` in words where some do, and the types
    of numbers in force (`NUMBERS`; one that the precision declares and the server doesn't tell is marked `NOT_TOLD`).

    Raises `EnvironmentFault` where one that decides the answers differs.
    """
    effective: Mapping[str, Any] = observed.get("settings") or {}
    decoder = launch.system.decoder
    declared = {**launch.settings, **decoder.parameters, **decoder.lossy}
    found = differing(declared, effective)
    told, said = told_numbers(observed), declared_numbers(launch.system)
    deciding = {*CONTEXT_SETTINGS, *decoder.lossy, *engine.deciding}
    faults = other_numbers(launch.system, observed) | {name: both for name, both in found.items() if name in deciding}
    for name, (wanted, runs) in faults.items():
        raise EnvironmentFault(
            f"{launch.system.name}: declared is {name} {wanted}, but {engine.name} runs with {runs}: "
            "correct the system's file, or the engine's version is not the one it was written for"
        )
    _check_context(engine, launch, observed)
    read: dict[str, Any] = {**{name: f"{value}{NOT_TOLD}" for name, value in said.items()}, **told}
    if effective:
        read["effective_settings"] = dict(effective)
    if found:
        read["settings_differ"] = [
            f"{name} {runs} where {wanted} was declared" for name, (wanted, runs) in found.items()
        ]
    return read


def _check_context(engine: Engine, launch: Launch, observed: Mapping[str, Any]) -> None:
    """Raise `EnvironmentFault` where a request may hold less than everything else counts on."""
    told, counted = observed.get("context_per_slot"), launch.system.context_of(launch.settings)
    if isinstance(told, int) and told < counted:
        raise EnvironmentFault(
            f"{launch.system.name}: the plan counts on {counted:,} tokens of context, {engine.name} holds {told:,}: "
            f"say under launch in the system's file what it is to hold ({' or '.join(CONTEXT_SETTINGS)})"
        )
