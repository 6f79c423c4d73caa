"""Asking a model: seeds, sampling, cap, bounded concurrency, retries; every answer into the journal. And replaying.

Both sides are an `Answerer`: generation asks a server and writes the journal, scoring reads the journal. Whatever
drives them (lm-eval, a dialogue) can't tell the difference, so both see the same answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from paribus.catalog import PromptLine
from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.quality.journal import Entry, Journal, Key
from paribus.quality.pulse import Pulse
from paribus.quality.recorder import Recorder
from paribus.quality.refusal import is_of_the_question, is_passing, refuse_turned_away
from paribus.wire import Client, Endpoint, Outcome, payload, read_answer

T = TypeVar("T")

MISSING = "missing"
"""Error word of an answer that the journal doesn't have."""

_RETRIED_ONCE = {"cut", "in_band", "protocol"}
"""Ends of answers that had begun: a server that dies leaves them, and so does a question that it can't answer."""
_CUT_SHORT = {"cancelled"}

_PULSE = Key("", "pulse", 0)
_PROBE = ({"role": "user", "content": "Say yes."},)
_PROBE_CAP = 16
"""Tokens of a request that only asks whether the server still answers."""


@dataclass(frozen=True)
class Question:
    """One request: its key, the messages so far, and perhaps tools.

    `asked`: a hash of the question, where it follows from earlier answers: a journal's answer must be to the same.
    """

    key: Key
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    asked: str | None = None

    def same(self, entry: Entry) -> Entry:
        """The entry, if it answers this very question; raises `CheckFailed` otherwise."""
        if entry.asked != self.asked:
            raise CheckFailed(
                f"{self.key.item}, repeat {self.key.repeat}, turn {self.key.turn}: the journal's answer is to another "
                "question, so that this dialogue can't be played again from it"
            )
        return entry


@dataclass(frozen=True)
class Asking:
    """How a start asks. `seeds`: whether the engine takes a seed. `alive`: whether the server is still there."""

    endpoint: Endpoint
    sampling: Mapping[str, float | int]
    cap: int
    concurrency: int
    seeds: bool = True
    attempts: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0
    total_timeout_s: float = 3 * 3600
    idle_timeout_s: float = 900
    """Seconds without a byte: a slow machine reads a long prompt for minutes."""
    alive: Callable[[], bool] = field(default=lambda: True)
    name: str = "the server"
    """What messages call it."""


class Answerer(Protocol):
    """Whoever answers questions."""

    async def answer(self, question: Question) -> Entry:
        """The answer to one question; a failure is an `Entry` with an `error`."""


def seed_of(key: Key) -> int:
    """A seed of 31 bits for one request: distinct for each (task, item, repeat, turn), the same on every machine."""
    text = "\x1f".join(map(str, key))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) & 0x7FFF_FFFF


def body_of(asking: Asking, question: Question) -> bytes:
    """The request that a question makes: always the same bytes. Raises `UsageError` for what can't be sent."""
    prompt = PromptLine(
        id=question.key.item[:200] or "item", messages=list(question.messages), tools=list(question.tools) or None
    )
    return payload(
        asking.endpoint,
        prompt,
        max_tokens=asking.cap,
        sampling=asking.sampling,
        extra={"seed": seed_of(question.key)} if asking.seeds else {},
    )


class LiveAnswerer:
    """Asks the server and journals each answer; what the journal has already isn't asked again.

    `async with`: at its end all that came is written down. `answered` is told the key of each new answer.
    """

    def __init__(self, client: Client, asking: Asking, journal: Journal, answered: Callable[[Key], None]) -> None:
        self._client = client
        self._asking = asking
        self._journal = journal
        self._recorder = Recorder(journal)
        self._pulse = Pulse(
            self._probe,
            asking.alive,
            lambda number: _doubling_s(asking, number, _PULSE),
            tries=asking.attempts,
            name=asking.name,
            secret=asking.endpoint.api_key,
        )
        self._answered = answered
        self._slots = asyncio.Semaphore(asking.concurrency)
        self._count = 0

    async def answer(self, question: Question) -> Entry:
        """The journal's answer, else the server's.

        Raises `EnvironmentFault` when the server is gone, or refuses whatever is asked.
        """
        entry = self._journal.entries.get(question.key)
        if entry is not None:
            return question.same(entry)
        async with self._slots:
            # The next request leaves when this one's line is written: a killed process loses no more than are asked
            # at once. It doesn't wait for the disk, which may take tens of milliseconds.
            entry, number = await self._ask(question)
        await self._recorder.durable(number)
        self._answered(question.key)
        return entry

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._recorder.close()

    async def _ask(self, question: Question) -> tuple[Entry, int]:
        """Send a question until it is answered or given up; the entry and its number in the journal.

        A failure that may have been the server's end is written down only once the server has answered something
        sent after it, and never where it was away in between.
        """
        asking, seed = self._asking, seed_of(question.key) if self._asking.seeds else None
        body, before = body_of(asking, question), ""
        for attempt in range(1, asking.attempts + 1):
            outcome = await self._send(body, question.key)
            refuse_turned_away(outcome, asking.endpoint, asking.name)
            failed_ns = self._client.now_ns()
            entry, number = await self._recorder.add(partial(_entry, question, seed, body, attempt, outcome), _settled)
            if number is not None:
                if entry.error is None:
                    self._pulse.answered(outcome.sent_ns)
                return entry, number
            self._pulse.refuse_dead()
            word, last = entry.error or "", attempt == asking.attempts
            if last and word == "connect":
                raise EnvironmentFault(
                    f"can't reach {asking.endpoint.base_url} ({self._client.last_fault or 'no connection'}): "
                    "start again, what was answered is kept"
                )
            if last or not _worth_retrying(word, before):
                if await self._pulse.lasted(failed_ns, word):
                    return await self._written(entry)
            else:
                await asyncio.sleep(wait_s(asking, attempt, outcome, question.key))
            before = word
        raise EnvironmentFault(f"{asking.name} goes away again and again: start again, what it answered is kept")

    async def _written(self, entry: Entry) -> tuple[Entry, int]:
        return await self._recorder.add(lambda: entry)

    async def _probe(self) -> Outcome:
        asking, question = self._asking, Question(_PULSE, _PROBE)
        outcome = await self._send(body_of(replace(asking, cap=_PROBE_CAP), question), question.key)
        refuse_turned_away(outcome, asking.endpoint, asking.name, harmless=True)
        return outcome

    async def _send(self, body: bytes, key: Key) -> Outcome:
        index, self._count = self._count, self._count + 1
        outcome = await self._client.send(
            body, index=index, prompt_id=key.item, due_ns=self._client.now_ns(), phase="measured"
        )
        if outcome.error in _CUT_SHORT:
            # Stopped by us, in the middle of an answer: no observation, so nothing for the journal.
            raise asyncio.CancelledError
        return outcome


