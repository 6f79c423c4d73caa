"""Whether somebody else holds the memory that a server needs: then its death says nothing about its engine."""

from __future__ import annotations

import time

import psutil

from paribus.machine.nvml import Nvml, open_nvml

HELD = 0.10
"""A card of which more than this share is in use while nothing of ours runs is shared; a desktop takes less."""
RELEASE_S = 5.0
"""A driver may take a moment to give back the memory of a process that has ended."""


def memory_held(needs_gb: float | None) -> str | None:
    """What others hold, in words, while no server of ours runs; None where there is room. `needs_gb`: the system's.

    On a machine with a card of its own memory only the card is asked; elsewhere the machine's free memory.
    """
    until = time.monotonic() + RELEASE_S
    while (held := _held(open_nvml(), needs_gb)) is not None and time.monotonic() < until:
        time.sleep(0.5)
    return held


def _held(nvml: Nvml | None, needs_gb: float | None) -> str | None:
    if nvml is not None:
        return _on_cards(nvml)
    free = psutil.virtual_memory().available / 1e9
    if needs_gb is None or free >= needs_gb:
        return None
    return f"only {free:.1f} GB of memory are free, and it needs {needs_gb:.4g} GB"


def _on_cards(nvml: Nvml) -> str | None:
    computing = nvml.users()[0]
    if computing:
        return f"{computing} other process{'es are' if computing > 1 else ' is'} computing on the card"
    facts, used = nvml.facts(), nvml.sample().get("memory_used_gb", 0.0)
    whole = float(facts.get("card_memory_gb") or 0.0) * int(facts.get("card_count") or 1)
    return f"{used:.1f} of the card's {whole:.1f} GB are in use by others" if whole and used > HELD * whole else None
