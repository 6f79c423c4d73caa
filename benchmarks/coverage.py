"""How often a 95% interval holds the truth, by simulation of systems whose truth is known.

    python benchmarks/coverage.py [draws, default 10000] [start-to-start deviation ...]

Two systems, seven kinds of text, each kind with its own speed-up (their geometric mean is 2), prompts that differ, a
system's own way with each prompt, starts that differ by the given deviation, and noise on each request. The prompts are
a sample: the truth is of all that one might ask. A run of 5 starts is cheap to simulate and dear to measure; prints the
rows of a table, one a deviation. 92.5 to 97.5% is wanted.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from paribus.results.figures import mean_of
from paribus.speed.answer_speedup import answer_speedup
from paribus.speed.rows import Row
from paribus.speed.shares import share_of
from paribus.speed.speedup import speedup
from paribus.speed.statistics import Cell, ratio_of_starts, t_over_batches, t_over_starts

KINDS = 7
K = 100
SPEEDUPS = 2 * np.exp(np.linspace(-0.5, 0.5, KINDS))
"""True speed-up of each kind; their geometric mean is 2."""
CYCLES = 2.4
"""How often a window at several requests at once asks each prompt: some of them once more than others."""
DIFFICULTY, OWN_WAY, NOISE = 0.3, 0.1, 0.03
"""Deviations of logarithms: between prompts, a system's own way with each, between requests."""


def row(prompt: str, kind: str, seconds: float) -> Row:
    """A measured request that reached its 100th token after so many seconds."""
    ns = round(seconds * 1e9)
    return Row(
        index=0, prompt_id=prompt, kind=kind, length="long", counted=True, worker=0, due_ns=0, sent_ns=0, connect_ns=0,
        ended_ns=ns, status=200, error=None, finish_reason="stop", ok=True, cut=False, capped=False, unanswered=False,
        degenerate=False, check_passed=None, tokens=100, tokens_method="usage", reasoning_tokens=0,
        standard_tokens=100, bytes=400, prompt_tokens=16, cached_tokens=0, ttft_ns=1, ttfa_ns=1, e2e_ns=ns,
        arrivals=100, decode_tokens=99, decode_ns=ns, t1_ns=1, t32_ns=1, t100_ns=ns,
        t300_ns=None, t800_ns=None, wait_8_s=0.0, wait_30_s=0.0, stall_max_ns=1,
    )  # fmt: skip


def simulate(
    chance: np.random.Generator,
    between_starts: float,
    *,
    starts: int = 5,
    prompts: int = 8,
    cycles: float = 1.0,
) -> tuple[list[list[Row]], list[list[Row]]]:
    """Rows of a base and of a fast system; the true speed-up is 2 (all deviations are of logarithms).

    `cycles`: how often a start asks each prompt; of 2.4 two parts in five of the prompts are asked a third time.
    """
    difficulty = np.exp(chance.normal(0, DIFFICULTY, (KINDS, prompts)))
    sides: list[list[list[Row]]] = []
    for factor in (np.ones(KINDS), 1 / SPEEDUPS):
        way = np.exp(chance.normal(0, OWN_WAY, (KINDS, prompts)) - OWN_WAY**2 / 2)
        side = []
        for start in np.exp(chance.normal(0, between_starts, starts)):
            rows: list[Row] = []
            for cycle in range(math.ceil(cycles)):
                noises = np.exp(chance.normal(0, NOISE, (KINDS, prompts)))
                seconds = difficulty * way * factor[:, None] * start * noises
                asked = np.ones((KINDS, prompts), bool)
                if cycles < cycle + 1:
                    asked = chance.random((KINDS, prompts)) < cycles - cycle
                rows += [row(f"{k}.{p}", str(k), float(seconds[k, p])) for k, p in np.argwhere(asked)]
            side.append(rows)
        sides.append(side)
    return sides[0], sides[1]


