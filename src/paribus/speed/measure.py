"""One measurement of a running server: warm-up, then the load, and what was seen beside it."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from paribus.catalog import PromptLine
from paribus.speed.load import (
    Ended,
    LoadRequest,
    WindowPlan,
    completions,
    ignore,
    poisson,
    run_closed_loop,
    run_open_loop,
    run_window,
    steady_window,
)
from paribus.speed.order import cycles, unique_line
from paribus.speed.summary import EngineLoad
from paribus.speed.warm_up import WarmUp, warm_up
from paribus.speed.window import Window
from paribus.wire import Client, Endpoint, Lag, LagMeter, Outcome, Spool, payload

POLL_S = 1.0
ENOUGH_READINGS = 3


@dataclass(frozen=True)
class Load:
    """What to ask of a server.

    `requests`: how many are measured; None: as many as a window of `window_s` and `window_completions` takes.
    `cap` in the model's tokens; a prompt's own `max_tokens` counts where it is smaller. `tag` goes into the unique
    lines (None: no unique line). `rate`: a Poisson stream of so many requests a second, in place of the closed loop.
    `warm_up_requests`: a plain number of warm-up requests in place of blocks until it has settled.
    """

    concurrency: int
    cap: int
    prompts: Sequence[PromptLine]
    tuning: Sequence[PromptLine]
    sampling: Mapping[str, float | int] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    requests: int | None = None
    window_s: float = 0.0
    window_completions: int = 0
    start: int = 1
    tag: str | None = None
    rate: float | None = None
    warm_up_blocks: int = 1
    warm_up_requests: int | None = None
    idle_timeout_s: float = 120.0
    """Seconds without a byte after which a request has failed; a slow machine may read sixteen prompts for minutes."""
    in_order: bool = False
    """Prompts in the order given (a user's file) rather than in balanced order."""

    def bodies(self, endpoint: Endpoint) -> Iterator[LoadRequest]:
        """The requests to measure, numbered from 0; without end where `requests` is None."""
        supply = self._repeated() if self.in_order else cycles(self.prompts, self.start)
        for index, prompt in enumerate(islice(supply, self.requests)):
            yield LoadRequest(index, prompt.id, self.body(endpoint, prompt, index, self.cap, "load"))

    def _repeated(self) -> Iterator[PromptLine]:
        while self.prompts:
            yield from self.prompts

    def body(self, endpoint: Endpoint, prompt: PromptLine, index: int, cap: int, part: str) -> bytes:
        """One request's body; `part` (warm-up or load) keeps their unique lines apart."""
        return payload(
            endpoint,
            prompt,
            max_tokens=min(cap, prompt.max_tokens or cap),
            sampling=dict(self.sampling),
            extra=dict(self.extra),
            unique_line=None if self.tag is None else unique_line(f"{self.tag} {part}", index),
        )


@dataclass(frozen=True)
class Watch:
    """What goes on beside the load. All may be left out.

    `on_end` is called for each request that ends, warm-up included. `gauges` asks the engine what it has (`running`)
    and may block. `warming_up` and `measuring` are entered around their parts.
    """

    on_end: Ended = ignore
    gauges: Callable[[], Mapping[str, float]] | None = None
    warming_up: Callable[[], AbstractContextManager[object]] = nullcontext
    measuring: Callable[[], AbstractContextManager[object]] = nullcontext
    stop: Callable[[], bool] = lambda: False
    broken_off: Callable[[Measured], None] = lambda _: None
    """Told what was seen beside a load that raises: it was interrupted, or `on_end` or the spool failed."""


@dataclass(frozen=True)
class Measured:
    """What a measurement gave: the raw outcomes are in the spool that was handed in."""

    warm_up: WarmUp | None
    window: Window | None
    window_short: str
    admitted: int | None
    lag: Lag
    epoch_ns: int
    """Zero of all times, on this machine's monotonic clock."""
    engine: EngineLoad | None = None
    """What the engine's gauges said in the window."""
    fault: str = ""
    """Why the last connection that failed did; empty when none has."""


async def measure(endpoint: Endpoint, load: Load, spool: Spool, watch: Watch | None = None) -> Measured:
    """Warm the server up and put the load on it; every measured outcome goes into the spool as it ends."""
    watch = watch or Watch()

    def keep(outcome: Outcome) -> None:
        spool.add(outcome)
        watch.on_end(outcome)

    async with Client(endpoint, idle_timeout_s=load.idle_timeout_s) as client, LagMeter() as meter:
        if not await client.open(load.concurrency):
            # Nobody listens: a few requests show it, a warm-up adds nothing.
            load = replace(load, requests=load.concurrency, warm_up_requests=0)
        with watch.warming_up():
            warm = await _warm_up(client, load, watch)
        with watch.measuring():
            # After whatever `measuring` blocked the loop for: a server may have closed idle connections meanwhile.
            await asyncio.sleep(0)
            await client.open(load.concurrency)
            meter.mark()
            try:
                async with _polling(client, watch, load.concurrency) as readings:
                    window, short = await _run(client, load, keep, watch.stop)
            except BaseException:
                watch.broken_off(Measured(warm, None, "", None, meter.read(), client.epoch_ns))
                raise
        lag = meter.read()
        seen = in_window(readings, window)
        return Measured(
            warm, window, short, admitted(seen), lag, client.epoch_ns, engine_load(seen), client.last_fault or ""
        )


async def _warm_up(client: Client, load: Load, watch: Watch) -> WarmUp | None:
    def body(prompt: PromptLine, index: int, cap: int) -> bytes:
        return load.body(client.endpoint, prompt, index, cap, "warm-up")

    if load.warm_up_requests is None:
        return await warm_up(
            client,
            load.tuning,
            body,
            concurrency=load.concurrency,
            cap=load.cap,
            max_blocks=load.warm_up_blocks,
            on_end=watch.on_end,
            stop=watch.stop,
        )
    turn = islice(cycles(load.tuning, load.start), load.warm_up_requests)
    requests = [LoadRequest(i, p.id, body(p, i, load.cap)) for i, p in enumerate(turn)]
    await run_closed_loop(client, requests, load.concurrency, "warm-up", on_end=watch.on_end, stop=watch.stop)
    return None


async def _run(client: Client, load: Load, keep: Ended, stop: Callable[[], bool]) -> tuple[Window | None, str]:
    """Put the load on; returns the steady window and why it is short (empty when it isn't)."""
    bodies = load.bodies(client.endpoint)
    if load.rate is not None:
        due = poisson(load.rate, client.now_ns(), f"arrivals {load.start}")
        await run_open_loop(client, bodies, due, stop=stop, on_end=keep)
        return None, ""
    if load.requests is None:
        plan = WindowPlan(load.concurrency, load.window_s, load.window_completions)
        await run_window(client, bodies, plan, stop=stop, on_end=keep)
        return plan.window, "" if plan.window and plan.inside >= plan.completions else _short(plan.window, plan.inside)
    ends: list[tuple[int, str | None]] = []

    def noted(outcome: Outcome) -> None:
        keep(outcome)
        ends.append((outcome.ended_ns, outcome.error))

    await run_closed_loop(client, bodies, load.concurrency, stop=stop, on_end=noted)
    if load.concurrency < 2:
        return None, ""
    window = steady_window([end for end, _ in ends], load.concurrency)
    inside = completions([end for end, error in ends if error is None], window) if window else 0
    enough = window is not None and window.seconds >= load.window_s and inside >= load.window_completions
    return window, "" if enough else _short(window, inside)


def _short(window: Window | None, inside: int) -> str:
    if window is None:
        return "there is none, too few requests ended after the first wave while all workers were busy"
    return f"{window.seconds:.1f} s with {inside} completion{'' if inside == 1 else 's'}"


Readings = list[tuple[int, Mapping[str, float]]]
"""When the engine was asked (ns since the load's start) and what it has: `running`, `waiting`."""


@asynccontextmanager
async def _polling(client: Client, watch: Watch, concurrency: int) -> AsyncIterator[Readings]:
    """Read the engine's gauges each second, beside the load, in a thread of its own."""
    readings: Readings = []
    gauges = watch.gauges
    if gauges is None or concurrency < 2:
        yield readings
        return

    async def poll() -> None:
        while True:
            await asyncio.sleep(POLL_S)
            asked = client.now_ns()
            readings.append((asked, await asyncio.to_thread(gauges)))

    task = asyncio.create_task(poll())
    try:
        yield readings
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def in_window(readings: Readings, window: Window | None) -> list[Mapping[str, float]]:
    """What the gauges said inside the window; nothing without one."""
    if window is None:
        return []
    return [told for t, told in readings if window.start_ns <= t <= window.end_ns]


def admitted(seen: Sequence[Mapping[str, float]]) -> int | None:
    """10th percentile of the running gauge; None with fewer than three readings."""
    from paribus.speed.statistics import percentile

    running = [told["running"] for told in seen if "running" in told]
    tenth = percentile(running, 0.1)
    # Down, not to the nearest: 14.6 is below 15.
    return math.floor(tenth) if tenth is not None and len(running) >= ENOUGH_READINGS else None


def engine_load(seen: Sequence[Mapping[str, float]]) -> EngineLoad | None:
    """Means of the gauges; None where the engine has none."""
    running, waiting = ([told[name] for told in seen if name in told] for name in ("running", "waiting"))
    if not running and not waiting:
        return None
    return EngineLoad(
        readings=max(len(running), len(waiting)),
        running_mean=sum(running) / len(running) if running else None,
        waiting_mean=sum(waiting) / len(waiting) if waiting else None,
    )
