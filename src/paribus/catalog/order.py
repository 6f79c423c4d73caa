"""The order of jobs: races first, then speed, then quality; starts to be compared alternate A B B A."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
KINDS_IN_ORDER = ("race", "speed", "quality")


def interleave(
    jobs: Iterable[T], kind: Callable[[T], str], system: Callable[[T], str], start: Callable[[T], int]
) -> list[T]:
    """The jobs in the order in which they should run.

    Within a kind all first starts come before all second ones, and every other round of starts runs backwards
    (A B, B A, A B, ...), so that a machine that drifts in one direction favours no system.
    """
    jobs = list(jobs)
    place = {name: index for index, name in enumerate(dict.fromkeys(system(job) for job in jobs))}

    def key(job: T) -> tuple[int, int, int]:
        forwards = start(job) % 2 == 1
        return KINDS_IN_ORDER.index(kind(job)), start(job), place[system(job)] if forwards else -place[system(job)]

    return sorted(jobs, key=key)
