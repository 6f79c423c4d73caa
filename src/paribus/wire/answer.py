"""What an exchange says, once it is read: pieces with their arrival times, the text, usage, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple


class Piece(NamedTuple):
    """One streamed piece that carries something the model wrote. A role-only or empty piece is none.

    `t_ns`: arrival, nanoseconds since the request was sent, of the read that completed its event.
    `tool`: the function's name and arguments as they came. `tokens`: cumulative `completion_tokens`, where the
    piece carries usage.
    """

    t_ns: int
    text: str
    reasoning: str
    tool: str
    tokens: int | None

    @property
    def delivered(self) -> str:
        """Everything the piece delivers: reasoning, text, tool call."""
        return self.reasoning + self.text + self.tool


@dataclass(frozen=True)
class Usage:
    """The server's own count, the last one it gave (counts are cumulative and never summed).

    `completion_tokens` holds the `reasoning_tokens`, whether the server adds them there or counts them beside.
    """

    completion_tokens: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None


@dataclass(frozen=True)
class Answer:
    """An exchange, read. `error is None` means: a whole answer.

    Errors are those of `Outcome` and: `in_band` (an error event or body under HTTP 200), `cut` (the stream ended
    without a finish reason), `protocol` (an event that is no JSON, or no object of it and the answer isn't whole),
    `choices` (several choices), `empty` (nothing delivered). `done`: `[DONE]` was seen (or the server answered with
    one JSON body). `revised`: text was replaced after it was shown; then the pieces are those of the final form.
    `detail`: the server's own words on an error, or ours where it says nothing.
    `timings`: llama.cpp's numbers (`draft_n`, `draft_n_accepted`, `cache_n`, ...), empty elsewhere.
    """

    pieces: tuple[Piece, ...]
    text: str
    reasoning: str
    tool_calls: tuple[dict[str, str], ...]
    """Keys: name, arguments, id."""
    finish_reason: str | None
    usage: Usage | None
    error: str | None
    done: bool
    revised: bool
    detail: str = ""
    timings: dict[str, float] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)
    """UTF-8 bytes of text under names that aren't read, by name: it is in no piece."""

    @cached_property
    def parts(self) -> list[str]:
        """What each piece delivers: reasoning, text, tool call."""
        return [reasoning + text + tool for _, text, reasoning, tool, _ in self.pieces]

    @cached_property
    def delivered(self) -> str:
        """Everything delivered, in the order of arrival: what tokens, characters and bytes are counted over."""
        return "".join(self.parts)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Characters delivered with each piece and those before it."""
        return tuple(accumulate(map(len, self.parts)))

    @property
    def ttft_ns(self) -> int | None:
        """Arrival of the first piece (reasoning included); None without one."""
        return self.pieces[0].t_ns if self.pieces else None

    @property
    def ttfa_ns(self) -> int | None:
        """Arrival of the first piece of the visible answer (text or tool call); None without one."""
        return next((piece.t_ns for piece in self.pieces if piece.text or piece.tool), None)

    @property
    def e2e_ns(self) -> int | None:
        """Arrival of the last piece; a trailing usage block does not count. None without a piece."""
        return self.pieces[-1].t_ns if self.pieces else None
