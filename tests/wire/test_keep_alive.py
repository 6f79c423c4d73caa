"""A server that closes a connection right after a long answer, as llama.cpp's does, costs no request."""

from __future__ import annotations

import asyncio
import socket
import threading

from paribus.wire import Client, Endpoint

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nKeep-Alive: timeout=1, max=100\r\n\r\n"
)


async def _two_requests(answer_after_s: float) -> tuple[list[str | None], int]:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            await reader.readexactly(2)
            await asyncio.sleep(answer_after_s)
            writer.write(HEAD + b"{}")
            if answer_after_s >= 1:
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Client(Endpoint(f"http://127.0.0.1:{port}/v1", "m")) as client:
        errors = [
            (await client.send(b"{}", index=i, prompt_id="p", due_ns=0, phase="measured")).error for i in range(2)
        ]
    server.close()
    return errors, connections


def test_a_connection_that_outstayed_its_keep_alive_is_not_used_again() -> None:
    assert asyncio.run(_two_requests(1.05)) == ([None, None], 2)


def test_a_connection_within_its_keep_alive_is_used_again() -> None:
    assert asyncio.run(_two_requests(0.0)) == ([None, None], 1)


async def _closed_with_the_second(
    *, reads_it: bool, answers_once: bool = True
) -> tuple[list[str | None], list[int], int]:
    """Two requests to a server that closes a kept connection: having read the second request, or before it was sent."""
    connections, closed = 0, asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        if answers_once:
            await reader.readuntil(b"{}")
            writer.write(HEAD.replace(b"timeout=1", b"timeout=60") + b"{}")
        if reads_it:
            await reader.readuntil(b"{}")
            writer.transport.abort()
        else:
            await writer.drain()
            writer.close()
        closed.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    ends = []
    async with Client(Endpoint(f"http://127.0.0.1:{port}/v1", "m")) as client:
        for i in range(2):
            ends.append(await client.send(b"{}", index=i, prompt_id="p", due_ns=0, phase="measured"))
            if not reads_it:
                await closed.wait()
    server.close()
    return [end.error for end in ends], [end.connect_ns for end in ends], connections


def test_a_request_that_a_server_read_and_dropped_has_failed_and_is_never_sent_again() -> None:
    errors, _, connections = asyncio.run(_closed_with_the_second(reads_it=True))
    assert errors == [None, "reset"]
    assert connections == 1


def test_a_kept_connection_that_ended_before_the_request_costs_none_and_is_shown() -> None:
    errors, connect_ns, connections = asyncio.run(_closed_with_the_second(reads_it=False))
    assert errors == [None, None]
    assert connections == 2
    assert connect_ns[1] > 0


def test_an_end_that_the_event_loop_has_not_seen_yet_is_seen_before_the_request_is_sent() -> None:
    """The server's end lies in the system's queue while the loop is held up; then the request is sent."""

    async def scene() -> tuple[str | None, int]:
        served = 0
        listener = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            nonlocal served
            for _ in range(2):
                connection, _ = listener.accept()
                served += 1
                with connection:
                    received = b""
                    while not received.endswith(b"{}"):
                        received += connection.recv(65536)
                    connection.sendall(HEAD.replace(b"timeout=1", b"timeout=60") + b"{}")
                    close.wait()
                gone.set()

        close, gone = threading.Event(), threading.Event()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        async with Client(Endpoint(url, "m")) as client:
            await client.send(b"{}", index=0, prompt_id="p", due_ns=0, phase="measured")
            close.set()
            gone.wait(10)  # holds the loop, on purpose
            second = await client.send(b"{}", index=1, prompt_id="p", due_ns=0, phase="measured")
        thread.join(10)
        listener.close()
        return second.error, served

    assert asyncio.run(scene()) == (None, 2)


def test_a_new_connection_that_is_dropped_is_a_failure_and_not_tried_again() -> None:
    errors, _, connections = asyncio.run(_closed_with_the_second(reads_it=True, answers_once=False))
    assert errors == ["reset", "reset"]
    assert connections == 2
