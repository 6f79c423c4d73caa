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
    if not len(at_ns):
        return np.array([], dtype=np.int64)
    # What comes 1 ms after the piece before it begins an arrival in any case. Only where pieces hang together for
    # longer than that are they walked through.
    last = np.append(np.diff(at_ns) >= ONE_ARRIVAL_NS, True)
    ends = np.flatnonzero(last)
    begins = np.append(0, ends[:-1] + 1)
    for group in np.flatnonzero(at_ns[ends] - at_ns[begins] >= ONE_ARRIVAL_NS):
        start = at_ns[begins[group]]
        for i in range(begins[group] + 1, ends[group] + 1):
            if at_ns[i] - start >= ONE_ARRIVAL_NS:
                last[i - 1] = True
                start = at_ns[i]
    return np.flatnonzero(last)
