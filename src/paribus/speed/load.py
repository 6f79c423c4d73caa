"""Load on a server: a closed loop (each worker sends its next request when its last one ended) and an open one.

Nothing is parsed while a load runs, nothing is kept in memory, and storing an answer never holds up a request. A
failed request is a result and is never sent again; its worker waits a little before its next request, as long as the
server asked, 30 s at most. Where a closed loop is interrupted, the requests under way are kept, as `cancelled`.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from paribus.speed.window import Window
from paribus.wire import Outcome

TICK_NS = 100_000_000
"""Edges of a window are multiples of 0.1 s on the load's own clock (whole seconds where the load is endless)."""
SECOND_NS = 1_000_000_000
BACK_OFF_S = 30.0
HOPELESS = 3
"""A load ends after this many failures a worker (20 at least) without a single success, or after twice as many (100
at least) in a row later on: nobody is there."""


@dataclass(frozen=True)
class LoadRequest:
    """One request to send: its number, its prompt's id, its body."""

    index: int
    prompt_id: str
    body: bytes


class Sender(Protocol):
    """What a load needs of `paribus.wire.Client`."""

    def now_ns(self) -> int: ...

    async def send(
        self, body: bytes, *, index: int, prompt_id: str, due_ns: int, phase: str, worker: int = 0
    ) -> Outcome: ...

    def abort(self) -> None:
        """End every exchange: its `send` returns within the loop's next turn, with the error `cancelled`."""


Ended = Callable[[Outcome], None]


def ignore(outcome: Outcome) -> None:
    """An `on_end` that does nothing."""


class Hopeless:
    """Counts failures in a row: says when a load makes no sense any more."""

    def __init__(self, workers: int) -> None:
        self._first = max(20, HOPELESS * workers)
        self._later = max(100, 2 * HOPELESS * workers)
        self._row = 0
        self._alive = False

    def saw(self, outcome: Outcome) -> None:
        """Take note of how a request ended."""
        self._row = 0 if outcome.error is None else self._row + 1
        self._alive = self._alive or outcome.error is None

    @property
    def yes(self) -> bool:
        """Whether to give up."""
        return self._row >= (self._later if self._alive else self._first)


class _Supply:
    """Requests, some of them made ahead: a server that has just answered shall not wait for the next one's body."""

    def __init__(self, requests: Iterable[LoadRequest], ahead: int) -> None:
        self._source = iter(requests)
        self._ready = deque(islice(self._source, ahead))

    def take(self) -> LoadRequest | None:
        """The next request; None when there are no more."""
        return self._ready.popleft() if self._ready else next(self._source, None)

    def make(self) -> None:
        """Make one more ahead, if there is one."""
        self._ready.extend(islice(self._source, 1))


@dataclass
class _Keeper:
    """Hands what has ended to `on_end`, one outcome between two turns of the loop, and makes a request ahead for it."""

    on_end: Ended
    supply: _Supply
    ended: asyncio.Queue[Outcome | None] = field(default_factory=asyncio.Queue)
    broken: bool = False
    """Whether the load is to end: it was interrupted, or `on_end` failed (a full disk)."""

    async def run(self) -> None:
        while (outcome := await self.ended.get()) is not None:
            # Whoever was waiting for this turn goes first: workers send, arrivals are stamped.
            await asyncio.sleep(0)
            try:
                self.on_end(outcome)
                self.supply.make()
            except BaseException:
                self.broken = True
                raise


@asynccontextmanager
async def _keeping(client: Sender, on_end: Ended, supply: _Supply) -> AsyncIterator[_Keeper]:
    """A keeper at work; at the end everything has been handed over, and what `on_end` raised is raised."""
    keeper = _Keeper(on_end, supply)
    task = asyncio.create_task(keeper.run())
    task.add_done_callback(lambda _: client.abort() if keeper.broken else None)
    try:
        yield keeper
    finally:
        keeper.ended.put_nowait(None)
        await task


