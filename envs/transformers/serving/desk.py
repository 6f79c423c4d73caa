"""The desk: requests in the order they came, answered by one thread, one after the other."""

from __future__ import annotations

import queue
import threading
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from serving.asked import Asked, Prompt
from serving.run import Run
from serving.text import Piece

if TYPE_CHECKING:  # torch comes with it
    from serving.model import Model


@dataclass
class Said:
    """A piece on its way to the client, with the tokens delivered up to it."""

    piece: Piece
    tokens: int


@dataclass
class Failed:
    """The answer failed while it was made."""

    why: str


@dataclass
class Ticket:
    """One request at the desk. What happens to it comes through `events`: `Said`..., then a `Run` or `Failed`."""

    asked: Asked
    prompt: Prompt
    events: queue.SimpleQueue[Said | Run | Failed] = field(default_factory=queue.SimpleQueue)
    gone: threading.Event = field(default_factory=threading.Event)


class Desk:
    """Takes tickets and answers them. One thread does all of torch's work: its pool of threads belongs to it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._waiting: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="desk", daemon=True)
        self._thread.start()

    def take(self, ticket: Ticket) -> None:
        """Queue a request."""
        self._model.meters.move("requests_waiting", 1)
        self._waiting.put(ticket)

    def stop(self, timeout_s: float) -> None:
        """Give up what is under way and end the thread, which it does after its present forward pass."""
        self._stopping.set()
        self._waiting.put(None)
        self._thread.join(timeout_s)

    def _work(self) -> None:
        while (ticket := self._waiting.get()) is not None and not self._stopping.is_set():
            meters = self._model.meters
            meters.move("requests_waiting", -1)
            if ticket.gone.is_set():
                continue
            meters.move("requests_running", 1)
            try:
                outcome: Run | Failed = self._answer(ticket)
            finally:
                meters.move("requests_running", -1)
            ticket.events.put(outcome)

    def _answer(self, ticket: Ticket) -> Run | Failed:
        def tell(piece: Piece, tokens: int) -> None:
            ticket.events.put(Said(piece, tokens))

        def gone() -> bool:
            return ticket.gone.is_set() or self._stopping.is_set()

        try:
            return self._model.answer(ticket.asked, ticket.prompt, tell, gone)
        except Exception as error:  # whatever the model's code raises ends this answer, not the server
            traceback.print_exc()
            return Failed(f"{type(error).__name__}: {error}"[:500])
