"""The speed-up of whole answers: its interval, and its split into first wait, length and rate."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paribus.speed.rows import Row
from paribus.speed.speedup import Starts
from paribus.speed.statistics import (
    LEAST_UNITS,
    SEED,
    Array,
    Basis,
    Estimate,
    basis_of,
    combined,
    interval,
    ratio_of_starts,
    resampled,
    start_part,
    unbiased,
)


def answer_speedup(base: Starts, fast: Starts, *, several: bool) -> Estimate | None:
    """Mean time of a whole answer of `base` / of `fast`: 2.0 means that `fast` needs half the time.

    `several`: measured with several requests at once; then starts alone are what varies (Welch's t on the logarithms
    of each start's mean). With one request, or one start: starts of each side by themselves, since they are different
    servers, and prompts inside their kind, the same ones for both sides (PROTOCOL section 4: paired by prompt in
    ratios), or kinds where one has a single prompt. None where a side has no whole answer.
    """
    sides = [[[row for row in rows if _whole(row)] for rows in side] for side in (base, fast)]
    sides = [[rows for rows in side if rows] for side in sides]
    if not all(sides):
        return None
    over, under = (_mean([row for rows in side for row in rows]) for side in sides)
    value, starts = over / under, [[_mean(rows) for rows in side] for side in sides]
    fewest = min(map(len, starts))
    if several and fewest > 1:
        found = ratio_of_starts(*starts)
        wide = value / found.value
        return Estimate(value, (found.low or 0) * wide, (found.high or 0) * wide, found.basis)
    rng = np.random.default_rng(SEED)
    drawn = _prompts(rng, sides)
    if drawn is None:
        return Estimate(value, None, None, "none")
    part, few = drawn
    low, high = interval(value * np.exp(combined([part, *(start_part(rng, np.log(s)) for s in starts if len(s) > 1)])))
    return Estimate(value, low, high, basis_of(fewest, few))


def _whole(row: Row) -> bool:
    return bool(row.counted and row.ok and not row.capped and row.ttft_ns and row.e2e_ns)


def _mean(rows: Sequence[Row]) -> float:
    return math.fsum((row.e2e_ns or 0) / 1e9 for row in rows) / len(rows)


def _prompts(rng: np.random.Generator, sides: Sequence[Starts]) -> tuple[tuple[Array, int], Basis] | None:
    """Log deviations of the ratio when the same prompts are drawn again for both sides, with their degrees of freedom.

    None for fewer than three kinds of which one has a single prompt: then nothing can be drawn again.
    """
    sums: dict[str, Array] = defaultdict(lambda: np.zeros(4))
    kinds: dict[str, list[str]] = defaultdict(list)
    for place, side in enumerate(sides):
        for row in (row for rows in side for row in rows):
            if row.prompt_id not in sums:
                kinds[row.kind].append(row.prompt_id)
            sums[row.prompt_id][2 * place : 2 * place + 2] += ((row.e2e_ns or 0) / 1e9, 1.0)
    tables = [np.array([sums[prompt] for prompt in sorted(kinds[kind])]) for kind in sorted(kinds)]
    few: Basis = "prompts"
    if min(map(len, tables)) < 2:
        few, tables = "kinds", [np.array([table.sum(axis=0) for table in tables])]
        if len(tables[0]) < LEAST_UNITS:
            return None
    drawn = np.sum([_drawn(rng, table) for table in tables], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(drawn[:, 0] / drawn[:, 1] * drawn[:, 3] / drawn[:, 2])
    total = np.concatenate(tables).sum(axis=0)
    logs -= math.log(total[0] / total[1] * total[3] / total[2])
    return (np.nan_to_num(logs, nan=0.0, posinf=0.0, neginf=0.0), sum(len(table) - 1 for table in tables)), few


def _drawn(rng: np.random.Generator, table: Array) -> Array:
    """Sums over drawn rows, shape (draws, columns); their spread around the table's own sums is unbiased."""
    weights = 1 + (resampled(rng, len(table)) - 1) * unbiased(len(table))
    return np.asarray(weights @ table)


@dataclass(frozen=True)
class AnswerSplit:
    """The speed-up of whole answers and its parts: `total = first_wait x length x rate` (each > 1 favours `fast`)."""

    total: float
    first_wait: float
    length: float
    rate: float


def answer_split(base: Sequence[Row], fast: Sequence[Row]) -> AnswerSplit | None:
    """Split answer time base / fast into first wait, length and rate, by logarithmic mean weights (exact product).

    A mean answer takes W + L x r: wait until the first text, standard tokens, seconds a token after the first text.
    ln(T1/T2) = w(W) ln(W1/W2) + w(Lr) (ln(L1/L2) + ln(r1/r2)), with w(x) = M(x1, x2) / M(T1, T2) and M the
    logarithmic mean. None where a side has no whole answers or writes all text at once.
    """
    one, two = _parts(base), _parts(fast)
    if one is None or two is None:
        return None
    (w1, l1, r1), (w2, l2, r2) = one, two
    whole = _log_mean(w1 + l1 * r1, w2 + l2 * r2)
    wait, write = _log_mean(w1, w2) / whole, _log_mean(l1 * r1, l2 * r2) / whole
    return AnswerSplit(
        total=(w1 + l1 * r1) / (w2 + l2 * r2),
        first_wait=(w1 / w2) ** wait,
        length=(l1 / l2) ** write,
        rate=(r1 / r2) ** write,
    )


def _parts(rows: Sequence[Row]) -> tuple[float, float, float] | None:
    whole = [row for row in rows if _whole(row)]
    if not whole:
        return None
    wait = math.fsum((r.ttft_ns or 0) / 1e9 for r in whole) / len(whole)
    total = math.fsum((r.e2e_ns or 0) / 1e9 for r in whole) / len(whole)
    length = math.fsum(r.standard_tokens for r in whole) / len(whole)
    if total <= wait or length <= 0:
        return None
    return wait, length, (total - wait) / length


def _log_mean(a: float, b: float) -> float:
    return a if math.isclose(a, b, rel_tol=1e-12) else (a - b) / math.log(a / b)
