"""Energy for text and for answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paribus.speed.metrics.registry import metric
from paribus.speed.rows import Row


@dataclass(frozen=True)
class Energy:
    """Joules for each amount; None without energy or without anything to divide by."""

    per_1k_standard_tokens: float | None
    per_answer: float | None
    per_checked_answer: float | None


@metric(
    "energy", title="Energy for 1,000 standard tokens, an answer, a right answer", unit="J", better="lower",
    across="same scope",
)  # fmt: skip
def energy(rows: Sequence[Row], joules: float | None) -> Energy:
    """Energy of the measured part (idle included) over what was delivered in it, soak included.

    `per_1k_standard_tokens` = 1,000 x energy / standard tokens; `per_answer` = energy x (share of the tokens that whole
    answers hold, so that none pays for what was cut off at the end) / whole answers; `per_checked_answer` =
    `per_answer` x answers with a check / answers verified as right. The energy is the
    counter's, checked against the integral of polled power: more than 5% apart, there is none. Its scope (board,
    package) is named, and scopes are never compared.
    """
    answered = [row for row in rows if row.ok]
    written = sum(row.standard_tokens for row in rows)
    checked = sum(row.check_passed is not None for row in answered)
    right = sum(row.check_passed is True for row in answered)
    if joules is None or not answered or not written:
        return Energy(None, None, None)
    answer = joules * sum(row.standard_tokens for row in answered) / written / len(answered)
    return Energy(
        per_1k_standard_tokens=1000 * joules / written,
        per_answer=answer,
        per_checked_answer=answer * checked / right if right else None,
    )
