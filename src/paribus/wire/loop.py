"""The event loop of a load generator, and how late it runs.

`run` drives a coroutine on uvloop with the garbage collector held back. `LagMeter` measures what an arriving byte
meets: a helper process writes its clock into a pipe every 25 ms, and the loop notes how much later it read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

T = TypeVar("T")

_PERIOD_S = 0.025
_PATIENCE_S = 2.0
"""A helper that hasn't started by then is waited for no longer: its figures are null."""
_STAMP = struct.Struct("<q")
# The helper ends by itself: writing into a pipe without a reader is a signal that kills it.
_PINGER = """
import os, signal, struct, sys, time
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.SIG_IGN)
period = float(sys.argv[1])
while True:
    time.sleep(period)
    os.write(1, struct.pack("<q", time.monotonic_ns()))
"""


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not built for every platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on uvloop (asyncio's own loop where there is none) and return its result.

    Objects alive now are set aside from the garbage collector and its full passes made rare: a pause of the
    collector would stamp every waiting read too late.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 1_000)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(main)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@dataclass(frozen=True)
class Lag:
    """How late the loop ran (milliseconds; null with no sample) and this process's share of one CPU."""

    lag_ms_p50: float | None
    lag_ms_p99: float | None
    cpu_share: float
    samples: int


class LagMeter:
    """Measures scheduling lag and CPU share while the block runs. `async with LagMeter() as meter: ...`.

    `mark()` forgets what was seen so far, so that a window can be measured alone; `read()` gives the figures.
    """

    def __init__(self) -> None:
        self._lags = array("q")
        self._process: subprocess.Popen[bytes] | None = None
        self._started = asyncio.Event()
        self._wall = time.monotonic()
        self._cpu = time.process_time()

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-I", "-S", "-c", _PINGER, str(_PERIOD_S)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        pipe = self._pipe()
        os.set_blocking(pipe, False)
        asyncio.get_running_loop().add_reader(pipe, self._readable, pipe)
        # A process that starts takes a core from whatever the load does in its first milliseconds.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._started.wait(), _PATIENCE_S)
        self.mark()
        return self

    async def __aexit__(self, *exc: object) -> None:
        asyncio.get_running_loop().remove_reader(self._pipe())
        if self._process is not None and self._process.stdout is not None:
            self._process.kill()
            self._process.stdout.close()
            self._process.wait()

    def mark(self) -> None:
        """Start afresh: figures count from now."""
        del self._lags[:]
        self._wall = time.monotonic()
        self._cpu = time.process_time()

    def read(self) -> Lag:
        """The figures since the last mark."""
        wall = time.monotonic() - self._wall
        share = (time.process_time() - self._cpu) / wall if wall > 0 else 0.0
        if not self._lags:
            return Lag(None, None, share, 0)
        ordered = sorted(self._lags)
        return Lag(_quantile(ordered, 0.5) / 1e6, _quantile(ordered, 0.99) / 1e6, share, len(ordered))

    def _pipe(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def _readable(self, pipe: int) -> None:
        now = time.monotonic_ns()
        self._started.set()
        try:
            stamps = os.read(pipe, 8 * 512)
        except BlockingIOError:
            return
        if not stamps:
            asyncio.get_running_loop().remove_reader(pipe)
            return
        for (stamp,) in _STAMP.iter_unpack(stamps[: len(stamps) // 8 * 8]):
            self._lags.append(now - stamp)


def _quantile(ordered: Sequence[int], share: float) -> float:
    """By linear interpolation, of at least one value."""
    place = share * (len(ordered) - 1)
    low = ordered[int(place)]
    return low + (ordered[min(int(place) + 1, len(ordered) - 1)] - low) * (place - int(place))
