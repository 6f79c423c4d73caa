"""Checkers of words: `short_answer`, `contains_all`, `exact_line`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import Field

from paribus.catalog import Spec
from paribus.speed.checks.text import (
    GivenAnswer,
    final_places,
    folded,
    plain,
    spaced,
    units_apart,
    unspaced,
    without_fences,
)

_AROUND = re.compile(r"\s*([-+*/=<>(),:;^|\u00b7])\s*")
_BULLET = re.compile(r"^(?:[-*>]|\d{1,3}[.)])\s+")
_EDGES = "\"'“”‘’«»` \t"
"""What may stand around a form and isn't part of it. Brackets and dots are: `[date]`, `f()`, `COPY . .`."""
_CODE = frozenset("=<>+/^|()\u00b7")
_ZEROS = re.compile(r"[.,]0{1,2}(?![.,]?\d)")
_SPAN = re.compile(r"`([^`\n]{1,400})`")


class ShortAnswerParameters(Spec):
    """`accept`: forms of the right answer; `reject`: forms that make it wrong when they stand beside a right one."""

    accept: list[str] = Field(min_length=1, max_length=40)
    reject: list[str] = []


class ContainsAllParameters(Spec):
    """`words`: each must occur (a list inside: one of its forms must); `none`: none of these may occur.

    `max_words`: a longer answer fails; it keeps an answer that only repeats the text it was asked about from passing.
    """

    words: list[str | list[str]] = Field(min_length=1, max_length=60)
    none: list[str] = []
    max_words: int | None = Field(default=None, ge=1)


class ExactLineParameters(Spec):
    """`lines`: forms of the right line; white space inside a line doesn't count."""

    lines: list[str] = Field(min_length=1, max_length=40)
    case: bool = True


def check_short_answer(parameters: ShortAnswerParameters, answer: GivenAnswer) -> bool:
    """One of the accepted forms stands where the final answer stands, as whole words, and no rejected one does."""
    places = [_tight(place) for place in final_places(answer.text)]
    if not places:
        return False
    for place in places:
        if any(_occurs(_tight(plain(form)), place) for form in parameters.reject):
            return False
    return any(_occurs(_tight(plain(form)), place) for place in places for form in parameters.accept)


def check_contains_all(parameters: ContainsAllParameters, answer: GivenAnswer) -> bool:
    """Every word (or one of its forms) occurs in the answer as whole words, and none of the forbidden ones."""
    if parameters.max_words is not None and folded(plain(answer.text)).count(" ") >= parameters.max_words:
        return False
    text = Readings.of(answer.text)
    if not all(text.hold([word] if isinstance(word, str) else word) for word in parameters.words):
        return False
    return not text.hold(parameters.none)


@dataclass(frozen=True)
class Readings:
    """A text as words are looked for in it: folded, and for forms with operators without the blanks around those.

    Forms with an asterisk are looked for in the text as it was typed: in `*a = *b` it is no mark of Markdown.
    """

    words: str
    code: str
    typed: str

    @classmethod
    def of(cls, text: str) -> Readings:
        """The readings of a text."""
        words = _said(text)
        return cls(words, _AROUND.sub(r"\1", words), _tight(text.replace("\\*", "*")))

    def hold(self, forms: Iterable[str]) -> bool:
        """Whether one of the forms occurs as whole words; blanks around operators and beside Chinese don't count."""
        return any(_occurs(_tight(form), self.typed) if "*" in form else self._holds(_said(form)) for form in forms)

    def _holds(self, form: str) -> bool:
        return _occurs(form, self.words) or (
            not _CODE.isdisjoint(form) and _occurs(_AROUND.sub(r"\1", form), self.code)
        )


def check_exact_line(parameters: ExactLineParameters, answer: GivenAnswer) -> bool:
    """One line of the answer (or one span in backticks) is the right line, quotes, bullets and blanks aside."""
    wanted = {_bare(line, parameters.case) for line in parameters.lines}
    lines = without_fences(answer.text).splitlines()[:5_000]
    spans = [found.group(1) for found in _SPAN.finditer(answer.text)]
    return any(_bare(line, parameters.case) in wanted for line in [*lines, *spans])


def _said(text: str) -> str:
    """The words of a text: folded, without marks, numbers apart from their units, no blanks beside Chinese."""
    return unspaced(units_apart(folded(plain(text))))


def _tight(text: str) -> str:
    """Folded, with no blanks around operators: `x = 3` and `x=3` are the same."""
    return _AROUND.sub(r"\1", units_apart(folded(text)))


def _bare(line: str, case: bool) -> str:
    line = _BULLET.sub("", line.strip()).strip("`").strip()
    for pair in ("“”", "«»", '""', "''"):
        if len(line) > 1 and line[0] == pair[0] and line[-1] == pair[1]:
            line = line[1:-1]
    line = "".join(line.split())
    return line if case else line.casefold()


def _occurs(form: str, text: str) -> bool:
    """Whether the form occurs with nothing at its ends that would make it part of a longer word or number."""
    form = form.strip(_EDGES) or form
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        alone = _ends_word(form[0], text[max(0, at - 1) : at]) and _ends_word(form[-1], text[end : end + 1])
        if alone and not _part_of_number(text[max(0, at - 2) : at], text[end : end + 5], form):
            return True
        at = text.find(form, at + 1)
    return False


def _ends_word(inner: str, outer: str) -> bool:
    """Whether a word may end between the two characters. Scripts without blanks between words always may."""
    if not outer or not spaced(inner) or not spaced(outer):
        return True
    return not (inner.isalnum() and outer.isalnum())


def _part_of_number(before: str, after: str, form: str) -> bool:
    """Whether a number goes on beyond the form: `1.5` and `-5` for 5, `5/6` `5,200` for 5, `x = 3/2` for `x = 3`.

    Zeros behind the point change nothing: `120.00` is 120.
    """
    begins = form[0].isdigit()
    if begins and before[-1:] == "-" and not before[:-1].isalnum():
        return True
    if begins and before[-1:] in {".", ",", "/"} and before[:-1].isdigit():
        return True
    goes_on = after[:1] in {".", ",", "/"} and after[1:2].isdigit()
    return form[-1].isdigit() and goes_on and not _ZEROS.match(after)
