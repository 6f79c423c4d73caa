"""How numbers are rounded wherever they are published: pages, citations, comparisons. One rule: what is supported."""

from __future__ import annotations

import math


def decimals_for(value: float, low: float | None, high: float | None) -> int:
    """Decimals that the interval supports: the half width keeps one digit, two when it begins with 1.

    Without an interval the value keeps two significant digits. Negative (-1 rounds to tens) from 1,000 on only.
    """
    lowest = 0 if abs(value) < 1000 else -9
    return max(lowest, _supported(value, low, high))


def _supported(value: float, low: float | None, high: float | None) -> int:
    half = abs(high - low) / 2 if low is not None and high is not None else 0.0
    if half > 0 and math.isfinite(half):
        exponent = math.floor(math.log10(half))
        leading = half / 10**exponent
        return min(6, (1 if leading < 2 else 0) - exponent)
    if value == 0 or not math.isfinite(value):
        return 0
    return min(6, 1 - math.floor(math.log10(abs(value))))


def fixed(value: float, decimals: int) -> str:
    """A number with thousands separated and that many decimals (negative: rounded to tens, hundreds, ...); never -0."""
    if not math.isfinite(value):
        return "undefined"
    rounded = round(value, decimals)
    if rounded == 0:
        rounded = 0.0
    return f"{rounded:,.{max(0, decimals)}f}"
