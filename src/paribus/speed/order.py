"""Which prompt comes when, and the line that makes every request unlike any other."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeVar

from paribus.catalog import PromptLine, SetPrompt

P = TypeVar("P", bound=PromptLine)


def kind_of(prompt: PromptLine) -> str:
    """The prompt's kind of text; a user's own prompts are all of one kind."""
    return prompt.kind if isinstance(prompt, SetPrompt) else "own"


def by_turns(prompts: Sequence[P]) -> list[P]:
    """Prompts with their kinds taking turns, each kind in the order given."""
    return _turns(prompts, None)


def balanced(prompts: Sequence[P], start: int, cycle: int = 0) -> list[P]:
    """One cycle over all prompts: kinds take turns, in an order of its own for each start and cycle.

    Any stretch of the load then holds the kinds in their shares. The same (start, cycle) gives every system the same
    order.
    """
    return _turns(prompts, random.Random(f"order {start} {cycle}"))  # noqa: S311 (an order, not a secret)


def cycles(prompts: Sequence[P], start: int) -> Iterator[P]:
    """Prompts without end: cycle after cycle, each in another balanced order."""
    cycle = 0
    while prompts:
        yield from balanced(prompts, start, cycle)
        cycle += 1


def _turns(prompts: Sequence[P], chance: random.Random | None) -> list[P]:
    groups: dict[str, list[P]] = defaultdict(list)
    for prompt in prompts:
        groups[kind_of(prompt)].append(prompt)
    if chance is not None:
        for group in groups.values():
            chance.shuffle(group)
    # The place of a prompt in its kind, as a share of the kind's size, spreads large and small kinds evenly.
    placed: list[tuple[float, P]] = []
    for group in groups.values():
        offset = chance.random() if chance is not None else 0.5
        placed += [((i + offset) / len(group), prompt) for i, prompt in enumerate(group)]
    return [prompt for _, prompt in sorted(placed, key=lambda item: item[0])]


def unique_line(tag: str, index: int) -> str:
    """The line before a prompt that no other request carries: 8 hex digits of the sha256 of the tag and the index.

    `tag` names the start and the measure (and a nonce of the maintainers, where one was asked for), so that the same
    start can be checked again and no two requests share a prefix.
    """
    return f"[request {hashlib.sha256(f'{tag} {index}'.encode()).hexdigest()[:8]}]"
