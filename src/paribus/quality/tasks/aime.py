"""AIME: integer answers, the last final answer of the text wins.

Final answers are, equal among each other:

1. a box: `\\boxed{025}`; one with something else than an integer in it is an answer, and wrong;
2. a statement: "The answer is 25", "Answer: 25". Of a chain ("m+n = 7+18 = 25", "7 + 18, which is 25") the last member
   that is a number counts; a statement without a number ("m+n = 7+18") is none, unless "So 25." follows it;
3. a line that is marked and nothing but a number: `**25**`, `#### 25`.

Where there is none of these: a last line or sentence that is nothing but a number ("So 25.").

Numbers are compared as integers: `025`, `25.`, `25.0`, `\\text{25}`, `$25$`, `x = 25`, `25_{10}`, `25 \\pmod{1000}` are
25. Behind a number may stand a degree sign, a percent sign or words ("25 square units"); letters and commands that make
another number of it (`25x`, `25\\pi`, "25 or 26") may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items
from paribus.quality.tasks.base import Grade, plain_text

# Groups that give nothing back (`*+`) keep every search linear in the text, whatever a model repeats.
_BRACES = re.compile(r"(?P<box>\\(?:boxed|fbox)\s*+\{)|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s*+(\d{1,30})")
_PHRASE = re.compile(
    r"\banswer\b(?P<link>[ \t*_:=$(\[]*+(?:(?:is|are|equals?|will be|would be|must be|comes? to|therefore|thus|"
    r"hence|so|then|simply|just|indeed|clearly|again|now|also|to (?:the|this) (?:problem|question)|below|integer)\b"
    r"[ \t,*_:=]*+){0,6}+[:=]?)",
    re.IGNORECASE,
)
_LINK = re.compile(r"[:=]|\b(?:is|are|equals?|be|to)\b", re.IGNORECASE)
_RELATION = re.compile(
    r"=|≡|≈|\\equiv|\\approx|,?\s*\b(?:which|that) (?:is|equals|gives|makes)\b|\bi\.e\.,?|\bequals\b|\bgiving\b"
)
_SENTENCE_END = re.compile(r"\n|;|[.!?](?!\d)|\\(?:boxed|fbox)")
_SO = re.compile(r"[.\s]+(?:so|thus|hence|therefore)\b[\s,:]*", re.IGNORECASE)
_CUE = re.compile(
    r"^(?:(?:so|thus|hence|therefore|then|finally|and|we|get|it|that|is|gives|the|answer|result|total)\b[\s,:]*+)+",
    re.IGNORECASE,
)
_SHOW = re.compile(
    r"\\(?:(?:text)?color\s*\{[a-z]*\}|(?:displaystyle|textstyle|left|right|big|Big|bigg|Bigg|bf|rm|it|tiny|scriptsize|"
    r"footnotesize|small|normalsize|large|Large|LARGE|huge|Huge|boldsymbol|bm|mathbf|mathrm|mathit|mathsf|mathtt|mathbb|"
    r"mathcal|math|operatorname|emph|underline|boxed|fbox)(?![A-Za-z])|quad|qquad|[,;:! ()\[\]])"
)
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|hbox)(?![A-Za-z])")
_MODULUS = re.compile(r"[,(\s]*(?:\\pmod|\\bmod|\\mod|\bmod\b)\s*\{?\s*\d+\s*\}?\)?\s*$")
_BASE_TEN = re.compile(r"_\s*\{?\s*(?:10|ten)\s*\}?\s*$")
_NUMBER = r"[+]?(?P<minus>-?)\s*(?P<digits>\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.0*)?(?![\d.,]*\d)"
_OTHER = r"(?:pi|plus|minus|times|over|sqrt|or|to|choose|factorial)\b"
_WORD = rf"(?!{_OTHER})[A-Za-z]{{2,}}"
_DEGREES = r"(?:\s*(?:°|%|\^?\{?\s*\\?circ\s*\}?|\\?degree\b))?"
_WHOLE = re.compile(rf"{_NUMBER}{_DEGREES}(?:\s+{_WORD}(?:[\s-]+{_WORD})*+)?\s*[.,;:]*\s*", re.IGNORECASE)
_STATED = re.compile(
    rf"{_NUMBER}{_DEGREES}(?=\s*$|\s*[.,;:!?)\]}}'\"”’|—–](?!\d)|\s+(?:{_WORD}|[aI]\b)|\s*\(\s*{_WORD}|\s+-\s+{_WORD}|"
    r"\s*\\[pb]mod)",
    re.IGNORECASE,
)
_REACH = 300
"""How many characters after a phrase may hold its number."""

_BOX_LENGTH = 1_000
_LINE = 80


class AimeFamily:
    """Integer answers; avg over the repeats is the headline, the majority vote stands beside it."""

    name = "aime"
    version = "2"
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
    text = plain_text(text)
    found = [*_boxes(text), *_statements(text), *_marked_lines(text)]
    return max(found)[1] if found else _last_words(text)


def _boxes(text: str) -> Iterator[tuple[int, str]]:
    """Every box with its end; an empty, unfinished or very long box is none."""
    yield from ((match.end(), match.group(1)) for match in _BARE_BOX.finditer(text))
    opened: list[re.Match[str]] = []
    for match in _BRACES.finditer(text):
        if match["box"] or match.group() == "{":
            opened.append(match)
        elif match.group() == "}" and opened:
            begin = opened.pop()
            body = text[begin.end() : min(match.start(), begin.end() + _BOX_LENGTH + 1)] if begin["box"] else ""
            if len(body) <= _BOX_LENGTH and body.strip(" ?_.$\\"):
                yield match.end(), body


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Every "answer is N" (or "answer: N", "answer = N") with its end. A phrase without a number is none."""
    for match in _PHRASE.finditer(text):
        if _LINK.search(match["link"]):
            stated = _stated(text[match.end() : match.end() + _REACH])
            if stated is not None:
                yield match.end() + stated[0], stated[1]


