"""Speed after the first arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.speed.metrics.arrivals import last_of_each
from paribus.speed.metrics.registry import metric
from paribus.speed.rows import Row
from paribus.speed.statistics import Cell, Estimate, ratio_of_sums

COVERAGE = 0.9


@dataclass(frozen=True)
class Decoding:
    """One request after its first arrival: tokens and nanoseconds (None with fewer than two arrivals)."""

    arrivals: int
    tokens: float | None
    ns: int | None
    longest_gap_ns: int | None


def decoding(at_ns: npt.NDArray[np.int64], native: npt.NDArray[np.float64]) -> Decoding:
    """Tokens and time from the end of the first arrival to the end of the last."""
    ends = last_of_each(at_ns)
    if len(ends) < 2:
        return Decoding(len(ends), None, None, None)
    first, last = int(ends[0]), int(ends[-1])
    return Decoding(
        len(ends),
        float(native[last] - native[first]),
        int(at_ns[last] - at_ns[first]),
        int(np.diff(at_ns[ends]).max()),
    )


@metric("decode_speed", title="Decode speed", unit="tokens/s", better="higher", across="no")
def decode_speed(starts: Sequence[Sequence[Row]]) -> tuple[Estimate | None, float]:
    """(tokens - those that came with the first arrival) / (last - first arrival), as a ratio of sums, with coverage.

    Over the requests with at least two distinct arrivals (pieces less than 1 ms apart are one arrival); `coverage` is
    their share of the answered requests, and under 90% the figure is withheld. Null with none: an answer in one piece
    has no decode speed. Where one piece is one token and the first takes no less than a mean step,
    output_speed <= decode_speed.
    """
    answered = [(number, row) for number, rows in enumerate(starts) for row in rows if row.ok]
    cells = [
        Cell(number, row.prompt_id, row.decode_tokens, row.decode_ns / 1e9)
        for number, row in answered
        if row.decode_ns and row.decode_tokens is not None
    ]
    coverage = len(cells) / len(answered) if answered else 0.0
    return (ratio_of_sums(cells) if coverage >= COVERAGE else None), coverage
