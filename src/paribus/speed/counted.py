"""What the engine counted over the measured part, beside what the requests brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.speed.rows import Row

SLACK = 0.01
BROKEN, A_BIT = 0.5, 8
"""How far a count of a broken answer may be off: of its tokens, and more. It is counted from its text, and the engine
may have written a little more than was read."""


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
    what whole answers' usage says and a token for each; half of what the broken ones had brought beside that.
    """
    counted = counters.get("generated_tokens")
    whole, broken = [row for row in rows if row.ok], [row for row in rows if not row.ok]
    if not counted or not whole or any(row.tokens_method != "usage" for row in whole):
        return None
    ours, rest = (sum(row.tokens + row.hidden_tokens for row in part) for part in (whole, broken))
    slack = max(SLACK * ours, 1.0 * len(whole)) + BROKEN * rest + A_BIT * len(broken)
    return Generated(counted, ours + rest, slack)


def cached_prompt_tokens(rows: Sequence[Row], counters: Mapping[str, float]) -> int | None:
    """Prompt tokens that came from a cache: what usage says or what the engine counted, whichever is more.

    None where neither says anything: servers may keep both to themselves.
    """
    told = [row.cached_tokens for row in rows if row.cached_tokens is not None]
    counted = counters.get("cached_prompt_tokens")
    known = [*([sum(told)] if told else []), *([round(counted)] if counted is not None else [])]
    return max(known, default=None)
