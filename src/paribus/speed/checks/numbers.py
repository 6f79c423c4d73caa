"""Checkers of numbers: `integer` and `number`."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from pydantic import Field

from paribus.catalog import Spec
from paribus.speed.checks.text import GivenAnswer, announced, boxed, plain, without_fences

_NUMBER = re.compile(
    r"(?<![\w.,])-?(?:(?P<mixed>\d{1,9} \d{1,9}/\d{1,9})|"
    r"(?:\d{1,3}(?:[,' ]\d{3})+(?!\d)|\d{1,40})(?:\.\d{1,40})?(?:\s?/\s?\d{1,20})?)(?![\d/]|\.\d)"
)
_ITEM = re.compile(r"^\s*(?:\d{1,2}[.)]\s|step\s+\d+\b[:.]?)", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+")
_BARE = re.compile(r"[^\w-]{0,3}-?\d")
_EQUAL = re.compile(r"=\s*[^\d\s=-]{0,3}\s?(-?\d)")
_CHECK = (
    r"(?:(?:to|let's|let us|we|quick|sanity|a) )*(?:check(?:ing)?|verif\w{1,9}|confirm(?:ing|ation)?|cross-check)\b"
)
_CHECK_BEGINS = re.compile(rf"[\s>#(\[-]*{_CHECK}", re.IGNORECASE)
_CHECK_FOLLOWS = re.compile(rf"[.;!,(\[-]\s*{_CHECK}|\bbecause\b|,\s*since\b", re.IGNORECASE)
_ENDS_CHECK = re.compile(r"\s*(?:so|thus|hence|therefore|in total|altogether)\b", re.IGNORECASE)
_ASIDE = re.compile(r"(?<=\d)([^\d()]{0,40})\([^()]{0,200}=[^()]{0,200}\)")
_LINE = 4_000
"""Characters of one line that are looked at."""
_SENTENCE = re.compile(r"(?<=[\w)%])[.!?]\s+(?=[A-Z(])")


class IntegerParameters(Spec):
    """`value`: the right integer."""

    value: int


class NumberParameters(Spec):
    """`value`: the right number; `tolerance`: how far off an answer may be (absolute)."""

    value: float
    tolerance: float = Field(default=1e-9, ge=0)


def check_integer(parameters: IntegerParameters, answer: GivenAnswer) -> bool:
    r"""The final answer is this integer: `42`, `42.0`, `**42**`, `\boxed{42}`, `1,234`, `The answer is 42 km.`"""
    final = final_number(answer.text)
    return final is not None and final == parameters.value


def check_number(parameters: NumberParameters, answer: GivenAnswer) -> bool:
    """The final answer is this number within the tolerance; fractions (`3/4`) and `0.75` are the same."""
    final = final_number(answer.text)
    if final is None:
        return False
    allowed = parameters.tolerance + 1e-9 * abs(parameters.value)
    try:
        return math.isclose(float(final), parameters.value, rel_tol=0, abs_tol=allowed)
    except OverflowError:
        return False


def final_number(text: str) -> Fraction | None:
    """The number that an answer ends with: the last one that is given as a result, not as a check of it.

    A boxed number counts first; then the number of the last "answer is"; then a first line that holds nothing but a
    number and its unit; then, in the last line that holds numbers, the first after its last equals sign, else the last
    one. A check that follows a result ("Check: 3 * 14 = 42", to the end of its paragraph), an equation in brackets
    behind it, and the numbering of lists are no answer.
    """
    inner = boxed(text)
    if inner is not None:
        found = _numbers(plain(inner))
        return found[-1] if found else None
    clean = plain(without_fences(text)).strip()
    told = _told(clean)
    if told is not None:
        return told
    lines = clean.splitlines()
    bare = _bare_number(lines[0]) if lines else None
    return bare if bare is not None else _concluded(lines[-400:])


def _told(clean: str) -> Fraction | None:
    """The number of the last "answer is": in the sentence that says it, before any check or reason."""
    told = announced(clean)
    if told is None:
        return None
    sentence = _before_check(_SENTENCE.split(told, maxsplit=1)[0][:_LINE])
    found = _numbers(_after_equals(sentence))
    return found[0] if found else None


def _concluded(lines: list[str]) -> Fraction | None:
    """The number of the last line that holds one, checks left out; of the last line at all where only checks do."""
    lines = [_ITEM.sub(" ", line[-_LINE:]) for line in lines]
    found = _last_number([_before_check(line) for line in _without_checks(lines)])
    return found if found is not None else _last_number(lines)


def _without_checks(lines: list[str]) -> list[str]:
    """The lines but for paragraphs that check a result: a heading like "Check:" belongs to the paragraph below it.

    A line that concludes, or that is a number alone, is kept wherever it stands.
    """
    kept: list[str] = []
    checking, begun = False, False
    for line in lines:
        heads = _CHECK_BEGINS.match(line)
        if heads:
            checking, begun = True, any(c.isdigit() for c in line)
        elif checking and ((begun and not line.strip()) or _ENDS_CHECK.match(line)):
            checking = False
        elif line.strip():
            begun = True
        if not checking or (not heads and _bare_number(line) is not None):
            kept.append(line)
    return kept


def _before_check(line: str) -> str:
    """The line without the check or reason that follows its number, and without equations in brackets behind one."""
    line = _ASIDE.sub(r"\1", line)
    found = _CHECK_FOLLOWS.search(line)
    cut = line[: found.start()] if found else line
    return cut if _NUMBER.search(cut) else line


def _bare_number(line: str) -> Fraction | None:
    """The number of a line that says nothing else: it begins with the number, at most two words follow."""
    found = _numbers(line)
    lean = len(line) <= 40 and _BARE.match(line) is not None and _ITEM.match(line) is None
    return found[0] if lean and len(found) == 1 and len(_WORD.findall(line)) <= 2 else None


def _last_number(lines: list[str]) -> Fraction | None:
    for line in reversed(lines):
        after = _after_equals(line)
        found = _numbers(after)
        if found:
            return found[0] if after is not line else found[-1]
    return None


def _after_equals(line: str) -> str:
    """The line from its last equals sign before a number on; the line itself without one."""
    found = None
    for found in _EQUAL.finditer(line):  # noqa: B007  (the last match is wanted)
        pass
    return line[found.start(1) :] if found else line


def _numbers(text: str) -> list[Fraction]:
    numbers = []
    for found in _NUMBER.finditer(text[-20_000:]):
        try:
            numbers.append(_value(found))
        except (ValueError, ZeroDivisionError):
            continue
    return numbers


def _value(found: re.Match[str]) -> Fraction:
    """The value of a match; `1 3/20` is a mixed number where the fraction is a proper one, else 1 groups thousands."""
    if found.group("mixed"):
        whole, fraction = found.group("mixed").split(" ")
        above, below = fraction.split("/")
        if int(above) < int(below):
            return (Fraction(whole) + Fraction(fraction)) * (-1 if found.group().startswith("-") else 1)
    return Fraction(re.sub(r"[,' ]", "", found.group()))
