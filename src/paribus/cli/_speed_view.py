"""How `paribus speed` shows its progress and its result."""

from __future__ import annotations

import re
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from paribus.speed.summary import Interval, SpeedSummary, Spread
from paribus.wire import Outcome

_TOKENS = re.compile(rb'"completion_tokens":\s*(\d+)')
_TAIL = 4096


class Progress:
    """Requests done, failures and a live rate, on stderr. Redrawn twice a second: drawing takes time from the load."""

    def __init__(self, requests: int, warm_up: int, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[rate]}"),
            console=self._console,
            refresh_per_second=2,
            transient=True,
        )
        self._warm = self._bars.add_task("warm-up", total=warm_up, rate="", visible=warm_up > 0)
        self._load = self._bars.add_task("measuring", total=requests, rate="", start=False)
        self._began: float | None = None
        self._tokens = self._failed = self._done = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bars down."""
        self._bars.stop()

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._console.print(text, markup=False, highlight=False)

    def on_end(self, outcome: Outcome) -> None:
        """Take note of a request that ended. Quick: it runs inside the load."""
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


def table(summary: SpeedSummary) -> str:
    """The summary as a table of text, flags below it."""
    made = Table(show_header=True, box=None, pad_edge=False, title_justify="left")
    made.add_column("metric")
    for name in ("value", "detail"):
        made.add_column(name, justify="right" if name == "value" else "left")
    for row in _rows(summary):
        made.add_row(*row)
    console = Console(width=110, file=None, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(made)
        for flag in summary.flags:
            console.print(f"{flag.severity}: {flag.text} [{flag.id}]")
    return capture.get().rstrip()


def _rows(s: SpeedSummary) -> list[tuple[str, str, str]]:
    r = s.requests
    rows = [
        ("requests answered", f"{r.ok} of {r.ok + r.failed}", _ended(s)),
        ("output speed", _number(s.output_speed.value, "tok/s"), _span(s.output_speed)),
        ("  in standard tokens", _number(s.output_speed_standard.value, "tok/s"), _span(s.output_speed_standard)),
        (
            "decode speed",
            _number(s.decode_speed.value, "tok/s"),
            f"{_span(s.decode_speed)} coverage {100 * s.decode_speed.coverage:.0f}%".strip(),
        ),
    ]
    if s.throughput.value is not None:
        detail = f"{_span(s.throughput)} window {s.window_s:.1f} s".strip()
        rows.append(("throughput, standard tokens", _number(s.throughput.value, "tok/s"), detail))
    if s.throughput.whole_run is not None and s.concurrency_seen > 1:
        rows.append(("  whole run", _number(s.throughput.whole_run, "tok/s"), f"{s.concurrency_seen} at once"))
    rows += [
        ("time to first text", _number(s.ttft_ms.mean, "ms"), _tail(s.ttft_ms)),
        ("time to first answer", _number(s.ttfa_ms.mean, "ms"), _tail(s.ttfa_ms)),
        ("time to last text", _number(s.e2e_ms.mean, "ms"), _tail(s.e2e_ms)),
    ]
    for k, time_to in s.time_to_k_ms.items():
        if time_to is not None and k != "1":
            rows.append(
                (f"time to {k} standard tokens", _number(time_to.mean, "ms"), f"{100 * time_to.share:.0f}% reach it")
            )
    for speed, wait in s.reader_wait_s.items():
        rows.append((f"a reader at {speed} tokens/s waits", _number(wait, "s"), "after the first text"))
    rows.append(("longest gaps", _number(s.stall_ms.p99, "ms"), f"p99; longest {_number(s.stall_ms.max, 'ms')}"))
    rows.append(("tokens an answer", _number(s.tokens.mean, ""), f"counted by {s.tokens_method}"))
    return rows


def _ended(s: SpeedSummary) -> str:
    r = s.requests
    parts = [("failed", r.failed), ("capped", r.capped), ("without visible answer", r.unanswered)]
    words = [f"{n} {word}" for word, n in [*parts, ("looping", r.degenerate)] if n]
    if r.checked:
        words.append(f"{r.check_passed} of {r.checked} verified as right")
    return ", ".join(words)


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "none"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def _span(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"{interval.low:,.1f} to {interval.high:,.1f} (over {interval.basis})"


def _tail(spread: Spread) -> str:
    return f"median {_number(spread.p50, 'ms')}, p99 {_number(spread.p99, 'ms')}" if spread.p50 is not None else ""
