"""Gaps between arrivals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paribus.speed.metrics.arrivals import last_of_each
from paribus.speed.metrics.registry import metric
from paribus.speed.statistics import percentile
from paribus.speed.summary import Stall


def gaps_ms(at_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Gaps between the arrivals of one request, in milliseconds."""
    return np.diff(at_ns[last_of_each(at_ns)]) / 1e6


@metric("stall", title="Gaps between arrivals", unit="ms", better="lower", across="no")
def stall(arrivals_ns: Sequence[npt.NDArray[np.int64]]) -> Stall:
    """Gaps between the arrivals of a request (pieces less than 1 ms apart are one): median, 99th percentile, longest.

    Over all gaps of all answered requests. Never turned into a rate: an arrival may hold one token or a canvas. For a
    run of several starts: mean of the starts' medians and 99th percentiles, and the longest of all.
    """
    return stall_of([gaps_ms(at) for at in arrivals_ns if len(at)])


def stall_of(gaps: Sequence[npt.NDArray[np.float64]]) -> Stall:
    """The same from the gaps of each request."""
    together = np.concatenate(gaps) if gaps else np.array([])
    if not len(together):
        return Stall(p50=None, p99=None, max=None)
    return Stall(p50=percentile(together, 0.5), p99=percentile(together, 0.99), max=float(together.max()))
