"""HTTP: the standard library's server, a thread a connection, for one machine's own load generator."""

from __future__ import annotations

import json
import queue
import select
import socket
import sys
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from serving import asked as requests
from serving.answers import Shape, fault
from serving.desk import Desk, Failed, Said, Ticket
from serving.run import Run
from serving.settings import Unfit

if TYPE_CHECKING:  # torch comes with it
    from serving.model import Model

_MOST_BODY = 32 << 20
_LOOK_S = 0.2
"""How often a waiting connection is looked at: has its client hung up?"""


class Gone(Exception):
    """The client hung up."""


class Server(ThreadingHTTPServer):
    """Bound at once, so that a port in use is told before anything loads; serves when a model is put in."""

    daemon_threads = True
    request_queue_size = 1024
    allow_reuse_address = True
    model: Model | None = None
    desk: Desk | None = None

    def open(self, model: Model) -> None:
        """From now on requests are answered."""
        self.model, self.desk = model, Desk(model)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is its client's business; anything else goes to the log."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "paribus-transformers"
    disable_nagle_algorithm = True
    timeout = 3600
    server: Server

    def log_message(self, *_: Any) -> None:
        """No line a request: the log is the engine's."""

    def do_GET(self) -> None:
        """Health, models, metrics, properties."""
        path, model = self.path.partition("?")[0], self.server.model
        if model is None:
            self._json(503, fault("the model is being loaded", "loading"))
        elif path == "/health":
            self._json(200, {"status": "ok"})
        elif path == "/v1/models":
            about = {"id": model.settings.alias, "object": "model", "owned_by": "paribus-transformers"}
            self._json(200, {"object": "list", "data": [about | {"max_model_len": model.settings.context}]})
        elif path == "/metrics":
            self._send(200, model.meters.page().encode(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/props":
            self._json(200, model.properties())
        else:
            self._json(404, fault(f"there is no page {path}", "not_found"))

    def do_POST(self) -> None:
        """Chat, completions, the rendered prompt."""
        try:
            body = self._body()
            if self.server.model is None:
                self._json(503, fault("the model is being loaded", "loading"))
            elif self.path == "/apply-template":
                asked = requests.read(body, chat=True, fields=frozenset())
                self._json(200, {"prompt": self.server.model.render(asked)})
            elif self.path in ("/v1/chat/completions", "/v1/completions"):
                self._answer(body, chat=self.path == "/v1/chat/completions")
            else:
                self._json(404, fault(f"there is no page {self.path}", "not_found"))
        except Unfit as error:
            self._json(400, fault(str(error), "invalid_request_error"))
        except (Gone, OSError):
            self.close_connection = True
        except Exception as error:  # a fault of ours: said to the client, and whole in the log
            traceback.print_exc()
            self.close_connection = True
            self._json(500, fault(f"{type(error).__name__}: {error}"[:500], "server_error"))

    def _body(self) -> Any:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self.close_connection = True
            raise Unfit("a request needs a Content-Length") from None
        if not 0 < length <= _MOST_BODY:
            self.close_connection = True
            raise Unfit(f"a body has 1 to {_MOST_BODY} bytes, not {length}")
        try:
            return json.loads(self.rfile.read(length))
        except ValueError as error:
            raise Unfit(f"the body is no JSON: {error}") from error

    def _answer(self, body: Any, *, chat: bool) -> None:
        model, desk = self.server.model, self.server.desk
        assert model is not None
        assert desk is not None
        asked = requests.read(body, chat=chat, fields=model.family.fields)
        prompt = model.prompt(asked)
        shape = Shape(model.settings.alias, chat, asked.usage, len(prompt.tokens))
        ticket = Ticket(asked, prompt)
        desk.take(ticket)
        try:
            self._stream(ticket, shape) if asked.stream else self._whole(ticket, shape)
        finally:
            ticket.gone.set()

    def _whole(self, ticket: Ticket, shape: Shape) -> None:
        pieces = []
        for event in self._events(ticket):
            if isinstance(event, Failed):
                self._json(500, fault(event.why, "server_error"))
            elif isinstance(event, Run):
                self._json(200, shape.whole(pieces, event))
            else:
                pieces.append(event.piece)

    def _stream(self, ticket: Ticket, shape: Shape) -> None:
        """Events of a stream; each piece leaves in one write."""
        begun = False
        for event in self._events(ticket):
            if not begun:
                begun = True
                self._begin()
                self._write(*shape.opening())
            if isinstance(event, Said):
                self._write(shape.piece(event.piece, event.tokens))
            elif isinstance(event, Run):
                self._write(*shape.closing(event))
            else:
                self._write(fault(event.why, "server_error"))
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _events(self, ticket: Ticket) -> Iterator[Said | Run | Failed]:
        while True:
            try:
                event = ticket.events.get(timeout=_LOOK_S)
            except queue.Empty:
                if self._hung_up():
                    raise Gone from None
                continue
            yield event
            if not isinstance(event, Said):
                return

    def _hung_up(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _write(self, *events: dict[str, Any]) -> None:
        if events:
            self._chunk(b"".join(b"data: " + json.dumps(e, ensure_ascii=False).encode() + b"\n\n" for e in events))

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body, ensure_ascii=False).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
