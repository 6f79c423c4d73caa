"""Quality of two runs on the same questions: the paired difference, and the smallest one that could be seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from paribus.conditions import CheckFailed
from paribus.results.data import RunData
from paribus.results.items import grades

LEVEL, POWER = 0.95, 0.8


@dataclass(frozen=True)
class Paired:
    """First minus second, as shares of 1. `detectable`: the smallest difference seen with 80% power at 5%."""

    score: str
    value: float
    low: float | None
    high: float | None
    detectable: float | None
    questions: int


def paired_difference(left: RunData, right: RunData) -> Paired | None:
    """Mean difference over the questions that both answered; None without any.

    Repeats are averaged within a question first, so that questions are what is independent; Student's t over them.
    """
    a, b = grades(left), grades(right)
    if set(a) != set(b):
        raise CheckFailed(
            f"the two runs did not answer the same questions: {len(set(a) - set(b))} only in the first, "
            f"{len(set(b) - set(a))} only in the second"
        )
    quality = left.summary.quality
    headline = next((s.name for s in quality.scores if s.headline), "score") if quality else "score"
    return difference(a, b, headline)


def difference(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]], score: str) -> Paired | None:
    """The paired difference of two tables, question to the grades of its repeats."""
    shared = sorted(set(a) & set(b))
    if not shared:
        return None
    gaps = np.array([np.mean(a[q]) - np.mean(b[q]) for q in shared])
    value = float(gaps.mean())
    if len(gaps) < 2:
        return Paired(score, value, None, None, None, len(gaps))
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(gaps) - 1)) * error
    if error == 0:
        # Not one question differs: the data show no spread from which an interval could be made.
        return Paired(score, value, None, None, None, len(gaps))
    detectable = (float(stats.norm.ppf((1 + LEVEL) / 2)) + float(stats.norm.ppf(POWER))) * error
    return Paired(score, value, value - half, value + half, detectable, len(gaps))
