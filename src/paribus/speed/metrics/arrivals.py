"""Arrivals: pieces that came less than 1 ms after the first of their group are one arrival.

Several pieces in one read, or in one packet, are one event for whoever waits; gaps inside it would be gaps between
lines of a parser.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ONE_ARRIVAL_NS = 1_000_000


def last_of_each(at_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Index of the last piece of each arrival, in order. `at_ns` never falls."""
    if len(at_ns) > 1 and np.diff(at_ns).min() >= ONE_ARRIVAL_NS:
        return np.arange(len(at_ns), dtype=np.int64)  # each is one
    ends: list[int] = []
    start: int | None = None
    for i, t in enumerate(at_ns.tolist()):
        if start is None or t - start >= ONE_ARRIVAL_NS:
            if i:
                ends.append(i - 1)
            start = t
    if len(at_ns):
        ends.append(len(at_ns) - 1)
    return np.array(ends, dtype=np.int64)
