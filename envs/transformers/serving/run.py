"""One request while it is answered: what its family commits, until the sequence ends, the cap or a stop string."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from serving.meters import Meters
from serving.text import Piece, Teller


class Halt(Exception):
    """No more is wanted of this request: it is finished, or nobody listens any more."""


@dataclass
class Run:
    """What a family's `generate` works on. `most`: tokens to deliver at most; `sampling`: fields of the request.

    A family calls `passed` for its forward passes and `commit` with new tokens; either raises `Halt` when it is over.
    """

    prompt: list[int]
    most: int
    sampling: dict[str, float | int]
    ends: frozenset[int]
    teller: Teller
    meters: Meters
    tell: Callable[[Piece, int], None]
    """Told each piece, and the tokens delivered so far."""
    gone: Callable[[], bool]
    """Whether nobody listens any more."""
    finish: str | None = None
    tokens: list[int] = field(default_factory=list)

    def passed(self, *, denoising: int = 0, other: int = 0) -> None:
        """Count forward passes."""
        self.meters.add(forward_passes=denoising + other, denoising_steps=denoising)
        if self.gone():
            raise Halt

    def commit(self, tokens: Sequence[int], *, canvas: bool = False) -> None:
        """Deliver new tokens: everything up to the first that ends the sequence, and no more than the cap.

        `canvas`: a whole canvas or block, which counts as committed whatever the cap cuts.
        """
        end = next((i for i, token in enumerate(tokens) if token in self.ends), None)
        whole = list(tokens) if end is None else list(tokens[: end + 1])
        if canvas:
            self.meters.add(canvases=1, committed_tokens=len(whole))
        kept = whole[: self.most - len(self.tokens)]
        self.tokens += kept
        if end is not None and len(kept) == len(whole):
            self.finish = "stop"
        elif len(self.tokens) >= self.most:
            self.finish = "length"
        self.meters.add(generated_tokens=len(kept))
        said = [token for token in kept if token not in self.ends]
        piece = self.teller.feed(said, last=self.finish is not None)
        if self.teller.stopped:
            self.finish = "stop"
        if piece != Piece():
            self.tell(piece, len(self.tokens))
        if self.finish is not None or self.gone():
            raise Halt

    def end(self) -> None:
        """The family has nothing more to say: the rest of the text is told."""
        if self.finish is None:
            self.finish = "stop"
            piece = self.teller.feed([], last=True)
            if piece != Piece():
                self.tell(piece, len(self.tokens))
