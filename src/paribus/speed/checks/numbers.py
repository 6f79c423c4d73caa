"""Checkers of numbers: `integer` and `number`."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from pydantic import Field

from paribus.catalog import Spec
from paribus.speed.checks.text import GivenAnswer, announced, boxed, plain, without_fences

_NUMBER = re.compile(
    r"(?<![\w.,])-?(?:\d{1,3}(?:[,' ]\d{3})+(?!\d)|\d{1,40})(?:\.\d{1,40})?(?:\s?/\s?\d{1,20})?(?![\d/]|\.\d)"
)
_ITEM = re.compile(r"^\s*(?:\d{1,2}[.)]\s|step\s+\d+\b[:.]?)", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+")
_BARE = re.compile(r"[^\w-]{0,3}-?\d")
_EQUAL = re.compile(r"=\s*[^\d\s=-]{0,3}\s?(-?\d)")


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
    """The number that an answer ends with.

    A boxed number counts first; then the first number after the last "answer is"; then a first line that holds
    nothing but a number and its unit; then, in the last line that holds numbers, the first after its last equals
    sign, else the last one. Numbering of lists is no answer.
    """
    inner = boxed(text)
    if inner is not None:
        found = _numbers(plain(inner))
        return found[-1] if found else None
    clean = plain(without_fences(text)).strip()
    told = announced(clean)
    found = _numbers(_after_equals(told)) if told else []
    if found:
        return found[0]
    lines = clean.splitlines()
    bare = _bare_number(lines[0]) if lines else None
    return bare if bare is not None else _last_number([_ITEM.sub(" ", line) for line in lines[-400:]])


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
        digits = re.sub(r"[,' ]", "", found.group())
        try:
            numbers.append(Fraction(digits))
        except (ValueError, ZeroDivisionError):
            continue
    return numbers
