"""Time to the end of the answer."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.metrics.spread import milliseconds, spread
from paribus.speed.rows import Row
from paribus.speed.summary import Spread


@metric("e2e", title="Time to the last text", unit="ms", better="lower", across="no")
def e2e(rows: Sequence[Row]) -> Spread:
    """From the first byte of the request to the last piece that carries text.

    A trailing usage block, an empty finishing piece or `[DONE]` doesn't extend it.
    """
    return spread(milliseconds(row.e2e_ns for row in rows if row.ok))
