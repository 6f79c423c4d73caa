"""How `paribus speed` shows its progress."""

from __future__ import annotations

import re
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from paribus.wire import Outcome

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_TOKENS = re.compile(rb'"completion_tokens":\s*(\d+)')
_TAIL = 4096


class Progress:
    """Requests done, failures and a live rate, on stderr where that is a terminal.

    Redrawn twice a second: drawing takes time from the load.
    """

    def __init__(self, requests: int, warm_up: int, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars = None if quiet or not sys.stderr.isatty() else _bars()
        if self._bars is not None:
            self._warm = self._bars.add_task("warm-up", total=warm_up, rate="", visible=warm_up > 0)
            self._load = self._bars.add_task("measuring", total=requests, rate="", start=False)
        self._began: float | None = None
        self._tokens = self._failed = self._done = 0

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bars down."""
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """A line above the bars."""
        if self._bars is not None:
            self._bars.console.print(text, markup=False, highlight=False)
        elif not self._quiet:
            print(text, file=sys.stderr)

    def on_end(self, outcome: Outcome) -> None:
        """Take note of a request that ended. Quick: it runs inside the load."""
        if self._bars is None:
            return
        if outcome.phase == "warm-up":
            self._bars.advance(self._warm)
            return
        if self._began is None:
            self._began = time.monotonic() - outcome.ended_ns / 1e9 + outcome.sent_ns / 1e9
            self._bars.start_task(self._load)
        self._done += 1
        self._failed += outcome.error is not None
        self._tokens += tokens_seen(outcome.body)
        seconds = max(time.monotonic() - self._began, 1e-3)
        rate = f"about {self._tokens / seconds:,.0f} tokens/s, {self._done / seconds:.2f} requests/s"
        failed = f", {self._failed} failed" if self._failed else ""
        self._bars.update(self._load, advance=1, rate=rate + failed)


def tokens_seen(body: bytes) -> int:
    """Tokens of an answer at a glance: the last usage near its end, else its events."""
    found = _TOKENS.findall(body[-_TAIL:])
    return int(found[-1]) if found else body.count(b"data:")


def _bars() -> Bars:
    """Bars on stderr. They are imported only for a terminal to draw on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
        console=Console(stderr=True),
        refresh_per_second=2,
        transient=True,
    )
