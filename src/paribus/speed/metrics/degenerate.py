"""Degenerate answers: text that loops."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from paribus.speed.metrics.registry import metric
from paribus.speed.rows import Row

ENOUGH = 240
"""Characters below which no answer is called a loop: short answers repeat themselves for good reasons."""
ZLIB_RATIO = 0.06
"""Right answers to our prompts, long tables and JSON of any indentation among them, stay above 0.12, blanks apart."""
PERIOD = 400
REPEATS = 5


def is_degenerate(text: str, *, capped: bool) -> bool:
    """Whether a text loops. `capped`: the token cap cut it; a loop seldom ends by itself.

    Either it ends in the same stretch of at most 400 characters five times or more, over at least 240 characters; or
    the cap cut it, and with each run of blanks as one blank it compresses (zlib, level 6) to under 6% of its UTF-8
    bytes: a loop that counts as it goes. Texts under 240 characters never count.
    """
    if len(text) < ENOUGH:
        return False
    return ends_in_loop(text) or (capped and _shrinks(text))


def _shrinks(text: str) -> bool:
    data = " ".join(text.split()).encode("utf-8", "replace")
    return len(data) >= ENOUGH and len(zlib.compress(data, 6)) / len(data) < ZLIB_RATIO


def ends_in_loop(text: str) -> bool:
    """Whether the end of the text is one stretch of 1 to 400 characters, repeated.

    The repeated part spans at least 5 periods and 240 characters. Uses the failure function of the reversed tail
    (Knuth, Morris, Pratt): the tail's prefix of length n has the smallest period n - failure(n).
    """
    tail = text[: -(PERIOD * (REPEATS + 1)) - 1 : -1]
    failure = [0] * len(tail)
    matched = 0
    for i in range(1, len(tail)):
        while matched and tail[i] != tail[matched]:
            matched = failure[matched - 1]
        matched += tail[i] == tail[matched]
        failure[i] = matched
        period = i + 1 - matched
        if period <= PERIOD and i + 1 >= max(ENOUGH, REPEATS * period):
            return True
    return False


@metric("degenerate", title="Answers that loop", unit="share", better="lower", across="yes")
def degenerate(rows: Sequence[Row]) -> float | None:
    """Share of the answered requests whose text loops.

    A text loops if it ends in one stretch of at most 400 characters five times or more, or if the token cap cut it
    and zlib shrinks it, blanks apart, to under 6% of its bytes. Texts under 240 characters never count. More than 2%:
    no headline for the run (a warning on the cpu profile, whose small model loops on long answers).
    """
    answered = [row for row in rows if row.ok]
    return sum(row.degenerate for row in answered) / len(answered) if answered else None
