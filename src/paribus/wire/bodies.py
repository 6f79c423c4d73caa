"""What is sent: the JSON body of a request to a chat or completions endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from paribus.conditions import UsageError
from paribus.wire.exchange import Endpoint

if TYPE_CHECKING:
    from paribus.catalog import PromptLine


def payload(
    endpoint: Endpoint,
    prompt: PromptLine,
    *,
    max_tokens: int,
    sampling: Mapping[str, float | int],
    stream: bool = True,
    extra: Mapping[str, Any] | None = None,
    unique_line: str | None = None,
) -> bytes:
    """The request body. Sampling fields are sent as given; nothing is sent that was not asked for.

    `extra` comes over `endpoint.extra_body`, which comes over everything else; a null takes a field out (for instance
    `{"max_tokens": null, "max_completion_tokens": 256}`). `unique_line` goes before the prompt's first text, so that
    no prefix cache can help. `UsageError` for `n` over 1, for `echo`, and for tools on a completions endpoint.
    """
    body: dict[str, Any] = {"model": endpoint.model}
    body |= _chat(prompt, unique_line) if endpoint.api == "chat" else _completion(prompt, unique_line)
    body["max_tokens"] = max_tokens
    body["stream"] = stream
    if stream:
        body["stream_options"] = {"include_usage": True}
    body |= sampling
    body |= endpoint.extra_body
    body |= extra or {}
    body = {name: value for name, value in body.items() if value is not None}
    for name in ("n", "best_of"):
        if body.get(name, 1) != 1:
            raise UsageError(
                f"{name} = {body[name]!r} is refused: one answer a request is measured, so {name} must be 1"
            )
    if body.get("echo"):
        raise UsageError("echo is refused: the prompt would come back and pass for the model's own text")
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise UsageError(f"prompt {prompt.id!r} can't be sent as JSON: {error}") from error


def _chat(prompt: PromptLine, unique_line: str | None) -> dict[str, Any]:
    messages = prompt.messages or [{"role": "user", "content": prompt.prompt}]
    if unique_line is not None:
        messages = _with_first_line(messages, unique_line)
    return {"messages": messages} | ({"tools": prompt.tools} if prompt.tools else {})


def _with_first_line(messages: list[dict[str, Any]], line: str) -> list[dict[str, Any]]:
    """The messages with a line before their first text (a message of its own, if the first holds no text)."""
    first, rest = messages[0], messages[1:]
    content = first.get("content")
    if isinstance(content, str):
        return [first | {"content": f"{line}\n{content}"}, *rest]
    if isinstance(content, list):
        return [first | {"content": [{"type": "text", "text": f"{line}\n"}, *content]}, *rest]
    return [{"role": "user", "content": line}, *messages]


def _completion(prompt: PromptLine, unique_line: str | None) -> dict[str, Any]:
    """A plain text: messages become their texts with blank lines between (no chat template is applied)."""
    if prompt.tools:
        raise UsageError(f"prompt {prompt.id!r} has tools, which a completions endpoint can't take: use --api chat")
    text = prompt.prompt if prompt.prompt is not None else "\n\n".join(map(_text, prompt.messages or []))
    return {"prompt": text if unique_line is None else f"{unique_line}\n{text}"}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
