"""Asking for the lossless gate: the same prompts at temperature 0, of plain decoding twice and of the decoder once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from paribus.catalog import PromptLine
from paribus.conditions import CheckFailed
from paribus.quality.lossless import Compared, digest
from paribus.wire import Client, Endpoint, payload, read_answer, run


def answers(endpoint: Endpoint, prompts: Sequence[PromptLine], *, max_tokens: int, at_once: int) -> list[str]:
    """Every prompt's answer at temperature 0, so many at once. Raises `CheckFailed` where one fails."""
    return run(_answers(endpoint, prompts, max_tokens, at_once))


async def _answers(endpoint: Endpoint, prompts: Sequence[PromptLine], max_tokens: int, at_once: int) -> list[str]:
    slots = asyncio.Semaphore(at_once)

    async def one(client: Client, index: int, prompt: PromptLine) -> str:
        body = payload(endpoint, prompt, max_tokens=max_tokens, sampling={"temperature": 0.0})
        async with slots:
            due = client.now_ns()
            outcome = await client.send(body, index=index, prompt_id=prompt.id, due_ns=due, phase="measured")
        answer = read_answer(outcome)
        if answer.error:
            raise CheckFailed(f"the prompt {prompt.id!r} failed ({answer.error}): the gate needs every answer")
        return answer.reasoning + answer.text + json.dumps(list(answer.tool_calls))

    async with Client(endpoint) as client:
        await client.open(at_once)
        return list(await asyncio.gather(*(one(client, n, prompt) for n, prompt in enumerate(prompts))))


def compared(
    prompts: Sequence[PromptLine], plain: Sequence[str], control: Sequence[str], subject: Sequence[str]
) -> list[Compared]:
    """The three answers of each prompt, as the verdict keeps them."""
    rows = zip(prompts, plain, control, subject, strict=True)
    return [Compared(prompt=p.id, plain=digest(a), control=digest(b), subject=digest(c)) for p, a, b, c in rows]
