"""Whether the switch for thinking was obeyed: the reasoning in answers of a system that runs with thinking off."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from paribus.conditions.flags import Flag, flag

EMPTY_BLOCK = 8
"""Tokens of markup that a block without a thought may hold: some templates write one where thinking is off."""
FEW = 0.01
"""Share of the answers that may reason against the switch before the run isn't the one that it says it is."""


class Tags:
    """What stands around reasoning in the text of a server that doesn't tell it apart."""

    def __init__(self, opens: str, closes: str) -> None:
        self.opens, self.closes = opens, closes
        end = re.escape(closes)
        self.ends = re.compile(rf"(?P<line>^[ \t]*+{end}[ \t]*+$)|{end}", re.MULTILINE)
        self.again = re.compile(rf"^[ \t]*+{re.escape(opens)}(.*?)(?:{end}|\Z)", re.MULTILINE | re.DOTALL)


TAGS = (Tags("<think>", "</think>"), Tags("<|channel>thought", "<channel|>"))
"""Most models', and Gemma 4's and DiffusionGemma's (vllm-project/recipes, "Thinking Mode")."""

_FENCE = re.compile(r"^[ \t]*+(?:```|~~~)", re.MULTILINE)


def apart(text: str) -> tuple[str, str]:
    """A text's inline reasoning and the rest, without the tags between them.

    Reasoning opens the text: with `<think>` (after blanks), up to its `</think>` or else the end; or with its tag in
    the prompt, where the template wrote it, up to a `</think>` with no `<think>` before it. Where it did, blocks that
    begin later lines belong to it. Other tags, and those in code, are quoted by an answer. Blanks are no thought.
    """
    for tags in sorted(TAGS, key=lambda each: not _opens(text, each)):
        thoughts, rest = _apart(text, tags)
        if thoughts:
            return "".join(each for each in thoughts if each.strip()), rest
    return "", text


def _apart(text: str, tags: Tags) -> tuple[list[str], str]:
    thoughts: list[str] = []
    end = None if _opens(text, tags) else _end(text.partition(tags.opens)[0], tags)
    if end is not None:
        thoughts.append(text[: end.start()])
        text = text[end.end() :]
    while _opens(text, tags):
        text = text.lstrip().removeprefix(tags.opens)
        end = _end(text, tags) or tags.ends.search(text)
        thoughts.append(text[: end.start()] if end else text)
        text = text[end.end() :] if end else ""
    if thoughts:
        thoughts += tags.again.findall(text)
        text = tags.again.sub("", text)
    return thoughts, text


def _opens(text: str, tags: Tags) -> bool:
    return text.lstrip().startswith(tags.opens)


def _end(text: str, tags: Tags) -> re.Match[str] | None:
    """The first closing tag that stands on a line of its own, or is neither code nor quoted."""
    fences = seen = 0
    for end in tags.ends.finditer(text):
        fences += len(_FENCE.findall(text, seen, end.start()))
        seen = end.start()
        if end["line"] or not (fences % 2 or _quoted(text, end.start())):
            return end
    return None


def _quoted(text: str, at: int) -> bool:
    """Whether what stands there is quoted, or code in its line."""
    begins = text.rfind("\n", 0, at) + 1
    return text.count("`", begins, at) % 2 == 1 or text.endswith(("'", '"'), 0, at)


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
