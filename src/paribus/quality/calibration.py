"""How fast the grading machine is: a fixed workload in the sandbox, against a reference machine, gives a factor.

A test's time limit was set for the benchmark's own machine. On a slower core a right program may miss it, so the limit
is multiplied by the factor; never below 1, so that no machine is stricter than the rule, and never above `MOST`.

CPU time is measured, not the clock on the wall: what else runs on the machine moves it little.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from paribus.conditions import EnvironmentFault
from paribus.quality.sandbox import Limits, sandboxed

REFERENCE_S = 0.212
"""CPU seconds of the workload on the reference machine: the least of 20 runs in the sandbox, CPython 3.11.7, one core
of a shared two-core virtual machine (x86-64), measured for this project on 2026-12-01. Upstream names no machine for
its limit of 6 s; this constant only says what "as fast as where it was tried" means."""

MOST = 4.0
"""The factor's upper bound: a machine slower than that is no place to grade on: the flag `slow_grader`, not ranked."""

_RUNS = 3

WORKLOAD = """
import sys, time
began = time.process_time()
size = 800_000
sieve = bytearray([1]) * (size + 1)
for n in range(2, int(size ** 0.5) + 1):
    if sieve[n]:
        for multiple in range(n * n, size + 1, n):
            sieve[multiple] = 0
primes = [n for n in range(2, size + 1) if sieve[n]]
counts = {}
for n in primes:
    for digit in str(n):
        counts[digit] = counts.get(digit, 0) + 1
table = [[0] * 601 for _ in range(601)]
for i in range(1, 601):
    for j in range(1, 601):
        same = primes[i] % 7 == primes[-j] % 7
        table[i][j] = table[i - 1][j - 1] + 1 if same else max(table[i - 1][j], table[i][j - 1])
ordered = sorted(primes, key=lambda n: (n * 7919) % 104729)
print(len(primes), table[600][600], sum(n * k for k, n in enumerate(ordered)) % 1_000_003, sum(counts.values()))
print(time.process_time() - began)
"""
"""Loops, lists, dictionaries, strings, a table and a sort: what solutions to such problems do."""

EXPECTED = "63951 359 135471 372688"
"""What the workload prints first: a Python that computes something else measures nothing."""


@dataclass(frozen=True)
class Speed:
    """The grading machine's speed. `seconds`: CPU time of the workload, of the slowest core; `cores` graded on."""

    seconds: float
    cores: int

    @property
    def factor(self) -> float:
        """What a time limit is multiplied by."""
        return factor_of(self.seconds)


def factor_of(seconds: float) -> float:
    """The factor for a machine that takes so many CPU seconds for the workload."""
    return round(min(MOST, max(1.0, seconds / REFERENCE_S)), 3)


@cache
def measured() -> Speed:
    """Run the workload on every core at once, as programs are graded; once a process. Needs the sandbox."""
    cores = usable_cores()
    with ThreadPoolExecutor(max_workers=cores) as pool:
        return Speed(max(pool.map(lambda _: workload_seconds(), range(cores))), cores)


def usable_cores() -> int:
    """Cores that this process may use: so many programs are graded side by side."""
    return max(1, len(os.sched_getaffinity(0)))


def workload_seconds(runs: int = _RUNS) -> float:
    """The least CPU time of several runs of the workload, in one sandbox. Raises `EnvironmentFault` when it fails."""
    with sandboxed(WORKLOAD, Limits(time_s=120.0)) as box:
        return min(_seconds(box.run(b"").output) for _ in range(runs))


def _seconds(output: bytes) -> float:
    lines = output.decode("utf-8", "replace").splitlines()
    if len(lines) != 2 or lines[0] != EXPECTED:
        raise EnvironmentFault(f"the workload that measures this machine went wrong in the sandbox: {lines[:1]}")
    return float(lines[1])
