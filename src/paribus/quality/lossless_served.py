"""The lossless gate at the served temperature (PROTOCOL rule 5): are answers as long and as right as plain's?

Nothing is asked for it: starts of plain decoding answer the same prompts again and again, and how far those answers lie
apart is the band. A decoder's answers to a prompt must look like one more of plain's starts. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import special

from paribus.quality.lossless import Standing
from paribus.quality.statistics import detectable

FAILS = 0.01
"""The chance that a decoder with plain decoding's very answers fails: over both tests together."""
PASSES = 0.05
"""A decoder passes only where no test is as rare as this, both together."""
LEAST = 0.02
"""A shift under 2% of the length, or 2 points of right answers, is none, however sure."""
SEES = 0.10
"""Who passes must have been looked at so closely that a shift of 10%, or of 10 points, would be found (80% power)."""


@dataclass(frozen=True)
class Shift:
    """Decoder minus plain, a mean over prompts; its standard error as plain's own starts give it; two-sided p.

    `seen`: the smallest shift that is found in 80% of the cases. `prompts`: those that tell.
    """

    value: float
    error: float
    p: float
    seen: float
    prompts: int


Answers = Mapping[str, Sequence[float]]
"""Values of the answers to each prompt."""


def shift(plain: Answers, decoder: Answers, doubt: float = 0.0) -> Shift | None:
    """How far a decoder's values lie from plain's, prompt by prompt; None where plain's starts give no band.

    Only prompts that both answered, plain at least twice. The variance of a prompt's values is plain's own; with
    n answers of plain's and m of the decoder's the difference of means has (1/n + 1/m) of it, and the mean over
    prompts is judged by Student's t with the degrees of freedom of all prompts.

    `doubt`: the variance of one more prompt that nobody asked. Right or wrong, a few answers are often all alike, and
    that is no proof that they always are.
    """
    shared = [name for name in sorted(plain.keys() & decoder.keys()) if len(plain[name]) > 1 and decoder[name]]
    if not shared:
        return None
    value = sum(_mean(decoder[name]) - _mean(plain[name]) for name in shared) / len(shared)
    spread = sum(_variance(plain[name]) * (1 / len(plain[name]) + 1 / len(decoder[name])) for name in shared)
    most = max(1 / len(plain[name]) + 1 / len(decoder[name]) for name in shared)
    error = math.sqrt(spread + doubt * most) / len(shared)
    if error < 1e-9:  # answers that never vary: rounding is no band
        return None
    freedom = sum(len(plain[name]) - 1 for name in shared)
    p = 2 * float(special.stdtr(freedom, -abs(value) / error))
    return Shift(value, error, p, detectable(error), len(shared))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def rightness(plain: Answers, decoder: Answers) -> Shift | None:
    """The shift of right answers (1) among wrong ones (0)."""
    return shift(plain, decoder, doubt=0.25)


def lengths(tokens: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Lengths on a scale where a shift of 0.1 is about 10%, whatever a prompt's usual length."""
    return {name: [math.log(max(1.0, each)) for each in values] for name, values in tokens.items()}


def judge_served(length: Shift | None, score: Shift | None) -> Standing:
    """Passed, failed, or undecided: too few answers to tell, or a shift between chance and certainty."""
    found = [one for one in (length, score) if one is not None]
    if any(one.p < FAILS / 2 and abs(one.value) >= LEAST for one in found):
        return "failed"
    calm = all(one.p >= PASSES / 2 or abs(one.value) < LEAST for one in found)
    seen = len(found) == 2 and all(one.seen <= SEES for one in found)
    return "passed" if calm and seen else "undecided"


def served_sentence(length: Shift | None, score: Shift | None, standing: Standing) -> str:
    """The verdict in words, with what it rests on."""
    if length is None:
        return (
            "served temperature: undecided (plain decoding's starts give no band: two answers to a prompt are needed)"
        )
    said = f"length {_signed(100 * length.value)}% ±{100 * 1.96 * length.error:.1f}"
    if score is not None:
        said += f", right answers {_signed(100 * score.value)} points ±{100 * 1.96 * score.error:.1f}"
    else:
        said += "; no prompt's answers could be checked"
    return f"served temperature: {standing} over {length.prompts} prompts ({said}, by plain decoding's own spread)"


def _signed(value: float) -> str:
    return f"{value:+.1f}"
