"""Scripts: what the endpoint sends, byte by byte, and when."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

DONE = b"data: [DONE]\n\n"

_WORDS = (
    "time year people way day man thing woman life child world school state family student group country problem "
    "hand part place case week company system program question work government number night point home water room "
    "mother area money story fact month lot right study book eye job word business issue side kind head house "
    "service friend father power hour game line end member law car city community name president team minute idea"
)
WORDS = tuple(_WORDS.split())
"""Words that are one token each, with the blank before them, in the standard tokenizer (a test says so)."""


@dataclass(frozen=True)
class Step:
    """One write of the body: at `at_ms` after the request was read. `tokens`: how many it makes visible (for the log).

    `act`: `send`, or instead of it `cut` (close politely), `reset` (close rudely), `stall` (say nothing more).
    """

    at_ms: float
    data: bytes = b""
    tokens: int = 0
    act: Literal["send", "cut", "reset", "stall"] = "send"


@dataclass(frozen=True)
class Script:
    """One response. `framing`: chunked, with a length, or until the connection closes.

    `head_ms`: when status and headers go out (None: never). `terminated`: whether the last chunk is marked as such.
    """

    steps: tuple[Step, ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Literal["chunked", "length", "close"] = "chunked"
    encoding: Literal["gzip"] | None = None
    head_ms: float | None = 0
    terminated: bool = True

    def to_json(self) -> dict[str, Any]:
        """For the way into the server's process."""
        plain = asdict(self)
        plain["steps"] = [asdict(s) | {"data": base64.b64encode(s.data).decode()} for s in self.steps]
        return plain

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Script:
        """The way back."""
        made = tuple(Step(**s | {"data": base64.b64decode(s["data"])}) for s in plain["steps"])
        return Script(**plain | {"steps": made})


# Events, as servers send them.


def event(value: Any, *, name: str | None = None, prefix: bytes = b"data: ", end: bytes = b"\n") -> bytes:
    """One event with a JSON value (or bytes, as they are)."""
    data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    head = f"event: {name}".encode() + end if name else b""
    return head + prefix + data + end + end


def chunk(choice: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A chat chunk with one choice, or with none."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return base | {"choices": [] if choice is None else [{"index": 0, "finish_reason": None} | choice]} | more


def role() -> bytes:
    """The opening that carries a role and no text."""
    return event(chunk({"delta": {"role": "assistant", "content": ""}}))


def content(text: str, *, tokens: int | None = None, api: str = "chat") -> bytes:
    """Text; with `tokens`, the cumulative usage on it."""
    more = {} if tokens is None else {"usage": counts(tokens)}
    return event(chunk({"text": text} if api == "completions" else {"delta": {"content": text}}, **more))


def reasoning(text: str, key: str = "reasoning_content") -> bytes:
    """Thinking."""
    return event(chunk({"delta": {key: text}}))


def tool(index: int, arguments: str, *, name: str | None = None, id: str | None = None) -> bytes:
    """A part of a tool call."""
    function = {"arguments": arguments} | ({"name": name} if name else {})
    call = {"index": index, "function": function} | ({"id": id, "type": "function"} if id else {})
    return event(chunk({"delta": {"tool_calls": [call]}}))


def finish(reason: str = "stop", *, tokens: int | None = None) -> bytes:
    """The finishing piece; with `tokens`, usage rides on it."""
    more = {} if tokens is None else {"usage": counts(tokens)}
    return event(chunk({"delta": {}, "finish_reason": reason}, **more))


def usage(tokens: int, *, cached: int | None = None, **more: Any) -> bytes:
    """The trailing usage block."""
    return event(chunk(None, usage=counts(tokens, cached), **more))


def error_event(message: str = "scripted", *, name: str | None = None) -> bytes:
    """An error inside the stream."""
    return event({"error": {"message": message, "code": 400}}, name=name)


def counts(tokens: int, cached: int | None = None) -> dict[str, Any]:
    """A usage object with 16 prompt tokens."""
    more = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": 16, "completion_tokens": tokens, "total_tokens": 16 + tokens} | more


def answer_body(text: str, tokens: int, *, api: str = "chat", reason: str = "stop") -> bytes:
    """A whole answer in one JSON body."""
    said = {"text": text} if api == "completions" else {"message": {"role": "assistant", "content": text}}
    return json.dumps(
        {"id": "c", "choices": [{"index": 0, "finish_reason": reason} | said], "usage": counts(tokens)}
    ).encode()


def words(n: int, seed: int = 0) -> list[str]:
    """`n` words of one token each, a blank before each."""
    pick = random.Random(seed)
    return [" " + pick.choice(WORDS) for _ in range(n)]


def steps(pieces: Iterable[bytes], *, first_ms: float, gap_ms: float, tokens: int = 1) -> tuple[Step, ...]:
    """Pieces a constant gap apart."""
    return tuple(Step(first_ms + i * gap_ms, piece, tokens) for i, piece in enumerate(pieces))


def named_script(model: str, request: dict[str, Any], api: str) -> Script:
    """The script in a model's name, fields joined by `-` in any order, times in milliseconds where not said.

    f50: first content after 50 (20); n128: tokens in all (32); i5000: microseconds between pieces (2,000); k4: tokens
    a piece (1); r: a role-only piece first; R32: the first 32 tokens are reasoning; u: no usage; U: usage on each
    piece; w3: three pieces a write; same: the same text for every prompt; loop: one word all along;
    length: finish reason `length`. The text depends on the prompt. `max_tokens` of the request bounds n.
    """
    fields = dict(re.findall(r"(?:^|(?<=-))([a-zA-Z]+)(\d*)(?=-|$)", model))
    number = {name: int(value) for name, value in fields.items() if value}
    n = min(number.get("n", 32), request.get("max_tokens") or 1 << 30)
    prompt = json.dumps(request.get("messages") or request.get("prompt"))
    text = words(n, seed=0 if "same" in fields else zlib.crc32(prompt.encode()))
    text = [" word"] * n if "loop" in fields else text
    reason = "length" if "length" in fields or n < number.get("n", 32) else "stop"
    if not request.get("stream"):
        at = number.get("f", 20) + n * number.get("i", 2000) / 1000
        body = answer_body("".join(text), n, api=api, reason=reason)
        return Script((Step(at, body, n),), content_type="application/json", framing="length")
    return Script(tuple(_stream(text, number, fields, request, api, reason)))


def _stream(
    text: list[str], number: dict[str, int], fields: dict[str, str], request: dict[str, Any], api: str, reason: str
) -> Iterable[Step]:
    size, group = number.get("k", 1), number.get("w", 1)
    thinking = number.get("R", 0)
    pieces = []
    for i in range(0, len(text), size):
        part = "".join(text[i : i + size])
        so_far = min(i + size, len(text)) if "U" in fields else None
        pieces.append(reasoning(part) if i < thinking else content(part, tokens=so_far, api=api))
    if "r" in fields and api == "chat":
        yield Step(0, role())
    at, gap = float(number.get("f", 20)), number.get("i", 2000) / 1000
    for i in range(0, len(pieces), group):
        part_tokens = min(size * group, len(text) - i * size)
        yield Step(at + (min(i + group, len(pieces)) - 1) * gap, b"".join(pieces[i : i + group]), part_tokens)
    end = at + (len(pieces) - 1) * gap
    wanted = (request.get("stream_options") or {}).get("include_usage") and "u" not in fields
    yield Step(end, finish(reason) if api == "chat" else event(chunk({"text": "", "finish_reason": reason})))
    yield Step(end, (usage(len(text)) if wanted else b"") + DONE)
