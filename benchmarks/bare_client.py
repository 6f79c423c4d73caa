"""A load generator that does the least there is to do: wait, read, take the time, keep the bytes. What it costs is what
the operating system and Python ask of any client. Called by benchmarks/truth.py; needs epoll (Linux).

    python benchmarks/bare_client.py URL MODEL REQUESTS AT_ONCE OUT.json
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

PIECE = re.compile(rb'"content":"[^"]')
NUMBER = re.compile(rb'"id":"c(\d+)"')
USAGE = re.compile(rb'"completion_tokens":(\d+)')
LAST = b"0\r\n\r\n"


@dataclass
class Exchange:
    """One request and what came back: the reads and when each came."""

    began_ns: int
    reads: list[bytes] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def told(self) -> dict[str, float | int | None] | None:
        """Its times, read from the stored bytes; None for an answer without text."""
        came = [t for t, data in zip(self.times, self.reads, strict=True) if PIECE.search(data)]
        if not came:
            return None
        whole = b"".join(self.reads)
        usage, number = USAGE.search(whole), NUMBER.search(whole)
        tokens, rest = int(usage[1]) if usage else len(came), (came[-1] - came[0]) / 1e9
        return {
            "ttft_ms": (came[0] - self.began_ns) / 1e6,
            "e2e_ms": (came[-1] - self.began_ns) / 1e6,
            "tokens": tokens,
            "rate": (tokens - 1) / rest if rest > 0 else None,
            "number": int(number[1]) if number else None,
        }


def go(url: str, model: str, requests: int, at_once: int) -> list[Exchange]:
    """A closed loop of so many requests on so many connections."""
    address = urlsplit(url)
    content = {"model": model, "messages": [{"role": "user", "content": "x"}], "stream": True,
               "stream_options": {"include_usage": True}}  # fmt: skip
    body = json.dumps(content).encode()
    request = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    waiting, sockets, running = select.epoll(), [], {}
    done: list[Exchange] = []
    for _ in range(min(at_once, requests)):
        connection = socket.create_connection((address.hostname, address.port))
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting.register(connection.fileno(), select.EPOLLIN)
        sockets.append(connection)
    for connection in sockets:
        running[connection.fileno()] = Exchange(time.monotonic_ns())
        os.write(connection.fileno(), request)
    left = requests - len(sockets)
    while running:
        for file, _ in waiting.poll():
            data = os.read(file, 65536)
            exchange = running[file]
            exchange.times.append(time.monotonic_ns())
            exchange.reads.append(data)
            if data and not data.endswith(LAST):
                continue
            done.append(running.pop(file))
            if data and left:
                left -= 1
                running[file] = Exchange(time.monotonic_ns())
                os.write(file, request)
            else:
                waiting.unregister(file)
    return done


if __name__ == "__main__":
    _, to, name, number, together, out = sys.argv
    told = [exchange.told() for exchange in go(to, name, int(number), int(together))]
    answers = [each for each in told if each is not None]
    Path(out).write_text(json.dumps({"answers": answers, "failed": len(told) - len(answers)}))
