"""The client: every way a server can answer, or fail to, becomes one outcome."""

from __future__ import annotations

import asyncio
import gzip
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paribus.conditions import UsageError
from paribus.wire import Client, Endpoint, Outcome, run
from scripted import DONE, Script, Scripted, Step, answer_body, ask, ask_one, content, finish, start_server, usage

HELLO = content("hello") + content(" world") + finish() + usage(2) + DONE


async def send(client: Client, index: int = 0) -> Outcome:
    return await client.send(b"{}", index=index, prompt_id="p", due_ns=0, phase="measured")


@contextmanager
def raw_server(*replies: bytes, close: bool = True) -> Iterator[str]:
    """A server that knows no HTTP: on each connection it reads once, then writes a reply as it is."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept = []

    def serve() -> None:
        for reply in replies:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            kept.append(connection)
            connection.recv(1 << 16)
            connection.sendall(reply)
            if close:
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for connection in kept:
            connection.close()


def exchange(base_url: str, **options: float) -> Outcome:
    async def once() -> Outcome:
        async with Client(Endpoint(base_url, "m"), **options) as client:
            return await send(client)

    return run(once())


@pytest.mark.parametrize(
    ("framing", "encoding"),
    [("chunked", None), ("length", None), ("close", None), ("chunked", "gzip"), ("close", "gzip")],
)
def test_every_framing_gives_the_same_body_with_offsets_that_fit(
    scripted: Scripted, framing: str, encoding: str | None
) -> None:
    half = len(HELLO) // 2
    script = Script((Step(0, HELLO[:half]), Step(200, HELLO[half:])), framing=framing, encoding=encoding)
    outcome = ask_one(scripted, "framed", script).outcome
    assert (outcome.status, outcome.error) == (200, None)
    assert outcome.body == HELLO
    assert [end for _, end in outcome.reads][-1] == len(HELLO)
    assert half in [end for _, end in outcome.reads]
    times = [t for t, _ in outcome.reads]
    assert times == sorted(times)
    assert 0 < times[0] <= times[-1] <= outcome.ended_ns - outcome.sent_ns


def test_compressed_parts_arrive_when_they_arrive_not_at_the_end(scripted: Scripted) -> None:
    script = Script((Step(0, HELLO[:200]), Step(250, HELLO[200:])), encoding="gzip")
    asked = ask_one(scripted, "zipped", script)
    first = asked.outcome.reads[0]
    assert first[1] == 200
    assert asked.epoch_ns + asked.outcome.sent_ns + first[0] < asked.written_ns(1)


def test_a_body_in_several_gzip_members_is_one_body() -> None:
    packed = gzip.compress(b"data: 1\n\n") + gzip.compress(b"data: 2\n\n")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    with raw_server(head + packed) as url:
        assert exchange(url).body == b"data: 1\n\ndata: 2\n\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("size", "error"), [(900, None), (40_000, "protocol")])
def test_a_body_without_end_is_given_up(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, packed: bool, size: int, error: str | None
) -> None:
    """Packed, it is the size of what it holds that counts."""
    monkeypatch.setattr("paribus.wire.connection._MAX_BODY", 8_000)
    script = Script((Step(0, content("a" * size) + finish() + DONE),), encoding="gzip" if packed else None)
    asked = ask_one(scripted, "bomb", script)
    assert asked.answer.error == asked.outcome.error == error


def test_times_count_from_the_request_and_never_precede_the_emission(scripted: Scripted) -> None:
    asked = ask_one(scripted, "f30-n20-i5000")
    assert asked.emission is not None
    assert asked.outcome.sent_ns + asked.epoch_ns <= asked.emission.got_ns
    for write, piece in enumerate(asked.answer.pieces):
        assert asked.arrival_ns(write) >= asked.written_ns(write)
        assert piece.text


def test_connections_are_kept_and_used_again(scripted: Scripted) -> None:
    """The first are opened ahead; a second each is opened until one of the first has lasted after its answer."""
    asked = ask(scripted, "f5-n20-i1000", requests=24, at_once=3)
    assert {a.outcome.error for a in asked} == {None}
    assert 3 <= len({a.emission.peer for a in asked if a.emission}) <= 6
    connected = [a.outcome.index for a in asked if a.outcome.connect_ns]
    assert len(connected) <= 3
    assert all(3 <= index < 12 for index in connected)


def test_a_connection_that_closed_is_replaced_and_the_time_of_connecting_kept_apart(scripted: Scripted) -> None:
    script = Script((Step(0, HELLO),), framing="close")
    asked = ask(scripted, "closing", script, requests=3)
    assert [a.outcome.error for a in asked] == [None] * 3
    assert [a.outcome.connect_ns > 0 for a in asked] == [False, True, True]
    assert len({a.emission.peer for a in asked if a.emission}) == 3


def test_a_server_that_drops_idle_connections_costs_no_request(scripted: Scripted) -> None:
    async def twice() -> list[Outcome]:
        async with Client(Endpoint(url, "m")) as client:
            first = await send(client)
            await asyncio.sleep(0.3)  # the server closes meanwhile
            return [first, await send(client, 1)]

    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    with raw_server(reply, reply) as url:
        assert [(o.error, o.body) for o in run(twice())] == [(None, b"ok")] * 2


def test_a_server_that_announces_the_end_of_a_connection_is_believed() -> None:
    async def twice() -> list[Outcome]:
        async with Client(Endpoint(url, "m"), idle_timeout_s=5) as client:
            return [await send(client), await send(client, 1)]

    reply = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
    with raw_server(reply, reply, close=False) as url:
        assert [o.error for o in run(twice())] == [None, None]


def test_more_than_a_hundred_at_once(scripted: Scripted) -> None:
    asked = ask(scripted, "f700-n2", requests=128, at_once=128)
    assert {a.answer.error for a in asked} == {None}
    assert max(a.emission.active for a in asked if a.emission) == 128


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503, 302])
def test_an_http_error_is_an_outcome_with_its_body(scripted: Scripted, status: int) -> None:
    script = Script(
        (Step(0, b'{"error": {"message": "no"}}'),),
        status=status,
        content_type="application/json",
        headers={"Retry-After": "7"},
        framing="length",
    )
    asked = ask_one(scripted, "refusing", script, Script((Step(0, HELLO),)))
    assert asked.outcome.error == f"http_{status}"
    assert asked.answer.error == f"http_{status}"
    assert (asked.answer.detail, asked.outcome.retry_after_s) == ("no", 7)
    assert len(scripted.log("refusing")) == 1, "a failure is never tried again behind the user's back"


def test_retry_after_may_be_a_date() -> None:
    head = b"HTTP/1.1 429 Slow\r\ncontent-length: 0\r\nretry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n"
    with raw_server(head) as url:
        assert exchange(url).retry_after_s == 0


def test_a_cut_connection(scripted: Scripted) -> None:
    script = Script((Step(0, content("a")), Step(20, act="cut")))
    asked = ask_one(scripted, "cut", script)
    assert (asked.outcome.error, asked.answer.error) == ("cut", "cut")
    assert asked.answer.text == "a"


def test_a_reset_connection(scripted: Scripted) -> None:
    script = Script((Step(0, content("a")), Step(50, act="reset")))
    assert ask_one(scripted, "reset", script).answer.error == "reset"


def test_a_connection_closed_before_any_answer(scripted: Scripted) -> None:
    outcome = ask_one(scripted, "shut", Script((Step(10, act="cut"),), head_ms=None)).outcome
    assert (outcome.status, outcome.error, outcome.body) == (0, "reset", b"")


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def once() -> tuple[Outcome, str, int, tuple[int, bytes]]:
        async with Client(Endpoint(f"http://127.0.0.1:{port}/v1", "m")) as client:
            return await send(client), client.last_fault, await client.open(2), await client.get("/metrics")

    outcome, fault, ready, got = run(once())
    assert (outcome.status, outcome.error) == (0, "connect")
    assert fault
    assert (ready, got) == (0, (0, b""))


def test_a_stream_that_stalls_ends_by_the_idle_timeout(scripted: Scripted) -> None:
    script = Script((Step(0, content("a")), Step(0, act="stall")))
    asked = ask_one(scripted, "stalled", script, idle_timeout_s=0.8)
    assert (asked.answer.error, asked.answer.text) == ("timeout_idle", "a")
    assert asked.outcome.ended_ns - asked.outcome.sent_ns >= 0.8e9


def test_a_slow_stream_is_not_idle(scripted: Scripted) -> None:
    asked = ask_one(scripted, "f10-n12-i100000", idle_timeout_s=0.9)
    assert asked.answer.error is None
    assert asked.outcome.ended_ns - asked.outcome.sent_ns > 0.9e9


def test_a_stream_that_never_ends_ends_by_the_total_timeout(scripted: Scripted) -> None:
    asked = ask_one(scripted, "f10-n2000-i10000", idle_timeout_s=5, total_timeout_s=0.8)
    assert asked.answer.error == "timeout_total"
    assert 0 < len(asked.answer.pieces) < 2000


@pytest.mark.parametrize(
    "reply",
    [
        b"\x00\x01\x02 not http at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\nnot gzip!",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx",
        b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    ],
)
def test_what_is_not_http_is_a_protocol_error(reply: bytes) -> None:
    with raw_server(reply) as url:
        assert exchange(url).error == "protocol"


def test_an_informational_response_comes_before_the_answer() -> None:
    reply = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    with raw_server(reply) as url:
        outcome = exchange(url)
    assert (outcome.status, outcome.body, outcome.error) == (200, b"ok", None)


def test_what_comes_after_a_whole_response_spoils_the_connection_not_the_answer() -> None:
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    async def twice() -> list[Outcome]:
        async with Client(Endpoint(url, "m")) as client:
            return [await send(client), await send(client, 1)]

    with raw_server(reply * 2, reply, close=False) as url:
        first, second = run(twice())
    assert (first.body, second.body) == (b"ok", b"ok")
    assert second.connect_ns > 0, "the surplus response must not answer the next request"


def test_abort_ends_exchanges_with_what_they_have(scripted: Scripted) -> None:
    async def stopped() -> list[Outcome]:
        async with Client(scripted.endpoint("f10-n2000-i10000")) as client:
            body = b'{"model": "f10-n2000-i10000", "stream": true}'
            tasks = [
                asyncio.create_task(client.send(body, index=i, prompt_id="p", due_ns=0, phase="measured"))
                for i in range(3)
            ]
            await asyncio.sleep(0.6)
            client.abort()
            return await asyncio.gather(*tasks)

    outcomes = run(stopped())
    assert [o.error for o in outcomes] == ["cancelled"] * 3
    assert all(o.body for o in outcomes)


def test_a_cancelled_task_raises_and_closes_its_connection(scripted: Scripted) -> None:
    model = "f10-n400-i10000"

    async def cancelled() -> None:
        async with Client(scripted.endpoint(model)) as client:
            body = b'{"model": "f10-n400-i10000", "stream": true}'
            task = asyncio.create_task(client.send(body, index=0, prompt_id="p", due_ns=0, phase="measured"))
            await asyncio.sleep(0.5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while scripted.log(model)[0].ended == "under way":
                await asyncio.sleep(0.1)

    run(cancelled())
    assert scripted.log(model)[0].ended == "client gone", "the server must not go on for nobody"


def test_the_key_travels_in_the_header_and_shows_nowhere(scripted: Scripted) -> None:
    endpoint = scripted.endpoint("f1-n1", api_key="sk-secret")

    async def once() -> Outcome:
        async with Client(endpoint) as client:
            return await client.send(b'{"model": "f1-n1"}', index=0, prompt_id="p", due_ns=0, phase="measured")

    outcome = run(once())
    assert scripted.log("f1-n1")[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in repr(endpoint) + repr(outcome)
    assert "body=" not in repr(outcome), "nor does a body fill the log"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:80/v1",
        "ftp://host/v1",
        "http:///v1",
        "http://user:pw@host/v1",
        "http://host:99999/v1",
        "http://h/v 1",
        "http://ho st/v1",
        "http://host\r\nX-Injected:1/v1",
        "http://host/v1?x=1",
        "http://[::1/v1",
        "http://host/v1\r\nX-Injected: 1",
    ],
)
def test_a_url_that_cannot_be_called_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError):
        Client(Endpoint(url, "m"))


def test_a_key_that_cannot_be_sent_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        Client(Endpoint("http://host/v1", "m", api_key="a\r\nX-Injected: 1"))


def test_get_reads_counters_beside_the_load(scripted: Scripted) -> None:
    scripted.metrics("spec_drafts_total 5\n")

    async def read() -> tuple[int, bytes]:
        async with Client(scripted.endpoint("x")) as client:
            return await client.get("/metrics")

    assert run(read()) == (200, b"spec_drafts_total 5\n")


def test_https(tmp_path: Path) -> None:
    pem = tmp_path / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run([*command, "-keyout", str(pem), "-out", str(tmp_path / "cert")], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed, and the test's certificate is made with it")
    with pem.open("ab") as file:
        file.write((tmp_path / "cert").read_bytes())
    with start_server(pem) as server:
        asked = ask(server, "f5-n20-i1000-r", requests=12, at_once=2)
        assert [a.answer.error for a in asked] == [None] * 12
        assert len({a.emission.peer for a in asked if a.emission}) <= 4, "two, and two until it has shown that it keeps"
        assert exchange(server.base_url).error == "connect", "a certificate nobody vouches for is refused"


def test_a_server_that_ignores_stream(scripted: Scripted) -> None:
    body = answer_body("all at once", 3)
    script = Script((Step(40, body),), content_type="application/json", framing="length")
    asked = ask_one(scripted, "json", script)
    assert [piece.text for piece in asked.answer.pieces] == ["all at once"]
    assert asked.arrival_ns(0) >= asked.written_ns(0)
    assert asked.answer.usage is not None
    assert asked.answer.usage.completion_tokens == 3


def test_not_asked_to_stream(scripted: Scripted) -> None:
    asked = ask_one(scripted, "f5-n12-i100", stream=False)
    assert asked.answer.error is None
    assert len(asked.answer.pieces) == 1