Seen = Callable[[Question, Entry], None]
"""Told of each question and the journal's answer to it."""


def _unseen(_question: Question, _entry: Entry) -> None:
    pass


class ReplayAnswerer:
    """Answers from a journal; what it doesn't have is a failed answer."""

    def __init__(self, entries: Mapping[Key, Entry], seen: Seen = _unseen) -> None:
        self._entries, self._seen = entries, seen

    async def answer(self, question: Question) -> Entry:
        """The journal's answer to this question."""
        entry = self._entries.get(question.key)
        if entry is None:
            return missing(question.key)
        self._seen(question, entry)
        return question.same(entry)


def missing(key: Key) -> Entry:
    """The failed answer in place of one that was never given."""
    nothing = dict.fromkeys(
        ("seed", "finish_reason", "prompt_tokens", "completion_tokens", "reasoning_tokens", "ttft_ns", "e2e_ns")
    )
    text = {"body_sha256": "", "text": "", "reasoning": "", "error": MISSING}
    return Entry.model_validate({**key._asdict(), **nothing, **text, "attempts": 0, "status": 0})


async def answer_all(answerer: Answerer, questions: Sequence[Question]) -> list[Entry]:
    """Answers in the order of the questions. The first fault of the environment ends all of them."""
    return await side_by_side([answerer.answer(question) for question in questions])


async def side_by_side(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. The first error cancels the rest and is raised as it is, not as a group."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None
    return [task.result() for task in tasks]


def _settled(entry: Entry) -> bool:
    """Whether an entry says nothing but what the question got: an answer, or the refusal of this very question."""
    word = entry.error
    if word is None or word == "choices" or (word == "empty" and entry.finish_reason is not None):
        return True
    return is_of_the_question(word)


def _worth_retrying(word: str, before: str) -> bool:
    """Whether to ask again after a failure. An answer that broke off is asked for once more, a late one never.

    A refusal that may be of the question or of whoever asks (403) is heard twice before it is looked into.
    """
    if word in _RETRIED_ONCE:
        return before not in _RETRIED_ONCE
    return is_passing(word) or (word != before and (word == "empty" or word.startswith("http_")))


def wait_s(asking: Asking, attempt: int, outcome: Outcome, key: Key) -> float:
    """Doubling waits with a spread that is the same each time; never shorter than the server asked for."""
    return max(_doubling_s(asking, attempt, key), min(outcome.retry_after_s or 0.0, 10 * asking.longest_wait_s))


def _doubling_s(asking: Asking, attempt: int, key: Key) -> float:
    spread = random.Random(f"{key}/{attempt}").uniform(0.5, 1.0)  # noqa: S311 (no secret)
    wait: float = min(asking.longest_wait_s, asking.first_wait_s * 2.0 ** (attempt - 1)) * spread
    return wait


def _entry(question: Question, seed: int | None, body: bytes, attempts: int, outcome: Outcome) -> Entry:
    answer = read_answer(outcome)
    usage = answer.usage
    return Entry(
        **question.key._asdict(),
        seed=seed,
        body_sha256=hashlib.sha256(body).hexdigest(),
        attempts=attempts,
        status=outcome.status,
        error=answer.error,
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=list(answer.tool_calls),
        finish_reason=answer.finish_reason,
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        reasoning_tokens=usage.reasoning_tokens if usage else None,
        ttft_ns=answer.ttft_ns,
        e2e_ns=answer.e2e_ns,
        asked=question.asked,
    )