def speedup_coverage(draws: int, between_starts: float, seed: int = 1, prompts: int = 8, starts: int = 5) -> float:
    """Share of the draws whose interval of the speed-up holds 2."""
    chance = np.random.default_rng(seed)
    held = 0
    for _ in range(draws):
        found = speedup(*simulate(chance, between_starts, starts=starts, prompts=prompts), K)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 2 <= found.high
    return held / draws


def answers_coverage(
    draws: int,
    between_starts: float,
    seed: int = 1,
    *,
    prompts: int = 8,
    starts: int = 5,
    cycles: float = 1.0,
) -> tuple[float, float]:
    """Shares of the draws whose interval holds the truth: ratio of mean answer times, mean answer time.

    The time is of the fast system, whose kinds of text differ.
    """
    chance = np.random.default_rng(seed)
    ratio = KINDS / float(np.sum(1 / SPEEDUPS))
    time = float(np.mean(1 / SPEEDUPS) * np.exp((DIFFICULTY**2 + between_starts**2 + NOISE**2) / 2))
    held = np.zeros(2)
    for _ in range(draws):
        base, fast = simulate(chance, between_starts, starts=starts, prompts=prompts, cycles=cycles)
        both = answer_speedup(base, fast), mean_of(fast, lambda answer: (answer.e2e_ns or 0) / 1e9)
        for place, (found, truth) in enumerate(zip(both, (ratio, time), strict=True)):
            assert found is not None
            assert found.low is not None
            assert found.high is not None
            held[place] += found.low <= truth <= found.high
    of_ratio, of_time = (held / draws).tolist()
    return of_ratio, of_time


def kinds_coverage(draws: int, seed: int = 1) -> float:
    """One start and one prompt a kind, as the demo has: kinds are drawn from more kinds, whose speed-ups' mean is 2."""
    chance = np.random.default_rng(seed)
    held = 0
    for _ in range(draws):
        difficulty, ratio = np.exp(chance.normal(0, 0.3, KINDS)), 2 * np.exp(chance.normal(0, 0.3, KINDS))
        sides = [
            [[row(str(k), str(k), float(s)) for k, s in enumerate(difficulty / factor * noise)]]
            for factor, noise in zip((1, ratio), np.exp(chance.normal(0, 0.03, (2, KINDS))), strict=True)
        ]
        found = speedup(sides[0], sides[1], K)
        assert found is not None
        assert found.basis == "kinds"
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 2 <= found.high
    return held / draws


def batches_coverage(draws: int, seed: int = 1, *, at_once: int = 16, answers: int = 20, batches: int = 10) -> float:
    """One start's window at several requests at once: share of the draws whose interval holds this server's own rate.

    Each worker writes one answer after the other, of lengths and speeds that differ (deviation 0.4 and 0.2 of the
    logarithms); the window is as long as `answers` of the mean answers, and begins when all are in full swing.
    """
    chance = np.random.default_rng(seed)
    mean_s = float(np.exp(0.4**2 / 2 + 0.2**2 / 2))
    truth = at_once * float(np.exp(0.4**2 / 2)) / mean_s
    edges = np.linspace(5 * mean_s, (5 + answers) * mean_s, batches + 1)
    held = 0
    for _ in range(draws):
        tokens = np.exp(chance.normal(0, 0.4, (at_once, 3 * answers + 20)))
        ends = np.cumsum(tokens * np.exp(chance.normal(0, 0.2, tokens.shape)), axis=1)
        written = np.zeros(len(edges))
        for own, ended in zip(tokens, ends, strict=True):
            written += np.interp(edges, np.append(0, ended), np.append(0, np.cumsum(own)))
        found = t_over_batches(list(np.diff(written) / np.diff(edges)), answers)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    return held / draws


