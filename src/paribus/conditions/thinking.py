"""Whether the switch for thinking was obeyed: the reasoning in answers of a system that runs with thinking off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paribus.conditions.flags import Flag, flag

EMPTY_BLOCK = 8
"""Tokens of markup that a block without a thought may hold: some templates write one where thinking is off."""
FEW = 0.01
"""Share of the answers that may reason against the switch before the run isn't the one that it says it is."""

OPENS, CLOSES = "<think>", "</think>"
"""Around reasoning in the text of a server that doesn't tell it apart."""


def apart(text: str) -> tuple[str, str]:
    """A text's inline reasoning and the rest, without the tags between them.

    The reasoning ends at the last `</think>`; its opening tag may stand in the prompt, where the template wrote it.
    Without an end all that follows `<think>` is reasoning. Blanks alone are no thought.
    """
    inline, closed, rest = text.rpartition(CLOSES)
    if closed:
        inline = inline.lstrip().removeprefix(OPENS)
    else:
        rest, _, inline = text.partition(OPENS)
    return (inline, rest) if inline.strip() else ("", rest)


@dataclass(frozen=True)
class Thought:
    """Answers that came, those of them with more reasoning than an empty block has, and their reasoning tokens."""

    answers: int
    thought: int
    tokens: float

    @property
    def many(self) -> bool:
        """Whether more than 1% of the answers reasoned."""
        return self.thought > FEW * self.answers

    @property
    def mismatch(self) -> Flag | None:
        """The flag of a run with thinking off: a warning up to 1% of the answers; None where none reasoned."""
        return flag("thinking_mismatch", str(self), None if self.many else "warning") if self.thought else None

    def __str__(self) -> str:
        share = 100 * self.thought / max(1, self.answers)
        return f"{self.thought} of {self.answers} answers ({share:.1f}%) hold {self.tokens:,.0f} tokens of reasoning"


def thought(reasoning: Iterable[float]) -> Thought:
    """From the reasoning tokens of each answer that came, delivered or only billed."""
    tokens = list(reasoning)
    found = [each for each in tokens if each > EMPTY_BLOCK]
    return Thought(len(tokens), len(found), sum(found))
