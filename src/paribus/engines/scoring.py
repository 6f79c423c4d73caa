"""Feeding given text through plain decoding: what an engine must offer for the teacher-forced lossless gate.

An adapter whose engine scores given tokens returns a `Scoring` from its `scoring()`; others return None, and whole
answers are compared instead. A `Scoring` is pure: it says what to ask, and how to read the reply. Replies are an
engine's word and may be anything: whoever can't read one raises `LookupError`, `TypeError` or `ValueError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from paribus.catalog import PromptLine
from paribus.wire import Endpoint

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request to a path from the server's root, and what its JSON reply says."""

    path: str
    body: dict[str, Any]
    read: Callable[[Any], T]


class Scoring(Protocol):
    """An engine that takes and gives its own tokens, and tells how likely given ones are."""

    def tokens(self, endpoint: Endpoint, prompt: PromptLine) -> Call[list[int]]:
        """The tokens of a prompt as the chat endpoint would render it: template, tools and thinking included."""

    def answer(self, endpoint: Endpoint, tokens: Sequence[int], max_tokens: int) -> Call[list[int]]:
        """The tokens that the server writes after these at temperature 0, the end of text included."""

    def gaps(self, endpoint: Endpoint, tokens: Sequence[int], first: int) -> Call[list[float]]:
        """How far each token from number `first` (over 0) on lies below the likeliest at its place (natural logarithms;
        0: it is the likeliest)."""


def token_ids(value: Any) -> list[int]:
    """A list of token ids. Raises `TypeError` for anything else."""
    if not isinstance(value, list) or any(
        isinstance(one, bool) or not isinstance(one, int) or one < 0 for one in value
    ):
        raise TypeError("no list of token ids")
    return list(value)


def gap(own: Any, best: Sequence[Any]) -> float:
    """How far a token's log-probability lies below the best one. Raises for what is no finite log-probability."""
    values = [float(each) for each in (own, *best) if not isinstance(each, (bool, str))]
    if len(values) != len(best) + 1 or not best or not all(math.isfinite(each) and each <= 1e-3 for each in values):
        raise ValueError("no finite log-probabilities")
    return max(0.0, max(values) - values[0])


def chat_messages(prompt: PromptLine) -> dict[str, Any]:
    """A prompt's messages and tools, as a chat endpoint gets them."""
    messages = prompt.messages or [{"role": "user", "content": prompt.prompt}]
    return {"messages": messages} | ({"tools": prompt.tools} if prompt.tools else {})
