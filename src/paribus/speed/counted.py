"""What the engine counted over the measured part, beside what the requests brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.speed.rows import Row

SLACK = 0.01
UNTOLD, A_BIT = 0.5, 8
"""How far the count of an answer may be off that usage tells nothing of: of its tokens, and more. It is counted from
its text, and where it was broken off, the engine may have written a little more than was read."""


class Generated(NamedTuple):
    """Generated tokens: the engine's count, ours over the same requests, and how far they may be apart."""

    counted: float
    told: float
    slack: float

    @property
    def apart(self) -> bool:
        """Whether they can't both be right."""
        return abs(self.told - self.counted) > self.slack


def generated(rows: Sequence[Row], counters: Mapping[str, float]) -> Generated | None:
    """The engine's count of generated tokens beside ours; None where either isn't known.

    `rows`: all requests of the measured part, soak and broken ones too, for the engine counts them all. Within 1% of
    what usage says of whole answers and a token for each; beside that, half of what the others brought.
    """
    counted = counters.get("generated_tokens")
    told = [row for row in rows if row.ok and row.tokens_method == "usage"]
    if not counted or not told:
        return None
    ours, everything = (sum(row.tokens + row.hidden_tokens for row in part) for part in (told, rows))
    rest = everything - ours
    slack = max(SLACK * ours, 1.0 * len(told)) + UNTOLD * rest + A_BIT * (len(rows) - len(told))
    return Generated(counted, everything, slack)


def cached_prompt_tokens(rows: Sequence[Row], counters: Mapping[str, float]) -> int | None:
    """Prompt tokens that came from a cache: what usage says or what the engine counted, whichever is more.

    None where neither says anything: servers may keep both to themselves.
    """
    told = [row.cached_tokens for row in rows if row.cached_tokens is not None]
    counted = counters.get("cached_prompt_tokens")
    known = [*([sum(told)] if told else []), *([round(counted)] if counted is not None else [])]
    return max(known, default=None)
