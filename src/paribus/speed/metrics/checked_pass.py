"""Right answers among the verifiable ones."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.rows import Row
from paribus.speed.shares import share_of
from paribus.speed.statistics import Cell, Estimate


@metric("checked_pass", title="Answers verified as right", unit="share", better="higher", across="yes")
def checked_pass(rows: Sequence[Row]) -> float | None:
    """Share of the requests with a verifiable prompt that were answered right in this very run.

    A failed request is not right. Null without verifiable prompts.
    """
    checked = [row.check_passed for row in rows if row.check_passed is not None]
    return sum(checked) / len(checked) if checked else None


def checked_share(starts: Sequence[Sequence[Row]]) -> Estimate | None:
    """The same share over the starts of a run, with its interval; at several requests at once too: it is no speed."""
    return share_of(
        [
            Cell(start, row.prompt_id, float(row.check_passed), 1.0)
            for start, rows in enumerate(starts)
            for row in rows
            if row.check_passed is not None
        ]
    )
