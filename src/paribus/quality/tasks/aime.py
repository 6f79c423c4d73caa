"""AIME: integer answers, the last final answer of the text wins.

A final answer is a box (`\\boxed{025}`), a phrase ("The answer is 25", "Answer: 25"), or a bold number that stands
alone on its line (`**25**`); where there is none of these, a last line that is nothing but a number. Numbers are
compared as integers: `025`, `25.`, `25.0`, `\\text{25}`, `$25$` and `x = 25` are 25. A last box with something else in
it is an answer, and wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items
from paribus.quality.tasks.base import Grade, visible

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_BRACE = re.compile(r"(?<!\\)[{}]")
_PHRASE = re.compile(
    r"\banswer\b(?P<link>[ \t*_:=$\\(\[]*(?:(?:is|are|equals?|will be|would be|must be|comes? to|therefore|thus|"
    r"hence|so|then|simply|just|indeed|clearly|again|now|also|to (?:the|this) (?:problem|question)|below|integer)\b"
    r"[ \t,*_:=]*){0,6}[:=]?)",
    re.IGNORECASE,
)
_BOLD_LINE = re.compile(r"^[ \t>#\-]*(?:\*\*|__)[ \t]*(?P<body>[^\n]{1,80}?)[ \t]*(?:\*\*|__)[ \t.!]*$", re.MULTILINE)
_WRAPPERS = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|rm|it|sf|tt|bb|cal)?|boldsymbol|bm|mbox|hbox|fbox|boxed|emph|"
    r"operatorname|displaystyle|textstyle|left|right|big|Big|bigg|Bigg|bf|rm|it|[,;:! ])"
)
_UNIT = re.compile(
    r"\^?\{?\\?(?:circ|degree|degrees|%|pmod|pounds|dollars|cents|units?|cm|mm|km|m|square|cubic|ways?|inches|feet|"
    r"minutes?|hours?|days?|seconds?|[a-z]{2,20})\}?(?:\s+[a-z]{1,20})*\s*[.!]?$",
    re.IGNORECASE,
)
_INTEGER = re.compile(r"^[+]?(-?)\s*(\d{1,3}(?:(?:,|\{,\})\d{3})+|\d{1,30})(?:\.0*)?$")
_NUMBER_HEAD = re.compile(r"^[\s$*_\\(\[{]*([+-]?\s*\d[\d,{}]*(?:\.\d+)?)")
_REACH = 300
"""How many characters after a phrase may hold its number."""


class AimeFamily:
    """Integer answers; avg over the repeats is the headline, the majority vote stands beside it."""

    name = "aime"
    version = "1"
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
    """The words of the last final answer: the one that ends last in the text; null when there is none."""
    text = unicodedata.normalize("NFKC", visible(text)).replace("\u2212", "-")
    found = [*_boxes(text), *_phrases(text), *_bold_lines(text)]
    if found:
        return max(found)[1]
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return last.strip() if len(last) <= 80 and as_integer(last) is not None else None


def _boxes(text: str) -> list[tuple[int, str]]:
    """Every box with its end; an empty or unfinished box is none."""
    boxes: list[tuple[int, str]] = []
    for match in _BOX.finditer(text):
        start = match.end()
        if start < len(text) and text[start] == "{":
            end = _closing(text, start)
            body = text[start + 1 : end] if end is not None else ""
        else:
            bare = re.match(r"\d{1,30}", text[start : start + 30])
            end, body = (start + bare.end(), bare.group()) if bare else (None, "")
        if end is not None and body.strip(" ?_.$\\"):
            boxes.append((end, body))
    return boxes


def _closing(text: str, start: int) -> int | None:
    """The index of the brace that closes the one at `start`, at most 1,000 characters on."""
    depth = 0
    for match in _BRACE.finditer(text, start, start + 1_000):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return None


def _phrases(text: str) -> list[tuple[int, str]]:
    """Every "answer is N" (or "answer: N", "answer = N") with its end. A phrase without a number is none."""
    phrases: list[tuple[int, str]] = []
    for match in _PHRASE.finditer(text):
        link = match.group("link")
        if not re.search(r"[:=]|is|are|equal|be|to", link, re.IGNORECASE):
            continue
        rest = text[match.end() : match.end() + _REACH]
        if "boxed" in rest[:40]:
            continue  # The box speaks for itself.
        stated = _stated(rest)
        if stated is not None:
            phrases.append((match.end() + stated[0], stated[1]))
    return phrases


def _stated(rest: str) -> tuple[int, str] | None:
    """The number that follows a phrase: at once, or at the end of a chain of equalities in the same sentence."""
    lead = len(rest) - len(rest.lstrip(" \t\n*_$\\([:"))
    line = rest[lead:].split("\n", 1)[0]
    sentence = re.split(r"(?<=[^\d])[.;](?:\s|$)|\.\s|\.$|(?<!\d),(?!\d)|,\s", line, maxsplit=1)[0]
    if "=" in sentence:
        tail = sentence.rsplit("=", 1)[1]
        head = _NUMBER_HEAD.match(_unwrap(tail))
        return (lead + len(sentence), head.group(1)) if head else None
    head = _NUMBER_HEAD.match(_unwrap(sentence))
    if head is None:
        return None
    return lead + len(sentence), head.group(1)


def _bold_lines(text: str) -> list[tuple[int, str]]:
    """Bold numbers that stand alone on a line."""
    return [
        (match.end(), match.group("body"))
        for match in _BOLD_LINE.finditer(text)
        if as_integer(match.group("body")) is not None
    ]


def _unwrap(text: str) -> str:
    """Text without TeX's font, spacing and size commands, braces around them, dollars and emphasis."""
    return _WRAPPERS.sub("", text).replace("$", "").replace("**", "").replace("__", "").replace("~", " ")


def as_integer(text: str) -> int | None:
    """The integer that a final answer states, or null: `025`, `25.`, `\\text{25}`, `x = 25`, `1{,}000`, `25^\\circ`."""
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    body = re.sub(r"\s+", " ", _unwrap(text.replace("{,}", ",").replace("\\%", "%"))).strip()
    body = re.sub(r"^(?:answer|final answer)\s*[:=]?\s*", "", body, flags=re.IGNORECASE)
    body = re.split(r"=|\\equiv|≡|\\approx", body)[-1].strip()
    for _ in range(4):
        body = body.strip(" `'\"").strip()
        if len(body) >= 2 and (body[0], body[-1]) in {("{", "}"), ("(", ")"), ("[", "]")}:
            body = body[1:-1]
    body = body.replace("{", "").replace("}", "").replace("\\(", "").replace("\\)", "").replace("\\", "").strip()
    match = _INTEGER.match(body)
    if match is None and (number := re.match(r"^[+]?-?\s*\d[\d,]*(?:\.0*)?", body)):
        rest = body[number.end() :].strip()
        match = _INTEGER.match(number.group().rstrip(", ")) if rest and _UNIT.match(rest) else None
    return int(match.group(1) + re.sub(r"\D", "", match.group(2))) if match else None
