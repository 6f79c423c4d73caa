"""What a server says of a failure, in words that may be shown: one line, short, without the key or a part of it."""

from __future__ import annotations

import re

from paribus.conditions import one_line
from paribus.wire.exchange import Outcome
from paribus.wire.openai import read_answer

THE_KEY = "[the key]"
LONGEST = 200
"""Characters of a server's words that are shown."""

_PART = 4
"""So many letters of a key in a row are a part of it."""
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;]+")
_STARS = re.compile(r"\*\*|•|…|\.\.\.")


def shown_words(words: str, secret: str | None) -> str:
    """Words as they may be shown. A word with part of the key in it, however masked, is left out."""
    line = one_line(words).strip()
    if secret:
        line = _WORD.sub(lambda word: _without(word.group(), secret.casefold()), line.replace(secret, THE_KEY))
    return line[:LONGEST]


def _without(word: str, secret: str) -> str:
    lower = word.casefold().rstrip(".:")
    if len(secret) < _PART:
        held = lower == secret
    else:
        held = any(secret[start : start + _PART] in lower for start in range(len(secret) - _PART + 1))
        held = held or (bool(_STARS.search(lower)) and (lower.startswith(secret[:2]) or lower.endswith(secret[-2:])))
    return THE_KEY if held else word


def said_of(outcome: Outcome, secret: str | None) -> str:
    """What the server said of a failed request, quoted behind a blank; nothing where it said nothing."""
    words = shown_words(read_answer(outcome).detail, secret)
    return f" {words!r}" if words else ""
