"""Time to the first text of the visible answer."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.metrics.spread import milliseconds, spread
from paribus.speed.rows import Row
from paribus.speed.summary import Spread


@metric("ttfa", title="Time to first answer", unit="ms", better="lower", across="no")
def ttfa(rows: Sequence[Row]) -> Spread:
    """Arrival of the first piece of the visible answer (text or tool call), counted as `ttft`; reasoning is none.

    Undefined for a request whose answer is reasoning only. ttft <= ttfa <= e2e.
    """
    return spread(milliseconds(row.ttfa_ns for row in rows if row.ok))
