"""Whether a server shows tools to its model: some chat templates know none, and then they are dropped in silence."""

from __future__ import annotations

import asyncio

from paribus.catalog import PromptLine
from paribus.conditions import EnvironmentFault
from paribus.quality.asking import Asking, wait_s
from paribus.quality.journal import Key
from paribus.quality.refusal import is_of_the_question, is_passing, refuse_turned_away
from paribus.quality.tau2_calls import ToolForm
from paribus.wire import Client, Outcome, payload, read_answer, said_of

_TOOL = {
    "type": "function",
    "function": {
        "name": "tell_time",
        "description": "Tells the time in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


_KEY = Key("", "tools", 0)
_BUSY = {408, 425, 429}


async def tool_form(asking: Asking) -> ToolForm:
    """`native` where the server shows tools to its model; `written` where it drops or refuses them.

    Two requests of one token each: with a tool the prompt must be longer. A server that counts no tokens is believed.
    One that fails the request with a tool otherwise than by a 400 refuses tools only if it answers one without, sent
    after that. Raises `EnvironmentFault` where the server is away or busy, or refuses whatever is asked.
    """
    async with Client(asking.endpoint) as client:
        bare = await _answered(client, asking)
        armed = await _ask(client, asking, tool=True)
        if _failed(armed) and not _failed(bare) and not is_of_the_question(armed.error or ""):
            if armed.status in _BUSY:
                raise _away(asking, armed)
            bare = await _answered(client, asking)
    if _failed(bare):
        return "native"  # it refuses everything: the dialogues will say why
    if _failed(armed):
        return "written"
    without, with_tool = _prompt_tokens(bare), _prompt_tokens(armed)
    return "written" if without is not None and with_tool is not None and with_tool <= without else "native"


def _failed(outcome: Outcome) -> bool:
    return outcome.status >= 300


def _prompt_tokens(outcome: Outcome) -> int | None:
    usage = read_answer(outcome).usage
    return usage.prompt_tokens if usage else None


async def _answered(client: Client, asking: Asking) -> Outcome:
    """A request that no server has a reason to refuse; its answer, or the refusal of how it was asked."""
    outcome = await _ask(client, asking, tool=False)
    refuse_turned_away(outcome, asking.endpoint, asking.name, harmless=True)
    if is_passing(outcome.error or ""):
        raise _away(asking, outcome)
    return outcome


def _away(asking: Asking, outcome: Outcome) -> EnvironmentFault:
    said = said_of(outcome, asking.endpoint.api_key)
    return EnvironmentFault(f"{asking.name} answers nothing ({outcome.error}{said}): start again later")


async def _ask(client: Client, asking: Asking, *, tool: bool) -> Outcome:
    """One short request, with a tool or without; a server that is busy or broken is asked again."""
    prompt = PromptLine(id="tools", messages=[{"role": "user", "content": "Say yes."}], tools=[_TOOL] if tool else None)
    body = payload(asking.endpoint, prompt, max_tokens=1, sampling=asking.sampling)
    attempt = 0
    while True:
        attempt += 1
        outcome = await client.send(body, index=0, prompt_id="tools", due_ns=client.now_ns(), phase="warm-up")
        if outcome.error == "connect":
            raise EnvironmentFault(f"can't reach {asking.endpoint.base_url} ({client.last_fault or 'no connection'})")
        if attempt == asking.attempts or not is_passing(outcome.error or ""):
            return outcome
        await asyncio.sleep(wait_s(asking, attempt, outcome, _KEY))
