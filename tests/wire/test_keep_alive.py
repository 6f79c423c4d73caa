"""A server that closes a connection right after a long answer, as llama.cpp's does, costs no request."""

from __future__ import annotations

import asyncio

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


async def _closed_as_the_second_comes(*, answers_once: bool) -> tuple[list[str | None], list[int], int]:
    """A server that reads a second request on a kept connection and drops it without a word."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        if answers_once:
            await reader.readuntil(b"{}")
            writer.write(HEAD.replace(b"timeout=1", b"timeout=60") + b"{}")
        await reader.readuntil(b"{}")
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Client(Endpoint(f"http://127.0.0.1:{port}/v1", "m")) as client:
        ends = [await client.send(b"{}", index=i, prompt_id="p", due_ns=0, phase="measured") for i in range(2)]
    server.close()
    return [end.error for end in ends], [end.connect_ns for end in ends], connections


def test_a_kept_connection_that_was_closed_meanwhile_costs_no_request_and_is_shown() -> None:
    errors, connect_ns, connections = asyncio.run(_closed_as_the_second_comes(answers_once=True))
    assert errors == [None, None]
    assert connections == 2
    assert connect_ns[1] > 0


def test_a_new_connection_that_is_dropped_is_a_failure_and_not_tried_again() -> None:
    errors, _, connections = asyncio.run(_closed_as_the_second_comes(answers_once=False))
    assert errors == ["reset", "reset"]
    assert connections == 2
