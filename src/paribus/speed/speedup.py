"""The speed-up between two systems, of the same amount of text (PROTOCOL section 3, `time_to_k`).

On the prompts where both reach k standard tokens: mean per kind, ratio per kind, geometric mean over kinds with equal
weight. Answers of other lengths can't move it, as a ratio of sums can.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paribus.speed.rows import KS, Row
from paribus.speed.statistics import (
    LEAST_UNITS,
    SEED,
    Array,
    Basis,
    basis_of,
    combined,
    geometric_mean,
    interval,
    log_deviations,
    resampled,
    start_part,
)

Starts = Sequence[Sequence[Row]]
"""The measured rows of each start of one run."""
ENOUGH = 0.5
"""What fewer requests or prompts than this share reach is withheld."""


@dataclass(frozen=True)
class Speedup:
    """How many times as fast `fast` is as `base` over the first k standard tokens.

    `kinds`: ratio per kind of text (their range stands beside the value). `share`: the least of three: prompts where
    both reach k, and each side's requests that do, of the prompts that both ran; the value is None under half.
    `basis`: what the interval rests on; `prompts` or `kinds` when one side has a single start, which says nothing
    about what differs between starts.
    """

    k: int
    value: float | None
    low: float | None
    high: float | None
    basis: Basis
    kinds: Mapping[str, float]
    prompts: int
    share: float


@dataclass(frozen=True)
class _Times:
    """Times to k of one system: seconds a prompt (mean over its requests that reach k), and each start's factor."""

    prompts: Mapping[str, float]
    kinds: Mapping[str, str]
    effects: Array


