"""Energy of Apple chips through `zeus-apple-silicon` (the extra `apple`), which needs no root.

The wheel and its licence are on the Python package index under the same name.
"""

from __future__ import annotations

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
