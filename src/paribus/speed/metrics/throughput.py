"""Throughput of a steady window at several requests at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from paribus.speed.metrics.registry import metric
from paribus.speed.window import Window

BATCHES = 10


class Staircase(Protocol):
    """One request: when it was sent (since the load's start), when pieces arrived (since sent)."""

    @property
    def sent_ns(self) -> int: ...
    @property
    def at_ns(self) -> npt.NDArray[np.int64]: ...


Steps = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""For every piece of every request: when its production began, when it arrived (ns), what it brought."""


def steps(requests: Sequence[tuple[Staircase, npt.NDArray[np.generic]]]) -> Steps:
    """Pieces of all requests as production intervals. Takes (request, cumulative amount after each piece)."""
    begins, ends, amounts = [], [], []
    for request, cumulative in requests:
        if not len(request.at_ns):
            continue
        at = request.at_ns.astype(float) + request.sent_ns
        begins.append(np.concatenate(([float(request.sent_ns)], at[:-1])))
        ends.append(at)
        amounts.append(np.diff(cumulative.astype(float), prepend=0.0))
    if not ends:
        nothing = np.array([], dtype=float)
        return nothing, nothing, nothing
    return np.concatenate(begins), np.concatenate(ends), np.concatenate(amounts)


def credited(pieces: Steps, window: Window) -> float:
    """What the window is credited with: of each piece the part of its production interval that lies inside."""
    begins, ends, amounts = pieces
    return float(_inside(begins, ends, window) @ amounts)


def _inside(begins: npt.NDArray[np.float64], ends: npt.NDArray[np.float64], window: Window) -> npt.NDArray[np.float64]:
    """The share of each piece's production interval that lies inside a window."""
    inside = np.minimum(ends, window.end_ns) - np.maximum(begins, window.start_ns)
    length = ends - begins
    # A piece that took no time belongs to the moment it arrived.
    return np.where(
        length > 0,
        np.clip(inside, 0, None) / np.where(length > 0, length, 1),
        (ends > window.start_ns) & (ends <= window.end_ns),
    )


def arrived(pieces: Steps, window: Window) -> float:
    """What arrived in the window, each piece at its arrival."""
    _, ends, amounts = pieces
    return float(amounts[(ends > window.start_ns) & (ends <= window.end_ns)].sum())


@dataclass(frozen=True)
class WindowSpeed:
    """Amounts a second: credited evenly (`value`), by raw arrival, over the whole run, and of each tenth."""

    value: float | None
    raw_arrival: float | None
    whole_run: float | None
    batches: tuple[float, ...]


@dataclass
class _Sums:
    """Of one unit: what each tenth of the window was credited with, what arrived in the window, and what there was."""

    batches: npt.NDArray[np.float64]
    arrived: float = 0.0
    everything: float = 0.0


class Gathered:
    """What requests contributed to a window, one request after the other: their staircases are let go.

    `units`: what is counted; the time that pieces took is the same for each.
    """

    def __init__(self, window: Window | None, units: Sequence[str]) -> None:
        self.window = window if window is not None and window.seconds > 0 else None
        self._parts = self.window.split(BATCHES) if self.window else []
        self._sums = {unit: _Sums(np.zeros(len(self._parts))) for unit in units}

    def add(self, request: Staircase, cumulative: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Take in one request: of each unit, the amount delivered with each piece and those before it."""
        amounts: dict[str, npt.NDArray[np.float64]] = {}
        for unit, sums in self._sums.items():
            begins, ends, amounts[unit] = steps([(request, cumulative[unit])])
            sums.everything += float(amounts[unit].sum())
        if self.window is None or not len(ends):
            return
        if ends[-1] <= self.window.start_ns or begins[0] > self.window.end_ns:
            return
        for number, part in enumerate(self._parts):
            if ends[-1] > part.start_ns and begins[0] <= part.end_ns:
                share = _inside(begins, ends, part)
                for unit, sums in self._sums.items():
                    sums.batches[number] += float(share @ amounts[unit])
        for unit, sums in self._sums.items():
            sums.arrived += arrived((begins, ends, amounts[unit]), self.window)

    def speed(self, unit: str, wall: Window) -> WindowSpeed:
        """The figures, over a wall that holds every request whole."""
        sums = self._sums[unit]
        whole = sums.everything / wall.seconds if wall.seconds > 0 else None
        if self.window is None:
            return WindowSpeed(None, None, whole, ())
        seconds = [part.seconds for part in self._parts]
        return WindowSpeed(
            float(sums.batches.sum()) / self.window.seconds,
            sums.arrived / self.window.seconds,
            whole,
            tuple(float(b) / s for b, s in zip(sums.batches, seconds, strict=True)),
        )


@metric("throughput", title="Throughput", unit="standard tokens/s", better="higher", across="yes")
def throughput(pieces: Steps, window: Window | None, wall: Window) -> WindowSpeed:
    """Text that became available in the steady window / its length, over all requests at once.

    The window begins after a soak, or after the first wave of a fixed number of requests; fewer completions in it
    than requests at once and there is no window: the whole run is told instead, for all that are shown together.
    Its edges are fixed clock times, so that no arrival moves them. A piece's tokens are credited evenly over the
    time since the request's previous piece (or its start): a canvas of 256 tokens that was in the making for 0.4 s
    is credited as it was made. Beside it stand the raw arrivals in the window and the whole run with its rise and
    fall. Interval: t over starts; with a single start over its ten batch means, counted as the
    answers that a worker wrote in the window allow; under five of them there is none. It says what other starts would
    do with these prompts, as all systems got them; how other prompts would do isn't in it. Where a system's speed
    depends on the text, as with speculation and diffusion, that can be more than what differs between starts: the
    speed-up over the first tokens draws prompts again, and its interval holds for others like them.
    """
    whole = credited(pieces, wall) / wall.seconds if wall.seconds > 0 else None
    if window is None or window.seconds <= 0:
        return WindowSpeed(None, None, whole, ())
    batches = tuple(credited(pieces, part) / part.seconds for part in window.split(BATCHES))
    return WindowSpeed(
        credited(pieces, window) / window.seconds, arrived(pieces, window) / window.seconds, whole, batches
    )
