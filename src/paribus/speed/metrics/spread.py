"""Mean, median and 99th percentile: what several metrics give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paribus.speed.statistics import mean, percentile
from paribus.speed.summary import Spread


def milliseconds(values_ns: Iterable[int | None]) -> list[float]:
    """Nanoseconds as milliseconds; undefined ones are left out."""
    return [ns / 1e6 for ns in values_ns if ns is not None]


def spread(values: Sequence[float]) -> Spread:
    """Mean, median and 99th percentile (linear interpolation); null of nothing."""
    return Spread(mean=mean(values), p50=percentile(values, 0.5), p99=percentile(values, 0.99))
