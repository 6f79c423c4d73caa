"""What one delta of an answer says, under whatever name: text, reasoning, tool calls; and what nothing here reads.

- Reasoning has several names. Servers that send several of them send the same text: it counts once.
- Content may come in parts, thinking and text each in its own: `{"type": "thinking", "thinking": [...]}` (Mistral's
  form, as braintrustdata/braintrust-sdk-javascript#1857 and prism-php/prism#862 show it).
- A refusal is text: it is what the reader gets. `function_call` is the older form of a tool call.
- Any other text is told by the name it stands under, unless it repeats what was read: lost without a word, it would be
  missing from every count, and the first token would seem to come after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class Said(NamedTuple):
    """What a delta says. `calls`: objects as in `tool_calls`. `unread`: (name, text) of what isn't read."""

    text: str
    reasoning: str
    calls: Any
    unread: Iterable[tuple[str, str]]


REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_THOUGHTS = ("thinking", "reasoning")
"""Types of parts that hold reasoning."""
_TEXTS = ("text", "content", "thinking", "reasoning", "reasoning_content", "summary", "refusal", "transcript")
"""Names under which objects hold text."""
_PLAIN = frozenset(("role", "content"))
_READ = frozenset(("content", "refusal", "tool_calls", "function_call", *REASONING))
_ABOUT = ("role", "name", "id", "type", "object", "finish_reason", "stop_reason")
_NO_TEXT = frozenset((*_ABOUT, "signature", "reasoning_opaque", "encrypted_content"))
_NO_TEXT_ENDS = ("_id", "_signature")
_DEEP = 4
"""Levels of lists and objects in which text is looked for."""


def read_delta(delta: Mapping[str, Any]) -> Said:
    """Read a `delta` or a `message`. Never raises, whatever stands there."""
    content = delta.get("content")
    if isinstance(content, str) and delta.keys() <= _PLAIN:
        return Said(content, "", None, ())
    text, parted, unread = (content, "", []) if isinstance(content, str) else _parts(content)
    text += flat(delta.get("refusal"))
    named = [(name, said) for name in REASONING if (said := texts(delta.get(name)))]
    thought = named[0][1] if named else parted
    unread += [("content", parted), *named, *_strange(delta, _READ)]
    calls, call = delta.get("tool_calls"), delta.get("function_call")
    if not calls and isinstance(call, dict):
        calls = [{"function": call}]
    return Said(text, thought, calls, [(name, said) for name, said in unread if said not in ("", text, thought)])


def holds_reasoning(delta: Mapping[str, Any]) -> bool:
    """Whether a delta names reasoning, be it empty."""
    return any(delta.get(name) is not None for name in REASONING)


def texts(value: Any, deep: int = _DEEP) -> str:
    """All text of a value: a string, the strings of a list, what an object holds under a name for texts."""
    if isinstance(value, str):
        return value
    if deep and isinstance(value, list):
        return "".join([texts(item, deep - 1) for item in value])
    if deep and isinstance(value, dict):
        return "".join([texts(value.get(name), deep - 1) for name in _TEXTS])
    return ""


def flat(value: Any) -> str:
    """Text, or the text parts of a list of parts."""
    if isinstance(value, list):
        return "".join([said for part in dicts(value) if isinstance(said := part.get("text"), str)])
    return value if isinstance(value, str) else ""


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _parts(content: Any) -> tuple[str, str, list[tuple[str, str]]]:
    """Text, reasoning and what isn't read of content that is no string."""
    said: list[str] = []
    thought: list[str] = []
    unread: list[tuple[str, str]] = []
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, dict):
            said.append(texts(part))
        elif part.get("type") in _THOUGHTS or "thinking" in part:
            thought.append(texts(part))
        else:
            said.append(flat(part.get("text")) + flat(part.get("refusal")))
            unread += [(f"content.{name}", found) for name, found in _strange(part, ("text", "refusal"))]
    return "".join(said), "".join(thought), unread


def _strange(value: Mapping[str, Any], read: Iterable[str]) -> list[tuple[str, str]]:
    return [
        (name, said)
        for name, held in value.items()
        if name not in read and name not in _NO_TEXT and not name.endswith(_NO_TEXT_ENDS) and (said := texts(held))
    ]
