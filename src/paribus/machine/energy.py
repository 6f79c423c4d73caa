"""Energy over a window, from a counter that was read: never modelled, and none where the counter can't be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

Row = dict[str, Any]
Scope = Literal["board", "soc", "package"]

COUNTERS: dict[Scope, str] = {"board": "energy_j", "soc": "soc_j", "package": "package_j"}
"""The column of each scope's counter: a card's board, an Apple chip, the CPU's packages."""
APART = 0.05
"""The counter and the integral of polled power may differ by 5%."""
EDGE_NS = 500_000_000
"""A counter first read this long after the window began, or last read before it ended, doesn't cover it."""
HOLE_NS = 2_000_000_000
"""Polled power with a hole this long has no integral."""


@dataclass(frozen=True)
class Energy:
    """Joules over a window, with the scope; or `missing`, the reason why there are none. `integral_j`: polled power."""

    joules: float | None = None
    scope: Scope | None = None
    integral_j: float | None = None
    missing: str = ""

    @property
    def apart(self) -> bool:
        """Whether the counter and the integral of power differ by more than 5%."""
        return bool(self.joules and self.integral_j and abs(self.joules / self.integral_j - 1) > APART)


def energy_of(rows: list[Row], since_ns: int, until_ns: int) -> Energy:
    """The energy over `[since_ns, until_ns]`: of the card's board where there is a card, else of the chip, else of
    the CPU's packages. A card whose counter fails has none: the packages beside it would be another scope.
    """
    scope = _scope(rows)
    if scope is None:
        return Energy(missing="no energy counter could be read")
    column = COUNTERS[scope]
    known = readings(rows, column, "t_ns" if scope != "board" else "card_ns")
    integral = power_integral(rows, since_ns, until_ns)
    fault = _fault(known, since_ns, until_ns)
    if not fault and scope == "board" and integral is None:
        fault = "the energy counter could not be checked: power was not read"
    if fault:
        return Energy(integral_j=integral, missing=fault)
    joules = value_at(known, until_ns) - value_at(known, since_ns)
    if joules <= 0:
        return Energy(integral_j=integral, missing="the energy counter stood still")
    return Energy(joules, scope, integral)


def readings(rows: list[Row], column: str, clock: str) -> list[tuple[int, float]]:
    """(when, value) of a column, by a clock of its own where the row has that."""
    told = [row for row in rows if row.get(column) is not None]
    return [(int(row["t_ns"] if row.get(clock) is None else row[clock]), float(row[column])) for row in told]


def _scope(rows: list[Row]) -> Scope | None:
    """The first scope that was read. Where a card was seen at all, only its board counts."""
    card = any(row.get("clock_mhz") is not None or row.get("power_w") is not None for row in rows)
    for scope, column in COUNTERS.items():
        if scope == "board" and card:
            return scope
        if any(row.get(column) is not None for row in rows):
            return scope
    return None


def _fault(known: list[tuple[int, float]], since_ns: int, until_ns: int) -> str:
    """Why a counter says nothing about a window; empty when it does."""
    if len(known) < 2:
        return "no energy counter could be read"
    if known[0][0] > since_ns + EDGE_NS or known[-1][0] < until_ns - EDGE_NS:
        return "the energy counter was not read over the whole window"
    around = [pair for pair in pairwise(known) if pair[1][0] >= since_ns and pair[0][0] <= until_ns]
    if any(after < before for (_, before), (_, after) in around):
        return "the energy counter went back"
    return ""


def power_integral(rows: list[Row], since_ns: int, until_ns: int) -> float | None:
    """Joules by polled power: its mean over the samples inside the window (trapezoids) times the window's length.

    Samples from before or after the window don't count. None with fewer than two samples, or with a long hole.
    """
    inside = [(t, watts) for t, watts in readings(rows, "power_w", "card_ns") if since_ns <= t <= until_ns]
    if len(inside) < 2 or inside[-1][0] == inside[0][0]:
        return None
    edges = [since_ns, *(t for t, _ in inside), until_ns]
    if max(b - a for a, b in pairwise(edges)) > HOLE_NS:
        return None
    area = sum((t1 - t0) * (w0 + w1) / 2 for (t0, w0), (t1, w1) in pairwise(inside))
    return area / (inside[-1][0] - inside[0][0]) * (until_ns - since_ns) / 1e9


def value_at(known: list[tuple[int, float]], t_ns: int) -> float:
    """A column at a moment: linear between readings, held before the first and after the last."""
    if t_ns <= known[0][0]:
        return float(known[0][1])
    for (t0, v0), (t1, v1) in pairwise(known):
        if t0 <= t_ns <= t1:
            return float(v0 + (v1 - v0) * (t_ns - t0) / (t1 - t0)) if t1 > t0 else float(v1)
    return float(known[-1][1])