async def _work(client: Sender, keeper: _Keeper, workers: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all workers. Where that is interrupted, exchanges under way end as at a window's end: with a record."""
    work = asyncio.gather(*workers)
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        keeper.broken = True
        client.abort()
        await asyncio.sleep(0)  # they return; whoever rests or still connects has nothing to tell
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        raise


async def run_closed_loop(
    client: Sender,
    requests: Iterable[LoadRequest],
    concurrency: int,
    phase: str | Callable[[int], str | None] = "measured",
    *,
    stop: Callable[[], bool] = lambda: False,
    on_end: Ended = ignore,
    seen: Ended = ignore,
) -> None:
    """Keep `concurrency` requests open until there are no more, or `stop()`.

    `phase`: a name, or a function of the load's time (ns) that is asked when a request is about to leave; None ends
    its worker. Each request is due the moment its worker is free. `seen` is called the moment a request has ended and
    must be quick; `on_end` a little later, once the worker's next request has left.
    """
    supply = _Supply(requests, 2 * concurrency)
    hopeless = Hopeless(concurrency)

    async def worker(number: int, keeper: _Keeper) -> None:
        failures = 0
        while not stop() and not hopeless.yes and not keeper.broken:
            due_ns = client.now_ns()
            name = phase if isinstance(phase, str) else phase(due_ns)
            request = supply.take() if name is not None else None
            if request is None or name is None:
                return
            outcome = await client.send(
                request.body,
                index=request.index,
                prompt_id=request.prompt_id,
                due_ns=due_ns,
                phase=name,
                worker=number,
            )
            hopeless.saw(outcome)
            seen(outcome)
            keeper.ended.put_nowait(outcome)
            failures = failures + 1 if outcome.error else 0
            if failures and outcome.error != "cancelled":
                await asyncio.sleep(min(BACK_OFF_S, max(outcome.retry_after_s or 0.0, 0.05 * failures)))

    async with _keeping(client, on_end, supply) as keeper:
        await _work(client, keeper, (worker(number, keeper) for number in range(concurrency)))


async def run_open_loop(
    client: Sender,
    requests: Iterable[LoadRequest],
    due_ns: Iterable[int],
    phase: str = "measured",
    *,
    stop: Callable[[], bool] = lambda: False,
    on_end: Ended = ignore,
) -> None:
    """Send each request when it is due (ns since the load's start), however many are under way.

    Lateness is kept (`sent_ns - due_ns`), never hidden by waiting for answers.
    """
    running: set[asyncio.Task[None]] = set()

    async def one(request: LoadRequest, due: int, number: int, keeper: _Keeper) -> None:
        outcome = await client.send(
            request.body, index=request.index, prompt_id=request.prompt_id, due_ns=due, phase=phase, worker=number
        )
        keeper.ended.put_nowait(outcome)

    async with _keeping(client, on_end, _Supply((), 0)) as keeper:
        for number, (request, due) in enumerate(zip(requests, due_ns, strict=False)):
            wait = (due - client.now_ns()) / 1e9
            if wait > 0:
                await asyncio.sleep(wait)
            if stop() or keeper.broken:
                break
            task = asyncio.create_task(one(request, due, number, keeper))
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.gather(*running)


def poisson(rate_per_s: float, start_ns: int, seed: str) -> Iterator[int]:
    """Due times of a Poisson stream without end: exponential gaps with mean 1 / rate, from `start_ns` on."""
    chance = random.Random(seed)  # noqa: S311 (a load, not a secret)
    due = float(start_ns)
    while True:
        due += chance.expovariate(rate_per_s) * 1e9
        yield round(due)


@dataclass
class WindowPlan:
    """An endless load's clock: soak, window, and a tail that keeps the load until the window's requests have ended.

    The soak lasts until as many requests have ended as there are workers; the window begins at the next whole second
    and ends at the first whole second after `seconds` at which `completions` requests have ended inside it. The tail
    ends when every request sent in the window has ended. `limit`: the window never takes longer than this many times
    `seconds`.
    """

    concurrency: int
    seconds: float
    completions: int
    limit: float = 20.0
    start_ns: int | None = None
    end_ns: int | None = None
    inside: int = 0
    """Answers that ended in the window so far (up to the last whole second)."""
    open_measured: int = 0
    _ended: int = 0
    _ends: list[int] = field(default_factory=list)

    def phase(self, now_ns: int) -> str | None:
        """Phase of a request that leaves now; None when the load is over."""
        self.tick(now_ns)
        if self.over:
            return None
        inside = self.start_ns is not None and now_ns >= self.start_ns and self.end_ns is None
        self.open_measured += inside
        return "measured" if inside else "soak"

    def saw(self, outcome: Outcome) -> None:
        """Take note of a request that ended."""
        self._ended += 1
        self.open_measured -= outcome.phase == "measured"
        if self.start_ns is None and self._ended >= self.concurrency:
            self.start_ns = (outcome.ended_ns // SECOND_NS + 1) * SECOND_NS
        elif self.start_ns is not None and outcome.ended_ns > self.start_ns and outcome.error is None:
            self._ends.append(outcome.ended_ns)
        self.tick(outcome.ended_ns)

    def tick(self, now_ns: int) -> None:
        """Close the window at the last whole second that has passed, when it has all it needs."""
        if self.start_ns is None or self.end_ns is not None:
            return
        edge = now_ns // SECOND_NS * SECOND_NS
        age = (edge - self.start_ns) / 1e9
        self.inside = sum(end <= edge for end in self._ends)
        if age >= self.seconds and (self.inside >= self.completions or age >= self.limit * self.seconds):
            self.end_ns = edge

    @property
    def over(self) -> bool:
        """Whether the window is closed and every request sent in it has ended."""
        return self.end_ns is not None and self.open_measured <= 0

    @property
    def window(self) -> Window | None:
        """The window; None before it is closed."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return Window(self.start_ns, self.end_ns)


async def run_window(
    client: Sender,
    requests: Iterable[LoadRequest],
    plan: WindowPlan,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_end: Ended = ignore,
) -> None:
    """An endless closed loop through soak, window and tail; what is still under way at the end is cut off.

    The tail's requests only load the engine: they are of the phase `soak`, as those before the window.
    """

    def saw(outcome: Outcome) -> None:
        plan.saw(outcome)
        if plan.over:
            client.abort()

    await run_closed_loop(
        client, requests, plan.concurrency, plan.phase, stop=lambda: plan.over or stop(), on_end=on_end, seen=saw
    )


def steady_window(ends_ns: Iterable[int], concurrency: int) -> Window | None:
    """The steady part of a load of a given number of requests, from their ends; None where there is none.

    It begins when as many requests have ended as there are workers, and ends when the first worker found no more
    requests: the first wave is behind, and all workers were busy in it. It must hold at least as many ends as there
    are workers: a single wave, all of its prompts read together, is no steady load. Edges are moved inward to
    multiples of 0.1 s on the load's clock, so that no arrival sets them.
    """
    ends = sorted(ends_ns)
    if concurrency < 2 or len(ends) <= concurrency:
        return None
    soaked = ends[concurrency - 1]
    # With R requests and N workers the (R - N + 1)-th end leaves the first worker without a next request.
    idle = ends[len(ends) - concurrency]
    start, end = -(-soaked // TICK_NS) * TICK_NS, idle // TICK_NS * TICK_NS
    window = Window(start, end)
    return window if end > start and completions(ends, window) >= concurrency else None


def completions(ends_ns: Iterable[int], window: Window) -> int:
    """How many exchanges ended in a window. The one definition of a completion in it: its end, not its last text."""
    return sum(window.start_ns < end <= window.end_ns for end in ends_ns)
