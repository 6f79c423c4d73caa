"""MMLU-Pro: ten options, chain of thought, worked examples of the same category in the prompt.

Three rules read each answer, and none replaces another. `strict` (the headline): the last "the answer is (X)", as the
prompt asks for it, however X is dressed. `lenient`: the first of these that is there, its last occurrence:

1. a statement: "the answer is (X)", "Answer: X", "the correct option is X", "(X) is correct", "I choose X", "not X but
   Y", `\\boxed{X}`, or a sentence that is a letter and nothing else (`**C**`, `(C)`, "No, wait: (C)."), so that a late
   correction counts;
2. a mention: `**C**`, `(C)`, "option C", an option written out in bold or as the last line (`**C. 42**`, `C. 42`), but
   not one that is turned down ("not (D)", "options (A) and (B) are wrong").

Both read up to the first question that the answer makes up behind itself (a line `Question:` with `Options:` further
down); one that opens the answer or says again what was asked is part of it.

By both, four things are no choice: what is only supposed ("if the answer is (B)"), one of two letters ("(C) or (D)"), a
formula ("the answer is F = ma"), and a word ("the answer is a matter of taste", "Answer: A car needs").

`official`: the benchmark's own three steps; it stands beside the others because published scores were read that way.
Where nothing is found the benchmark guesses a letter; what its guesses would get is a column of its own, `guesses`, and
part of no score (published scores are the sum of the two).
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items
from paribus.quality.tasks.base import Grade, plain_text, visible
from paribus.quality.tasks.wording import ANSWER, IS, is_supposed

LETTERS = "ABCDEFGHIJ"

_HEAD = (
    "The following are multiple choice questions (with answers) about {category}. Think step by step and then "
    'finish your answer with "the answer is (X)" where X is the correct letter choice.\n\n\n'
)
"""The benchmark's own words: its scores are defined with them (TIGER-AI-Lab/MMLU-Pro, initial prompt)."""

_STEP = "Let's think step by step."

