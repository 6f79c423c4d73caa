"""Gaps between arrivals."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paribus.speed.metrics.arrivals import last_of_each
from paribus.speed.metrics.registry import metric
from paribus.speed.statistics import percentile
from paribus.speed.summary import Stall

LONG_NS = 2_000_000_000


@metric("stall", title="Gaps between arrivals", unit="ms", better="lower", across="no")
def stall(arrivals_ns: Sequence[npt.NDArray[np.int64]]) -> Stall:
    """Gaps between the arrivals of a request (pieces less than 1 ms apart are one): median, 99th percentile, longest.

    Over all gaps of all answered requests. Never turned into a rate: an arrival may hold one token or a canvas. For a
    run of several starts: mean of the starts' medians and 99th percentiles, and the longest of all.
    """
    gaps = Gaps()
    for at in arrivals_ns:
        gaps.add(at)
    return gaps.stall()


class Gaps:
    """Gaps of many requests, four bytes each where they are under two seconds: a long load has millions."""

    def __init__(self) -> None:
        self._short, self._long = array("i"), array("q")

    def add(self, at_ns: npt.NDArray[np.int64]) -> None:
        """Take in one request."""
        gaps = np.diff(at_ns[last_of_each(at_ns)])
        short = gaps < LONG_NS
        self._short.frombytes(gaps[short].astype(np.int32).tobytes())
        self._long.frombytes(gaps[~short].astype(np.int64).tobytes())

    def stall(self) -> Stall:
        """Median, 99th percentile and longest. Brings the gaps into another order."""
        short, long = np.frombuffer(self._short, np.int32), np.sort(np.frombuffer(self._long, np.int64))
        number = len(short) + len(long)
        if not number:
            return Stall(p50=None, p99=None, max=None)

        def quantile(share: float) -> float | None:
            place = (number - 1) * share
            wanted = [math.floor(place), min(math.floor(place) + 1, number - 1)]
            inside = [k for k in wanted if k < len(short)]
            if inside:
                short.partition(inside)
            both = [short[k] if k < len(short) else long[k - len(short)] for k in wanted]
            return percentile(np.array(both) / 1e6, place - wanted[0])

        longest = long[-1] if len(long) else short.max()
        return Stall(p50=quantile(0.5), p99=quantile(0.99), max=float(longest / 1e6))
