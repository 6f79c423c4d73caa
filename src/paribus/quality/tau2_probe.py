"""Whether a server shows tools to its model: some chat templates know none, and then they are dropped in silence."""

from __future__ import annotations

from paribus.catalog import PromptLine
from paribus.conditions import EnvironmentFault
from paribus.quality.asking import Asking
from paribus.quality.tau2_calls import ToolForm
from paribus.wire import Client, payload, read_answer

_TOOL = {
    "type": "function",
    "function": {
        "name": "tell_time",
        "description": "Tells the time in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


async def tool_form(asking: Asking) -> ToolForm:
    """`native` where the server shows tools to its model; `written` where it drops or refuses them.

    Two requests of one token each: with a tool the prompt must be longer. A server that counts no tokens is believed.
    """
    async with Client(asking.endpoint) as client:
        bare, armed = await _ask(client, asking, tool=False), await _ask(client, asking, tool=True)
    if isinstance(bare, Refusal):
        return "native"  # it refuses everything: the dialogues will say why
    if isinstance(armed, Refusal):
        return "written"
    return "written" if bare is not None and armed is not None and armed <= bare else "native"


class Refusal:
    """The server answered 4xx."""


async def _ask(client: Client, asking: Asking, *, tool: bool) -> int | Refusal | None:
    """Prompt tokens of one short request, with a tool or without; null where the server doesn't say."""
    prompt = PromptLine(id="tools", messages=[{"role": "user", "content": "Say yes."}], tools=[_TOOL] if tool else None)
    body = payload(asking.endpoint, prompt, max_tokens=1, sampling=asking.sampling)
    outcome = await client.send(body, index=0, prompt_id="tools", due_ns=client.now_ns(), phase="warm-up")
    if outcome.error == "connect":
        raise EnvironmentFault(f"can't reach {asking.endpoint.base_url} ({client.last_fault or 'no connection'})")
    if 400 <= outcome.status < 500:
        return Refusal()
    answer = read_answer(outcome)
    return answer.usage.prompt_tokens if answer.usage else None
