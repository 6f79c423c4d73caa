"""Right answers among the verifiable ones."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.rows import Row


@metric("checked_pass", title="Answers verified as right", unit="share", better="higher", across="yes")
def checked_pass(rows: Sequence[Row]) -> float | None:
    """Share of the requests with a verifiable prompt that were answered right in this very run.

    A failed request is not right. Null without verifiable prompts.
    """
    checked = [row.check_passed for row in rows if row.check_passed is not None]
    return sum(checked) / len(checked) if checked else None
