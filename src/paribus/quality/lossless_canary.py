"""The quality canary (PROTOCOL rule 5): 200 questions asked of the decoder, beside plain decoding's answers.

It finds a decoder that breaks answers, not one that costs a point: 200 questions can't see that. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scipy import special

from paribus.quality.lossless import Standing
from paribus.quality.statistics import NO_SPREAD, Difference, paired_difference

FAILS = 0.01
"""The chance, at most, that a decoder that loses nothing fails."""
PASSES = 0.05
"""The chance, at most, that a decoder that loses as much as the margin passes."""


@dataclass(frozen=True)
class Beside:
    """Decoder minus plain over the questions that both answered, and plain's right answers to them; shares of 1."""

    gap: Difference
    plain: float


def difference(decoder: Mapping[str, float], plain: Mapping[str, float]) -> Beside:
    """The decoder beside plain decoding, from the grade of each question; repeats are averaged before."""
    shared = decoder.keys() & plain.keys()
    return Beside(paired_difference(decoder, plain), sum(plain[name] for name in shared) / max(1, len(shared)))


def judge_canary(beside: Beside, margin: float, count: int) -> Standing:
    """The standing after `count` questions were to be asked.

    Failed: worse than plain, one-sided t test at 1%. Passed: all questions were asked and a loss as large as the margin
    is ruled out, one-sided t test at 5%. Else undecided: ask again (`--config repeat=2`), the answers add up. A part of
    the questions that all differ alike has no spread, and decides nothing. Nobody passes where plain decoding is right
    in no more of the answers than the margin: there is nothing that a broken decoder could lose.
    """
    found = beside.gap
    if found.error is None or (found.error < NO_SPREAD and found.questions < count):
        return "undecided"
    reach = float(special.stdtrit(found.questions - 1, 1 - FAILS)) * found.error
    if found.value + reach < 0:
        return "failed"
    least = found.value - float(special.stdtrit(found.questions - 1, 1 - PASSES)) * found.error
    whole = found.questions >= count and beside.plain > margin
    return "passed" if whole and least > -margin else "undecided"


def canary_sentence(beside: Beside, standing: Standing, margin: float, count: int) -> str:
    """The verdict in words, with its arithmetic: the difference and its 95% interval, by Student's t too."""
    found = beside.gap
    part = "" if found.questions >= count else f" of {count}"
    said = f"canary: {standing} on {found.questions}{part} questions"
    if found.error is None or found.high is None:
        return said
    points = f"{100 * found.value:+.1f} points"
    if found.error >= NO_SPREAD:
        told = f"{points} ±{100 * (found.high - found.value):.1f} beside plain decoding"
    elif abs(found.value) < NO_SPREAD:
        told = "not one question differs from plain decoding"
    else:
        told = f"{points} beside plain decoding, on each question alike"
    right = f"; plain decoding is right in {100 * beside.plain:.1f}%: too few to lose any"
    few = "" if beside.plain > margin else right
    return f"{said} ({told}, margin {100 * margin:.0f}{few})"
