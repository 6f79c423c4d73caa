"""From token ids to text that can be streamed: whole characters only, thinking apart, stop strings held back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Decode = Callable[[list[int]], str]

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"
_WINDOW = 6
"""Tokens decoded again before new ones, so that a tokenizer which joins or strips blanks says the same as at once."""


class Decoder:
    """Text of a growing list of tokens, piece by piece; a character that isn't whole yet waits for its other tokens."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._tokens: list[int] = []
        self._told = 0

    def feed(self, tokens: Sequence[int], *, last: bool = False) -> str:
        """The text that became certain with these tokens. `last`: tell the rest, whole or not."""
        self._tokens += tokens
        start = max(0, self._told - _WINDOW)
        before = self._decode(self._tokens[start : self._told])
        now = self._decode(self._tokens[start:])
        if now.endswith(_UNFINISHED) and not last:
            return ""
        self._told = len(self._tokens)
        return now[len(before) :]


class StopStrings:
    """Holds back text that may be the beginning of a stop string; says when one is whole."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.hit = False

    def feed(self, text: str, *, last: bool = False) -> str:
        """The text that can be told. After a hit nothing more is."""
        if self.hit or not self._stops:
            return "" if self.hit else text
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.hit, self._held = True, ""
            return text[: min(found)]
        keep = 0 if last else max(self._begun(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    @staticmethod
    def _begun(text: str, stop: str) -> int:
        return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)


@dataclass(frozen=True)
class Piece:
    """What one commit delivers."""

    text: str = ""
    reasoning: str = ""


class Teller:
    """Tokens in, pieces out. `marks`: ids of the tokens around thinking; `thinks`: the answer begins inside them."""

    def __init__(self, decode: Decode, stops: Sequence[str], marks: tuple[int, int] | None, thinks: bool) -> None:
        self._answer, self._thought = Decoder(decode), Decoder(decode)
        self._stops, self._marks, self._inside = StopStrings(stops), marks, bool(marks) and thinks

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met; thinking is never stopped by one."""
        return self._stops.hit

    def feed(self, tokens: Sequence[int], *, last: bool = False) -> Piece:
        """The piece that these tokens make."""
        thought, answer = self._split(tokens)
        reasoning = self._thought.feed(thought, last=last)
        return Piece(self._stops.feed(self._answer.feed(answer, last=last), last=last), reasoning)

    def _split(self, tokens: Sequence[int]) -> tuple[list[int], list[int]]:
        if self._marks is None:
            return [], list(tokens)
        thought: list[int] = []
        answer: list[int] = []
        for token in tokens:
            if token in self._marks:
                self._inside = token == self._marks[0]
            else:
                (thought if self._inside else answer).append(token)
        return thought, answer
