"""Server-sent events in a stored body. Works on bytes: lines end at CRLF, LF or CR only, so U+2028 and its like are
letters, and a character split between two reads is whole again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """One event: its data lines joined by LF, its name (`message` where none was given), where it was complete.

    `end` is the offset in the body after which the event could be dispatched; `whole` is False for a last event
    that the body's end cut off before its blank line.
    """

    data: bytes
    name: str
    end: int
    whole: bool


def read_events(body: bytes, start: int = 0) -> Iterator[Event]:
    """Every event that carries data, in order, from `start` on: the beginning of the body or the end of an event.

    Comments, `id` and `retry` are passed over.
    A last event without its blank line is given too (many servers end so), marked as not whole.
    """
    data: list[bytes] = []
    name = b""
    start = len(_BOM) if not start and body.startswith(_BOM) else start
    for match in _LINE_END.finditer(body, start):
        line = body[start : match.start()]
        start = match.end()
        if line:
            name = _field(line, data, name)
            continue
        if data:
            yield _event(data, name, match.start() + 1, whole=True)
            data = []
        name = b""
    if start < len(body):
        name = _field(body[start:], data, name)
    if data:
        yield _event(data, name, len(body), whole=False)


def _field(line: bytes, data: list[bytes], name: bytes) -> bytes:
    """Take in one line: append to the data, or return the event's new name."""
    if line.startswith(b"data:"):
        data.append(line[6:] if line.startswith(b"data: ") else line[5:])
    elif line == b"data":
        data.append(b"")
    elif line.startswith(b"event:"):
        return line[6:].removeprefix(b" ")
    return name


def _event(data: list[bytes], name: bytes, end: int, *, whole: bool) -> Event:
    joined = data[0] if len(data) == 1 else b"\n".join(data)
    return Event(joined, name.decode("utf-8", "replace") or "message", end, whole)
