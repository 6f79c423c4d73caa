"""What a family of quality tasks is: a prompt, a way to read answers, grades and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items
from paribus.quality.summary import Grading

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
    """An answer without reasoning that came inline: what follows the last `</think>`; nothing when it never ended."""
    _, closed, after = text.rpartition("</think>")
    if closed:
        return after
    return "" if "<think>" in text else text
