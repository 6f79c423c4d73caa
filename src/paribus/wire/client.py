"""The load generator's client: sends requests, returns what happened. Faults of the server are results, not exceptions.

A raw asyncio protocol with httptools' parser, chosen by measurement (see `benchmarks/client_cost.py`). No limit on
connections, no read-ahead, no limit on a line's length. A request is sent once: what meets a server that closes its
connection has failed. A connection is used again only once the server has shown that it keeps them (some close right
after an answer, whatever their headers say), and not when its end had come before the first byte was written; a new
connection's time is in `connect_ns`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import Self

from paribus import __version__
from paribus.conditions import UsageError
from paribus.wire.connection import Connection
from paribus.wire.exchange import Endpoint, Outcome, Reads

_CONNECT_TIMEOUT_S = 30.0
_PROOF_NS = 20_000_000
"""A connection that is still open so long after an answer was kept; one that was closed before was not."""


class Client:
    """An HTTP client for one endpoint. Use as `async with Client(endpoint) as client: ...`.

    `epoch_ns` is the zero of every time in its outcomes (`time.monotonic_ns()` at construction by default).
    `ssl_context` replaces the system's certificates for https. Timeouts in seconds: `idle_timeout_s` without a byte,
    `total_timeout_s` since sent.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        idle_timeout_s: float = 120,
        total_timeout_s: float = 3600,
        epoch_ns: int | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.epoch_ns = time.monotonic_ns() if epoch_ns is None else epoch_ns
        self.last_fault = ""
        """Why the last attempt to connect failed, in the system's words."""
        self._address = endpoint.address()
        self._ssl = (ssl_context or ssl.create_default_context()) if self._address.secure else None
        self._idle_timeout_s, self._total_timeout_s = idle_timeout_s, total_timeout_s
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._keeps: bool | None = None
        """Whether the server keeps connections after an answer; None until that was seen."""
        self._post = self._head("POST", self._address.prefix + _PATHS[endpoint.api])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.abort()
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def now_ns(self) -> int:
        """Nanoseconds since the client's epoch."""
        return time.monotonic_ns() - self.epoch_ns

    async def open(self, n: int) -> int:
        """Connect ahead, so that `n` connections are ready; returns how many are (fewer when connecting fails)."""
        ready = []
        while (connection := self._reusable()) is not None:
            ready.append(connection)
        fresh = await asyncio.gather(*(self._connect() for _ in range(n - len(ready))))
        ready += [connection for connection in fresh if connection is not None]
        self._idle += ready
        return len(ready)

    async def send(
        self, body: bytes, *, index: int, prompt_id: str, due_ns: int, phase: str, worker: int = 0
    ) -> Outcome:
        """Send one request now and wait for its end. Never raises for a server's fault; see `Outcome.error`.

        A cancelled task closes the connection and raises, as asyncio expects; `abort` ends exchanges with a record.
        """
        request = self._post + _length(body) + body
        connection, connect_ns = self._reusable(), 0
        if connection is not None:
            await self._run(connection, request, self._idle_timeout_s, self._total_timeout_s)
        if connection is None or connection.unsent:
            began = time.monotonic_ns()
            connection = await self._connect()
            connect_ns = time.monotonic_ns() - began
            if connection is not None:
                await self._run(connection, request, self._idle_timeout_s, self._total_timeout_s)
        failed_ns = time.monotonic_ns() - self.epoch_ns
        record = connection or _NoConnection
        return Outcome.late(
            connection.contents() if connection else _nothing,
            index=index,
            prompt_id=prompt_id,
            due_ns=due_ns,
            sent_ns=connection.sent_ns - self.epoch_ns if connection else failed_ns,
            connect_ns=connect_ns,
            ended_ns=connection.ended_ns - self.epoch_ns if connection else failed_ns,
            status=record.status,
            error=record.error or (f"http_{record.status}" if not 200 <= record.status < 300 else None),
            content_type=record.headers.get("content-type", ""),
            phase=phase,
            api=self.endpoint.api,
            worker=worker,
            retry_after_s=_retry_after(record.headers.get("retry-after")),
        )

    def abort(self) -> None:
        """End every exchange that runs: each `send` returns its outcome so far, with the error `cancelled`."""
        for connection in tuple(self._busy):
            connection.stop("cancelled")

    async def get(self, path: str, timeout_s: float = 10.0) -> tuple[int, bytes]:
        """GET a path from the server's root, such as `/metrics`; (status, body), (0, b"") without a whole response."""
        return await self._fetch(self._head("GET", path) + b"\r\n", timeout_s)

    async def post(self, path: str, body: bytes, timeout_s: float = 60.0) -> tuple[int, bytes]:
        """POST JSON to a path from the server's root, such as `/tokenize`; answers as `get` does."""
        return await self._fetch(self._head("POST", path) + _length(body) + body, timeout_s)

    async def _fetch(self, request: bytes, timeout_s: float) -> tuple[int, bytes]:
        # A connection of its own: polling must never take or delay one that is measured.
        connection = await self._connect(timeout_s)
        if connection is None:
            return 0, b""
        try:
            await self._run(connection, request, timeout_s, timeout_s, keep=False)
        finally:
            connection.close()
        return (connection.status, connection.contents()()[0]) if connection.error is None else (0, b"")

    async def _run(
        self, connection: Connection, request: bytes, idle_s: float, total_s: float, *, keep: bool = True
    ) -> None:
        self._busy.add(connection)
        try:
            await connection.exchange(request, idle_s, total_s)
        except asyncio.CancelledError:
            connection.stop("cancelled")
            raise
        finally:
            self._busy.discard(connection)
        if keep and connection.usable:
            self._idle.append(connection)

    def _reusable(self) -> Connection | None:
        """The connection used last, if it is young enough, open, and either new or of a server that keeps them."""
        now, unproven, found = time.monotonic_ns(), [], None
        while self._idle and found is None:
            connection = self._idle.pop()
            rested_ns = connection.rested_ns(now)
            if connection.has_ended():
                if rested_ns is not None and rested_ns < _PROOF_NS:
                    self._keeps = False
                connection.close()
            elif now >= connection.use_before_ns:
                connection.close()
            elif rested_ns is None:
                found = connection
            else:
                if self._keeps is None and rested_ns >= _PROOF_NS:
                    self._keeps = True
                if self._keeps:
                    found = connection
                elif self._keeps is None:
                    unproven.append(connection)
                else:
                    connection.close()
        self._idle += reversed(unproven)
        return found

    async def _connect(self, timeout_s: float = _CONNECT_TIMEOUT_S) -> Connection | None:
        loop = asyncio.get_running_loop()
        timeout_s = min(timeout_s, _CONNECT_TIMEOUT_S, self._idle_timeout_s, self._total_timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(secure=self._address.secure),
                    self._address.host,
                    self._address.port,
                    ssl=self._ssl,
                )
        except (OSError, UnicodeError) as error:
            self.last_fault = str(error) or type(error).__name__
            return None
        return connection

    def _head(self, method: str, path: str) -> bytes:
        """The request's head, up to where its length comes."""
        if any(ord(letter) <= 32 or ord(letter) >= 127 for letter in path):
            raise UsageError(f"the path {path!r} holds blanks or letters outside ASCII")
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self._address.host_header}",
            f"User-Agent: paribus/{__version__}",
            "Accept: */*",
            "Accept-Encoding: identity",
        ]
        if self.endpoint.api_key:
            if any(ord(letter) < 32 or ord(letter) >= 127 for letter in self.endpoint.api_key):
                raise UsageError("the API key holds letters that can't be sent in a header")
            lines.append(f"Authorization: Bearer {self.endpoint.api_key}")
        return ("\r\n".join(lines) + "\r\n").encode("ascii")


class _NoConnection:
    """The record of an exchange that never had a connection."""

    status = 0
    error = "connect"
    headers: dict[str, str] = {}


def _nothing() -> tuple[bytes, Reads]:
    return b"", Reads.of(())


_PATHS = {"chat": "/chat/completions", "completions": "/completions"}


def _length(body: bytes) -> bytes:
    return b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait, from a number or a date; None when neither."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip().isdigit() else parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds)
