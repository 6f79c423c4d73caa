"""Gaps between arrivals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paribus.speed.metrics.arrivals import last_of_each
from paribus.speed.metrics.registry import metric
from paribus.speed.statistics import percentile
from paribus.speed.summary import Stall


@metric("stall", title="Gaps between arrivals", unit="ms", better="lower", across="no")
def stall(arrivals_ns: Sequence[npt.NDArray[np.int64]]) -> Stall:
    """Gaps between the arrivals of a request (pieces less than 1 ms apart are one): median, 99th percentile, longest.

    Over all gaps of all answered requests. Never turned into a rate: an arrival may hold one token or a canvas. For a
    run of several starts: mean of the starts' medians and 99th percentiles, and the longest of all.
    """
    gaps = [np.diff(at[last_of_each(at)]) / 1e6 for at in arrivals_ns if len(at)]
    together = np.concatenate(gaps) if gaps else np.array([])
    if not len(together):
        return Stall(p50=None, p99=None, max=None)
    return Stall(p50=percentile(together, 0.5), p99=percentile(together, 0.99), max=float(together.max()))
