"""What a system writes a second, at its own length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.rows import Row
from paribus.speed.statistics import Cell, Estimate, ratio_of_sums

Starts = Sequence[Sequence[Row]]


def speed_of(starts: Starts, amount: Callable[[Row], float]) -> Estimate | None:
    """Sum of `amount` / sum of e2e over the answered requests, with the two-level bootstrap."""
    return ratio_of_sums(
        [
            Cell(number, row.prompt_id, amount(row), row.e2e_ns / 1e9)
            for number, rows in enumerate(starts)
            for row in rows
            if row.ok and row.e2e_ns
        ]
    )


@metric("output_speed", title="Output speed", unit="tokens/s", better="higher", across="no")
def output_speed(starts: Starts) -> Estimate | None:
    """Tokens / e2e, as a ratio of sums over the answered requests; the wait for the first text is included.

    What this system writes a second, at its own length, in the model's own tokens: only for systems that share a
    tokenizer. Interval: bootstrap over starts, then prompts.
    """
    return speed_of(starts, lambda row: row.tokens)


@metric(
    "output_speed_standard",
    title="Output speed, standard tokens",
    unit="standard tokens/s",
    better="higher",
    across="yes",
)
def output_speed_standard(starts: Starts) -> Estimate | None:
    """Standard tokens / e2e, as a ratio of sums over the answered requests: `output_speed` on one ruler for all."""
    return speed_of(starts, lambda row: float(row.standard_tokens))
