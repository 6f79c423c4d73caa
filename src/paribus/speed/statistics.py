"""Uncertainty (PROTOCOL section 4), as pure functions. Every interval is of 95%.

What single requests take or write, with one request or with several at once: a two-level bootstrap, starts then
prompts; the prompts are a sample of those one might ask. What a server writes a second with several at once (a window's
throughput, and ratios of it): Student's t over starts; where only one start exists, over batch means inside it. Such an
interval is for these very prompts: how a server does with others isn't in it. An `Estimate` says which of them its
interval rests on: an interval of a single start knows nothing about what differs between starts, and must not be shown
as if it did.

Resampling a handful of units understates their spread: n units have n - 1 degrees of freedom, and a mean of few follows
Student's t. `unbiased` widens deviations for the first, `combined` for the second, with the degrees of freedom of
starts and prompts together (Welch and Satterthwaite), so that intervals cover at five starts what they say they cover
(`tests/speed/test_speed_coverage.py`, and by hand `benchmarks/coverage.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Basis = Literal["starts and prompts", "prompts", "kinds", "starts", "batches", "none"]
"""What an interval rests on. `prompts`, `kinds` and `batches`: one start, so that nothing is known between starts."""

K = TypeVar("K", int, str)

LEVEL = 0.95
DRAWS = 2_000
LEAST_UNITS = 3
"""Fewer prompts (or kinds) of a single start allow no interval: two would give one of some powers of ten."""
TURNS = 200
"""Newton's steps towards a quantile at most."""
SEED = 20_261
"""Seed of every bootstrap: who recomputes a number gets the same interval."""


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval; the bounds are None where the data allow none (`basis` is then `none`)."""

    value: float
    low: float | None
    high: float | None
    basis: Basis


@lru_cache(maxsize=512)
def students(freedom: float, share: float) -> float:
    """Quantile of Student's t, for shares over a half.

    Newton's steps on the tail, which is half the regularised incomplete beta function at freedom / (freedom + t^2).
    Held against scipy in the tests; importing that costs every measurement a quarter of a second of CPU.
    """
    if share <= 0.5:
        raise ValueError("only the upper half is needed here")
    a, tail = freedom / 2, 1 - share
    # log of 1 / (a B(a, 1/2)): the factor before the continued fraction.
    front = math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * math.log(math.pi)
    t = NormalDist().inv_cdf(share)
    path: list[float] = []
    for turn in range(TURNS):
        if t in path:
            # The last digits go round in a circle: where the last turn would end is known.
            first = path.index(t)
            return path[first + (TURNS - turn) % (turn - first)]
        path.append(t)
        x = freedom / (freedom + t * t)
        density = math.exp(front - 0.5 * math.log(freedom) + (a + 0.5) * math.log(x))
        excess = _beta(x, a, 0.5, front) / 2 - tail
        # On the logarithm of the tail, which is nearly straight: plain steps would overshoot at few degrees.
        step = math.log1p(excess / tail) * tail * (1 + excess / tail) / density
        t += step
        if abs(step) <= 4e-16 * t:
            break
    return t


def _beta(x: float, a: float, b: float, front: float) -> float:
    """The regularised incomplete beta function for b = 1/2, by its continued fraction (DLMF 8.17.22).

    `front`: log of gamma(a + b) / (gamma(a) gamma(b)).
    """
    if x > (a + 1) / (a + b + 2):
        return 1 - math.exp(front + a * math.log(x) + b * math.log1p(-x)) * _fraction(1 - x, b, a) / b
    return math.exp(front + a * math.log(x) + b * math.log1p(-x)) * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction, from its 200th term back: far more than it takes where it is used."""
    value = 1.0
    for m in range(200, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        value = 1 + odd / (1 + even / value)
    return 1 / value


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    return math.fsum(values) / len(values) if len(values) else None


def percentile(values: Sequence[float] | Array, share: float) -> float | None:
    """The value below which `share` (0..1) of the values lie, by linear interpolation; None of nothing.

    The same as `np.quantile` to the last digit, which brings 40 ms of numpy's other parts along.
    """
    return _between(np.sort(np.asarray(values, dtype=float)), share) if len(values) else None


def _between(ordered: Array, share: float) -> float:
    """The same of values in order, of which there is at least one."""
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    weight = place - below
    return high - (high - low) * (1 - weight) if weight >= 0.5 else low + (high - low) * weight


def geometric_mean(values: Sequence[float]) -> float:
    """exp of the mean logarithm. Values must be positive."""
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


@lru_cache(maxsize=512)
def _t_over_normal(freedom: float) -> float:
    tail = (1 + LEVEL) / 2
    return students(freedom, tail) / NormalDist().inv_cdf(tail)


def resampled(rng: np.random.Generator, units: int, draws: int = DRAWS) -> Array:
    """Bootstrap weights, shape (draws, units): how often each unit is drawn. Each row has the sum `units`."""
    return rng.multinomial(units, np.full(units, 1 / units), size=draws).astype(float)


def unbiased(units: int) -> float:
    """sqrt(n / (n - 1)): makes the variance of resampled deviations of n units unbiased."""
    return math.sqrt(units / (units - 1)) if units > 1 else 0.0


def log_deviations(weights: Array, table: Array, rest: Array | None = None) -> Array:
    """ln(weighted ratio of sums / ratio of sums), widened to be unbiased.

    `weights`: (draws, units); `table`: (units, 2), over and under the line; `rest`: (2,), what is part of both sums and
    isn't drawn again. Draws of nothing are held at 1e-6. Widened on the logarithm: widened sums could fall below 0.
    """
    rest = np.zeros(2) if rest is None else rest
    drawn = weights @ table + rest
    over, under = table[:, 0].sum() + rest[0], table[:, 1].sum() + rest[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn[:, 0] / drawn[:, 1] * (under / over)
    return np.asarray(np.log(np.clip(np.nan_to_num(ratios, nan=1.0), 1e-6, 1e6)) * unbiased(len(table)))


def combined(parts: Sequence[tuple[Array, int]]) -> Array:
    """Sum of independent deviations around 0, widened from the normal distribution to Student's t.

    `parts`: replicates of each deviation (draws,) and its degrees of freedom. Those of the sum are
    (sum of variances)^2 / sum of (variance^2 / freedom), after Welch and Satterthwaite.
    """
    variances = [float(np.var(part)) for part, _ in parts]
    total = np.sum([part for part, _ in parts], axis=0)
    below = math.fsum(v**2 / freedom for v, (_, freedom) in zip(variances, parts, strict=True) if freedom > 0)
    if below <= 0:
        return np.asarray(total)
    return np.asarray(total) * _t_over_normal(round(math.fsum(variances) ** 2 / below, 2))


def interval(replicates: Array) -> tuple[float, float]:
    """The central 95% of the replicates (linear interpolation)."""
    ordered = np.sort(replicates)
    return _between(ordered, (1 - LEVEL) / 2), _between(ordered, (1 + LEVEL) / 2)


def t_over_starts(values: Sequence[float]) -> Estimate:
    """Mean of one value a start, with Student's t over starts (n - 1 degrees of freedom)."""
    return _t(values, "starts")


def independent(batches: int, answers: float | None) -> float:
    """As how many independent values the batches of a window count, by the mean answers that a worker wrote in it.

    An answer that reaches over several batches makes them alike: their spread is then not the window's. One in two and
    a half answers, and no more than four fifths of the batches, cover by simulation. `answers` None: all batches.
    """
    return float(batches) if answers is None else min(0.8 * batches, answers / 2.5)


def t_over_batches(batches: Sequence[float], answers: float | None = None) -> Estimate:
    """Mean over the equal batches of one start's window, with Student's t over batch means: this start only.

    `answers`: see `independent`; no bounds where the batches are worth fewer than two.
    """
    return _t(batches, "batches", independent(len(batches), answers))


def _t(values: Sequence[float], basis: Basis, worth: float | None = None) -> Estimate:
    if not values:
        raise ValueError("an estimate needs at least one value")
    centre = math.fsum(values) / len(values)
    worth = float(len(values)) if worth is None else worth
    if min(len(values), worth) < 2:
        return Estimate(centre, None, None, "none")
    half = students(round(worth - 1, 2), (1 + LEVEL) / 2) * float(np.std(values, ddof=1)) / math.sqrt(worth)
    # Rates, times and counts: an interval of few starts may reach below 0, where none of them can be.
    return Estimate(centre, max(min(centre, 0.0), centre - half), centre + half, basis)


def throughput_estimate(
    starts: Sequence[float], batches: Sequence[Sequence[float]], answers: float | None = None
) -> Estimate:
    """Sixteen requests at once: t over starts; with a single start, t over the batch means of its window.

    `answers`: mean answers that a worker wrote in that window, see `independent`.
    """
    if len(starts) >= 2:
        return t_over_starts(starts)
    alone = Estimate(starts[0], None, None, "none")
    inside = t_over_batches(batches[0], answers) if batches and len(batches[0]) >= 2 else alone
    # Centre on the window's own value: batches of equal length have the same mean up to rounding.
    return Estimate(starts[0], inside.low, inside.high, inside.basis)


def ratio_of_starts(left: Sequence[float], right: Sequence[float]) -> Estimate:
    """`left / right` of two systems' values a start: Welch's t on the logarithms (independent starts).

    The value is the ratio of geometric means. Bounds are None where either side has a single start.
    """
    return _welch(left, right, (len(left), len(right)))


def _welch(left: Sequence[float], right: Sequence[float], worth: tuple[float, float]) -> Estimate:
    a, b = np.log(np.asarray(left, dtype=float)), np.log(np.asarray(right, dtype=float))
    centre = float(a.mean() - b.mean())
    if min(len(a), len(b), *worth) < 2:
        return Estimate(math.exp(centre), None, None, "none")
    va, vb = float(a.var(ddof=1)) / worth[0], float(b.var(ddof=1)) / worth[1]
    if va + vb == 0:
        return Estimate(math.exp(centre), math.exp(centre), math.exp(centre), "starts")
    freedom = (va + vb) ** 2 / (va**2 / (worth[0] - 1) + vb**2 / (worth[1] - 1))
    half = students(freedom, (1 + LEVEL) / 2) * math.sqrt(va + vb)
    return Estimate(math.exp(centre), math.exp(centre - half), math.exp(centre + half), "starts")


def ratio_of_batches(
    left: Sequence[float], right: Sequence[float], answers: tuple[float | None, float | None] = (None, None)
) -> Estimate:
    """`left / right` where a side has one start only: Welch's t on the logarithms of batch means, this start only.

    `answers`: mean answers that a worker wrote in each side's window, see `independent`.
    """
    inside = _welch(left, right, (independent(len(left), answers[0]), independent(len(right), answers[1])))
    value = float(np.mean(left) / np.mean(right))
    return Estimate(value, inside.low, inside.high, "batches" if inside.low is not None else "none")


@dataclass(frozen=True)
class Cell:
    """One request in a ratio of sums: what start and prompt it belongs to, numerator and denominator.

    `kind`: the prompt's kind of text, where prompts are drawn again inside their kinds.
    """

    start: int
    prompt: str
    over: float
    under: float
    kind: str = ""


def ratio_of_sums(cells: Sequence[Cell]) -> Estimate | None:
    """Sum of `over` / sum of `under` with a two-level bootstrap: starts, then prompts (the same in every start).

    Starts act as factors on the whole value (how far each start's own ratio lies from all); prompts are resampled
    with all their requests, inside their kind where every kind has two or more. None without cells or with nothing
    below the line.
    """
    under = math.fsum(c.under for c in cells)
    if not cells or under <= 0:
        return None
    value = math.fsum(c.over for c in cells) / under
    starts, prompts = sorted({c.start for c in cells}), sorted({c.prompt for c in cells})
    if len(starts) < 2 and len(prompts) < LEAST_UNITS:
        return Estimate(value, None, None, "none")
    if value <= 0:
        return Estimate(value, None, None, "none")
    first, *others = _by_kind(cells, prompts)
    weights, rng = _first_draws(len(first))
    drawn = [(weights, first), *((resampled(rng, len(table)), table) for table in others)]
    total = np.sum([table.sum(axis=0) for _, table in drawn], axis=0)
    logs = [log_deviations(w, table, total - table.sum(axis=0) if others else None) for w, table in drawn]
    parts = [(np.asarray(np.sum(logs, axis=0)), sum(len(table) - 1 for _, table in drawn))]
    if len(starts) > 1:
        by_start = _sums(cells, starts, lambda c: c.start)
        levels = by_start[:, 0] / np.maximum(by_start[:, 1], 1e-12)
        # A start in which nobody waited has no logarithm: then by how much each start is more than all together.
        parts.append(start_part(rng, np.log(levels) if levels.min() > 0 else levels / value - 1))
    low, high = interval(value * np.exp(combined(parts)))
    return Estimate(value, low, high, basis_of(len(starts), "prompts"))


def _by_kind(cells: Sequence[Cell], prompts: Sequence[str]) -> list[Array]:
    """Sums by prompt, a table a kind; one table of all where a kind has a single prompt, which can't be drawn again."""
    kind_of = {cell.prompt: cell.kind for cell in cells}
    by_prompt = _sums(cells, prompts, lambda c: c.prompt)
    kinds = np.array([kind_of[prompt] for prompt in prompts])
    tables = [by_prompt[kinds == kind] for kind in sorted(set(kind_of.values()))]
    return tables if min(map(len, tables)) > 1 else [by_prompt]


def _first_draws(units: int) -> tuple[Array, np.random.Generator]:
    """The weights of a bootstrap's first units, and the generator that goes on from there."""
    weights, state = _drawn(units)
    rng = np.random.default_rng(SEED)
    rng.bit_generator.state = state
    return weights, rng


@lru_cache(maxsize=1)
def _drawn(units: int) -> tuple[Array, Any]:
    # Every figure of a start draws the same weights; drawing them takes longer than all that is done with them.
    rng = np.random.default_rng(SEED)
    return resampled(rng, units), rng.bit_generator.state


def start_part(rng: np.random.Generator, effects: Array) -> tuple[Array, int]:
    """Replicates of the mean of starts' log effects, around 0, with their degrees of freedom: a part of `combined`."""
    units = len(effects)
    centred = (effects - effects.mean()) * unbiased(units)
    return resampled(rng, units) @ centred / units, units - 1


def _sums(cells: Sequence[Cell], keys: Sequence[K], key: Callable[[Cell], K]) -> Array:
    """Numerators and denominators summed by key: shape (keys, 2)."""
    place = {k: i for i, k in enumerate(keys)}
    table = np.zeros((len(keys), 2))
    for cell in cells:
        table[place[key(cell)]] += (cell.over, cell.under)
    return table


def basis_of(starts: int, otherwise: Basis) -> Basis:
    """What a two-level interval rests on, given the number of starts."""
    return "starts and prompts" if starts > 1 else otherwise
