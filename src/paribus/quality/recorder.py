"""Answers into the journal beside the event loop: reading a long one takes tenths of a second, a disk tens of
milliseconds, and meanwhile other streams must be read in time.

One thread adds lines, in the order in which answers came; another syncs. One sync makes all lines durable that were
added before it: the more answers come at once, the fewer syncs each costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar, overload

from paribus.quality.journal import Entry, Journal

P = ParamSpec("P")
T = TypeVar("T")


class Recorder:
    """Adds entries to a journal; `close` when no more will come."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._adding = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._syncing = ThreadPoolExecutor(1, thread_name_prefix="sync")
        self._added = self._synced = 0

    @overload
    async def add(self, make: Callable[[], Entry]) -> tuple[Entry, int]: ...
    @overload
    async def add(self, make: Callable[[], Entry], keep: Callable[[Entry], bool]) -> tuple[Entry, int | None]: ...
    async def add(
        self, make: Callable[[], Entry], keep: Callable[[Entry], bool] = lambda _entry: True
    ) -> tuple[Entry, int | None]:
        """Make an entry and add it to the journal; returns it with its number, for `durable`.

        From here on it outlives this process. An answer that came is kept even where whoever waits is cancelled. One
        that isn't to be kept is only made, and has no number.
        """
        return await _in(self._adding, self._add, make, keep)

    async def durable(self, number: int) -> None:
        """Wait until the entry of this number outlives the machine too."""
        await _in(self._syncing, self._sync, number)

    async def close(self) -> None:
        """Write what came, and end the threads."""
        await asyncio.to_thread(self._adding.shutdown)
        await asyncio.to_thread(self._syncing.shutdown)

    def _add(self, make: Callable[[], Entry], keep: Callable[[Entry], bool]) -> tuple[Entry, int | None]:
        entry = make()
        if not keep(entry):
            return entry, None
        self._journal.append(entry, sync=False)
        self._added += 1
        return entry, self._added

    def _sync(self, number: int) -> None:
        if self._synced < number:
            upto = self._added
            self._journal.sync()
            self._synced = upto


async def _in(thread: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Work in a thread; it is done even where whoever waits is cancelled."""
    return await asyncio.shield(asyncio.wrap_future(thread.submit(work, *args, **kwargs)))
