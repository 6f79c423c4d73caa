"""Bodies and events of answers, as the OpenAI API has them."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from serving.run import Run
from serving.text import Piece


@dataclass(frozen=True)
class Shape:
    """How answers to one request look."""

    model: str
    chat: bool
    usage: bool
    prompt_tokens: int
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def opening(self) -> list[dict[str, Any]]:
        """The events before the first piece: a chat's role."""
        return [self._event({"role": "assistant", "content": ""}, "", None)] if self.chat else []

    def piece(self, piece: Piece, tokens: int) -> dict[str, Any]:
        """One piece: a token, or a whole canvas or block. Where usage was asked for, with the tokens so far."""
        delta = {"content": piece.text} if piece.text else {}
        if piece.reasoning:
            delta["reasoning_content"] = piece.reasoning
        # A completion has one text: what a model thinks is part of it.
        event = self._event(delta, piece.reasoning + piece.text, None)
        return event | ({"usage": self._counts(tokens)} if self.usage else {})

    def closing(self, run: Run) -> list[dict[str, Any]]:
        """The events after the last piece: why it ended, and what was used."""
        events = [self._event({}, "", run.finish)]
        if self.usage:
            events.append(self._frame("chunk") | {"choices": [], "usage": self._counts(len(run.tokens))})
        return events

    def whole(self, pieces: list[Piece], run: Run) -> dict[str, Any]:
        """The answer as one body."""
        text, reasoning = "".join(p.text for p in pieces), "".join(p.reasoning for p in pieces)
        choice: dict[str, Any] = {"index": 0, "finish_reason": run.finish, "logprobs": None}
        if self.chat:
            thought = {"reasoning_content": reasoning} if reasoning else {}
            choice["message"] = {"role": "assistant", "content": text, **thought}
        else:
            choice["text"] = reasoning + text
        return self._frame("") | {"choices": [choice], "usage": self._counts(len(run.tokens))}

    def _frame(self, kind: str) -> dict[str, Any]:
        name = "chat.completion" + (f".{kind}" if kind else "") if self.chat else "text_completion"
        prefix = "chatcmpl" if self.chat else "cmpl"
        return {"id": f"{prefix}-{self.id}", "object": name, "created": self.created, "model": self.model}

    def _event(self, delta: dict[str, Any], text: str, finish: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        choice |= {"delta": delta} if self.chat else {"text": text}
        return self._frame("chunk") | {"choices": [choice]}

    def _counts(self, tokens: int) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": self.prompt_tokens + tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
        }


def fault(why: str, kind: str) -> dict[str, Any]:
    """An error, as a body or an event."""
    return {"error": {"message": why, "type": kind}}