# Groups that give nothing back (`*+`, `++`) keep every search linear in the text, whatever a model repeats.
_MARKS = r"(?:[*_$\\(\[{<>#`'\"“”‘’「✅✔\s]|(?<=\n)[-•](?=\s))*+"
_WORDS = (
    r"(?:(?:f?boxed|fbox|text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|it|rm|sf|tt|cal)|option|opción|choice|letter)\b|"
    r"(?-i:b|strong|em)>)"
)
_OPEN = rf"{_MARKS}(?:{_WORDS}{_MARKS}){{0,6}}+"
_END = r"[*_$)\]}`'\"\\”’>」]*+"
_FORMULA = r"[\^+]|_[{\d]|[-–'’][A-Za-z]|\s*+[=≈≡∝]|\s++[<>]"
_CLOSE = rf"(?![A-Za-z0-9]|{_FORMULA})"
_STRICT = re.compile(rf"answer\s++is[*_]*+:?{_OPEN}([A-J]){_CLOSE}", re.IGNORECASE)
_BEST = r"(?:correct|right|best|final|chosen|my)"
_FILLERS = rf"(?:,?[ \t*_]++(?!not\b|if\b|{IS})[^\W\d_]{{2,15}}){{0,6}}+,?[\s*_]*+{IS}"
_ADVERBS = r"(?:[\s*_]*+(?:therefore|thus|hence|now|actually|then|indeed|clearly|most likely|probably|the|la)\b){0,6}+"
_LINK = rf"[*_\"'`]*+(?:{_FILLERS})?+{_ADVERBS}[\s*_]*+(?:[]:=>→–—-]|\|[\s|:-]*+)?"
_CUE = (
    r"\b(?:no|wait|actually|correction|rather|instead|sorry|i mean|make that|so|thus|hence|therefore|finally|"
    r"it is|it's|(?:it|this) must be|that leaves|leaving)\b[\s,:;.–—-]*+"
)
_STATEMENTS = (
    _STRICT,
    re.compile(
        rf"(?:{ANSWER}|\b{_BEST} (?:option|choice|letter)\b){_LINK}{_OPEN}([A-J]){_CLOSE}",
        re.IGNORECASE,
    ),
    re.compile(rf"\\f?box(?:ed)?\s*+\{{{_OPEN}([A-J]){_CLOSE}(?:[).:\]}}\s]|\\)"),
    re.compile(
        rf"\b([A-J]){_END}\s++is (?:(?:indeed|clearly|thus|therefore|the) ){{0,3}}+(?:correct|right|best|answer)\b"
        r"(?! (?:about|that|if|only|when|for))"
    ),
    re.compile(
        rf"(?:\b(?:choose|chose|pick|select|go with|going with|choice is)\b|选择?|選){_OPEN}([A-J]){_CLOSE}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?:n['’]t|\bnot){_OPEN}[A-J]{_CLOSE}{_END},?\s++(?:but|it is|it['’]s)\s++(?:rather )?{_OPEN}([A-J]){_CLOSE}"
    ),
    # A sentence that is a letter and nothing else, words of correction aside.
    re.compile(
        rf"(?:(?<![^\n.!?:])[> \t]*+|{_CUE})(?:{_CUE}){{0,4}}+[*_$\\(\[{{`'\"“‘ \t]*+(?:(?:option|choice)[ (*]++)?+"
        rf"([A-J]){_END}[.!]*+{_END}[ \t]*+(?=\n|$)",
        re.IGNORECASE,
    ),
)
_NOT = re.compile(
    r"(?:\bnot|n't|\brather than|\binstead of|\bexcept|\bunlike|\beliminate|\bexclude|\brule out)[\s*_]*$",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"[*_)\]]*+(?:\s*(?:,|and|or|/)+\s*[*_(\[]*[A-J]\b[*_)\]]*+)*+\s*+"
    r"(?:cannot\b|(?:is|are|was|were|ca|would|must|does|do)n['’]t\b|(?:is|are|was|were|can|would|must|does|do) not\b|"
    r"(?:is|are|was|were) (?:(?:all|both|also|too|clearly|therefore|thus) )*+"
    r"(?:wrong|incorrect|false|invalid|impossible|out|eliminated)\b)"
)
_SECOND = r"[*_$(\[{\\\s]*+(?:(?:text(?:bf)?|[Oo]ption)\b)?+[*_$(\[{\\\s]*+(?:[B-HJ]|[AI](?! [a-z]))(?![A-Za-z0-9'’])"
_JOINED = re.compile(
    rf"{_END}\s*+(?:(?:\\text\s*\{{)?\s*+(?:or|and/or)\b[\s}}]*+|[/&])\s*+{_SECOND}|"
    rf"{_END}\s*+(?:,|,?\s*+and\b)\s*+{_SECOND}{_END}\s*+(?:[.;!\n]|$)"
)
_JOINS = re.compile(rf"(?<![A-Za-z])[A-J]{_END}\s*+(?:or|and|and/or|/)\s*+(?:[Oo]ption )?[*_$(\[{{\\\s]*$")
_MENTIONS = (
    re.compile(r"(?:\*\*|__)[ \t]*+(?:[Oo]ption |[Cc]hoice )?[(\[]?([A-J])[)\].:]*+[ \t]*+(?:\*\*|__)"),
    re.compile(r"(?:\*\*|__)[ \t]*+(?:[Oo]ption |[Cc]hoice )?[(\[]?([A-J])[)\].:]++[ \t]"),
    re.compile(r"\(([A-J])\)"),
    re.compile(rf"\b(?:[Oo]ption|[Cc]hoice) [*_(\[]*+([A-J]){_CLOSE}"),
    re.compile(r"^[ \t>*_(\[]*+([A-J])[).\]:]++[ \t][^\n]*+\s*+\Z", re.MULTILINE),
)
_REASON = re.compile(r"\s+(?:is|because|since|as|which|where|and|not|due|with|for|when|given|by)\b")


_ASKS = re.compile(r"^[ \t>*_#]*+Question(?: \d{1,3})?[ \t*_]*+:", re.MULTILINE | re.IGNORECASE)
_OFFERS = re.compile(r"^[ \t>*_#]*+Options[ \t*_]*+:", re.MULTILINE | re.IGNORECASE)
_SAME = 60
"""How many letters and digits of two questions are compared."""


class MmluProFamily:
    """Letters A to J; strict extraction is the headline, lenient and official stand beside it."""

    name = "mmlu-pro"
    version = "5"
    headline = ("strict", "share of questions answered right, strict extraction")
    mark_titles: Mapping[str, str] = {
        "lenient": "lenient extraction",
        "official": "the benchmark's own extraction, without its random guesses",
        "guesses": "what random guesses in place of unread answers would add to the benchmark's own extraction",
    }
    grading = None

    def prompt(self, item: Item, items: Items, task: QualityTask) -> str:
        """Instruction, worked examples of the item's category (as many as the task shows), the question."""
        shots = int(task.settings.get("shots", 5))
        category = str(item["category"])
        shown = [example for example in items.examples if example.get("category") == category][:shots]
        parts = [_HEAD.format(category=category)]
        parts += [f"{_question(example)}Answer: {_cot(example)}\n\n" for example in shown]
        return "".join(parts) + f"{_question(item)}Answer: {_STEP}"

    def grade(self, item: Item, text: str, task: QualityTask) -> Grade:
        """Strict, lenient and official verdicts on one answer."""
        count, right = len(item["options"]), str(item["answer"])
        asked = str(item["question"])
        strict, lenient = read_strict(text, count, asked), read_lenient(text, count, asked)
        official = read_official(text)
        guess = guessed(f"{task.task}/{item[task.data.id_field]}", count) if official is None else None
        marks = {
            "lenient": float(lenient == right),
            "official": float(official == right),
            "guesses": float(guess == right),
            "answered": float(lenient is not None),
        }
        return Grade(float(strict == right), strict or lenient, marks)

    def prepare(
        self, answers: Sequence[tuple[Item, str]], task: QualityTask, progress: Callable[[int, int], None]
    ) -> None:
        """Nothing to prepare: reading is quick."""


