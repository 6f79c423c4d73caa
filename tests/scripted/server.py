"""The scripted endpoint's process: `python server.py [CERTIFICATE]` prints its port, then serves until killed.

Plain asyncio: its transports write at once, so that the clock read before a write is the time of the write.
"""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import ssl
import struct
import sys
import time
import zlib
from collections import defaultdict
from typing import Any

from script import Script, Step, named_script  # beside this file: run as a program, it needs nothing of Paribus


class State:
    """What is registered and what happened."""

    def __init__(self) -> None:
        self.scripts: dict[str, list[Script]] = {}
        self.served: dict[str, int] = defaultdict(int)
        self.log: list[dict[str, Any]] = []
        self.active = 0
        self.metrics: str | None = None
        self.tokens = 0

    def script(self, model: str, request: dict[str, Any], api: str) -> Script:
        """The next script of a model: the last of those registered repeats."""
        turn = self.served[model]
        self.served[model] += 1
        registered = self.scripts.get(model)
        return registered[min(turn, len(registered) - 1)] if registered else named_script(model, request, api)


class Served:
    """One response under way."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: Script, record: dict[str, Any]
    ) -> None:
        self.reader, self.writer, self.script, self.record = reader, writer, script, record
        self.packer = zlib.compressobj(wbits=31) if script.encoding else None

    async def run(self) -> bool:
        """Play the script; True when the connection may serve another request."""
        script, got = self.script, self.record["got_ns"]
        if script.head_ms is None:
            return await self.play(script.steps, got)
        await until(got, script.head_ms)
        self.writer.write(self.head())
        if not await self.play(script.steps, got):
            return False
        if self.packer:
            self.put(self.packer.flush())
        if script.framing == "chunked" and script.terminated:
            self.writer.write(b"0\r\n\r\n")
        self.record["ended"] = "whole"
        return script.framing == "length" or (script.framing == "chunked" and script.terminated)

    async def play(self, steps: tuple[Step, ...], got: int) -> bool:
        for step in steps:
            await until(got, step.at_ms)
            while step.act == "stall" and not self.gone():
                await asyncio.sleep(0.02)
            if self.gone():
                self.record["ended"] = "client gone"
                return False
            if step.act in ("cut", "reset"):
                self.record["ended"] = step.act
                self.drop(rudely=step.act == "reset")
                return False
            data = step.data
            if self.packer:
                data = self.packer.compress(data) + self.packer.flush(zlib.Z_SYNC_FLUSH)
            # When the bytes leave, and the same again after the call: the truth lies between.
            before = time.monotonic_ns()
            self.put(data)
            self.record["writes"].append([before, time.monotonic_ns(), step.tokens])
        return True

    def gone(self) -> bool:
        return self.writer.transport.is_closing() or self.reader.at_eof()

    def put(self, data: bytes) -> None:
        if data and self.script.framing == "chunked":
            data = b"%x\r\n%b\r\n" % (len(data), data)
        if data:
            self.writer.write(data)

    def head(self) -> bytes:
        script = self.script
        lines = [f"HTTP/1.1 {script.status} X", f"content-type: {script.content_type}"]
        lines += [f"{name}: {value}" for name, value in script.headers.items()]
        if script.encoding:
            lines.append(f"content-encoding: {script.encoding}")
        if script.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        elif script.framing == "length":
            lines.append(f"content-length: {sum(len(step.data) for step in script.steps)}")
        else:
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def drop(self, *, rudely: bool) -> None:
        if rudely:
            linger = struct.pack("ii", 1, 0)
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.writer.transport.abort()
        else:
            self.writer.close()


async def until(got_ns: int, ms: float) -> None:
    """Sleep until `ms` after the request was read."""
    left = got_ns / 1e9 + ms / 1e3 - time.monotonic()
    if left > 0:
        await asyncio.sleep(left)


async def read_request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str], bytes, int] | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    got = time.monotonic_ns()
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return method, path, headers, body, got


def control(state: State, method: str, path: str, body: bytes) -> bytes | None:
    """What tests ask of the server itself; None for anything else."""
    if path == "/control/scripts":
        asked = json.loads(body)
        state.scripts[asked["name"]] = [Script.from_json(plain) for plain in asked["scripts"]]
        state.served.pop(asked["name"], None)
        return b"{}"
    if path == "/control/log":
        return json.dumps(state.log).encode()
    if path == "/control/clear":
        state.scripts.clear()
        state.served.clear()
        state.log.clear()
        state.metrics = None
        return b"{}"
    if path == "/control/metrics":
        state.metrics = body.decode()
        return b"{}"
    if method == "GET" and path == "/v1/models":
        return json.dumps(
            {"object": "list", "data": [{"id": name, "object": "model"} for name in state.scripts]}
        ).encode()
    if method == "GET" and path == "/health":
        return b"{}"
    if method == "GET" and path == "/metrics":
        return (
            state.metrics
            or f"llamacpp:tokens_predicted_total {state.tokens}\nvllm:num_requests_running {state.active}\n"
        ).encode()
    return None


async def serve(state: State, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while (request := await read_request(reader)) is not None:
            method, path, headers, body, got = request
            reply = control(state, method, path, body)
            if reply is not None:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(reply), reply))
                continue
            if not path.endswith("/completions"):
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")
                continue
            if not await respond(state, reader, writer, path, headers, body, got):
                break
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def respond(
    state: State,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    path: str,
    headers: dict[str, str],
    body: bytes,
    got: int,
) -> bool:
    asked = json.loads(body)
    api = "chat" if path.endswith("/chat/completions") else "completions"
    state.active += 1
    record: dict[str, Any] = {"model": asked.get("model"), "request": asked, "headers": headers, "got_ns": got}
    record |= {"active": state.active, "writes": [], "ended": "under way", "peer": writer.get_extra_info("peername")[1]}
    state.log.append(record)
    try:
        return await Served(reader, writer, state.script(asked.get("model"), asked, api), record).run()
    finally:
        state.active -= 1
        state.tokens += sum(tokens for _, _, tokens in record["writes"])
        record["ended_ns"] = time.monotonic_ns()


async def main() -> None:
    context = None
    if len(sys.argv) > 1:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1])
    state = State()
    server = await asyncio.start_server(
        lambda reader, writer: serve(state, reader, writer), "127.0.0.1", 0, ssl=context, limit=1 << 26, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    gc.freeze()
    async with server:
        # The parent holds the other end of stdin: when it goes, so does this process.
        await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(main())
