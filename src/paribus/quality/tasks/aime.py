"""AIME: integer answers, the last final answer of the text wins.

Firm answers:

1. a box: `\\boxed{025}`; one with something else than an integer in it is an answer, and wrong;
2. a sentence or label that says nothing but the answer: "The answer is 25.", "**Answer:** 25", "### Answer" above 25.

Loose answers:

3. a statement amid other words: "and so the answer is 25, since n = 7", "25 is the answer";
4. a line that is marked and nothing but a number: `**25**`, `#### 25`.

Asides: the answer to something else ("the answer to the smaller case is 3", "the answer in degrees is 3").

The last firm answer counts, without one the last loose one, without either the last aside. Behind a firm answer a loose
one is prose about it ("the answer is 24 only for n = 3"), unless the firm one is no integer, a word of correction
("wait", "I forgot") stands between the two numbers, or the loose one turns the firm one down ("25, not 24"). Behind a
word of correction a text may also end in its answer: "Hold on, it must be 25." What is only supposed ("if the answer is
24"), asked or denied is no statement. Where no integer is found so far, the last line or sentence counts if it ends in
one: "So 25.", "Hence the sum is 25.", "m + n = 25".

`paribus.quality.tasks.integers` says what an integer looks like.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items
from paribus.quality.tasks.base import Grade, plain_text
from paribus.quality.tasks.integers import as_integer, chained, concluded, looks_only
from paribus.quality.tasks.wording import (
    ADVERBS,
    ANSWER,
    CORRECTION,
    IS,
    OPENING_WORDS,
    is_aside,
    is_supposed,
)

# Groups that give nothing back (`*+`) keep every search linear in the text, whatever a model repeats.
_BRACES = re.compile(r"(?P<box>\\(?:boxed|fbox|framebox)\s*+\{)|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s*+(\d{1,30})")
_MARKS = r"[ \t*_$(\[\"'`]*+"
_PHRASE = re.compile(
    rf"{ANSWER}(?:(?:[ \t*_$\"'`)]*+(?:\((?P<note>[^()\n]{{1,40}})\)[ \t*_]*+)?(?:[]:=>→|]|[-–—][ \t]|(?P<head>\n)))|"
    rf"(?P<about>(?:,?[ \t*_]+(?!not\b|if\b|key\b|choices?\b|{IS})"
    rf"(?:we are looking for|mod(?:ulo)? \$?\d{{1,6}}\$?|[^\W\d_]{{1,15}}(?:-[^\W\d_]{{1,15}})?)){{0,6}}+),?"
    rf"{_MARKS}{IS})",
    re.IGNORECASE,
)
_ADVERBS = re.compile(rf"(?:{_MARKS}{ADVERBS}\b[ \t,*_:=]*+){{0,6}}+", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:[\s*_$(\[:=>|&#\"'`“‘]|\\[\[(]|\\begin\s*+\{[a-z]++\*?+\}(?:\{[clr|]*+\})?+|"
    r"(?<=\n)(?:[-•]|-{3,}+)(?=\s)|(?<=\|)[-: ]++\|)*+"
)
_DENIED = re.compile(r"\s*+(?:n['’]t|not)\b")
_BUT = re.compile(
    r"\s*+(?:n['’]t|not)\b[^\n;.]{1,30}?[,;]?\s(?:but|it is|it['’]s|rather)\s(?:rather\s|it is\s)?", re.IGNORECASE
)
_REVERSED = re.compile(
    r"(?<![\d.,\w^/+*\\-])(?<![+*/^·×-] )(\d{1,3}(?:,\d{3})*|\d{1,30})(?![\d.])[ $*_)}\\\]]{0,6}\s(?:is|as) "
    r"(?:thus |therefore |indeed )?(?:the|our|my) (?:\w{1,15} ){0,2}answer\b(?! (?:if|when|only|for|to)\b)",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\s\(\s*+[^\W\d_]{2}")
_SENTENCE_END = re.compile(
    # A "!" before an operator or a closing bracket is a factorial's.
    r"\n|;|。|[.?](?!\d)|!(?!\d|\s*+(?:[=+/·×÷≡≈^)}\]-]|\*(?!\*)|\\(?:cdot|times|div|equiv|approx|pmod|bmod)\b))|"
    r"\\(?:boxed|fbox|framebox)"
)
_SO = re.compile(r"[.\s]+(?:so|thus|hence|therefore)\b[\s,:]*", re.IGNORECASE)
_OPENING = re.compile(rf"(?:^|[.!?:;。\n])[\W_]*+(?:{OPENING_WORDS}[\W_]*+)*+\Z", re.IGNORECASE)
_CORRECTION = re.compile(CORRECTION, re.IGNORECASE)
_INSTEAD_OF = re.compile(r"\b(?:not|instead of|rather than|no longer|replacing)[\s$*(\\]*+(\d{1,30})(?![\d.,]*\d)")
_SUBJUNCTIVE = re.compile(r"\b(?:would|could|might)\b", re.IGNORECASE)
_OUTCOME = re.compile(
    r"(?:\A|[.!?;,:—–-]\s|\n)[\s*_]*+(?:(?:so|thus|hence|therefore|then|and|now)\b[\s,]*+){0,3}+"
    r"(?:(?:it|that|this|which|(?:the|our|my)\s(?:(?:new|final|correct|right|true|revised|corrected|actual)\s)?"
    r"(?:result|total|sum|count|value|number|remainder|product|difference))\s"
    rf"(?:{ADVERBS}\s)?(?:{IS}|makes|gives)|we\s(?:now\s)?(?:get|have|obtain))\s(?:{ADVERBS}\s)?([^\n]*)\Z",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"^(?:(?:so|thus|hence|therefore|then|finally|and|we|get|it|that|is|gives|the|answer|result|total)\b[\s,:]*+)+",
    re.IGNORECASE,
)
_REACH = 300
"""How many characters after a phrase may hold its number."""

_BOX_LENGTH = 1_000
_LINE = 80
_BEFORE = 120
"""How many characters before a phrase are looked at."""

_ASIDE, _LOOSE, _FIRM = 0, 1, 2


@dataclass(frozen=True, order=True)
class _Final:
    """A final answer: where it ends and its number begins in the text, its words, how firm it is, and the numbers that
    it turns down ("25, not 24")."""

    end: int
    begin: int
    words: str
    rank: int
    instead_of: tuple[int, ...] = ()

    @cached_property
    def value(self) -> int | None:
        """The integer that the words state, or null."""
        return as_integer(self.words)


class AimeFamily:
    """Integer answers; avg over the repeats is the headline, the majority vote stands beside it."""

    name = "aime"
    version = "4"
    headline = ("avg@{k}", "share of answers that are right, averaged over the repeats")
    mark_titles: Mapping[str, str] = {}
    grading = None

    def prompt(self, item: Item, items: Items, task: QualityTask) -> str:  # noqa: ARG002 (the families' interface)
        """The problem, and how to write its answer."""
        return (
            f"{item['problem']}\n\nThink step by step. The answer is an integer. "
            "End with the final answer inside \\boxed{}."
        )

    def grade(self, item: Item, text: str, task: QualityTask) -> Grade:  # noqa: ARG002
        """1 when the last final answer is the right integer."""
        found = final_answer(text)
        if found is None:
            return Grade(0.0, None, {"answered": 0.0})
        value = as_integer(found)
        answer = str(value) if value is not None else found[:80]
        return Grade(float(value == int(item["answer"])), answer, {"answered": 1.0})

    def prepare(
        self, answers: Sequence[tuple[Item, str]], task: QualityTask, progress: Callable[[int, int], None]
    ) -> None:
        """Nothing to prepare: reading is quick."""


def read_integer(text: str) -> int | None:
    """The integer that the text's last final answer states, or null."""
    found = final_answer(text)
    return None if found is None else as_integer(found)