def _times(starts: Starts, k: int, common: set[str] | None = None) -> _Times:
    cells: dict[str, list[tuple[int, float]]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for number, rows in enumerate(starts):
        for row in rows:
            reached = row.time_to(k) if row.ok and row.counted else None
            if reached is not None and (common is None or row.prompt_id in common):
                cells[row.prompt_id].append((number, max(reached, 1) / 1e9))
                kinds[row.prompt_id] = row.kind
    means = {prompt: math.fsum(t for _, t in cell) / len(cell) for prompt, cell in cells.items()}
    return _Times(means, kinds, _effects(cells, means, kinds, len(starts)))


def _effects(
    cells: Mapping[str, list[tuple[int, float]]], means: Mapping[str, float], kinds: Mapping[str, str], starts: int
) -> Array:
    """How far each start lies from the prompts' means: mean log factor, kinds with equal weight, centred."""
    logs: dict[tuple[int, str], list[float]] = defaultdict(list)
    for prompt, cell in cells.items():
        for start, time in cell:
            logs[start, kinds[prompt]].append(math.log(time / means[prompt]))
    per_start = [
        [math.fsum(v) / len(v) for (start, _), v in sorted(logs.items()) if start == number] for number in range(starts)
    ]
    effects = np.array([np.mean(values) for values in per_start if values])
    return effects - effects.mean() if len(effects) else effects


def _ran(starts: Starts) -> set[str]:
    return {row.prompt_id for rows in starts for row in rows if row.counted}


def share_reached(starts: Starts, k: int, prompts: set[str]) -> float:
    """The share of a run's requests of these prompts that reach k; a failed one doesn't. 0 without any."""
    asked = [row for rows in starts for row in rows if row.counted and row.prompt_id in prompts]
    return sum(row.ok and row.time_to(k) is not None for row in asked) / len(asked) if asked else 0.0


def speedup(base: Starts, fast: Starts, k: int) -> Speedup | None:
    """`time_to_k` of `base` / `time_to_k` of `fast`: 2.0 means that `fast` needs half the time.

    The bootstrap resamples starts (of each side by itself: they are different servers), then prompts inside their
    kind, the same prompts for both sides. Where a kind has a single prompt, the kinds themselves are resampled.
    None where no prompt was run by both.
    """
    both = _ran(base) & _ran(fast)
    if not both:
        return None
    reached = set(_times(base, k).prompts) & set(_times(fast, k).prompts) & both
    share = min(len(reached) / len(both), *(share_reached(side, k, both) for side in (base, fast)))
    if share < ENOUGH:
        return Speedup(k, None, None, None, "none", {}, len(reached), share)
    a, b = _times(base, k, reached), _times(fast, k, reached)
    groups: dict[str, list[str]] = defaultdict(list)
    for prompt in sorted(reached):
        groups[a.kinds[prompt]].append(prompt)
    tables = {
        kind: np.array([[a.prompts[p], b.prompts[p]] for p in prompts]) for kind, prompts in sorted(groups.items())
    }
    ratios = {kind: float(table[:, 0].sum() / table[:, 1].sum()) for kind, table in tables.items()}
    value = geometric_mean(list(ratios.values()))
    bounds = _interval(tables, ratios, a.effects, b.effects)
    low, high = bounds if bounds else (None, None)
    few: Basis = "prompts" if min(len(t) for t in tables.values()) > 1 else "kinds"
    basis = basis_of(min(len(a.effects), len(b.effects)), few) if bounds else "none"
    return Speedup(k, value, low, high, basis, ratios, len(reached), share)


def _interval(
    tables: Mapping[str, Array], ratios: Mapping[str, float], base: Array, fast: Array
) -> tuple[float, float] | None:
    """Two levels: prompts (or kinds) drawn again, starts of each side by themselves. None for a single prompt."""
    rng = np.random.default_rng(SEED)
    prompts = prompt_part(rng, tables, ratios)
    if prompts is None:
        return None
    sides = [start_part(rng, effects) for effects in (base, fast) if len(effects) > 1]
    return interval(geometric_mean(list(ratios.values())) * np.exp(combined([prompts, *sides])))


def prompt_part(
    rng: np.random.Generator, tables: Mapping[str, Array], ratios: Mapping[str, float]
) -> tuple[Array, int] | None:
    """Log deviations when prompts are drawn again inside their kind; kinds, where a kind has one prompt.

    `tables`: kind -> (prompts, 2) sums over and under the line; `ratios`: their ratios.
    None for fewer than three kinds with one prompt each. With the replicates come their degrees of freedom.
    """
    if min(len(t) for t in tables.values()) > 1:
        kinds = [log_deviations(resampled(rng, len(table)), table) for table in tables.values()]
        return np.mean(kinds, axis=0), sum(len(t) - 1 for t in tables.values())
    if len(tables) < LEAST_UNITS:
        return None
    return start_part(rng, np.log(list(ratios.values())))


def reached_by_all(runs: Sequence[Starts], k: int) -> set[str]:
    """Prompts at which every run reaches k standard tokens, in at least one of its requests."""
    sets = [set(_times(starts, k).prompts) for starts in runs]
    return set.intersection(*sets) if sets else set()


def largest_k(runs: Sequence[Starts], ks: Sequence[int] = KS) -> int | None:
    """The largest k that every run reaches in half or more of its requests, and all at half or more of the prompts.

    Both are of the prompts that all of them ran. None without such a k.
    """
    ran = set.intersection(*(_ran(starts) for starts in runs)) if runs else set()
    for k in sorted(ks, reverse=True):
        together = len(reached_by_all(runs, k) & ran) / len(ran) if ran else 0.0
        if min(together, *(share_reached(starts, k, ran) for starts in runs), 1.0) >= ENOUGH:
            return k
    return None


@dataclass(frozen=True)
class Level:
    """One system's time to k: geometric mean over kinds (equal weight) of the mean per kind, in seconds."""

    k: int
    seconds: float
    low: float | None
    high: float | None
    basis: Basis


def level(starts: Starts, k: int, common: set[str] | None = None) -> Level | None:
    """Time to k of one run, kinds with equal weight, with the two-level bootstrap. None where none reaches k.

    `common`: the prompts to look at, for levels that stand side by side.
    """
    times = _times(starts, k, common)
    if not times.prompts:
        return None
    groups: dict[str, list[list[float]]] = defaultdict(list)
    for prompt, seconds in sorted(times.prompts.items()):
        groups[times.kinds[prompt]].append([seconds, 1.0])
    tables = {kind: np.array(pairs) for kind, pairs in sorted(groups.items())}
    means = {kind: float(table[:, 0].mean()) for kind, table in tables.items()}
    bounds = _interval(tables, means, times.effects, np.array([]))
    low, high = bounds if bounds else (None, None)
    few: Basis = "prompts" if min(len(t) for t in tables.values()) > 1 else "kinds"
    basis = basis_of(len(times.effects), few) if bounds else "none"
    return Level(k, geometric_mean(list(means.values())), low, high, basis)
