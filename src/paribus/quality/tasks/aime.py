"""AIME: integer answers, the last final answer of the text wins.

Firm answers:

1. a box: `\\boxed{025}`; one with something else than an integer in it is an answer, and wrong;
2. a sentence or label that says nothing but the answer: "The answer is 25.", "**Answer:** 25", "### Answer" above 25.

Loose answers:

3. a statement amid other words: "and so the answer is 25, since n = 7", "25 is the answer";
4. a line that is marked and nothing but a number: `**25**`, `#### 25`.

The last firm answer counts, without one the last loose one. Behind a firm answer a loose one is prose about it
("the answer is 24 only for n = 3"), unless a word of correction ("wait", "actually") stands between the two or the firm
one is no integer. What is only supposed ("if the answer is 24"), asked or denied is no statement. Where no integer is
found so far, the last line or sentence counts if it ends in one: "So 25.", "Hence the sum is 25.", "m + n = 25".

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
from paribus.quality.tasks.wording import ANSWER, IS, is_supposed

# Groups that give nothing back (`*+`) keep every search linear in the text, whatever a model repeats.
_BRACES = re.compile(r"(?P<box>\\(?:boxed|fbox|framebox)\s*+\{)|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s*+(\d{1,30})")
_MARKS = r"[ \t*_$(\[\"'`]*+"
_PHRASE = re.compile(
    rf"{ANSWER}(?:(?:[ \t*_$\"'`)]*+(?:\([^()\n]{{1,40}}\)[ \t*_]*+)?(?:[]:=>→|]|[-–—][ \t]|(?P<head>\n)))|"
    rf"(?:,?[ \t*_]+(?!not\b|if\b|key\b|choices?\b|{IS})(?:we are looking for|[^\W\d_]{{1,15}})){{0,6}}+,?"
    rf"{_MARKS}{IS})",
    re.IGNORECASE,
)
_ADVERBS = re.compile(
    rf"(?:{_MARKS}(?:therefore|thus|hence|so|then|simply|just|indeed|clearly|again|now|also|below|exactly|precisely|"
    r"integer|equal to)\b[ \t,*_:=]*+){0,6}+",
    re.IGNORECASE,
)
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
_SENTENCE_END = re.compile(r"\n|;|。|[.!?](?!\d)|\\(?:boxed|fbox|framebox)")
_SO = re.compile(r"[.\s]+(?:so|thus|hence|therefore)\b[\s,:]*", re.IGNORECASE)
_OPENING = re.compile(
    r"(?:^|[.!?:;。\n])[\W_]*+(?:(?:so|thus|hence|therefore|then|finally|and|the|our|my|this|final|correct|required|"
    r"desired|requested|numerical|la|le|der|die|das|el|il|a|o|por|tanto|donc|also|因此|所以|故|最终)[\W_]*+)*+\Z",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|corrected|corrigendum|oops|sorry|scratch that|i miscounted|(?:a|my) mistake|"
    r"an error|(?:that|this|which)(?:['’]s| is| was) (?:wrong|incorrect|not right)|no(?=\s*[,.!:—–-]))(?![^\W_])",
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


@dataclass(frozen=True, order=True)
class _Final:
    """A final answer: where it ends and begins in the text, its words, and whether it is firm."""

    end: int
    begin: int
    words: str
    firm: bool

    @cached_property
    def value(self) -> int | None:
        """The integer that the words state, or null."""
        return as_integer(self.words)


class AimeFamily:
    """Integer answers; avg over the repeats is the headline, the majority vote stands beside it."""

    name = "aime"
    version = "3"
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
        if chosen is None or one.firm or not chosen.firm or _gives_way(chosen, one, corrections):
            chosen = one
    if chosen is not None and chosen.value is not None:
        return chosen.words
    last = _last_words(text[chosen.end :] if chosen else text)
    return last if last is not None or chosen is None else chosen.words


def _gives_way(firm: _Final, loose: _Final, corrections: Sequence[int]) -> bool:
    """Whether a firm answer gives way to a loose one behind it: a correction between the two, or no integer."""
    index = bisect_left(corrections, firm.end)
    return (index < len(corrections) and corrections[index] < loose.begin) or firm.value is None


def _boxes(text: str) -> Iterator[_Final]:
    """Every box with its end; an empty, unfinished or very long box is none."""
    yield from (_Final(match.end(), match.start(), match.group(1), True) for match in _BARE_BOX.finditer(text))
    opened: list[re.Match[str]] = []
    for match in _BRACES.finditer(text):
        if match["box"] or match.group() == "{":
            opened.append(match)
        elif match.group() == "}" and opened:
            begin = opened.pop()
            body = text[begin.end() : min(match.start(), begin.end() + _BOX_LENGTH + 1)] if begin["box"] else ""
            if len(body) <= _BOX_LENGTH and body.strip(" ?_.$\\"):
                yield _Final(match.end(), begin.start(), body, True)


def _statements(text: str) -> Iterator[_Final]:
    """Every "answer is N" (or "answer: N", "N is the answer"). A phrase without a number is none."""
    for match in _REVERSED.finditer(text):
        if not is_supposed(text, match.start()):
            yield _Final(match.end(), match.start(), match.group(1), False)
    for match in _PHRASE.finditer(text):
        alone = _OPENING.search(text[max(0, match.start() - _BEFORE) : match.start()]) is not None
        if (alone or not match["head"]) and not is_supposed(text, match.start()):
            begin = _number_begins(text, match)
            stated = _stated(text[begin : begin + _REACH]) if begin is not None else None
            if begin is not None and stated is not None:
                end, number, whole = stated
                yield _Final(begin + end, match.start(), str(number), alone and whole)


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
            yield _Final(match.end(), match.start(), body.strip("*_ \t"), False)


def _last_words(text: str) -> str | None:
    """The integer with which the last line ends, lines that only close a formula, a block or a table aside."""
    lines = text[-4 * _REACH :].rstrip().split("\n")
    while lines and not re.search(r"\w", re.sub(r"\\end\s*\{[a-z*]*\}", "", lines[-1])):
        lines.pop()
    last = looks_only(lines[-1]).strip() if lines else ""
    sentence = re.split(r"[.!?]\s+", last.rstrip(" .!*_"))[-1] if len(last) <= _REACH else ""
    value = None if is_supposed(sentence, len(sentence)) else concluded(_CUE.sub("", sentence))
    return None if value is None else str(value)
