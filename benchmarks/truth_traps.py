"""Streams that load generators read wrongly, asked of each through the scripted endpoint of the tests: right or wrong.

A trap is one stream and one figure of it. `right`: the figure is what happened, or the client flags the run and ranks
nothing by it. `wrong`: another figure, or one where there is none. `no figure`: it says nothing where there is one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from truth_clients import Ask, Contestant, Report

from scripted import (
    DONE,
    Script,
    Scripted,
    Step,
    chunk,
    content,
    error_event,
    event,
    finish,
    reasoning,
    role,
    steps,
    tool,
    usage,
    words,
)

NEAR = 0.02
LATE_MS = 20.0
"""How far a time may be off: the scripted endpoint runs in Python, and machines are busy."""

TEXT = words(512)
END = finish() + usage(100) + DONE
END_UNCOUNTED = finish() + DONE


def said(*texts: str) -> bytes:
    return b"".join(content(text) for text in texts)


def pieces(n: int, first: float, gap: float, size: int = 1, end: bytes = b"") -> tuple[Step, ...]:
    parts = [content("".join(TEXT[i * size : (i + 1) * size])) for i in range(n)]
    made = steps(parts, first_ms=first, gap_ms=gap, tokens=size)
    return (*made, Step(made[-1].at_ms, end or finish() + usage(n * size) + DONE))


@dataclass(frozen=True)
class Trap:
    """A stream, the figure asked for, and its right value (None: there is none). `failed`: failures to be told."""

    name: str
    scripts: tuple[Script, ...]
    figure: str
    right: float | None
    requests: int = 1
    flag: str = ""
    """A flag that makes the run right whatever the figure."""


def one(*timed: Step, **how: object) -> tuple[Script, ...]:
    return (Script(tuple(timed), **how),)  # type: ignore[arg-type]


def whole(timed: tuple[Step, ...]) -> tuple[Script, ...]:
    return (Script(timed),)


HALVES = (said(*TEXT[:50]), said(*TEXT[50:100]))
THOUGHTS = tuple(Step(100 + 10 * i, reasoning(TEXT[i])) for i in range(80))
ANSWER = tuple(Step(900 + 10 * i, content(TEXT[80 + i])) for i in range(20))
CUMULATIVE = tuple(Step(50 + 5 * i, content(TEXT[i], tokens=i + 1)) for i in range(100))
CALL = tool(0, '{"q": "' + "".join(TEXT[:98]) + '"}', name="find", id="c1")

ROLE = (Step(10, role()), *pieces(100, 500, 10))
BROKEN = one(Step(10, HALVES[0]), Step(20, error_event() + DONE))
LATE_CALL = (*(Step(200 + i, event(chunk({"delta": {}}))) for i in range(90)), Step(1100, CALL), Step(1110, END))
PADDED = one(Step(400, said(*TEXT[:40])), Step(410, finish() + usage(256) + DONE))
LOOP = one(Step(50, said(" time" * 900)), Step(60, finish("length") + usage(900) + DONE))
REFUSED = (Script((Step(2, b"{}"),), status=503, content_type="application/json"), Script(pieces(40, 200, 5)))
COUNTED = one(*CUMULATIVE, Step(600, finish(tokens=100) + DONE))
THINKING = one(*THOUGHTS, *ANSWER, Step(1090, END))
SPOKEN = pieces(25, 100, 10, 4)
SPLIT = "".join(TEXT[:50]) + " 日本語 ".join(TEXT[50:60])
WIRE = content(SPLIT)
AT = WIRE.index("本".encode()) + 1
STYLED = b": hello\r\n\r\n" + event(
    chunk({"delta": {"content": "".join(TEXT[:50]) + "\u2028" + "".join(TEXT[50:100])}}), name="token", end=b"\r\n"
)
HUGE = content("".join(TEXT * 400))
WHOLE = chunk({"message": {"role": "assistant", "content": "".join(TEXT[:100])}, "finish_reason": "stop"})
COUNT = {"prompt_tokens": 9, "completion_tokens": 100, "total_tokens": 109}
AT_ONCE = (Script((Step(400, json.dumps(WHOLE | {"usage": COUNT}).encode()),), content_type="application/json"),)
DRAFT, FINAL = content("".join(TEXT[100:180])), event(chunk({"message": {"content": "".join(TEXT[:40])}}))
BUSY = (
    Script((Step(2, b"{}"),), status=429, content_type="application/json", headers={"Retry-After": "1"}),
    Script(pieces(40, 200, 5)),
)

TRAPS: tuple[Trap, ...] = (
    Trap("a role-only piece before the text: first token", whole(ROLE), "ttft_ms", 500),
    Trap("4 tokens a piece: decode speed", whole(pieces(25, 200, 20, 4)), "rate", 200),
    Trap("two canvases of 256: decode speed", whole(pieces(2, 400, 200, 256)), "rate", 1280),
    Trap("50 pieces in one write: decode speed", one(Step(500, HALVES[0]), Step(1000, HALVES[1] + END)), "rate", 100),
    Trap("an answer in one piece: decode speed", whole(pieces(1, 400, 1, 200)), "rate", None),
    Trap("reasoning before the answer: first token", THINKING, "ttft_ms", 100),
    Trap("reasoning before the answer: tokens", THINKING, "tokens", 100),
    Trap("no usage: tokens", whole(pieces(25, 100, 10, 4, finish() + DONE)), "tokens", 100),
    Trap("cumulative usage on each piece: tokens", COUNTED, "tokens", 100),
    Trap("an error inside the stream, HTTP 200: failures", BROKEN, "failed", 1),
    Trap("cut in the middle: failures", one(Step(10, HALVES[0]), Step(50, act="cut")), "failed", 1),
    Trap("usage 0.8 s after the text: end", one(Step(1190, said(*TEXT[:100])), Step(2000, END)), "e2e_ms", 1190),
    Trap("a tool call after 90 empty deltas: first text", one(*LATE_CALL), "ttft_ms", 1100),
    Trap("usage past the end of sequence: tokens", PADDED, "tokens", 40),
    Trap("one word 900 times: flagged", LOOP, "flag", None, flag="degenerate"),
    Trap("one answer to all prompts: flagged", whole(pieces(40, 20, 2)), "flag", None, 4, "cached_answers"),
    Trap("usage after [DONE]: tokens", one(Step(100, said(*TEXT[:100]) + finish() + DONE + usage(100))), "tokens", 100),
    Trap("gzip: decode speed", (Script(SPOKEN, encoding="gzip"),), "rate", 400),
    Trap(
        "a character split between reads: failures", one(Step(50, WIRE[:AT]), Step(300, WIRE[AT:] + END)), "failed", 0
    ),
    Trap("CRLF, comments, event names, U+2028: tokens", one(Step(50, STYLED), Step(60, END)), "tokens", 100),
    Trap("an event of a megabyte: failures", one(Step(50, HUGE), Step(60, END)), "failed", 0),
    Trap("a server that ignores `stream`: decode speed", AT_ONCE, "rate", None),
    Trap(
        "a draft, then its final form, no usage: tokens",
        one(Step(50, DRAFT), Step(300, FINAL + END_UNCOUNTED)),
        "tokens",
        40,
    ),
    Trap("429 with Retry-After, then fine: failures", BUSY, "failed", 1, 4),
    Trap("503, then fine: failures", REFUSED, "failed", 1, 4),
    Trap("503, then fine: first token", REFUSED, "ttft_ms", 200, 4),
)


def figure(trap: Trap, told: Report) -> float | None:
    """The mean of the figure over the answers; None where the client gives none."""
    if trap.figure == "failed":
        return float(told.failed)
    values = [v for answer in told.answers if (v := getattr(answer, trap.figure)) is not None]
    return sum(values) / len(values) if values else None


def verdict(trap: Trap, told: Report) -> str:
    """`right`, `wrong (what it says)`, `no figure`, or that it broke."""
    if told.fault:
        return f"broke: {told.fault}"
    if trap.flag:
        return "right (flagged)" if trap.flag in told.flags else "wrong (nothing said)"
    found = figure(trap, told)
    if found is None:
        return "right (none)" if trap.right is None else "no figure"
    if trap.right is None:
        return f"wrong ({found:,.0f})"
    slack = max(NEAR * trap.right, LATE_MS if trap.figure.endswith("_ms") else 0.0)
    return "right" if abs(found - trap.right) <= slack else f"wrong ({found:,.0f})"


def run_traps(
    server: Scripted,
    contestants: list[Contestant],
    plain: Ask,
    folder: Path,
    peers: Path | None,
    tell: Callable[[str], None],
) -> list[list[str]]:
    """A row a trap: its name, the right figure, and each contestant's verdict."""
    rows = []
    for number, trap in enumerate(TRAPS):
        row = [trap.name, trap.flag or ("none" if trap.right is None else f"{trap.right:,.0f}")]
        for contestant in contestants:
            model = f"trap{number}-{contestant.name.split()[0].lower()}"
            server.register(model, *trap.scripts)
            ask = replace(plain, model=model, requests=trap.requests, at_once=1)
            row.append(verdict(trap, contestant.run(ask, folder / model, peers)))
        tell(" | ".join(row))
        rows.append(row)
    return rows
