"""Statistics of quality scores: questions are the sample; repeats only sharpen what is known of one question.

All values are shares of 1. References: E. Miller, "Adding Error Bars to Evals" (2024), for clustered errors and paired
differences; E. Korn and B. Graubard, Survey Methodology 24 (1998), for a share's interval by effective sample size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special  # not scipy.stats: importing that takes a second of every command

LEVEL = 0.95
NO_SPREAD = 1e-9
"""A standard error below this is rounding: values that are all equal have none, but for the last digit."""


@dataclass(frozen=True)
class Interval:
    """A value and its interval; the bounds are null where the sample allows none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Difference:
    """A paired difference over the questions both answered, its standard error, and what could have been seen."""

    value: float
    low: float | None
    high: float | None
    error: float | None
    questions: int
    detectable: float | None
    """Smallest true difference that this comparison finds in 80% of the cases."""


def question_means(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Mean of each question's repeats, from (question, value)."""
    found: dict[str, list[float]] = {}
    for question, value in values:
        found.setdefault(question, []).append(value)
    return {question: math.fsum(each) / len(each) for question, each in found.items()}


def mean_interval(means: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean over questions with a Beta interval at the effective sample size (Jeffreys' prior).

    The effective size is p(1-p) over the squared clustered error, with Student's t for few questions. It keeps an
    interval of some width where all answers are right or all are wrong, which a normal or bootstrap interval loses.
    """
    n = len(means)
    if n == 0:
        return Interval(0.0, None, None)
    array = np.asarray(means, dtype=float)
    mean = float(array.mean())
    if n < 2:
        return Interval(mean, None, None)
    size = float(n)
    variance = float(array.var(ddof=1)) / n
    if variance > 0 and 0 < mean < 1:
        narrow = float(special.ndtri(0.5 + level / 2)) / float(special.stdtrit(n - 1, 0.5 + level / 2))
        size = min(mean * (1 - mean) / variance * narrow**2, 1e9)
    right, wrong = mean * size, (1 - mean) * size
    tail = (1 - level) / 2
    low = float(special.betaincinv(right + 0.5, wrong + 0.5, tail)) if mean > 0 else 0.0
    high = float(special.betaincinv(right + 0.5, wrong + 0.5, 1 - tail)) if mean < 1 else 1.0
    return Interval(mean, min(low, mean), max(high, mean))


def clustered_interval(clusters: Sequence[Sequence[float]], level: float = LEVEL) -> Interval:
    """Mean over all questions, its interval by clusters of questions (exams), with Student's t over the clusters.

    Squared error: G/(G-1) times the sum of the clusters' squared summed residuals over n squared (E. Miller, section
    2.2, with the factor for few clusters). A check of how much exams as such matter: with three years it is wide.
    Clusters that don't differ at all (all answers wrong, say) tell nothing of their spread: no interval.
    """
    n, count = sum(map(len, clusters)), len(clusters)
    mean = math.fsum(value for cluster in clusters for value in cluster) / n if n else 0.0
    if count < 2:
        return Interval(mean, None, None)
    sums = [math.fsum(value - mean for value in cluster) for cluster in clusters]
    error = math.sqrt(count / (count - 1) * math.fsum(each * each for each in sums)) / n
    if error < NO_SPREAD:
        return Interval(mean, None, None)
    reach = float(special.stdtrit(count - 1, 0.5 + level / 2)) * error
    return Interval(mean, max(0.0, mean - reach), min(1.0, mean + reach))


def paired_difference(left: Mapping[str, float], right: Mapping[str, float], level: float = LEVEL) -> Difference:
    """Mean of `left - right` over the questions in both, with Student's t over questions."""
    shared = sorted(left.keys() & right.keys())
    n = len(shared)
    if n == 0:
        return Difference(0.0, None, None, None, 0, None)
    gaps = np.array([left[question] - right[question] for question in shared])
    value = float(gaps.mean())
    if n < 2:
        return Difference(value, None, None, None, n, None)
    error = float(gaps.std(ddof=1) / math.sqrt(n))
    reach = float(special.stdtrit(n - 1, 0.5 + level / 2)) * error
    return Difference(value, value - reach, value + reach, error, n, detectable(error, level))


def detectable(error: float, level: float = LEVEL, power: float = 0.8) -> float:
    """Minimal detectable difference of a two-sided test, given the standard error of the paired difference."""
    return (float(special.ndtri(0.5 + level / 2)) + float(special.ndtri(power))) * error


def equivalent(difference: Difference, margin: float, alpha: float = 0.05) -> bool:
    """Whether two one-sided t tests put the true difference inside the margin (no loss larger than it).

    Where all questions differ alike there is no spread to test by. Then at most `-ln(alpha) / n` of all questions are
    others (the rule of three, for alpha 5%), and each of those lies at most 1 + |difference| away.
    """
    if difference.error is None:
        return False
    if difference.error < NO_SPREAD:
        reach = (1 + abs(difference.value)) * -math.log(alpha) / difference.questions
    else:
        reach = float(special.stdtrit(difference.questions - 1, 1 - alpha)) * difference.error
    return difference.value - reach > -margin and difference.value + reach < margin


def majority(answers: Sequence[str | None], right: str) -> float:
    """Whether the most frequent answer is right; with a tie, the chance that a fair draw among the tied is."""
    counts: dict[str, int] = {}
    for answer in answers:
        if answer is not None:
            counts[answer] = counts.get(answer, 0) + 1
    if not counts:
        return 0.0
    top = max(counts.values())
    tied = [answer for answer, count in counts.items() if count == top]
    return 1 / len(tied) if right in tied else 0.0


def pass_power(successes: int, trials: int, k: int) -> float:
    """pass^k: the chance that k of the trials, drawn without replacement, all succeeded."""
    return math.comb(successes, k) / math.comb(trials, k)