def _question(item: Item) -> str:
    lines = [f"{letter}. {option}\n" for letter, option in zip(LETTERS, item["options"], strict=False)]
    return f"Question:\n{item['question']}\nOptions:\n{''.join(lines)}"


def _cot(example: Item) -> str:
    """The worked answer without the "A: " in front that the data carries."""
    return str(example.get("cot_content", "")).strip().removeprefix("A:").strip()


def read_strict(text: str, options: int, asked: str = "") -> str | None:
    """The letter of the last "the answer is (X)"; null without one. `asked`: the question, which answers may repeat."""
    return _last([_STRICT], _own(plain_text(text), asked), options)


def read_lenient(text: str, options: int, asked: str = "") -> str | None:
    """The letter of the last statement in any of the forms that models write, else of the last mention; else null."""
    text = _own(plain_text(text), asked)
    return _last(_STATEMENTS, text, options) or _last(_MENTIONS, text, options, mentioned=True)


def _own(text: str, asked: str) -> str:
    """A text up to the first question that is made up behind an answer."""
    offered = [match.start() for match in _OFFERS.finditer(text)]
    for match in _ASKS.finditer(text, 0, offered[-1]) if offered else ():
        options = offered[bisect_right(offered, match.start())]
        said = _letters(text[match.end() : min(options, match.end() + 10 * _SAME)])
        again = said != "" and (_letters(asked).startswith(said) or said.startswith(_letters(asked) or "-"))
        if re.search(r"\w", text[: match.start()]) and not again:
            return text[: match.start()]
    return text


def _letters(text: str) -> str:
    """The first letters and digits of a text, as small ones."""
    return "".join(re.findall(r"[^\W_]", text[: 10 * _SAME].lower())[:_SAME])


def _last(forms: Sequence[re.Pattern[str]], text: str, options: int, *, mentioned: bool = False) -> str | None:
    """The letter of the form that stands last, of those that the question offers."""
    found = [
        (match.end(1), match.group(1).upper())
        for form in forms
        for match in form.finditer(text)
        if match.group(1).upper() in LETTERS[:options]
        and _plausible(match)
        and not _one_of_two(match)
        and not is_supposed(text, match.start())
        and not (mentioned and _turned_down(match))
    ]
    return max(found)[1] if found else None


def _plausible(match: re.Match[str]) -> bool:
    """A word is no letter: a small one right after blanks ("the answer is a matter of"); a capital A or I before
    a small word ("Answer: A car", "the answer is I think"), unless "is A" or a reason ("I because") tells otherwise."""
    text, letter, begin, end = match.string, match.group(1), match.start(1), match.end(1)
    before = text[max(0, begin - 1) : begin]
    if letter.islower():
        return before != "" and before in "([{*"
    word = before == " " and re.match(r"\s[a-z]", text[end : end + 2])
    if letter not in "AI" or not word or _REASON.match(text, end):
        return True
    return letter == "A" and text[max(0, begin - 3) : begin].lower() == "is "


def _one_of_two(match: re.Match[str]) -> bool:
    """Whether a letter is joined to another one: "(C) or (D)", "C/D", "(C) and (D)."."""
    text, begin, end = match.string, match.start(1), match.end(1)
    return bool(_JOINED.match(text, end, end + 60) or _JOINS.search(text[max(0, begin - 30) : begin]))


def _turned_down(match: re.Match[str]) -> bool:
    """Whether the words around a mention say that it is not the answer."""
    text, begin, end = match.string, match.start(), match.end(1)
    return bool(_NOT.search(text[max(0, begin - 20) : begin]) or _WRONG.match(text[end : end + 120]))


def read_official(text: str) -> str | None:
    """The benchmark's own rule, without its guess: the first "answer is (X)"; else of the first line with an
    "Answer: X" the last one; else the last lone letter of the text.

    Source: `extract_answer` of TIGER-AI-Lab/MMLU-Pro's evaluate_from_local.py, whose second step is `.*[aA]nswer:...`.
    """
    text = visible(text)
    if match := re.search(r"answer is \(?([A-J])\)?", text):
        return match.group(1)
    stated = list(re.finditer(r"[aA]nswer:(?=\s*+([A-J]))", text))
    if stated:
        line = text.find("\n", stated[0].start())
        return [match for match in stated if line < 0 or match.start() < line][-1].group(1)
    letters = re.findall(r"\b[A-J]\b", text)
    return str(letters[-1]) if letters else None


def guessed(seed: str, options: int) -> str:
    """The letter that stands in for an unread answer: drawn from the question's id, so that it is always the same."""
    return LETTERS[int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % max(1, options)]
