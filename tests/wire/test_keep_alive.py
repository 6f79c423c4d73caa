"""A server that closes a connection right after a long answer, as llama.cpp's does, costs no request."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from paribus.wire import Client, Endpoint

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nKeep-Alive: timeout=1, max=100\r\n\r\n"
)


async def _requests(
    *rests_s: float, answer_after_s: float = 0.0, closes_after_s: float | None = None
) -> tuple[list[str | None], int]:
    """Errors of one request and one more after each rest, and the connections they took.

    The server says that it keeps connections. It answers late where `answer_after_s` says so and then closes at once,
    as some do that count from the request on; with `closes_after_s` it closes after every answer.
    """
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
            if closes_after_s is not None:
                await asyncio.sleep(closes_after_s)
            if closes_after_s is not None or answer_after_s >= 1:
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Client(Endpoint(f"http://127.0.0.1:{port}/v1", "m")) as client:
        errors = []
        for number, rest_s in enumerate((0.0, *rests_s)):
            await asyncio.sleep(rest_s)
            sent = await client.send(b"{}", index=number, prompt_id="p", due_ns=0, phase="measured")
            errors.append(sent.error)
    server.close()
    return errors, connections


def test_a_connection_that_outstayed_its_keep_alive_is_not_used_again() -> None:
    assert asyncio.run(_requests(0.0, answer_after_s=1.05)) == ([None, None], 2)


def test_a_connection_is_used_again_once_the_server_has_shown_that_it_keeps_them() -> None:
    assert asyncio.run(_requests(0.08, 0.0, 0.0, 0.0)) == ([None] * 5, 1)


def test_until_then_every_request_has_a_connection_of_its_own() -> None:
    assert asyncio.run(_requests(0.0)) == ([None, None], 2)


@pytest.mark.parametrize("closes_after_s", [0.0, 0.0003, 0.004])
def test_a_server_that_closes_after_every_answer_whatever_it_says_costs_no_request(closes_after_s: float) -> None:
    """As llama.cpp's does after a stream. A request that follows at once must not meet the close."""
    rests = [0.0, 0.02] + [0.0] * 30
    errors, connections = asyncio.run(_requests(*rests, closes_after_s=closes_after_s))
    assert errors == [None] * 33
    assert connections == 33


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
            await asyncio.sleep(0.08 if reads_it and answers_once and i else 0)  # so that it is used again
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
            for requests in (2, 1):
                connection, _ = listener.accept()
                served += 1
                with connection:
                    for _ in range(requests):
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
            for number in range(2):
                await client.send(b"{}", index=number, prompt_id="p", due_ns=0, phase="measured")
                await asyncio.sleep(0.08)
            assert served == 1, "the server keeps connections"
            close.set()
            gone.wait(10)  # holds the loop, on purpose
            third = await client.send(b"{}", index=2, prompt_id="p", due_ns=0, phase="measured")
        thread.join(10)
        listener.close()
        return third.error, served

    assert asyncio.run(scene()) == (None, 2)


def test_a_new_connection_that_is_dropped_is_a_failure_and_not_tried_again() -> None:
    errors, _, connections = asyncio.run(_closed_with_the_second(reads_it=True, answers_once=False))
    assert errors == ["reset", "reset"]
    assert connections == 2
