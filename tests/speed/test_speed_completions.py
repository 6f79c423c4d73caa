"""The main traps once more on a completions endpoint: over a real connection and down to the summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from speed_making import by_word, make_trace

from paribus.speed.flags import Facts
from paribus.speed.summarise import Around, summarise
from paribus.speed.summary import SpeedSummary
from scripted import DONE, Asked, Script, Step, ask_one, chunk, error_event, event, usage, words

LATER = 250.0
BESIDE = {"usage_unverified", "late"}
"""No tokenizer is at hand here, and answers of a few milliseconds leave late beside their length."""


def said(*texts: str, **more: Any) -> bytes:
    return b"".join(event(chunk({"text": text} | more)) for text in texts)


def end(tokens: int | None = None, reason: str | None = "stop", done: bytes = DONE) -> bytes:
    finish = event(chunk({"text": "", "finish_reason": reason})) if reason else b""
    return finish + (usage(tokens) if tokens is not None else b"") + done


HIDING = {"completion_tokens": 60, "completion_tokens_details": {"reasoning_tokens": 40}}
TEXT = words(20)
WHOLE = said(*TEXT)


@dataclass(frozen=True)
class Trap:
    """A stream, how its answer ends (None: whole), its tokens, and its flags beside those of any such measurement."""

    name: str
    steps: tuple[Step, ...]
    tokens: float = 20
    error: str | None = None
    flags: frozenset[str] = frozenset()
    how: dict[str, Any] = field(default_factory=dict)
    ask: dict[str, Any] = field(default_factory=dict)
    also: Callable[[Asked, SpeedSummary], bool] = lambda asked, told: True


def at_once(asked: Asked, told: SpeedSummary) -> bool:
    """No decoding could be timed."""
    return told.decode_speed.value is None


def early(asked: Asked, told: SpeedSummary) -> bool:
    """The first piece came before the second write left, and the answer's time is that of its pieces."""
    return asked.arrival_ns(0) < asked.written_ns(1) and told.e2e_ms.p50 == asked.answer.pieces[-1].t_ns / 1e6


def ended_early(asked: Asked, told: SpeedSummary) -> bool:
    """The answer ended before the second write left."""
    return early(asked, told) and asked.arrival_ns(-1) < asked.written_ns(1)


def late(asked: Asked, told: SpeedSummary) -> bool:
    """No piece counts from before the second write."""
    return asked.arrival_ns(0) >= asked.written_ns(1) and told.ttft_ms.p50 == asked.answer.pieces[0].t_ns / 1e6


def trap(name: str, *steps: Step, flags: str = "", **more: Any) -> Trap:
    return Trap(name, steps, flags=frozenset(flags.split()), **more)


FAILED = "failures"
TRAPS = [
    trap("several-tokens", Step(5, said("".join(TEXT[:10]))), Step(LATER, said("".join(TEXT[10:])) + end(20)),
         also=early),
    trap("one-piece", Step(5, said("".join(TEXT))), Step(9, end(20)), also=at_once),
    trap("one-read", Step(5, WHOLE + end(20)), also=at_once),
    trap("empty-first", Step(0, said("")), Step(LATER, WHOLE + end(20)), also=late),
    trap("uncounted", Step(5, WHOLE + end()), flags="usage_missing"),
    trap("cumulative", Step(5, b"".join(
        event(chunk({"text": t}, usage={"completion_tokens": i})) for i, t in enumerate(TEXT, 1)) + end())),
    trap("late-usage", Step(5, WHOLE), Step(LATER, end(20)), also=ended_early),
    trap("padded", Step(5, WHOLE + end(256)), flags="usage_mismatch"),
    trap("hidden", Step(5, WHOLE + end(None, done=b"") + event(chunk(None, usage=HIDING)) + DONE),
         flags="usage_mismatch"),
    trap("in-band", Step(5, WHOLE + error_event() + DONE), error="in_band", flags=FAILED),
    trap("bare-error", Step(5, WHOLE + event({"detail": "no memory"}) + DONE), error="in_band", flags=FAILED),
    trap("aborted", Step(5, WHOLE + end(20, "abort")), error="in_band", flags=FAILED),
    trap("cut", Step(5, WHOLE), Step(20, act="cut"), error="cut", flags=FAILED),
    trap("closed", Step(5, WHOLE), how={"framing": "close"}, error="cut", flags=FAILED),
    trap("stalled", Step(5, WHOLE), Step(9, act="stall"), ask={"idle_timeout_s": 0.5}, error="timeout_idle",
         flags=FAILED),
    trap("undone", Step(5, WHOLE + end(20, done=b"")), how={"framing": "close"}, flags="no_done"),
    trap("unfinished", Step(5, WHOLE + end(20, None)), flags="no_finish_reason"),
    trap("capped", Step(5, WHOLE + end(20, "length")), flags="capped"),
    trap("gzip", Step(5, said(*TEXT[:10])), Step(LATER, said(*TEXT[10:]) + end(20)), how={"encoding": "gzip"},
         also=early),
    trap("revised", Step(5, said(*words(30, 1))), Step(LATER, said("".join(TEXT), replace=True) + end(20)),
         flags="revised", also=late),
    trap("taken-back", Step(5, said(*words(30, 1)) + said("", replace=True)), Step(LATER, WHOLE + end(20)),
         flags="revised", also=late),
    trap("looping", Step(5, said(*[" word"] * 900) + end(900)), tokens=900, flags="degenerate"),
    trap("not-streamed", Step(5, b'{"choices": [{"text": "' + "".join(TEXT).encode() + b'", "finish_reason": "stop"}], '
                                 b'"usage": {"completion_tokens": 20}}'),
         how={"content_type": "application/json", "framing": "length"},
         also=at_once),
]  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_completions_endpoint_sets_the_same_traps(trap, scripted):
    asked = ask_one(scripted, trap.name, Script(trap.steps, **trap.how), api="completions", **trap.ask)
    assert "prompt" in asked.emission.request, "it was asked as a completions endpoint"
    (row,), told = summarise([make_trace(asked.outcome)], Around(1, facts=Facts(rows=())))
    assert (row.error, row.tokens) == (trap.error, trap.tokens)
    assert (told.requests.ok, told.requests.failed) == ((1, 0) if trap.error is None else (0, 1))
    assert {flag.id for flag in told.flags} - BESIDE == trap.flags
    assert trap.also(asked, told)


def test_a_character_between_reads_and_other_styles_read_the_same_in_completions(scripted):
    data = b": hi\r\n\r\n" + event(chunk({"text": " 日本\u2028 é"}), prefix=b"data:", end=b"\r\n")
    middle = data.index("本".encode()) + 1
    steps = (Step(5, data[:middle]), Step(LATER, data[middle:] + end(1)))
    asked = ask_one(scripted, "styles", Script(steps), api="completions")
    trace = make_trace(asked.outcome, tokenizer=by_word)
    assert (asked.answer.text, trace.ok) == (" 日本\u2028 é", True)
    assert asked.arrival_ns(0) >= asked.written_ns(1)
