"""Holding signals to end back, while what can't be had again is being written."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PRESS_S = 0.5
"""Signals closer together are one: a terminal and a wrapper may both pass a Ctrl-C on."""


def _nothing(_number: int) -> None:
    pass


class Hold:
    """From `begin()` to the end of the block signals wait; a second one ends the block as the first would have.

    What was held is delivered at the end, or only noted in `held`. Outside of its block, and in a thread that isn't the
    main one, it holds nothing; signals that are ignored stay so. `on_held` is told of the first signal's number.
    """

    def __init__(self, told: str, *, deliver: bool = True, on_held: Callable[[int], None] = _nothing) -> None:
        self._told = told
        self._deliver = deliver
        self._on_held = on_held
        self._before: dict[int, Callable[[int, FrameType | None], object] | int] = {}
        self._open = False
        self._at = 0.0
        self.held: int | None = None

    def __enter__(self) -> Self:
        self._open = True
        return self

    def begin(self) -> None:
        """From now on signals wait."""
        if not self._open or threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            before = signal.getsignal(number)
            # A handler that isn't Python's can't be put back.
            if number not in self._before and before not in (signal.SIG_IGN, None):
                self._before[number] = before
                signal.signal(number, self._wait)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._put_back()
        ending = kind is not None and issubclass(kind, KeyboardInterrupt | SystemExit)
        if self._deliver and self.held is not None and not ending:
            signal.raise_signal(self.held)

    def _wait(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.held is None:
            self.held, self._at = number, now
            _say(self._told)
            self._on_held(number)
        elif now - self._at > PRESS_S:
            self._put_back()
            signal.raise_signal(number)

    def _put_back(self) -> None:
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, before)


def _say(text: str) -> None:
    # Not by print: the signal may have come in the middle of one.
    with contextlib.suppress(OSError):
        os.write(2, f"\nparibus: {text}\n".encode())
