"""Whether a server is still there, asked after a failure that may have been its end and not the question's fault.

An engine that dies cuts every answer under way, or says so inside them, or leaves a gateway that answers in its place.
None of these is an answer to a question: before a failure is written down as one, the server must answer something
that was sent after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from paribus.conditions import EnvironmentFault
from paribus.wire import Outcome, read_answer, said_of


class Pulse:
    """The pulse of one server. `probe` sends a short request of its own; `wait_s` gives seconds before the n-th.

    Times are nanoseconds since the client's epoch.
    """

    def __init__(
        self,
        probe: Callable[[], Awaitable[Outcome]],
        alive: Callable[[], bool],
        wait_s: Callable[[int], float],
        *,
        tries: int,
        name: str,
        secret: str | None = None,
    ) -> None:
        """`secret`: a key that the server may repeat, and that is told to nobody."""
        self._probe, self._alive, self._wait_s, self._tries, self.name = probe, alive, wait_s, tries, name
        self._secret, self._said = secret, ""
        self._sound_ns = self._away_ns = -1
        self._one = asyncio.Lock()

    def answered(self, sent_ns: int) -> None:
        """A request that was sent then got its answer."""
        self._sound_ns = max(self._sound_ns, sent_ns)

    def refuse_dead(self) -> None:
        """Raise `EnvironmentFault` where the server's process has ended."""
        if not self._alive():
            raise EnvironmentFault(f"{self.name} is gone: start again, what it answered is kept")

    async def lasted(self, failed_ns: int, word: str) -> bool:
        """Whether the server was there all along since a request failed with this word; false: it was away meanwhile.

        Raises `EnvironmentFault` where it isn't there any more.
        """
        async with self._one:  # of many that fail together one asks
            found = word
            for number in range(1, self._tries + 1):
                if self._sound_ns <= failed_ns:
                    # Its connections close a moment before its process ends.
                    await asyncio.sleep(self._wait_s(number))
                    self.refuse_dead()
                if self._sound_ns <= failed_ns:
                    found = await self._felt()
                if self._sound_ns > failed_ns:
                    return self._away_ns < failed_ns
                if found.startswith("timeout_"):
                    break  # who waited that long needn't wait again
        raise EnvironmentFault(
            f"{self.name} answers nothing any more (after {word}: {found}{self._said}): start again, what it answered "
            "is kept"
        )

    async def _felt(self) -> str:
        """Send a probe: nothing where it is answered, else the word for its failure."""
        outcome = await self._probe()
        word = outcome.error or read_answer(outcome).error
        if word is None or word == "empty":  # a model may have nothing to say; it was asked
            self.answered(outcome.sent_ns)
            return ""
        self._away_ns, self._said = outcome.sent_ns, said_of(outcome, self._secret)
        return word
