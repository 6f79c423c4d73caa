"""Makes rows, outcomes and traces for the tests of speed, without a server."""

from __future__ import annotations

from typing import Any

from paribus.speed.rows import KS, Row
from paribus.speed.trace import Prompt, Trace, trace
from paribus.wire import Outcome
from scripted import DONE, content, finish, reasoning, role, tool, usage, words


def make_row(**given: Any) -> Row:
    """A measured, answered request of 100 tokens in 1 s, first text after 0.1 s, with anything else as given."""
    plain: dict[str, Any] = {
        "index": 0, "prompt_id": "p", "kind": "chat", "length": "long", "counted": True, "worker": 0, "due_ns": 0,
        "sent_ns": 0, "connect_ns": 0, "ended_ns": 10**9, "status": 200, "error": None, "finish_reason": "stop",
        "ok": True, "cut": False, "capped": False, "unanswered": False, "degenerate": False, "check_passed": None,
        "tokens": 100.0, "tokens_method": "usage", "reasoning_tokens": 0.0, "standard_tokens": 100, "bytes": 400,
        "prompt_tokens": 16, "cached_tokens": None, "ttft_ns": 10**8, "ttfa_ns": 10**8, "e2e_ns": 10**9,
        "arrivals": 100, "decode_tokens": 99.0, "decode_ns": 9 * 10**8, "t1_ns": 10**8, "t32_ns": 3 * 10**8,
        "t100_ns": 10**9, "t300_ns": None, "t800_ns": None, "wait_8_s": 0.0, "wait_30_s": 0.0, "stall_max_ns": 10**7,
    }  # fmt: skip
    return Row(**plain | given)


def steady_row(prompt: str, kind: str, *, length: int, ms_a_token: float, wait_ms: float = 0.0) -> Row:
    """An answer of `length` tokens, one every `ms_a_token` after a wait; times to k follow."""
    at = [round((wait_ms + ms_a_token * k) * 1e6) for k in range(1, length + 1)]
    times = {f"t{k}_ns": at[k - 1] if k <= length else None for k in KS}
    return make_row(
        prompt_id=prompt, kind=kind, tokens=float(length), standard_tokens=length, ttft_ns=at[0], ttfa_ns=at[0],
        e2e_ns=at[-1], ended_ns=at[-1], decode_tokens=float(length - 1), decode_ns=at[-1] - at[0], **times,
    )  # fmt: skip


Event = tuple[float, bytes]
"""Milliseconds since sent, bytes."""


def make_outcome(*events: Event, **given: Any) -> Outcome:
    """An exchange whose body came in these reads."""
    body, reads = b"", []
    for at_ms, data in events:
        body += data
        reads.append((round(at_ms * 1e6), len(body)))
    plain: dict[str, Any] = {
        "index": 0, "prompt_id": "p", "due_ns": 0, "sent_ns": 0, "connect_ns": 0,
        "ended_ns": reads[-1][0] if reads else 0, "status": 200, "error": None, "body": body, "reads": tuple(reads),
        "content_type": "text/event-stream", "phase": "measured", "api": "chat", "worker": 0,
    }  # fmt: skip
    return Outcome(**plain | given)


def stream(
    pieces: list[tuple[float, int]], *, reasoned: int = 0, seed: int = 0, counted: bool = True, **given: Any
) -> Outcome:
    """A stream: (arrival in ms, tokens) of each piece; the first `reasoned` pieces are reasoning."""
    text = words(sum(n for _, n in pieces), seed)
    events: list[Event] = [(0.0, role())]
    done = 0
    for i, (at, n) in enumerate(pieces):
        part = "".join(text[done : done + n])
        done += n
        events.append((at, reasoning(part) if i < reasoned else content(part)))
    last = pieces[-1][0] if pieces else 1.0
    end = finish() + (usage(done) if counted else b"") + DONE
    return make_outcome(*events, (last + 500, end), **given)


def make_trace(outcome: Outcome, prompt: Prompt | None = None, **options: Any) -> Trace:
    """The outcome, read."""
    return trace(outcome, {outcome.prompt_id: prompt or Prompt(outcome.prompt_id, "chat", "long")}, **options)


def by_word(text: str) -> list[int]:
    """A tokenizer whose tokens are words with the blank before them."""
    ends = [i for i in range(1, len(text)) if text[i] == " "]
    return [*ends, len(text)] if text else []


__all__ = ["by_word", "make_outcome", "make_row", "make_trace", "steady_row", "stream", "tool"]
