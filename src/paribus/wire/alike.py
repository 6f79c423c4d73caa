"""Events that are alike but for their text: many are read at once, without their JSON.

Whoever calls has proven that an event of this shape brings its text and nothing else (`openai._shape`).
"""

from __future__ import annotations

import contextlib

Shape = tuple[bytes, bytes]
"""What stands before and after the text of an event, without the blank line that ends it."""

BLOCK = 4096
"""Bytes of a run that are looked at together, at first; twice as many each time that they were of one shape."""


def events_in(block: bytes, shape: Shape) -> tuple[list[bytes], list[str]]:
    """Events of one shape at the beginning of a block that are followed by another: what is between, and plain texts.

    What stands between two texts is the same each time: the block is split there.
    """
    head, tail = shape
    if not block.startswith(head):
        return [], []
    parts = block[len(head) :].split(tail + b"\n\n" + head)[:-1]
    return parts, _plain(parts)


def event_at(body: bytes, start: int, shape: Shape) -> tuple[list[bytes], list[str]]:
    """The same of a single event, whatever follows it."""
    head, tail = shape
    end = body.find(b"\n\n", start)
    if end - start < len(head) + len(tail) or not (body.startswith(head, start) and body.endswith(tail, start, end)):
        return [], []
    parts = [body[start + len(head) : end - len(tail)]]
    return parts, _plain(parts)


def _plain(parts: list[bytes]) -> list[str]:
    """Texts that stand for themselves in JSON, up to the first that doesn't: an escape, or what JSON doesn't allow."""
    whole = b"".join(parts)
    if b'"' not in whole and b"\\" not in whole:
        with contextlib.suppress(UnicodeDecodeError):
            texts = [part.decode() for part in parts]
            if "".join(texts).isprintable():
                return texts
    if len(parts) < 2:
        return []
    half = len(parts) // 2
    first = _plain(parts[:half])
    return first + _plain(parts[half:]) if len(first) == half else first
