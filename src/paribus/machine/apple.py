"""Apple chips: who they are (`sysctl`, `system_profiler`), and their energy through `zeus-apple-silicon`.

Neither needs root. The energy's wheel (the extra `apple`) and its licence are on the Python package index.
"""

from __future__ import annotations

import contextlib
import json
import platform
import subprocess
from typing import Any

NEEDED = ("cpu_total_mj", "gpu_mj")
BESIDE = ("dram_mj", "ane_mj")
"""Memory and neural engine: counted where the chip tells them."""


class AppleChip:
    """Cumulative energy of the whole chip, in joules."""

    def __init__(self, library: Any) -> None:
        self._monitor = library.AppleEnergyMonitor()

    def joules(self) -> float | None:
        """Joules so far; None where CPU or GPU can't be read: a part of the chip is no sum."""
        try:
            told = self._monitor.get_cumulative_energy()
        except Exception:  # the library raises RuntimeError and its own kinds; a reading that fails is none
            return None
        needed = [getattr(told, name, None) for name in NEEDED]
        if None in needed:
            return None
        beside = [getattr(told, name, None) for name in BESIDE]
        return sum(float(value) for value in (*needed, *beside) if value is not None) / 1000


def open_apple() -> AppleChip | None:
    """The chip's energy; None on other machines and without the extra."""
    try:
        import zeus_apple_silicon

        chip = AppleChip(zeus_apple_silicon)
    except Exception:
        # Not installed, not macOS, or a chip that the library doesn't know.
        return None
    return chip if chip.joules() is not None else None


def chip_facts(brand: str, displays: str) -> dict[str, Any]:
    """What the chip is: its name out of `sysctl -n machdep.cpu.brand_string` and its GPU's cores out of
    `system_profiler SPDisplaysDataType -json`. Empty for a chip that isn't Apple's; what can't be read is left out.
    """
    chip = " ".join(brand.split())
    if not chip.startswith("Apple "):
        return {}
    cores = _gpu_cores(displays)
    return {
        "card": f"{chip}, {cores} GPU cores" if cores is not None else chip,
        "chip": chip,
        **({"gpu_cores": cores} if cores is not None else {}),
    }


def _gpu_cores(displays: str) -> int | None:
    """The first `sppci_cores` among the graphics devices: text of digits, as the program writes it."""
    try:
        devices = json.loads(displays)["SPDisplaysDataType"]
        told = [str(device["sppci_cores"]) for device in devices if "sppci_cores" in device]
    except (ValueError, KeyError, TypeError):
        return None
    return int(told[0]) if told and told[0].isdecimal() else None


def observe_chip() -> dict[str, Any]:
    """This machine's Apple chip; empty on others."""
    if platform.system() != "Darwin":
        return {}
    return chip_facts(
        _said("sysctl", "-n", "machdep.cpu.brand_string"), _said("system_profiler", "SPDisplaysDataType", "-json")
    )


def _said(*command: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    return ""
