"""Between the Tau2 harness and a server: messages as servers take them, tool calls as the harness takes them.

Two forms of tool use. `native`: tools go to the server as such, and it says which calls the model made. `written`: for
models whose chat template knows no tools; the tools stand in the first message, calls and their results are text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema

from paribus.conditions import hash12
from paribus.quality.dialogue import HOW_TO_CALL, written_calls
from paribus.quality.journal import Entry
from paribus.quality.tasks.base import visible

ToolForm = Literal["native", "written"]
Message = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call. `arguments` is null where they are no JSON object; `fault` says what is wrong with the call."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    fault: str | None

    def told(self) -> dict[str, Any]:
        """The call in the words of a chat completion."""
        function = {"name": self.name, "arguments": json.dumps(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


def asked_hash(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> str:
    """12 hex digits over what a request asks: a journal's answer is only used again for the same question."""
    return hash12([list(messages), list(tools)])


def plain_messages(messages: Iterable[Any]) -> list[Message]:
    """The harness's messages with the standard fields only: some servers refuse others, and nulls."""
    plain: list[Message] = []
    for message in messages:
        if not isinstance(message, dict):
            raise ValueError("a message is no object")
        kept = {name: message[name] for name in ("role", "content", "tool_call_id") if message.get(name) is not None}
        if message.get("tool_calls"):
            kept["tool_calls"] = [_plain_call(call) for call in message["tool_calls"]]
        kept.setdefault("content", None if "tool_calls" in kept else "")
        plain.append(kept)
    return plain


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": function["arguments"]},
    }


def written_messages(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The same conversation for a model that knows no tools: they are explained first, calls and results are text."""
    shown = "\n".join(json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools)
    names: dict[str, str] = {}
    told: list[Message] = []
    for message in messages:
        if message["role"] == "system" and tools:
            told.append({"role": "system", "content": f"{message['content']}{HOW_TO_CALL.format(tools=shown)}"})
        elif message.get("tool_calls"):
            names |= {call["id"]: call["function"]["name"] for call in message["tool_calls"]}
            told.append({"role": "assistant", "content": "\n".join(map(_as_text, message["tool_calls"]))})
        elif message["role"] == "tool":
            name = names.get(str(message.get("tool_call_id")), "the call")
            told.append({"role": "user", "content": f"Result of {name}: {message['content']}"})
        else:
            told.append(message)
    return told


def _as_text(call: Mapping[str, Any]) -> str:
    function = call["function"]
    return json.dumps({"name": function["name"], "arguments": json.loads(function["arguments"])}, ensure_ascii=False)


def read_calls(entry: Entry, tools: Sequence[Mapping[str, Any]], form: ToolForm) -> tuple[str, list[Call]]:
    """What an answer says and which tools it calls. Beside a call text isn't passed on where it was the call itself."""
    text = visible(entry.text)
    found = [(call.get("id", ""), call.get("name", ""), call.get("arguments", "")) for call in entry.tool_calls]
    if not found and form == "written":
        found = [("", name, arguments) for name, arguments in written_calls(text)]
        text = "" if found else text
    schemas = {str(tool.get("function", tool).get("name")): tool.get("function", tool) for tool in tools}
    taken: set[str] = set()
    calls = []
    for number, (given, name, arguments) in enumerate(found):
        id = given if given and given not in taken else f"call-{entry.turn}-{number}"
        taken.add(id)
        calls.append(_call(id, name, arguments, schemas))
    return text, calls


def _call(id: str, name: str, arguments: Any, schemas: Mapping[str, Mapping[str, Any]]) -> Call:
    value = arguments
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return Call(id, name, None, "its arguments are no JSON")
    if not isinstance(value, dict):
        return Call(id, name, None, "its arguments are no JSON object")
    if name not in schemas:
        return Call(id, name, value, f"there is no tool {name[:40]!r}")
    try:
        jsonschema.validate(value, dict(schemas[name].get("parameters") or {}))
    except jsonschema.ValidationError as error:
        return Call(id, name, value, f"its arguments don't fit: {error.message[:120]}")
    except (jsonschema.SchemaError, RecursionError):
        return Call(id, name, value, None)  # the tool's own fault
    return Call(id, name, value, None)


def completion(entry: Entry, text: str, calls: Sequence[Call]) -> dict[str, Any]:
    """An answer as the harness reads it: one chat completion. Reasoning is kept from it."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [call.told() for call in calls]
    return {
        "id": f"paribus-{entry.turn}",
        "object": "chat.completion",
        "created": 0,
        "model": "paribus",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {
            "prompt_tokens": entry.prompt_tokens or 0,
            "completion_tokens": entry.completion_tokens or 0,
            "total_tokens": (entry.prompt_tokens or 0) + (entry.completion_tokens or 0),
        },
    }
