"""The tests' end of the scripted endpoint: start it, tell it what to say, ask what it did."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.wire import Api, Endpoint
from scripted.script import Script


@dataclass(frozen=True)
class Emission:
    """What the server did for one request. Times are its monotonic nanoseconds, the client's clock on one machine.

    `writes`: (clock before the write, clock after it, tokens) of each step; `active`: requests under way with this
    one; `peer`: the client's port, so that reused connections show.
    """

    model: str
    request: dict[str, Any]
    headers: dict[str, str]
    got_ns: int
    writes: list[tuple[int, int, int]]
    ended: str
    active: int
    peer: int
    ended_ns: int = 0


class Scripted:
    """A running scripted endpoint."""

    def __init__(self, port: int, cafile: Path | None = None) -> None:
        self.port = port
        scheme = "https" if cafile else "http"
        self.root = f"{scheme}://127.0.0.1:{port}"
        self.base_url = f"{self.root}/v1"
        self.ssl_context = ssl.create_default_context(cafile=str(cafile)) if cafile else None

    def endpoint(self, model: str, api: Api = "chat", **more: Any) -> Endpoint:
        """This server as the client sees it; the model's name picks the script."""
        return Endpoint(self.base_url, model, api, **more)

    def register(self, name: str, *scripts: Script) -> str:
        """Answer the model `name` with these scripts in turn (the last repeats). Returns the name."""
        self._control("scripts", {"name": name, "scripts": [script.to_json() for script in scripts]})
        return name

    def metrics(self, text: str) -> None:
        """What `/metrics` says from now on."""
        self._call("/control/metrics", text.encode())

    def log(self, model: str | None = None) -> list[Emission]:
        """What the server did, in the order of requests; of one model only, if named."""
        known = set(Emission.__dataclass_fields__)
        rows = [Emission(**{k: v for k, v in row.items() if k in known}) for row in self._control("log", {})]
        return [row for row in rows if model in (None, row.model)]

    def clear(self) -> None:
        """Forget scripts and log."""
        self._control("clear", {})

    def _control(self, what: str, value: Any) -> Any:
        return json.loads(self._call(f"/control/{what}", json.dumps(value).encode()))

    def _call(self, path: str, body: bytes) -> bytes:
        with urllib.request.urlopen(self.root + path, data=body, timeout=20, context=self.ssl_context) as reply:
            return reply.read()


@contextmanager
def start_server(certificate: Path | None = None) -> Iterator[Scripted]:
    """Run the endpoint in a process of its own, over TLS when given a file with key and certificate."""
    command = [sys.executable, str(Path(__file__).with_name("server.py")), *([str(certificate)] if certificate else [])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Scripted(int(process.stdout.readline()), certificate)
    finally:
        process.kill()
        process.communicate()