def final_answer(text: str) -> str | None:
    """The words of the final answer, by the rules at the head of this module; null when there is none."""
    text = plain_text(text)
    corrections = [match.start() for match in _CORRECTION.finditer(text)]
    chosen: _Final | None = None
    for one in sorted([*_boxes(text), *_statements(text), *_marked_lines(text)]):
        if chosen is None or one.rank >= chosen.rank or _gives_way(chosen, one, corrections):
            chosen = one
    if chosen is not None and chosen.value is not None:
        taken_back = bisect_left(corrections, chosen.end) < len(corrections)
        outcome = _outcome(text[chosen.end :]) if taken_back else None
        return chosen.words if outcome is None else outcome
    last = _last_words(text[chosen.end :] if chosen else text)
    return last if last is not None or chosen is None else chosen.words


def _gives_way(before: _Final, later: _Final, corrections: Sequence[int]) -> bool:
    """Whether an answer gives way to a less firm one behind it: it is no integer or is turned down, or a correction
    stands before the later one's number. An aside is about something else."""
    if before.value is None or before.value in later.instead_of:
        return True
    index = bisect_left(corrections, before.end)
    return later.rank > _ASIDE and index < len(corrections) and corrections[index] < later.begin


def _boxes(text: str) -> Iterator[_Final]:
    """Every box with its end; an empty, unfinished or very long box is none."""
    yield from (_Final(match.end(), match.start(), match.group(1), _FIRM) for match in _BARE_BOX.finditer(text))
    opened: list[re.Match[str]] = []
    for match in _BRACES.finditer(text):
        if match["box"] or match.group() == "{":
            opened.append(match)
        elif match.group() == "}" and opened:
            begin = opened.pop()
            body = text[begin.end() : min(match.start(), begin.end() + _BOX_LENGTH + 1)] if begin["box"] else ""
            if len(body) <= _BOX_LENGTH and body.strip(" ?_.$\\"):
                yield _Final(match.end(), begin.start(), body, _FIRM)


