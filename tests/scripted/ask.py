"""Ask the scripted endpoint with the real client, and bring together what both ends saw."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from paribus.catalog import PromptLine
from paribus.wire import Answer, Api, Client, Outcome, payload, read_answer, run
from scripted.handle import Emission, Scripted
from scripted.script import Script


@dataclass(frozen=True)
class Asked:
    """One request from both ends. `epoch_ns` turns the client's times into the server's clock."""

    outcome: Outcome
    answer: Answer
    emission: Emission | None
    epoch_ns: int

    def arrival_ns(self, piece: int) -> int:
        """When a piece arrived, on the server's clock."""
        return self.epoch_ns + self.outcome.sent_ns + self.answer.pieces[piece].t_ns

    def written_ns(self, write: int) -> int:
        """When the server wrote a step."""
        assert self.emission is not None
        return self.emission.writes[write][0]


def ask(
    server: Scripted,
    model: str,
    *scripts: Script,
    requests: int = 1,
    at_once: int = 1,
    api: Api = "chat",
    stream: bool = True,
    extra: dict[str, Any] | None = None,
    **options: Any,
) -> list[Asked]:
    """Register the scripts (if any) under the model's name, send requests, return both ends by index."""
    if scripts:
        server.register(model, *scripts)
    outcomes, epoch = run(_send(server, model, requests, at_once, api, stream, extra or {}, options))
    seen = {emission.request["user"]: emission for emission in server.log(model)}
    return [Asked(o, read_answer(o), seen.get(str(o.index)), epoch) for o in sorted(outcomes, key=lambda o: o.index)]


def ask_one(server: Scripted, model: str, *scripts: Script, **options: Any) -> Asked:
    """Ask once."""
    return ask(server, model, *scripts, **options)[0]


async def _send(
    server: Scripted,
    model: str,
    requests: int,
    at_once: int,
    api: Api,
    stream: bool,
    extra: dict[str, Any],
    options: dict[str, Any],
) -> tuple[list[Outcome], int]:
    endpoint = server.endpoint(model, api)
    outcomes: list[Outcome] = []
    async with Client(endpoint, ssl_context=server.ssl_context, **options) as client:
        await client.open(at_once)
        todo = iter(range(requests))

        async def work(worker: int) -> None:
            for index in todo:
                prompt = PromptLine(id=f"p{index}", prompt=f"prompt {index}")
                more = {"user": str(index)} | extra
                body = payload(endpoint, prompt, max_tokens=4096, sampling={}, stream=stream, extra=more)
                sent = client.send(
                    body, index=index, prompt_id=prompt.id, due_ns=client.now_ns(), phase="measured", worker=worker
                )
                outcomes.append(await sent)

        await asyncio.gather(*(work(worker) for worker in range(at_once)))
        return outcomes, client.epoch_ns