def throughput_coverage(draws: int, between_starts: float, seed: int = 1) -> tuple[float, float]:
    """Shares of the draws whose interval holds the truth: throughput of one system, ratio of two. 5 starts."""
    chance = np.random.default_rng(seed)
    one = two = 0
    for _ in range(draws):
        a = 1000 * np.exp(chance.normal(0, between_starts, 5)) * np.exp(chance.normal(0, 0.005, 5))
        b = 500 * np.exp(chance.normal(0, between_starts, 5)) * np.exp(chance.normal(0, 0.005, 5))
        mean, ratio = t_over_starts(list(a)), ratio_of_starts(list(a), list(b))
        truth = 1000 * np.exp(between_starts**2 / 2 + 0.005**2 / 2)
        one += (mean.low or 0) <= truth <= (mean.high or 0)
        two += (ratio.low or 0) <= 2 <= (ratio.high or 0)
    return one / draws, two / draws


class Windows(NamedTuple):
    """Shares of the draws whose interval over starts holds the truth of these very prompts, and of all prompts."""

    these: float
    these_ratio: float
    all: float
    all_ratio: float


def windows_coverage(draws: int, between_starts: float, seed: int = 1, *, prompts: int = 24) -> Windows:
    """Throughput of windows whose answers are of prompts, each with a speed of its own; and its ratio. 5 starts.

    A closed loop's throughput is the tokens of the answers over their seconds, times the requests at once. The base
    system is as fast on each prompt; how fast the other is depends on the kind and on the prompt.
    """
    chance = np.random.default_rng(seed)
    held = np.zeros(4)
    per_start = float(np.exp(between_starts**2 / 2))
    fast = KINDS / float(np.sum(np.exp(OWN_WAY**2 / 2) / SPEEDUPS))
    for _ in range(draws):
        tokens = np.exp(chance.normal(0, DIFFICULTY, (KINDS, prompts)))
        ways = 1 / (SPEEDUPS[:, None] * np.exp(chance.normal(0, OWN_WAY, (KINDS, prompts))))
        own = tokens.sum() / (tokens * ways).sum()
        base, other = (
            [
                (asked * tokens).sum() / (asked * tokens * way).sum() * start
                for start in np.exp(chance.normal(0, between_starts, 5))
                for asked in [CYCLES // 1 + (chance.random((KINDS, prompts)) < CYCLES % 1)]
            ]
            for way in (np.ones((KINDS, prompts)), ways)
        )
        mean, ratio = t_over_starts(other), ratio_of_starts(other, base)
        for place, (found, truth) in enumerate(
            [(mean, own * per_start), (ratio, own), (mean, fast * per_start), (ratio, fast)]
        ):
            held[place] += (found.low or 0) <= truth <= (found.high or 0)
    return Windows(*(held / draws).tolist())


def share_coverage(
    draws: int, share: float, seed: int = 1, *, starts: int = 5, prompts: int = 56, alike: float = 2.0
) -> float:
    """Share of the draws whose interval of a share of right answers holds the truth.

    Each prompt has a chance of its own to be answered rightly: Beta with mean `share`; the smaller `alike` (its two
    parameters together), the more all answers to a prompt are alike. Every start asks every prompt once.
    """
    chance = np.random.default_rng(seed)
    held = 0
    for _ in range(draws):
        own = chance.beta(alike * share, alike * (1 - share), prompts)
        right = chance.random((starts, prompts)) < own
        cells = [Cell(s, str(p), float(right[s, p]), 1.0) for s in range(starts) for p in range(prompts)]
        found = share_of(cells)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= share <= found.high
    return held / draws


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    heads = (
        *("starts differ by", "speed-up", "whole answers at 1", "at 16", "time of an answer at 1", "at 16"),
        *("throughput", "its ratio", "throughput of other prompts", "its ratio"),
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for deviation in [float(x) for x in sys.argv[2:]] or [0.01, 0.02, 0.05]:
        alone, several = (answers_coverage(draws, deviation, cycles=cycles) for cycles in (1.0, CYCLES))
        windows = windows_coverage(draws, deviation)
        shares = (
            *(speedup_coverage(draws, deviation), alone[0], several[0], alone[1], several[1]),
            *(windows.these, windows.these_ratio, windows.all, windows.all_ratio),
        )
        print(f"| {100 * deviation:.0f}% | {' | '.join(f'{100 * share:.1f}%' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
