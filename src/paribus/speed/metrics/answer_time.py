"""Time to a whole answer."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.metrics.spread import milliseconds, spread
from paribus.speed.rows import Row
from paribus.speed.summary import Spread

CAPPED = 0.05
"""More answers than this cut by the cap: no figure that needs whole answers."""


@metric("answer_time", title="Time to a whole answer", unit="ms", better="lower", across="yes")
def answer_time(rows: Sequence[Row]) -> Spread | None:
    """From sending to the last piece of a whole answer, reasoning included.

    Over the answers that ended by themselves; withheld when more than 5% were cut by the token cap. Compared with the
    same number of requests only. The speed-up of answers splits into first wait, length and rate (exactly, by
    logarithmic mean weights). Intervals, with one request and with several at once: bootstrap over starts, then prompts
    inside their kind of text, so that they hold for other prompts of these kinds too.
    """
    answered = [row for row in rows if row.ok]
    if not answered or sum(row.capped for row in answered) > CAPPED * len(answered):
        return None
    return spread(milliseconds(row.e2e_ns for row in answered if not row.capped))
