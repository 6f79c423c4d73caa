"""Asking for the lossless gate: the same prompts at temperature 0, of plain decoding twice and of the decoder once.

Where the engine scores given text, answers are asked for in its own tokens and fed through plain decoding afterwards.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import orjson

from paribus.catalog import PromptLine
from paribus.conditions import CheckFailed
from paribus.engines.scoring import Call, Scoring
from paribus.quality.lossless import Compared, Scored, digest
from paribus.wire import Client, Endpoint, payload, read_answer, run

TIMEOUT_S = 3600.0
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Given:
    """One answer: what tells it from others, and, where the engine says, its tokens with those of the prompt."""

    id: str
    text: str
    prompt: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()


def answers(
    endpoint: Endpoint,
    prompts: Sequence[PromptLine],
    *,
    max_tokens: int,
    at_once: int,
    scoring: Scoring | None = None,
) -> list[Given]:
    """Every prompt's answer at temperature 0, so many at once. Raises `CheckFailed` where one fails."""

    async def whole(client: Client, index: int, prompt: PromptLine) -> Given:
        body = payload(endpoint, prompt, max_tokens=max_tokens, sampling={"temperature": 0.0})
        due = client.now_ns()
        outcome = await client.send(body, index=index, prompt_id=prompt.id, due_ns=due, phase="measured")
        answer = read_answer(outcome)
        if answer.error:
            raise _failed(prompt.id, answer.error)
        return Given(prompt.id, answer.reasoning + answer.text + json.dumps(list(answer.tool_calls)))

    async def tokens(client: Client, _index: int, prompt: PromptLine) -> Given:
        assert scoring is not None
        before = await _call(client, prompt.id, scoring.tokens(endpoint, prompt))
        if not before:
            raise _failed(prompt.id, "the engine makes no tokens of it")
        given = await _call(client, prompt.id, scoring.answer(endpoint, before, max_tokens))
        if not given:
            raise _failed(prompt.id, "no answer")
        return Given(prompt.id, json.dumps(given), tuple(before), tuple(given))

    return run(_all(endpoint, prompts, at_once, whole if scoring is None else tokens))


def score(endpoint: Endpoint, scoring: Scoring, given: Sequence[Given]) -> list[Scored]:
    """Feed answers through the server, one at a time. Raises `CheckFailed` where it doesn't score one."""

    async def one(client: Client, _index: int, answer: Given) -> Scored:
        first = len(answer.prompt)
        call = scoring.gaps(endpoint, [*answer.prompt, *answer.tokens], first)
        gaps = await _call(client, answer.id, call)
        if len(gaps) != len(answer.tokens):
            raise _failed(answer.id, f"{len(gaps)} tokens scored of {len(answer.tokens)}")
        return Scored(tokens=len(gaps), gaps=[round(gap, 4) for gap in gaps if gap > 0])

    return run(_all(endpoint, given, 1, one))


def compared(
    prompts: Sequence[PromptLine], plain: Sequence[Given], control: Sequence[Given], subject: Sequence[Given]
) -> list[Compared]:
    """The three answers of each prompt, as the verdict keeps them."""
    rows = zip(prompts, plain, control, subject, strict=True)
    return [
        Compared(prompt=p.id, plain=digest(a.text), control=digest(b.text), subject=digest(c.text))
        for p, a, b, c in rows
    ]


def with_scores(rows: Sequence[Compared], control: Sequence[Scored], subject: Sequence[Scored]) -> list[Compared]:
    """The same, with what plain decoding said of two of the answers."""
    return [
        row.model_copy(update={"control_scored": a, "subject_scored": b})
        for row, a, b in zip(rows, control, subject, strict=True)
    ]


async def _all(
    endpoint: Endpoint, asked: Sequence[T], at_once: int, one: Callable[[Client, int, T], Awaitable[R]]
) -> list[R]:
    slots = asyncio.Semaphore(at_once)

    async def bounded(client: Client, index: int, each: T) -> R:
        async with slots:
            return await one(client, index, each)

    async with Client(endpoint) as client:
        await client.open(at_once)
        return list(await asyncio.gather(*(bounded(client, n, each) for n, each in enumerate(asked))))


async def _call(client: Client, what: str, call: Call[T]) -> T:
    status, body = await client.post(call.path, orjson.dumps(call.body), TIMEOUT_S)
    if status != 200:
        said = body[:200].decode("utf-8", "replace").strip()
        raise _failed(what, f"{call.path} answered {status or 'nothing'}" + (f": {said}" if said else ""))
    try:
        return call.read(orjson.loads(body))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _failed(what, f"{call.path} answered what can't be read: {error or type(error).__name__}") from error


def _failed(what: str, why: str) -> CheckFailed:
    return CheckFailed(f"the prompt {what!r} failed ({why}): the gate needs every answer")
