"""Server-sent events: the text is the same whatever the line ends, the fields between, and the read boundaries."""

from __future__ import annotations

import asyncio
import json

import httptools
from hypothesis import given
from hypothesis import strategies as st

from paribus.wire import Outcome, read_answer
from paribus.wire.connection import Connection
from paribus.wire.sse import Event, read_events

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, max_size=8)


def datas(body: bytes) -> list[bytes]:
    return [event.data for event in read_events(body)]


def test_lines_end_at_crlf_lf_or_cr_and_at_nothing_else() -> None:
    for end in (b"\r\n", b"\n", b"\r"):
        body = b"data: a" + end + b"data:b" + end + end + b"data: c" + end + end
        assert datas(body) == [b"a\nb", b"c"]
    stranger = "data: a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n\n".encode()
    assert datas(stranger) == [stranger[6:-2]]


def test_comments_and_other_fields_carry_no_data() -> None:
    body = b": ping\n\nid: 7\nretry: 10\n\nevent: token\n: between\ndata: x\n\ndata: y\n\nevent: lonely\n\n"
    assert list(read_events(body)) == [
        Event(b"x", "token", body.index(b"x\n\n") + 3, whole=True),
        Event(b"y", "message", body.index(b"y\n\n") + 3, whole=True),
    ]


def test_one_blank_after_the_colon_is_not_data() -> None:
    assert datas(b"data:x\n\ndata: x\n\ndata:  x\n\ndata\n\ndatabase: x\n\n") == [b"x", b"x", b" x", b""]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert datas(b"\xef\xbb\xbfdata: x\n\n") == [b"x"]


def test_an_event_is_complete_with_its_blank_line() -> None:
    body = b"data: x\r\n\r\n"
    assert [event.end for event in read_events(body)] == [len(b"data: x\r\n\r")]


def test_a_last_event_without_its_blank_line_is_given_and_marked() -> None:
    assert [(e.data, e.whole) for e in read_events(b"data: x\n\ndata: [DONE]\n")] == [(b"x", True), (b"[DONE]", False)]
    assert [(e.data, e.whole) for e in read_events(b"data: {")] == [(b"{", False)]


def test_an_event_of_a_megabyte() -> None:
    big = b"x" * (1 << 20)
    assert datas(b"data: " + big + b"\n\n") == [big]


@given(TEXTS, st.sampled_from(["\r\n", "\n", "\r"]), st.booleans())
def test_any_text_survives(texts: list[str], end: str, blank: bool) -> None:
    body = "".join(f"data:{' ' if blank else ''}{json.dumps(t, ensure_ascii=False)}{end}{end}" for t in texts)
    assert [json.loads(data) for data in datas(body.encode())] == texts


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_read_without_error(body: bytes) -> None:
    ends = [event.end for event in read_events(body)]
    assert ends == sorted(ends)
    assert all(0 < end <= len(body) for end in ends)


class Wire(asyncio.Transport):
    """The least a connection needs below it. Its file is none: a secure connection writes through its transport."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self

    def fileno(self) -> int:
        return -1

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written = bytes(data)

    def abort(self) -> None:
        self.gone = True


def feed(parts: list[bytes]) -> Connection:
    """A connection that was given these reads, one after another."""

    async def play() -> Connection:
        connection = Connection(secure=True)
        connection.connection_made(Wire())
        done = connection.exchange(b"request", 60, 60)
        for part in parts:
            connection.data_received(part)
        await done
        return connection

    return asyncio.run(play())


def chunked(body: bytes, sizes: list[int]) -> bytes:
    """A chunked HTTP response whose chunks have these sizes."""
    out, start = [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n"], 0
    for size in [*sizes, len(body)]:
        part = body[start : start + size]
        start += len(part)
        if part:
            out.append(b"%x\r\n%b\r\n" % (len(part), part))
    return b"".join(out) + b"0\r\n\r\n"


@given(TEXTS, st.lists(st.integers(1, 40), max_size=20), st.lists(st.integers(1, 60), max_size=30))
def test_the_text_is_the_same_whatever_the_reads(texts: list[str], chunks: list[int], reads: list[int]) -> None:
    values = [{"choices": [{"index": 0, "delta": {"content": t}}]} for t in texts]
    body = b"".join(b"data: " + json.dumps(v, ensure_ascii=False).encode() + b"\n\n" for v in values)
    body += b"data: [DONE]\n\n"
    response = chunked(body, chunks)
    parts, start = [], 0
    for size in [*reads, len(response)]:
        parts.append(response[start : start + size])
        start += len(parts[-1])
    connection = feed([part for part in parts if part])
    assert connection.error is None
    stored, seen = connection.contents()()
    assert stored == body
    outcome = Outcome(0, "p", 0, 0, 0, 0, 200, None, stored, seen, "text/event-stream", "measured", "chat", 0)
    answer = read_answer(outcome)
    assert answer.error is None
    assert answer.text == "".join(texts)
    assert [piece.text for piece in answer.pieces] == texts
    # Each piece has the time of the first read that reaches the end of its event.
    ends = [event.end for event in read_events(body)]
    assert [p.t_ns for p in answer.pieces] == [next(t for t, e in seen if e >= end) for end in ends[: len(texts)]]


def test_the_parser_in_use_is_the_one_in_c() -> None:
    assert httptools.HttpResponseParser.__module__.startswith("httptools.parser")
