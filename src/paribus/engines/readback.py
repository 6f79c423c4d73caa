"""Declared and effective: what the running server says of its own settings, held against the catalog's.

A lossy setting (canvas, denoising steps, thresholds) or a context that reads back differently is a fault: the answers
would belong to another answer class, or other prompts would fit. Any other setting only moves the speed: it is
recorded and flagged (`settings_differ`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paribus.catalog.models import CONTEXT_SETTINGS
from paribus.conditions import EnvironmentFault
from paribus.engines.base import Engine, Launch


def differing(declared: Mapping[str, Any], effective: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings that were declared and read back as something else: declared and effective, by name.

    Numbers are compared as numbers, words without regard to case and to `-` or `_`; what only one side has is passed
    over.
    """
    both = declared.keys() & effective.keys()
    return {n: (declared[n], effective[n]) for n in sorted(both) if not _same(declared[n], effective[n])}


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, bool) or isinstance(two, bool):
        return str(one).lower() == str(two).lower()
    try:
        return abs(float(one) - float(two)) <= 1e-6 * max(1.0, abs(float(one)))
    except (TypeError, ValueError):
        return _word(one) == _word(two)


def _word(value: Any) -> str:
    return str(value).strip().lower().replace("_", "-")


def read_back(engine: Engine, launch: Launch, observed: Mapping[str, Any]) -> dict[str, Any]:
    """What is observed of the settings: `effective_settings`, and `settings_differ` in words where some do.

    Raises `EnvironmentFault` where one that decides the answers differs.
    """
    effective: Mapping[str, Any] = observed.get("settings") or {}
    decoder = launch.system.decoder
    declared = {**launch.settings, **decoder.parameters, **decoder.lossy}
    found = differing(declared, effective)
    decisive = sorted(found.keys() & {*CONTEXT_SETTINGS, *decoder.lossy})
    if decisive:
        name = decisive[0]
        raise EnvironmentFault(
            f"{launch.system.name}: declared is {name} {found[name][0]}, but {engine.name} runs with {found[name][1]}: "
            "correct the system's file, or the engine's version is not the one it was written for"
        )
    told: dict[str, Any] = {"effective_settings": dict(effective)} if effective else {}
    if found:
        words = [f"{name} {said} where {wanted} was declared" for name, (wanted, said) in found.items()]
        told["settings_differ"] = words
    return told
