"""Time until the k-th standard token: the headline of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paribus.speed.metrics.registry import metric
from paribus.speed.rows import KS, Row
from paribus.speed.statistics import mean, percentile
from paribus.speed.summary import TimeToK


def reached_ns(at_ns: npt.NDArray[np.int64], standard: npt.NDArray[np.int64], k: int) -> int | None:
    """Arrival of the piece that holds the k-th standard token; None where the answer is shorter. No interpolation."""
    place = int(np.searchsorted(standard, k))
    return int(at_ns[place]) if place < len(at_ns) else None


@metric("time_to_k", title="Time to the first k standard tokens", unit="ms", better="lower", across="yes")
def time_to_k(rows: Sequence[Row]) -> dict[str, TimeToK | None]:
    """From sending a request until its k-th standard token (`o200k_base`) has arrived, with the piece that holds it.

    No interpolation: a token inside a piece arrives when the piece does. k = 1, 32, 100, 300, 800. Mean and median
    over the requests that reach k; `share` is their share of all requests, and under half the figure is withheld.
    `summary.json` gives the plain mean over requests; the site's boards and figures give the geometric mean over kinds
    of the mean per kind. Both are of this run's own prompts that reach k, and tables say how many of how many.
    Two systems are compared on the prompts where both reach k: mean per kind of text, ratio per kind, geometric mean
    over kinds with equal weight. Both then wrote the same amount of text, whatever their answers' length.
    """
    return {str(k): _one(rows, k) for k in KS}


def _one(rows: Sequence[Row], k: int) -> TimeToK | None:
    times = [t / 1e6 for row in rows if row.ok and (t := row.time_to(k)) is not None]
    centre, middle = mean(times), percentile(times, 0.5)
    if centre is None or middle is None or len(times) * 2 < len(rows):
        return None
    return TimeToK(mean=centre, p50=middle, share=len(times) / len(rows))
