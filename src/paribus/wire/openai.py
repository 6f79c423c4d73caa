"""Reads the answers of OpenAI-compatible servers: from stored bytes and read times to pieces, text and usage.

The rules, each with its reason:

- A piece is what carries text, reasoning or a tool call. The role-only opening, empty deltas and the usage block are
  none: a clock started or stopped by them would time the protocol, not the model.
- A piece arrives with the read that completed its event.
- Usage is cumulative and the last count wins, wherever it rides (on the last piece, each piece, a block with
  `choices: []`, or after `[DONE]`; in the event, in its choice, or in Groq's `x_groq`).
- An error inside the stream is a failure, whatever the HTTP status said.
- A stream is whole when a finish reason or `[DONE]` came; without either it was cut, however politely it was closed.
- Text may be replaced: an event with a `message` in place of a `delta`, or with `"replace": true` (in the event, the
  choice or the delta), carries everything from the start. What was shown before counts no more, unless the new
  text begins with exactly that: then only the rest is new. With `replace` an empty text drops what was shown; a
  missing one (or null) leaves it.
- What a delta says, and text under names that aren't read: `wire.delta`. Which call a part belongs to: `wire.calls`.
- An event of JSON that is no object says nothing (`null`), or fails an answer that isn't whole without it.
- An event with neither choices nor usage that holds a message, a detail or a code is an error, under whatever name.
"""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import orjson

from paribus.wire.alike import BLOCK, Shape, event_at, events_in
from paribus.wire.answer import Answer, Piece, Usage
from paribus.wire.calls import Calls
from paribus.wire.delta import dicts, holds_reasoning, read_delta, texts
from paribus.wire.exchange import Outcome, Reads
from paribus.wire.sse import read_events
from paribus.wire.tokens import utf8_bytes

_COMPLETE_DESPITE = ("cut", "reset")
"""Losses of the connection that don't spoil an answer which had already ended with a finish reason."""


def read_answer(outcome: Outcome) -> Answer:
    """Parse an exchange. Never raises: whatever a server sends becomes pieces and, if need be, an error word."""
    reading = _Reading()
    if outcome.status == 0 or outcome.status >= 300:
        reading.fail(outcome.error or "protocol", _words(_json(outcome.body)))
    elif outcome.body.lstrip()[:1] in (b"{", b"["):
        reading.take_body(_json(outcome.body), outcome.reads[-1][0] if outcome.reads else 0)
    else:
        _take_stream(reading, outcome)
        if b"data:" not in outcome.body and "event-stream" not in outcome.content_type:
            kind = outcome.content_type or "no content type"
            reading.fail("protocol", f"not an event stream: {kind}, {len(outcome.body):,} bytes")
    return reading.answer(outcome.error)


def _take_stream(reading: _Reading, outcome: Outcome) -> None:
    arrivals = _Arrivals(outcome)
    patience = _PATIENCE
    start: int | None = 0
    while start is not None:
        start, run = _take_events(reading, outcome.body, start, arrivals, learns=patience > 0)
        patience -= run < _WORTH_IT


_PATIENCE = 4
_WORTH_IT = 4
"""After so many shapes that held for fewer events than this, no further shape of an answer is looked for."""


class _Arrivals:
    """When the body had come up to an offset; asked for offsets in order."""

    def __init__(self, outcome: Outcome) -> None:
        reads = Reads.of(outcome.reads)
        self._ends, self._times = reads.ends, reads.times or array("q", [0])
        self._place = 0

    def of(self, *offsets: int) -> list[int]:
        """For each offset, nanoseconds since sent of the read that reached it."""
        ends, times, place, last = self._ends, self._times, self._place, len(self._times) - 1
        found = []
        for offset in offsets:
            while place < last and ends[place] < offset:
                place += 1
            found.append(times[place])
        self._place = place
        return found


def _take_events(
    reading: _Reading, body: bytes, start: int, arrivals: _Arrivals, *, learns: bool
) -> tuple[int | None, int]:
    """Events from an offset on, up to the end (None) or to where a run of events of one shape was read; its length."""
    for event in read_events(body, start):
        (t_ns,) = arrivals.of(event.end)
        if event.data.strip() == b"[DONE]":
            reading.done = True
            continue
        if not event.data.strip():
            continue
        content = _json(event.data)
        nothing = event.data.strip() == b"null"
        if content is None and not event.whole and not nothing:
            reading.fail("cut", "")  # the connection ended inside this event
        elif event.name == "error":
            reading.fail("in_band", _words(content) or event.data[:300].decode("utf-8", "replace"))
        elif content is None and not nothing:
            reading.fail("protocol", "an event holds no JSON")
        elif not isinstance(content, dict):
            reading.take_odd(content)
        else:
            reading.take_event(content, t_ns)
            shape = _shape(event.data) if learns and not reading.half else None
            if shape is not None:
                end, run = _take_run(reading, body, event.end, shape, arrivals)
                return end, run
    return None, _WORTH_IT


_NAME = re.compile(r"[\w.-]{1,40}", re.ASCII)
_BLANK = "the text of another piece"
_SHOWN = Piece(0, "shown before", "", "", None)
_TEXT = re.compile(rb'"(?:content|text)": ?"([^"\\]*)"')


