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


_MARKS = re.compile(r"[*`$]|\\(?=[{}%])|\\[,;!()\[\]]|\\(?:left|right)\b")
_NAMED = re.compile(r"\\(log|ln|lg)(?![a-z])")
_NAMED_OF = re.compile(r"(\\(?:log|ln|lg))\{(\w{1,3})\}")
_DOT = re.compile(r"\\cdot(?![a-z])")
_FRACTION = re.compile(r"(\d?)\s?(?:\\[,;!])?\\[dt]?frac(?:\{([^{}]{1,40})\}\{([^{}]{1,40})\}|(\d)(\d))")
_VULGAR = re.compile(r"(\d?)\s?([\u00bc-\u00be\u2150-\u215e])")
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathcal)\{([^{}]{0,200})\}")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_UNIT_TEXT = re.compile(r"(?<=\d)(?:\\[,;:! ]|~)*(?=\\(?:text|mathrm|mathbf|textbf)\{)")
_COMMAND = re.compile(r"(\\[a-z]+)(?=\d)")
_UNIT = re.compile(
    r"(?<=\d)(?=(?:[kcm]?m|[km]?g|[mcdh]?l|min|mins|h|hrs?|[kmgt]b|kwh?|eur|rs|db)(?![a-z0-9\u00e0-\u024f]))"
    r"|(?<=\d)(?<!\d{3}0)(?=s(?![a-z0-9\u00e0-\u024f]))"
)
_ZEROS_BEHIND = re.compile(r"(?<=\d)(\.\d{0,9}?[1-9])0{1,4}(?!\d)")
_HALF_OF_DAY = re.compile(r"(?<=\d)\s?([ap])\.?\s?m\b\.?")
_ANSWER = re.compile(r"\banswer\b(?:\s+(?:is|are|was))?\s*[:=]?|\bfinal result\b\s*[:=]?", re.IGNORECASE)
_BASE = re.compile(r"(?<=[0-9])(?:_\{([0-9]{1,4})\}|([\u2080-\u2089]{1,4}))")
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")
_SIGNS = str.maketrans({**_DASHES, "\u00a0": " ", "\u202f": " ", "\u2018": "'", "\u2019": "'", "\u22c5": "\u00b7"})
_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"'})
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
_BLANK_BESIDE = re.compile(rf"(?<=[{_UNSPACED}]) | (?=[{_UNSPACED}])")


def plain(text: str) -> str:
    r"""The text without Markdown and LaTeX marks: fractions as a/b, one kind of dash and apostrophe, NFC.

    A whole number before a fraction stays apart from it: `1\frac{3}{20}` and `1 3/20` are the same. LaTeX's `{,}` is a
    comma between digits. A subscript behind a digit is the base of the number and stays apart from it: `101_2`.
    """
    text = unicodedata.normalize("NFC", text).translate(_SIGNS).replace("{,}", ",")
    text = _DOT.sub("\u00b7", _NAMED.sub(r"\1", _NAMED_OF.sub(r"\1 \2", _BASE.sub(_base, text))))
    text = _UNIT_TEXT.sub(" ", _VULGAR.sub(_vulgar, _FRACTION.sub(_latex_fraction, text)))
    return _MARKS.sub("", _COMMAND.sub(r"\1 ", _TEXT.sub(r"\1", text)))


def _base(found: re.Match[str]) -> str:
    return "_" + unicodedata.normalize("NFKC", found.group(1) or found.group(2))


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


def units_apart(text: str) -> str:
    """Folded text with a blank between a number and its unit, and one way to write decimals and a half of the day.

    `750g` is `750 g`, `7 p.m.` and `7pm` are `7 pm`, `11.20` is `11.2`; a decade (`1930s`) and
    a name with a digit (`x2`) stay whole.
    """
    return _ZEROS_BEHIND.sub(r"\1", _UNIT.sub(" ", _HALF_OF_DAY.sub(r" \1m", text)))


def unspaced(text: str) -> str:
    """Without blanks beside characters of scripts that put none between words: `今晚 10 点` is `今晚10点`."""
    return _BLANK_BESIDE.sub("", text)


def spaced(character: str) -> bool:
    """Whether the character belongs to a script that puts blanks between words (not Chinese, Japanese, Thai)."""
    code = ord(character)
    return not (0x0E00 <= code <= 0x0E7F or 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF)


def one_typing(text: str) -> str:
    """Case, runs of white space, and the ways to type quotes, apostrophes and dashes folded away."""
    return " ".join(text.translate(_SIGNS).translate(_QUOTES).casefold().split())


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
