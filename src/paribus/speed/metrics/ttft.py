"""Time to the first text."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.metrics.spread import milliseconds, spread
from paribus.speed.rows import Row
from paribus.speed.summary import Spread


@metric("ttft", title="Time to first text", unit="ms", better="lower", across="no")
def ttft(rows: Sequence[Row]) -> Spread:
    """Arrival of the first piece that carries text, reasoning or a tool call; a role-only or empty piece is none.

    Measured from the moment the first byte of the request is written. When that is later than it was due, the
    lateness is kept apart (`late`). Mean, median and 99th percentile over the answered requests.
    """
    return spread(milliseconds(row.ttft_ns for row in rows if row.ok))
