"""How often a 95% interval holds the truth, by simulation of systems whose truth is known.

    python benchmarks/coverage.py [draws, default 10000] [start-to-start deviation ...]

Two systems, seven kinds of text, each kind with its own speed-up (their geometric mean is 2), prompts that differ, a
system's own way with each prompt, starts that differ by the given deviation, and noise on each request. A run of 5
starts is cheap to simulate and dear to measure; prints one line a deviation. 92.5 to 97.5% is wanted.
"""

from __future__ import annotations

import sys

import numpy as np

from paribus.speed.answer_speedup import answer_speedup
from paribus.speed.rows import Row
from paribus.speed.shares import share_of
from paribus.speed.speedup import speedup
from paribus.speed.statistics import Cell, ratio_of_starts, t_over_batches, t_over_starts

KINDS = 7
K = 100


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
    own_way: float = 0.1,
    noise: float = 0.03,
) -> tuple[list[list[Row]], list[list[Row]]]:
    """Rows of a base and of a fast system; the true speed-up is 2 (all deviations are of logarithms)."""
    speedups = 2 * np.exp(np.linspace(-0.5, 0.5, KINDS))
    difficulty = np.exp(chance.normal(0, 0.3, (KINDS, prompts)))
    sides: list[list[list[Row]]] = []
    for factor in (np.ones(KINDS), 1 / speedups):
        way = np.exp(chance.normal(0, own_way, (KINDS, prompts)) - own_way**2 / 2)
        side = []
        for start in np.exp(chance.normal(0, between_starts, starts)):
            seconds = difficulty * way * factor[:, None] * start * np.exp(chance.normal(0, noise, (KINDS, prompts)))
            side.append([row(f"{k}.{p}", str(k), float(seconds[k, p])) for k in range(KINDS) for p in range(prompts)])
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
    draws: int, between_starts: float, seed: int = 1, *, several: bool = False, prompts: int = 8, starts: int = 5
) -> float:
    """Share of the draws whose interval of the ratio of mean answer times holds the true one."""
    chance = np.random.default_rng(seed)
    truth = KINDS / float(np.sum(1 / (2 * np.exp(np.linspace(-0.5, 0.5, KINDS)))))
    held = 0
    for _ in range(draws):
        base, fast = simulate(chance, between_starts, starts=starts, prompts=prompts)
        found = answer_speedup(base, fast, several=several)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    return held / draws


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
    for deviation in [float(x) for x in sys.argv[2:]] or [0.01, 0.02, 0.05]:
        one, two = throughput_coverage(draws, deviation)
        print(
            f"starts differ by {100 * deviation:.0f}%: speed-up {100 * speedup_coverage(draws, deviation):.1f}%, "
            f"throughput {100 * one:.1f}%, ratio of throughputs {100 * two:.1f}% of {draws} intervals hold the truth",
            flush=True,
        )


if __name__ == "__main__":
    main()
