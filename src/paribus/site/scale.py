"""Axes: where a value stands on a chart, and which ticks are labelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """One horizontal or vertical axis: its ends, its ticks, and whether it is logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value stands between the ends: 0 to 1, cut off at both."""
        if self.log:
            value, low, high = (math.log(max(v, 1e-12)) for v in (value, self.low, self.high))
        else:
            low, high = self.low, self.high
        return min(1.0, max(0.0, (value - low) / (high - low)))

    @property
    def note(self) -> str:
        """What the reader must know about the axis; empty when it is linear from zero."""
        if self.log:
            return "log scale"
        return "" if self.low == 0 else "the axis does not start at zero"


def axis(values: Sequence[float], *, log: bool = False, ticks: int = 4) -> Axis:
    """An axis that holds all values. Linear ones start at zero unless that would squeeze the intervals."""
    found = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    if not found:
        return Axis(0.0, 1.0, (0.0, 1.0))
    return _log_axis(min(found), max(found)) if log else _linear_axis(min(found), max(found), ticks)


def _linear_axis(low: float, high: float, ticks: int) -> Axis:
    same = math.isclose(low, high, rel_tol=1e-9)
    if low >= 0 and (low < 0.5 * high or same):
        low = 0.0
    if low == high or (same and low < 0):
        low, high = low - 1, high + 1
    step = _step((high - low) / ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(first * step, last * step, tuple(round(i * step, 12) for i in range(first, last + 1)))


def _step(rough: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def _log_axis(low: float, high: float) -> Axis:
    fine = high / low < 3
    steps = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0) if fine else (1.0, 2.0, 5.0)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    marks = [s * 10.0**p for p in powers for s in steps]
    start = max((m for m in marks if m <= low * (1 + 1e-9)), default=marks[0])
    end = min((m for m in marks if m >= high * (1 - 1e-9)), default=marks[-1])
    if start == end:
        start, end = start / 2, end * 2
    chosen = [m for m in marks if start <= m <= end]
    return Axis(start, end, tuple(round(m, 12) for m in chosen[:: max(1, math.ceil(len(chosen) / 7))]), log=True)


def tick_text(value: float) -> str:
    """A tick's label: `0.5`, `20`, `1,500`."""
    return f"{value:,.10g}"
