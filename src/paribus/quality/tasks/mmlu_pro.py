"""MMLU-Pro: ten options, chain of thought, worked examples of the same category in the prompt.

Three rules read each answer, and none replaces another. `strict` (the headline): the last "the answer is (X)".
`lenient`: also `**C**`, `(C)`, `\\boxed{C}`, "Answer: C", a last line that is a letter; the last of all wins, so a late
correction counts. `official`: the benchmark's own three steps, first match first; it stands beside the others because
published scores were read that way. Where nothing is found the benchmark guesses a letter; what its guesses would get
is a column of its own, `guesses`, and part of no score (published scores are the sum of the two).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items
from paribus.quality.tasks.base import Grade, visible

LETTERS = "ABCDEFGHIJ"

_HEAD = (
    "The following are multiple choice questions (with answers) about {category}. Think step by step and then "
    'finish your answer with "the answer is (X)" where X is the correct letter choice.\n\n\n'
)
"""The benchmark's own words: its scores are defined with them (TIGER-AI-Lab/MMLU-Pro, initial prompt)."""

_STEP = "Let's think step by step."

_OPEN = r"[*_$\\(\[{`'\"\s]*(?:(?:boxed|text|textbf|mathbf|mathrm|option|choice|letter)\b[*_$\\(\[{`'\"\s]*)*"
_CLOSE = r"(?![A-Za-z0-9'’])"
_STRICT = re.compile(rf"answer\s+is:?\s*{_OPEN}([A-J]){_CLOSE}", re.IGNORECASE)
_LENIENT = (
    re.compile(
        rf"\b(?:answer|correct (?:option|choice|letter)|option|choice)\b[*_]*\s*(?:(?:is|would be|must be|should be|"
        rf"therefore|thus|hence|now|actually|then)\b\s*)*[:=]?{_OPEN}([A-J]){_CLOSE}",
        re.IGNORECASE,
    ),
    re.compile(rf"\\boxed\s*\{{{_OPEN}([A-J])(?:[).\]}}\s]|\\)"),
    re.compile(r"(?:\*\*|__)\s*[(\[]?([A-J])[)\].:]*\s*(?:\*\*|__)"),
    re.compile(r"\(([A-J])\)"),
)
_BARE_LINE = re.compile(r"^[\s*_>$(\[]*([A-J])[\s*_$)\].]*$")


class MmluProFamily:
    """Letters A to J; strict extraction is the headline, lenient and official stand beside it."""

    name = "mmlu-pro"
    version = "2"
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
        strict, lenient = read_strict(text, count), read_lenient(text, count)
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


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", visible(text))


def _offered(letter: str, options: int) -> bool:
    return letter in LETTERS[:options]


def read_strict(text: str, options: int) -> str | None:
    """The letter of the last "the answer is (X)"; null without one."""
    found = [m.group(1).upper() for m in _STRICT.finditer(_plain(text)) if _plausible(m)]
    return next((letter for letter in reversed(found) if _offered(letter, options)), None)


def read_lenient(text: str, options: int) -> str | None:
    """The letter of the last statement in any of the forms that models write; null without one."""
    text = _plain(text)
    found = [(m.end(1), m.group(1).upper()) for form in _LENIENT for m in form.finditer(text) if _plausible(m)]
    found += [(m.end(1), m.group(1).upper()) for m in _STRICT.finditer(text) if _plausible(m)]
    found = [(end, letter) for end, letter in found if _offered(letter, options)]
    if found:
        return max(found)[1]
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    bare = _BARE_LINE.match(last)
    return bare.group(1) if bare and _offered(bare.group(1), options) else None


def _plausible(match: re.Match[str]) -> bool:
    """A small letter right after blanks is a word ("the answer is a matter of"), not an option."""
    letter = match.group(1)
    before = match.string[match.start(1) - 1]
    if letter.isupper():
        after = match.string[match.end(1) : match.end(1) + 2]
        return not (letter in "AI" and before == " " and re.match(r"\s[a-z]", after))
    return before in "([{*"


def read_official(text: str) -> str | None:
    """The benchmark's own rule: the first "answer is (X)", else "Answer: X", else the last lone letter, else null."""
    text = visible(text)
    for pattern in (r"answer is \(?([A-J])\)?", r"[aA]nswer:\s*([A-J])"):
        if match := re.search(pattern, text):
            return match.group(1)
    letters = re.findall(r"\b[A-J]\b", text)
    return str(letters[-1]) if letters else None


def guessed(seed: str, options: int) -> str:
    """The letter that stands in for an unread answer: drawn from the question's id, so that it is always the same."""
    return LETTERS[int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % max(1, options)]