def _shape(data: bytes) -> Shape | None:
    """What stands before and after the text in an event that brings one piece of text and nothing else; else None.

    Streams repeat themselves but for the text. Proven, not guessed: another text in its place must read as that text,
    with everything else as before. Then any plain text does, and the JSON need not be parsed each time.
    """
    found = _TEXT.search(data)
    if found is None:
        return None
    before, after = data[: found.start(1)], data[found.end(1) :]
    other = _json(before + _BLANK.encode() + after)
    # After a piece that it doesn't begin with: on nothing, adding to the text and replacing it look alike.
    read = _Reading(pieces=[_SHOWN])
    if isinstance(other, dict):
        read.take_event(other, 0)
    if read != _Reading(pieces=[_SHOWN, Piece(0, _BLANK, "", "", None)]) or b"\n" in before + after:
        return None
    return b"data: " + before, after


def _take_run(reading: _Reading, body: bytes, start: int, shape: Shape, arrivals: _Arrivals) -> tuple[int, int]:
    """Take events of one shape from an offset on; returns where another begins, and how many there were."""
    run, block = 0, BLOCK
    while True:
        parts, texts = events_in(body[start : start + block], shape)
        if not texts:
            parts, texts = event_at(body, start, shape)
        if not texts:
            return start, run
        frame = len(shape[0]) + len(shape[1]) + 2
        ends = list(accumulate((frame + len(part) for part in parts[: len(texts)]), initial=start))
        start, run, block = ends[-1], run + len(texts), 2 * block
        there = [(end, text) for end, text in zip(ends[1:], texts, strict=True) if text]
        times = arrivals.of(*(end for end, _ in there))
        reading.pieces += [Piece(t_ns, text, "", "", None) for t_ns, (_, text) in zip(times, there, strict=True)]


@dataclass
class _Reading:
    """An answer while it is read."""

    pieces: list[Piece] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    unread: dict[str, int] = field(default_factory=dict)
    finish_reason: str | None = None
    usage: Usage | None = None
    error: str | None = None
    detail: str = ""
    done: bool = False
    odd: bool = False
    """An event was JSON and no object."""
    revised: bool = False
    timings: dict[str, float] = field(default_factory=dict)
    half: str = ""
    """A high surrogate waiting for its other half in the next piece."""

    def fail(self, error: str, detail: str) -> None:
        """Note the first error."""
        if self.error is None:
            self.error, self.detail = error, detail[:300]

    def take_body(self, content: Any, t_ns: int) -> None:
        """A whole answer in one JSON body: one piece, at its arrival."""
        if not isinstance(content, dict):
            self.fail("protocol", "the body holds no JSON object")
            return
        self.done = True
        self.take_event(content, t_ns)

    def take_event(self, content: dict[str, Any], t_ns: int) -> None:
        """One event's JSON."""
        if _is_error(content):
            self.fail("in_band", _words(content))
            return
        usage = _usage_in(content)
        self.usage = usage or self.usage
        self._take_timings(content.get("timings"))
        for choice in dicts(content.get("choices")):
            if choice.get("index") not in (0, None):
                self.fail("choices", "several choices in one answer")
                continue
            whole = content.get("replace") is True or choice.get("replace") is True
            self._take_choice(choice, t_ns, usage.completion_tokens if usage else None, whole)

    def take_odd(self, content: Any) -> None:
        """One event's JSON that is no object; null says nothing."""
        self.odd = self.odd or content is not None
        self._miss("data", texts(content))

    def _miss(self, name: str, text: str) -> None:
        """Note text under a name that isn't read."""
        if text:
            name = name if _NAME.fullmatch(name) else "(an odd name)"
            self.unread[name] = self.unread.get(name, 0) + utf8_bytes(text)

    def _take_choice(self, choice: dict[str, Any], t_ns: int, tokens: int | None, whole: bool) -> None:
        if choice.get("error") or choice.get("finish_reason") in ("error", "abort"):
            self.fail("in_band", _words(choice))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(message, dict):
            delta = message
        if not isinstance(delta, dict):
            delta = {"content": choice.get("text")}
        replaces = whole or delta.get("replace") is True
        whole = replaces or delta is message
        text, thought, calls, unread = read_delta(delta)
        for name, missed in unread:
            self._miss(name, missed)
        if whole:
            # A message that closes a stream may leave its text out by leaving it empty.
            no_text = not text and not (replaces and delta.get("content") is not None)
            no_thought = not thought and not (replaces and holds_reasoning(delta))
            text, thought = self._new_part(None if no_text else text, None if no_thought else thought)
        self._add(t_ns, text, thought, self.calls.take(calls, whole=whole) if calls else "", tokens)

    def _add(self, t_ns: int, text: str, reasoning: str, tool: str, tokens: int | None) -> None:
        if not (text.isascii() and reasoning.isascii() and tool.isascii() and not self.half):
            text, reasoning, tool = self._mend(text), self._mend(reasoning), self._mend(tool)
        if text or reasoning or tool:
            self.pieces.append(Piece(t_ns, text, reasoning, tool, tokens))

    def _mend(self, text: str) -> str:
        """Join surrogate halves, over pieces if need be; a half that stays alone becomes U+FFFD."""
        if not text:
            return text
        text, self.half = self.half + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self.half = text[:-1], text[-1]
        return _whole(text)

    def _new_part(self, text: str | None, thought: str | None) -> tuple[str, str]:
        """What a whole text adds to the pieces so far; where it contradicts them, they count no more. None: left."""
        self.half = "" if text or thought else self.half  # a whole text holds it again
        shown = "".join(piece.text for piece in self.pieces)
        pondered = "".join(piece.reasoning for piece in self.pieces)
        if (text is None or text.startswith(shown)) and (thought is None or thought.startswith(pondered)):
            return (text or "")[len(shown) :], (thought or "")[len(pondered) :]
        self.revised = True
        kept = [
            Piece(p.t_ns, p.text if text is None else "", p.reasoning if thought is None else "", p.tool, p.tokens)
            for p in self.pieces
        ]
        self.pieces = [piece for piece in kept if piece.delivered]
        return text or "", thought or ""

    def _take_timings(self, timings: Any) -> None:
        if isinstance(timings, dict):
            self.timings = {
                name: float(value)
                for name, value in timings.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }

    def answer(self, transport_error: str | None) -> Answer:
        """The finished answer; `transport_error` is what befell the exchange."""
        if self.half:
            self.half = ""  # its other half never came
            self._add(self.pieces[-1].t_ns if self.pieces else 0, "\ufffd", "", "", None)
        error = self._verdict(transport_error)
        return Answer(
            pieces=tuple(self.pieces),
            text="".join([text for _, text, _, _, _ in self.pieces]),
            reasoning="".join([reasoning for _, _, reasoning, _, _ in self.pieces]),
            tool_calls=tuple({name: _whole(value) for name, value in call.items()} for call in self.calls.told()),
            finish_reason=self.finish_reason and _whole(self.finish_reason),
            usage=self.usage,
            error=error,
            done=self.done,
            revised=self.revised,
            detail=_whole(self.detail or self._why()) if error else "",
            timings=self.timings,
            unread=self.unread,
        )

    def _verdict(self, transport_error: str | None) -> str | None:
        ended = self.finish_reason is not None or self.done
        if transport_error is not None and not (ended and transport_error in _COMPLETE_DESPITE):
            return transport_error
        if self.error is not None:
            return None if self.error == "cut" and ended else self.error
        if ended and self.pieces:
            return None
        return "protocol" if self.odd else "empty" if ended else "cut"

    def _why(self) -> str:
        """What may have gone wrong where the server says nothing itself."""
        odd = "an event holds no JSON object" if self.odd else ""
        return f"text stands under names that are not read: {', '.join(self.unread)}" if self.unread else odd