def _stated(rest: str) -> tuple[int, str] | None:
    """The number that follows a phrase, and where its sentence ends; where it has none, that of "So 25." behind it."""
    begin = len(rest) - len(rest.lstrip(" \t\n*_$([:>"))
    end = _end(rest, begin)
    number = _chained(rest[begin:end])
    if number is None and (so := _SO.match(rest, end)):
        begin, end = so.end(), _end(rest, so.end())
        whole = as_integer(rest[begin:end])
        number = None if whole is None else str(whole)
    return None if number is None else (end, number)


def _chained(sentence: str) -> str | None:
    """The last number of a chain of equalities."""
    number: str | None = None
    for member in _RELATION.split(sentence):
        words = _looks_only(member).strip(" *_`'\"([{:")
        match = _STATED.match(words)
        if match:
            number = match["minus"] + match["digits"].replace(",", "")
            if words[match.end() :].strip(" .,;:!?)]}'\"”’|"):
                break  # "25, since 24 + 1 = ...": what follows explains it.
    return number


def _end(text: str, begin: int) -> int:
    match = _SENTENCE_END.search(text, begin)
    return match.start() if match else len(text)


def _marked_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are a number and nothing else, in bold or behind four hashes."""
    for match in re.finditer(r"[^\n]+", text):
        line = match.group().strip(" \t>-.!")
        hashes = re.match(r"####\s", line)
        body = line.lstrip("# \t")
        bold = any(len(body) > 4 and body.startswith(mark) and body.endswith(mark) for mark in ("**", "__"))
        if (hashes or bold) and len(line) <= _LINE and as_integer(body.strip("*_ \t")) is not None:
            yield match.end(), body.strip("*_ \t")


def _last_words(text: str) -> str | None:
    """The last line, else its last sentence, where it is nothing but a number, cues ("So") aside."""
    last = text.rstrip().rpartition("\n")[2].strip()
    sentence = re.split(r"[.!?]\s+", last.rstrip(" .!*_$"))[-1] if len(last) <= _REACH else ""
    for words in (last, _CUE.sub("", sentence)):
        if len(words) <= _LINE and as_integer(words) is not None:
            return words
    return None


def _looks_only(text: str) -> str:
    """Text without what changes only its looks in TeX and Markdown; words that TeX sets as text get blanks around."""
    text = _TEXT.sub(" ", text.replace("{,}", ",").replace("\\%", "%"))
    text = _SHOW.sub(" ", text).replace("$", "").replace("**", "").replace("__", "").replace("~", " ")
    return re.sub(r"\s+", " ", text)


def as_integer(text: str) -> int | None:
    """The integer that a final answer states, or null: `025`, `25.`, `\\text{25}`, `x = 25`, `1{,}000`, `25^\\circ`."""
    body = _RELATION.split(_looks_only(plain_text(text)))[-1]
    body = _BASE_TEN.sub("", _MODULUS.sub("", body.strip(" .,;:`'\"")))
    for _ in range(4):
        body = body.strip(" `'\".,;:")
        if len(body) >= 2 and (body[0], body[-1]) in {("{", "}"), ("(", ")"), ("[", "]")}:
            body = body[1:-1]
    body = re.sub(r"^(?:final )?answer\s*[:=]?\s*", "", body, flags=re.IGNORECASE)
    match = _WHOLE.fullmatch(re.sub(r"\s+", " ", re.sub(r"[{}](?![^{]*circ)", " ", body)).strip())
    return int(match["minus"] + match["digits"].replace(",", "")) if match else None
