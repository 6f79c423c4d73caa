"""The speed-up of whole answers: its interval, and its split into first wait, length and rate."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
    log_deviations,
    resampled,
    start_part,
)


def answer_speedup(base: Starts, fast: Starts) -> Estimate | None:
    """Mean time of a whole answer of `base` / of `fast`: 2.0 means that `fast` needs half the time.

    Of the prompts that have a whole answer on both sides (PROTOCOL section 4: paired by prompt in ratios), each with
    equal weight: a side that was cut at its longest answers must not be the faster for it.
    The interval, with one request or with several at once: starts of each side by themselves, since they are different
    servers, and prompts inside their kind, the same ones for both sides, or kinds where one has a single prompt. How
    two systems differ from prompt to prompt can be most of what such a ratio doesn't know: an interval over starts
    alone would hold the truth of other prompts in less than half of the cases where starts differ by 1%.
    None where no prompt has a whole answer on both sides.
    """
    prompts = whole_on_both(*([row for rows in side for row in rows] for side in (base, fast)))
    if not prompts:
        return None
    sides = [_of(side, prompts) for side in (base, fast)]
    times = [_by_prompt([row for rows in side for row in rows], _seconds) for side in sides]
    over, under = (_mean(side) for side in times)
    value = over / under
    starts = [[_level(rows, side) for rows in of] for of, side in zip(sides, times, strict=True)]
    rng = np.random.default_rng(SEED)
    drawn = _prompts(rng, times, {row.prompt_id: row.kind for rows in sides[0] for row in rows})
    if drawn is None:
        return Estimate(value, None, None, "none")
    part, few = drawn
    low, high = interval(value * np.exp(combined([part, *(start_part(rng, np.log(s)) for s in starts if len(s) > 1)])))
    return Estimate(value, low, high, basis_of(min(map(len, starts)), few))


def whole_on_both(base: Sequence[Row], fast: Sequence[Row]) -> set[str]:
    """The prompts that have a whole answer on both sides, in at least one request of each."""
    one, two = ({row.prompt_id for row in rows if _whole(row)} for rows in (base, fast))
    return one & two


def _whole(row: Row) -> bool:
    return bool(row.counted and row.ok and not row.capped and row.ttft_ns and row.e2e_ns)


def _of(side: Starts, prompts: set[str]) -> list[list[Row]]:
    """The whole answers to these prompts, a list a start; starts without any are left out."""
    found = [[row for row in rows if row.prompt_id in prompts and _whole(row)] for rows in side]
    return [rows for rows in found if rows]


def _seconds(row: Row) -> float:
    return (row.e2e_ns or 0) / 1e9


def _by_prompt(rows: Sequence[Row], of: Callable[[Row], float]) -> dict[str, float]:
    """Each prompt's mean over its requests."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        values[row.prompt_id].append(of(row))
    return {prompt: math.fsum(some) / len(some) for prompt, some in values.items()}


def _mean(by_prompt: Mapping[str, float]) -> float:
    return math.fsum(by_prompt.values()) / len(by_prompt)


def _level(rows: Sequence[Row], by_prompt: Mapping[str, float]) -> float:
    """How slow a start is beside all of its side, over the prompts that it answered whole: 1 is as slow."""
    return math.fsum(map(_seconds, rows)) / math.fsum(by_prompt[row.prompt_id] for row in rows)


def _prompts(
    rng: np.random.Generator, times: Sequence[Mapping[str, float]], kind_of: Mapping[str, str]
) -> tuple[tuple[Array, int], Basis] | None:
    """Log deviations of the ratio when the same prompts are drawn again for both sides, with their degrees of freedom.

    None for fewer than three kinds of which one has a single prompt: then nothing can be drawn again.
    """
    kinds: dict[str, list[str]] = defaultdict(list)
    for prompt in sorted(kind_of):
        kinds[kind_of[prompt]].append(prompt)
    tables = [np.array([[side[prompt] for side in times] for prompt in kinds[kind]]) for kind in sorted(kinds)]
    few: Basis = "prompts"
    if min(map(len, tables)) < 2:
        few, tables = "kinds", [np.array([table.sum(axis=0) for table in tables])]
        if len(tables[0]) < LEAST_UNITS:
            return None
    total = np.sum([table.sum(axis=0) for table in tables], axis=0)
    logs = [log_deviations(resampled(rng, len(table)), table, total - table.sum(axis=0)) for table in tables]
    return (np.asarray(np.sum(logs, axis=0)), sum(len(table) - 1 for table in tables)), few


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
    logarithmic mean. Over the same prompts as `answer_speedup`, each with equal weight, so that both tell one total.
    None where no prompt has a whole answer on both sides, or a side writes all text at once.
    """
    prompts = whole_on_both(base, fast)
    one, two = (_parts(_of([side], prompts)) for side in (base, fast))
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


def _parts(starts: Starts) -> tuple[float, float, float] | None:
    rows = [row for start in starts for row in start]
    if not rows:
        return None
    wait = _mean(_by_prompt(rows, lambda row: (row.ttft_ns or 0) / 1e9))
    total = _mean(_by_prompt(rows, _seconds))
    length = _mean(_by_prompt(rows, lambda row: row.standard_tokens))
    if total <= wait or length <= 0:
        return None
    return wait, length, (total - wait) / length


def _log_mean(a: float, b: float) -> float:
    return a if math.isclose(a, b, rel_tol=1e-12) else (a - b) / math.log(a / b)