def _whole(text: str) -> str:
    """The text with surrogate halves joined, or replaced where they stay alone: what can be stored as UTF-8."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _json(data: bytes) -> Any:
    """The JSON value, or None. Python's parser takes what the strict one refuses: lone surrogates, bad UTF-8."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            return json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None


def _is_error(content: dict[str, Any]) -> bool:
    """Whether an event tells of an error: as `error`, or bare, in place of an answer."""
    if content.get("error") or content.get("object") == "error":
        return True
    bare = not content.get("choices") and not content.get("usage")
    return bare and any(content.get(name) for name in ("message", "detail", "code"))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None


def _usage_in(content: dict[str, Any]) -> Usage | None:
    """Usage of an event: its own, Groq's, or its choice's."""
    if (usage := _usage(content.get("usage"))) is not None:
        return usage
    groq = content.get("x_groq")
    if isinstance(groq, dict) and (usage := _usage(groq.get("usage"))) is not None:
        return usage
    return next((found for choice in dicts(content.get("choices")) if (found := _usage(choice.get("usage")))), None)


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    prompt_details, details = value.get("prompt_tokens_details"), value.get("completion_tokens_details")
    cached = prompt_details.get("cached_tokens") if isinstance(prompt_details, dict) else None
    completion, prompt = _count(value.get("completion_tokens")), _count(value.get("prompt_tokens"))
    thought = _count(details.get("reasoning_tokens") if isinstance(details, dict) else None)
    # Some servers count reasoning beside the completion (Grok does, by docs.cloud.google.com on its reasoning):
    # then the total says so.
    if completion is not None and thought and value.get("total_tokens") == (prompt or 0) + completion + thought:
        completion += thought
    usage = Usage(
        completion_tokens=completion,
        prompt_tokens=prompt,
        cached_tokens=_count(cached if cached is not None else value.get("prompt_cache_hit_tokens")),
        reasoning_tokens=thought,
    )
    return None if usage == Usage(None, None, None, None) else usage


def _words(content: Any) -> str:
    """The server's own words on an error, wherever it put them."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        for name in ("error", "message", "detail"):
            if content.get(name):
                return _words(content[name])
    return "" if content is None else json.dumps(content, ensure_ascii=False)
