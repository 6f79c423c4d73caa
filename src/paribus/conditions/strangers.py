"""Text that strangers wrote, made harmless before it reaches a page or a terminal."""

from __future__ import annotations

import re

# Characters that XML can't hold or that steer a terminal, and those that reorder or hide the text around them.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)


def harmless(text: str) -> str:
    """The text; control, bidirectional and invisible characters and lone surrogates become U+FFFD."""
    return _HARMFUL.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Harmless text without line breaks: nobody's text may look like a line of ours."""
    return " ".join(harmless(text).split("\n"))
