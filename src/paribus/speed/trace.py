"""A trace: one request as a staircase of tokens over time. Made from raw outcomes, after the load has ended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import numpy.typing as npt

from paribus.catalog import Check, PromptLine, SetPrompt
from paribus.speed.metrics.degenerate import is_degenerate
from paribus.speed.metrics.tokens import TokenCount, Tokenizer, count_tokens
from paribus.wire import Answer, Outcome, read_answer
from paribus.wire.tokens import standard_tokens_after, utf8_bytes

OWN = 120
"""Characters from which different prompts should have different answers; a label, a refusal, a small object may be
equal by right."""

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Prompt:
    """What a measurement needs to know of a prompt: its place in the tables and how its answer is verified."""

    id: str
    kind: str = "own"
    length: str = ""
    check: Check | None = None

    @classmethod
    def of(cls, line: PromptLine) -> Prompt:
        """From a prompt of ours (with kind and length) or a user's own."""
        if isinstance(line, SetPrompt):
            return cls(line.id, line.kind, line.length, line.check)
        return cls(line.id, check=line.check)


@dataclass(frozen=True)
class Trace:
    """One request. Arrays have one element a piece: arrival (ns since sent) and what had been delivered with it.

    `native`: tokens of the model after piece i (`tokens_at`); `standard`: standard tokens; `size`: UTF-8 bytes.
    `visible`: index of the first piece of the visible answer. `error`: None for a whole answer.
    """

    index: int
    prompt: Prompt
    phase: Literal["warm-up", "soak", "measured"]
    worker: int
    due_ns: int
    sent_ns: int
    connect_ns: int
    ended_ns: int
    status: int
    error: str | None
    finish_reason: str | None
    done: bool
    revised: bool
    unread: Mapping[str, int]
    at_ns: Whole
    native: Real
    standard: Whole
    size: Whole
    visible: int | None
    count: TokenCount
    prompt_tokens: int | None
    cached_tokens: int | None
    degenerate: bool
    check_passed: bool | None
    digest: str
    """Hash of what was delivered ("" for a short one): finds the same answer to different prompts."""

    @property
    def counted(self) -> bool:
        """Whether it is one of the measured requests. One that we broke off ourselves says nothing of the server."""
        return self.phase == "measured" and self.error != "cancelled"

    @property
    def ok(self) -> bool:
        """Answered: no error, and something was delivered."""
        return self.error is None and len(self.at_ns) > 0

    @property
    def cut(self) -> bool:
        """Broken off after the answer had begun."""
        return self.error is not None and len(self.at_ns) > 0

    @property
    def capped(self) -> bool:
        """Stopped by the token cap."""
        return self.ok and self.finish_reason == "length"

    @property
    def unanswered(self) -> bool:
        """Ended without a visible answer: empty, or reasoning only."""
        return self.visible is None and self.error in (None, "empty")


def trace(outcome: Outcome, prompts: Mapping[str, Prompt], tokenizer: Tokenizer | None = None) -> Trace:
    """Read one outcome. Never raises for what a server sent. Unknown prompts have no kind and no check."""
    answer = read_answer(outcome)
    prompt = prompts.get(outcome.prompt_id, Prompt(outcome.prompt_id))
    standard = standard_tokens_after(answer)
    count = count_tokens(answer, tokenizer, standard[-1] if standard else 0)
    visible = next((i for i, piece in enumerate(answer.pieces) if piece.text or piece.tool), None)
    usage = answer.usage
    phase: Literal["warm-up", "soak", "measured"] = (
        outcome.phase if outcome.phase in ("warm-up", "soak") else "measured"  # type: ignore[assignment]
    )
    return Trace(
        index=outcome.index,
        prompt=prompt,
        phase=phase,
        worker=outcome.worker,
        due_ns=outcome.due_ns,
        sent_ns=outcome.sent_ns,
        connect_ns=outcome.connect_ns,
        ended_ns=outcome.ended_ns,
        status=outcome.status,
        error=answer.error,
        finish_reason=answer.finish_reason,
        done=answer.done,
        revised=answer.revised,
        unread=answer.unread,
        at_ns=np.array([t_ns for t_ns, *_ in answer.pieces], dtype=np.int64),
        native=np.array(count.after, dtype=float),
        standard=np.array(standard, dtype=np.int64),
        size=np.array(_sizes(answer), dtype=np.int64),
        visible=visible,
        count=count,
        prompt_tokens=usage.prompt_tokens if usage else None,
        cached_tokens=_cached(answer),
        degenerate=answer.error is None and is_degenerate(answer.delivered, capped=answer.finish_reason == "length"),
        check_passed=_checked(prompt, answer),
        digest=_digest(answer.delivered),
    )


def _sizes(answer: Answer) -> Sequence[int]:
    """UTF-8 bytes delivered with each piece and those before it."""
    if answer.delivered.isascii():
        return answer.lengths
    return list(accumulate(map(utf8_bytes, answer.parts)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16] if len(text.strip()) >= OWN else ""


def _cached(answer: Answer) -> int | None:
    if answer.usage is not None and answer.usage.cached_tokens is not None:
        return answer.usage.cached_tokens
    cached = answer.timings.get("cache_n")
    return int(cached) if cached is not None else None


def _checked(prompt: Prompt, answer: Answer) -> bool | None:
    """Whether the answer is right; a failed request is wrong; None for a prompt without a check."""
    if prompt.check is None:
        return None
    if answer.error is not None:
        return False
    from paribus.speed.checks import passes

    return passes(prompt.check, answer.text, list(answer.tool_calls))