def _statements(text: str) -> Iterator[_Final]:
    """Every "answer is N" (or "answer: N", "N is the answer"). A phrase without a number is none."""
    for match in _REVERSED.finditer(text):
        if not is_supposed(text, match.start()):
            yield _Final(match.end(), match.start(), match.group(1), _LOOSE)
    for match in _PHRASE.finditer(text):
        alone = _OPENING.search(text[max(0, match.start() - _BEFORE) : match.start()]) is not None
        if (alone or not match["head"]) and not is_supposed(text, match.start()):
            begin = _number_begins(text, match)
            stated = _stated(text[begin : begin + _REACH]) if begin is not None else None
            if begin is not None and stated is not None:
                end, number, whole = stated
                rank = _FIRM if alone and whole else _LOOSE
                if is_aside(match["about"] or match["note"] or ""):
                    rank = _ASIDE
                instead_of = () if _SUBJUNCTIVE.search(match.group()) else _turned_down(text[begin : begin + end])
                yield _Final(begin + end, begin, str(number), rank, instead_of)


def _number_begins(text: str, phrase: re.Match[str]) -> int | None:
    """Where the words behind a phrase begin; null where it denies them."""
    begin = phrase.end() - (1 if phrase["head"] else 0)
    if _DENIED.match(text, begin):
        but = _BUT.match(text, begin, begin + _REACH)
        return but.end() if but else None
    adverbs = _ADVERBS.match(text, begin)
    return adverbs.end() if adverbs else begin


def _stated(rest: str) -> tuple[int, int, bool] | None:
    """Where the sentence behind a phrase ends, its number, and whether it says nothing else. Where it has no number,
    that of "So 25." behind it. A question states nothing."""
    lead = _LEAD.match(rest)
    begin = lead.end() if lead else 0
    end = _end(rest, begin)
    number = chained(rest[begin:end])
    if number is None and (so := _SO.match(rest, end)):
        begin, end = so.end(), _end(rest, so.end())
        number = as_integer(rest[begin:end])
    if number is None or rest[end : end + 1] == "?":
        return None
    return end, number, concluded(_REMARK.split(rest[begin:end])[0]) == number


def _turned_down(sentence: str) -> tuple[int, ...]:
    """The numbers that a sentence says are not the answer: "25, not 24"."""
    return tuple(int(match.group(1)) for match in _INSTEAD_OF.finditer(sentence))


def _end(text: str, begin: int) -> int:
    match = _SENTENCE_END.search(text, begin)
    return match.start() if match else len(text)


def _marked_lines(text: str) -> Iterator[_Final]:
    """Lines that are a number and nothing else, in bold or behind four hashes."""
    for match in re.finditer(r"[^\n]+", text):
        line = match.group().strip(" \t>-.!")
        hashes = re.match(r"####\s", line)
        body = line.lstrip("# \t")
        bold = any(len(body) > 4 and body.startswith(mark) and body.endswith(mark) for mark in ("**", "__"))
        if (hashes or bold) and len(line) <= _LINE and as_integer(body.strip("*_ \t")) is not None:
            yield _Final(match.end(), match.start(), body.strip("*_ \t"), _LOOSE)


def _outcome(text: str) -> str | None:
    """The integer that the last line ends in as what came out: "Hold on, it must be 25."."""
    match = _OUTCOME.search(text[-_REACH:].rstrip())
    value = None if match is None or is_supposed(match.string, match.start(1)) else as_integer(match.group(1))
    return None if value is None else str(value)


def _last_words(text: str) -> str | None:
    """The integer with which the last line ends, lines that only close a formula, a block or a table aside."""
    lines = text[-4 * _REACH :].rstrip().split("\n")
    while lines and not re.search(r"\w", re.sub(r"\\end\s*\{[a-z*]*\}", "", lines[-1])):
        lines.pop()
    last = looks_only(lines[-1]).strip() if lines else ""
    sentence = re.split(r"[.!?]\s+", last.rstrip(" .!*_"))[-1] if len(last) <= _REACH else ""
    value = None if is_supposed(sentence, len(sentence)) else concluded(_CUE.sub("", sentence))
    return None if value is None else str(value)
