"""What a family of quality tasks is: a prompt, a way to read answers, grades and scores."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items
from paribus.quality.summary import Grading
from paribus.quality.tasks.fences import blocks

_END = re.compile(r"(?P<line>^[ \t]*+</think>[ \t]*+$)|</think>", re.MULTILINE)
_AGAIN = re.compile(r"^[ \t]*+<think>.*?(?:</think>|\Z)", re.MULTILINE | re.DOTALL)

Marks = dict[str, float]
"""Extra grades of one answer beside the headline, each 0..1: another rule's verdict, `answered`, ..."""


@dataclass(frozen=True)
class Grade:
    """One answer graded. `correct`: 0..1; `answer`: what was read from the text, null when nothing could be read."""

    correct: float
    answer: str | None
    marks: Marks = field(default_factory=dict)


class Family(Protocol):
    """A family that asks one question an item. Stateless."""

    @property
    def name(self) -> str:
        """Name, as tasks give it."""

    @property
    def version(self) -> str:
        """Changes whenever a grade could: part of the scorer's id."""

    @property
    def headline(self) -> tuple[str, str]:
        """Permanent name of the headline score (`{k}`: the number of repeats), and its title."""

    @property
    def mark_titles(self) -> Mapping[str, str]:
        """Marks that are scores, by name, with their titles."""

    @property
    def grading(self) -> Grading | None:
        """How programs were graded on this machine; null for families that only read."""

    def prompt(self, item: Item, items: Items, task: QualityTask) -> str:
        """The one user message that asks this item."""

    def grade(self, item: Item, text: str, task: QualityTask) -> Grade:
        """Read and grade one answer's visible text."""

    def prepare(
        self, answers: Sequence[tuple[Item, str]], task: QualityTask, progress: Callable[[int, int], None]
    ) -> None:
        """Grade many answers ahead, side by side, where one takes long; `grade` then remembers."""


def visible(text: str) -> str:
    """An answer without reasoning that came inline.

    Where the text begins with `<think>`, the answer follows the first `</think>`; there is none before. Else the
    template may have begun the reasoning: the answer follows the first `</think>` that isn't part of a block of code,
    or is the whole text. Reasoning that begins anew on a line of its own is left out as well.
    """
    if text.lstrip().startswith("<think>"):
        answer = text.partition("</think>")[2]
    else:
        ends = list(_END.finditer(text))
        code = [(block.begin, block.end) for block in blocks(text)] if ends else []
        first = next((m for m in ends if m["line"] or not any(b <= m.start() < e for b, e in code)), None)
        answer = text[first.end() :] if first else text
    return _AGAIN.sub("", answer)


def plain_text(text: str) -> str:
    """Visible text for readers of letters and numbers: full-width forms as usual ones, no invisible characters."""
    text = visible(text)
    return text if text.isascii() else "".join(map(_plain_character, text))


@cache
def _plain_character(character: str) -> str:
    if unicodedata.category(character) == "Cf":
        return ""
    return "-" if character == "\u2212" else unicodedata.normalize("NFKC", character)
