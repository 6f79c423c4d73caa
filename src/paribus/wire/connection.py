"""One connection: writes a request, stamps and stores what comes back, and knows when the response is whole.

Nothing is interpreted here but HTTP's own framing: the work for a read is one clock, httptools' parser in C, and three
appends, one of which the parser does. What the bytes say is read after the measurement.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import time
import zlib
from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import cast

import httptools

from paribus.wire.exchange import Reads

_MAX_BODY = 1 << 28
"""A body over 256 MiB ends the exchange: no answer is that long, and memory is finite."""
_FRESH_NS = 30_000_000_000
"""A new connection that has not served within this is not used."""
_IDLE_NS = 4_000_000_000
"""The same after an exchange: servers drop idle connections (many after 5 s), and a request that meets that moment
would fail for no fault of the engine's."""
_END_HAS_COME = getattr(select, "POLLRDHUP", 0)
"""The other side has sent its last (Linux; elsewhere that is told as a hang-up, which `poll` always looks for)."""
_KEPT = re.compile(r"timeout=(\d{1,6})")
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class Connection(asyncio.Protocol):
    """One connection, one exchange at a time. After an exchange its record stays readable until the next starts."""

    def __init__(self, *, secure: bool) -> None:
        self._secure = secure
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[None] | None = None
        self.usable = False
        self._lost_ns = 0
        self.use_before_ns = 0
        """When this connection is too old for another request (monotonic clock)."""
        self._begin()

    def _begin(self) -> None:
        """A clean record for the next exchange."""
        self._parts: list[bytes] = []
        self._stamps: list[int] = []
        self._marks: list[int] = []
        self.on_body: Callable[[bytes], None] = self._parts.append
        """What the parser calls for a part of the body, de-chunked."""
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data
        self._received = 0
        self._whole: int | None = None
        self._inflate: zlib._Decompress | None = None
        self._until_close = True
        self._head_done = False
        self._last_ns = 0
        self.headers: dict[str, str] = {}
        self.status = 0
        self.error: str | None = None
        self.unsent = False
        """Whether the system refused the first byte: the server saw nothing of the request."""
        self.sent_ns = 0
        self.ended_ns = 0

    # What the client calls.

    def has_ended(self) -> bool:
        """Whether this connection is of no more use, or its server's end has come, which the loop may not have seen."""
        if not self.usable:
            return True
        state = select.poll()
        state.register(self._file, _END_HAS_COME)
        return bool(state.poll(0))

    def rested_ns(self, now: int) -> int | None:
        """Nanoseconds that this connection has been open since its last exchange; None when it has had none."""
        return None if self.ended_ns == 0 else (self._lost_ns or now) - self.ended_ns

    def exchange(self, request: bytes, idle_timeout_s: float, total_timeout_s: float) -> asyncio.Future[None]:
        """Write a request. The future is done (never failed) when the exchange ended; then read the record."""
        self._begin()
        self._idle_ns, self._total_ns = int(idle_timeout_s * 1e9), int(total_timeout_s * 1e9)
        self._done = self._loop.create_future()
        self._timer = self._loop.call_later(min(idle_timeout_s, total_timeout_s), self._check_timeouts)
        self._write(request)
        return self._done

    def stop(self, error: str) -> None:
        """End the exchange at once with an error; the connection is of no more use."""
        self._end(error, time.monotonic_ns())

    def close(self) -> None:
        """Close the connection."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def contents(self) -> Callable[[], tuple[bytes, Reads]]:
        """What puts the body and its reads together, now or when there is time: those that brought body bytes."""
        parts, stamps, marks, sent_ns = self._parts, self._stamps, self._marks, self.sent_ns
        # Parts beyond are of a response that nobody asked for.
        whole = len(parts) if self._whole is None else self._whole

        def put_together() -> tuple[bytes, Reads]:
            offsets = [0, *accumulate(map(len, parts[:whole]))]
            times, ends, before = array("q"), array("q"), 0
            for stamp, mark in zip(stamps, marks, strict=True):
                end = offsets[min(mark, whole)]
                if end > before:
                    times.append(stamp - sent_ns)
                    ends.append(end)
                    before = end
            return b"".join(parts[:whole]), Reads(times, ends)

        return put_together

    def _write(self, request: bytes) -> None:
        """Write now: a transport may put writing off to the end of the loop's turn, after the clock was read."""
        transport = cast(asyncio.Transport, self._transport)
        self.sent_ns = self._last_ns = time.monotonic_ns()
        written = 0
        if not self._secure and transport.get_write_buffer_size() == 0:
            try:
                written = os.write(self._file, request)
            except BlockingIOError:
                written = 0
            except OSError:
                self.unsent = True
                self._end("reset", time.monotonic_ns())
                return
        if written < len(request):
            transport.write(request[written:])

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._file: int = transport.get_extra_info("socket").fileno()
        self.usable = True
        self.use_before_ns = time.monotonic_ns() + _FRESH_NS

    def data_received(self, data: bytes) -> None:
        """Bytes arrived: stamp first, then store."""
        now = time.monotonic_ns()
        if self._done is None:
            self.close()  # a server that speaks unasked
            return
        self._last_ns = now
        try:
            self._feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.error = self.error or (None if self._whole is not None else "protocol")
            self.usable = False
        if self._inflate is not None:
            self._unpack()
        self._stamps.append(now)
        self._marks.append(len(self._parts))
        self._received += len(data)
        if self._received > _MAX_BODY:
            self.error = "protocol"
        if self._whole is not None or self.error:
            self._end(self.error, now)

    def eof_received(self) -> bool:
        """The server closed its side: let the transport close too."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; what that means depends on how far the response was."""
        now = time.monotonic_ns()
        self.usable, self._lost_ns = False, now
        if self._head_done and self._until_close and exc is None:
            self._end(None, now)
        else:
            self._end("reset" if exc is not None or self.status == 0 else "cut", now)

    def _check_timeouts(self) -> None:
        now = time.monotonic_ns()
        total_left, idle_left = self.sent_ns + self._total_ns - now, self._last_ns + self._idle_ns - now
        if total_left <= 0:
            self._end("timeout_total", now)
        elif idle_left <= 0:
            self._end("timeout_idle", now)
        else:
            self._timer = self._loop.call_later(min(total_left, idle_left) / 1e9 + 0.001, self._check_timeouts)

    def _end(self, error: str | None, now: int) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.error = error
        self.ended_ns = now
        self.use_before_ns = self._use_before()
        if error is not None or not self.usable:
            self.close()
        if not done.done():
            done.set_result(None)

    def _use_before(self) -> int:
        """Until when the server will surely keep this connection.

        A server may say for how long (`Keep-Alive: timeout=5`). llama.cpp's counts that from the request on, and
        closes right after an answer that took longer, so that is how it is counted here.
        """
        told = _KEPT.search(self.headers.get("keep-alive", ""))
        until = self.ended_ns + _IDLE_NS
        return until if told is None else min(until, self.sent_ns + int(told.group(1)) * 900_000_000)

    # What the HTTP parser calls.

    def on_message_begin(self) -> None:
        """A response begins; one more than was asked for makes the connection useless."""
        if self._whole is not None:
            self.usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header line (or a trailer, which is passed over)."""
        if not self._head_done:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole: status, framing and encoding are known."""
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self.headers.clear()
            return
        self.status = status
        self._head_done = True
        self._until_close = "content-length" not in self.headers and "transfer-encoding" not in self.headers
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        elif encoding not in ("identity", ""):
            self.error = "protocol"

    def on_message_complete(self) -> None:
        """The response is whole (unless it was an informational one)."""
        if self._head_done and self._whole is None:
            self._whole = len(self._parts)
            self.usable = self.usable and self._parser.should_keep_alive()

    def _unpack(self) -> None:
        """Decompress the parts that this read brought."""
        before = self._marks[-1] if self._marks else 0
        try:
            plain = [self._inflated(part) for part in self._parts[before : self._whole]]
        except zlib.error:
            self.error, self.usable, plain = self.error or "protocol", False, []
        self._received += sum(map(len, plain))
        self._parts[before:] = plain
        self._whole = None if self._whole is None else len(self._parts)

    def _inflated(self, data: bytes) -> bytes:
        """Decompress; a stream may hold several gzip members, one after the other."""
        parts = []
        while data and self._inflate is not None:
            parts.append(self._inflate.decompress(data, _MAX_BODY))
            data = self._inflate.unused_data
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        return b"".join(parts)
