"""Intervals of shares: how many of the answers were right, of prompts that are asked again in every start.

A share lies between 0 and 1 and its interval with it, as Student's t over starts or a bootstrap of logarithms do not
see to. Answers to one prompt are alike, so that a share rests on fewer than its number of requests: on
n = p (1 - p) / v, with v the variance found between prompts (and between starts, where it is more than the prompts'
own chance explains), and on no more than the number of prompts: where one or two answers are wrong, nobody can say how
alike the answers to a prompt are, and more starts would seem to make it surer than it is. So it holds the truth more
often than 95% where a prompt's answers have little in common. Wilson's interval is taken at that n, with Student's t in
place of the normal quantile, after Dean and Pagano, "Evaluating confidence interval methods for binomial proportions in
clustered surveys", 2015.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from paribus.speed.statistics import LEAST_UNITS, LEVEL, Cell, Estimate, basis_of, students


def share_of(cells: Sequence[Cell]) -> Estimate | None:
    """Sum of `over` / sum of `under`, where no cell's `over` is more than its `under`; None without cells.

    0 <= low <= value <= high <= 1. Bounds are None with fewer than three prompts.
    """
    asked = math.fsum(c.under for c in cells)
    if asked <= 0:
        return None
    value = min(1.0, math.fsum(c.over for c in cells) / asked)
    starts, prompts = len({c.start for c in cells}), len({c.prompt for c in cells})
    if prompts < LEAST_UNITS:
        return Estimate(value, None, None, "none")
    between = _variance(cells, value, lambda c: c.prompt)
    both = _variance(cells, value, lambda c: (c.start, c.prompt))
    more = max(0.0, _variance(cells, value, lambda c: c.start) - both)
    variance = between + more
    if variance > 0 and 0 < value < 1:
        below = between**2 / (prompts - 1) + (more**2 / (starts - 1) if starts > 1 else 0.0)
        low, high = _wilson(value, min(prompts, value * (1 - value) / variance), round(variance**2 / below, 2))
    else:
        low, high = _wilson(value, prompts, prompts - 1)
    return Estimate(value, low, high, basis_of(starts, "prompts"))


def _variance(cells: Sequence[Cell], share: float, key: Callable[[Cell], Hashable]) -> float:
    """Variance of a share whose cells come in groups (linearised ratio of sums); 0 for a single group."""
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for cell in cells:
        groups[key(cell)].append(cell.over - share * cell.under)
    if len(groups) < 2:
        return 0.0
    total = math.fsum(math.fsum(each) ** 2 for each in groups.values())
    return total * len(groups) / (len(groups) - 1) / math.fsum(c.under for c in cells) ** 2


def _wilson(share: float, n: float, freedom: float) -> tuple[float, float]:
    """Wilson's interval of a share of n."""
    square = students(freedom, (1 + LEVEL) / 2) ** 2
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = math.sqrt(square * (share * (1 - share) / n + square / (4 * n * n))) / (1 + square / n)
    return min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half))
