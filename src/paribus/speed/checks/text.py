"""What the checkers share: the answer, its limits, and the places in it where a final answer stands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_CHARACTERS = 400_000
"""An answer longer than this passes no check: it is no honest answer under any cap of ours."""


@dataclass(frozen=True)
class GivenAnswer:
    """An answer to be checked: its visible text and the tool calls the engine reported (name, arguments, id)."""

    text: str
    tool_calls: Sequence[Mapping[str, str]] = ()

    @property
    def too_long(self) -> bool:
        """Whether text or tool calls are beyond what is looked at."""
        calls = sum(len(value) for call in self.tool_calls for value in call.values())
        return len(self.text) > MAX_CHARACTERS or calls > MAX_CHARACTERS or len(self.tool_calls) > 64


_MARKS = re.compile(r"[*`$]|\\[,;!]|\\(?:left|right)\b")
_FRACTION = re.compile(r"(\d?)\s?(?:\\[,;!])?\\[dt]?frac(?:\{([^{}]{1,40})\}\{([^{}]{1,40})\}|(\d)(\d))")
_VULGAR = re.compile(r"(\d?)\s?([\u00bc-\u00be\u2150-\u215e])")
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\{([^{}]{0,200})\}")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_ANSWER = re.compile(r"\banswer\b(?:\s+(?:is|are|was))?\s*[:=]?|\bfinal result\b\s*[:=]?", re.IGNORECASE)
_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2011": "-", "\u00a0": " ", "\u202f": " ", "\u2019": "'"})


def plain(text: str) -> str:
    r"""The text without Markdown and LaTeX marks: fractions as a/b, one kind of minus sign and apostrophe, NFC.

    A whole number before a fraction stays apart from it: `1\frac{3}{20}` and `1 3/20` are the same. LaTeX's `{,}` is a
    comma between digits.
    """
    text = unicodedata.normalize("NFC", text).translate(_MINUS).replace("{,}", ",")
    text = _TEXT.sub(r"\1", _VULGAR.sub(_vulgar, _FRACTION.sub(_latex_fraction, text)))
    return _MARKS.sub("", text)


def _latex_fraction(found: re.Match[str]) -> str:
    whole, above, below, digit_above, digit_below = found.groups()
    fraction = f"{above or digit_above}/{below or digit_below}"
    return f"{whole} {fraction}" if whole else fraction


def _vulgar(found: re.Match[str]) -> str:
    fraction = unicodedata.normalize("NFKC", found.group(2)).replace("\u2044", "/")
    return f"{found.group(1)} {fraction}" if found.group(1) else fraction


def folded(text: str) -> str:
    """Case and runs of white space folded away, NFKC."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def without_fences(text: str) -> str:
    """The text without the lines that open or close a code block."""
    return _FENCE.sub("", text)


def boxed(text: str) -> str | None:
    r"""What stands in the last `\boxed{...}`, braces balanced; None without one."""
    at = text.rfind("\\boxed{")
    if at < 0:
        return None
    depth, start = 1, at + len("\\boxed{")
    for end in range(start, min(len(text), start + 1_000)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    return None


def final_places(text: str) -> list[str]:
    """Where a final answer stands: boxed; after the last "answer is"; the last line; a short first line.

    A first line of its own counts only where nothing is boxed or announced.
    """
    inner, clean = boxed(text), plain(without_fences(text)).strip()
    sure = [plain(inner)] if inner is not None else []
    told = announced(clean)
    if told is not None:
        sure.append(told)
    if not clean:
        return sure
    lines = [clean.split("\n", 1)[0].strip(), clean.rsplit("\n", 1)[-1].strip()]
    first = [lines[0]] if not sure and len(lines[0]) <= 40 else []
    return [*sure, lines[1], *first]


def announced(clean: str) -> str | None:
    """The line that goes on after the last "answer is" (or "answer:") with something to say; None without one."""
    for found in reversed(list(_ANSWER.finditer(clean))[-3:]):
        rest = clean[found.end() :].strip().split("\n", 1)[0]
        if any(character.isalnum() for character in rest):
            return rest
    return None
