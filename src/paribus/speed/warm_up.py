"""Warm-up: every number of active requests is visited, block after block, until two blocks agree within 2%."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paribus.catalog import PromptLine
from paribus.speed.load import Ended, LoadRequest, Sender, ignore, run_closed_loop
from paribus.speed.order import by_turns
from paribus.wire import Outcome, read_answer

SETTLED = 0.02
LONGEST = 64
"""Tokens of the longest warm-up answer: enough to pass every number of active requests."""
AT_LEAST = 2
"""Requests of a block at least: one prompt alone is no warm-up."""


@dataclass(frozen=True)
class WarmUp:
    """How the warm-up went: the speed of each block (tokens a second and request), and whether it settled."""

    speeds: tuple[float, ...]
    settled: bool
    outcomes: tuple[Outcome, ...]

    @property
    def unsettled(self) -> str:
        """Why it can't be called settled; empty when it can."""
        if self.settled:
            return ""
        if len(self.speeds) < 2:
            return f"{len(self.speeds)} block measured, two are needed to compare"
        return f"the last two of {len(self.speeds)} blocks differ by {100 * difference(self.speeds):.1f}%"


def difference(speeds: Sequence[float]) -> float:
    """Relative difference of the last two blocks."""
    one, two = speeds[-2:]
    return abs(two - one) / max(one, two) if max(one, two) > 0 else 1.0


def caps(concurrency: int, cap: int) -> list[int]:
    """Token caps of a block's requests: they start together and end one after the other.

    The number of active requests then passes through every value from `concurrency` down to 1.
    """
    longest, size = min(cap, LONGEST), max(concurrency, AT_LEAST)
    if concurrency == 1:
        return [longest] * size
    return [max(1, -(-longest * (i + 1) // size)) for i in range(size)]


def block_speed(outcomes: Sequence[Outcome]) -> float:
    """Tokens a second of one request: tokens after the first piece over the time after it, as a ratio of sums.

    Answers that come in one piece count whole, from sending. 0 when nothing was answered.
    """
    tokens = seconds = 0.0
    for outcome in outcomes:
        answer = read_answer(outcome)
        if answer.error is not None or not answer.pieces:
            continue
        first, last = answer.pieces[0].t_ns, answer.pieces[-1].t_ns
        written = float(answer.usage.completion_tokens or 0) if answer.usage else float(len(answer.delivered)) / 4
        if last > first:
            share = len(answer.pieces[0].delivered) / max(1, len(answer.delivered))
            tokens, seconds = tokens + written * (1 - share), seconds + (last - first) / 1e9
        else:
            tokens, seconds = tokens + written, seconds + last / 1e9
    return tokens / seconds if seconds > 0 else 0.0


async def warm_up(
    client: Sender,
    prompts: Sequence[PromptLine],
    body: Callable[[PromptLine, int, int], bytes],
    *,
    concurrency: int,
    cap: int,
    max_blocks: int,
    on_end: Ended = ignore,
    stop: Callable[[], bool] = lambda: False,
) -> WarmUp:
    """Send blocks until two in a row differ by less than 2%, `max_blocks` at most.

    Each block sends the same prompts (kinds taking turns), with other unique lines. `body(prompt, index, max_tokens)`
    makes a request's body. Blocks stop where nothing was answered.
    """
    turn = by_turns(prompts)
    limits = caps(concurrency, cap)
    speeds: list[float] = []
    seen: list[Outcome] = []
    while turn and len(speeds) < max_blocks and not stop():
        first = len(seen)
        requests = [
            LoadRequest(first + i, turn[i % len(turn)].id, body(turn[i % len(turn)], first + i, limit))
            for i, limit in enumerate(limits)
        ]
        await run_closed_loop(client, requests, concurrency, "warm-up", on_end=on_end, stop=stop, seen=seen.append)
        block = seen[first:]
        speeds.append(block_speed(block))
        if all(outcome.error for outcome in block) or (len(speeds) > 1 and difference(speeds) < SETTLED):
            break
    settled = len(speeds) > 1 and speeds[-1] > 0 and difference(speeds) < SETTLED
    return WarmUp(tuple(speeds), settled, tuple(seen))
