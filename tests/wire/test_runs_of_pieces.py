"""Events that differ in their text alone are read without their JSON; what comes out must be the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.wire import Answer, Outcome, openai, read_answer

TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            [" time", "", '"', "\\", "a\nb", "\u2028", "ä", "🤖", "\ud83e", "\udd16", "data: x", "\n\n", "\t"]
        ),
        st.text(max_size=4),
    ),
    max_size=30,
)


def chunk(text: str, **more: object) -> dict[str, object]:
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None} | more]}


def outcome(events: list[bytes], gap_ns: int = 1_000) -> Outcome:
    body = b"".join(events)
    reads, end = [], 0
    for number, event in enumerate(events):
        end += len(event)
        reads.append((number * gap_ns, end))
    return Outcome(0, "p", 0, 0, 0, 0, 200, None, body, reads, "text/event-stream", "measured", "chat", 0)


def line(value: object, *, ascii_only: bool = False, end: str = "\n\n") -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=ascii_only)}{end}".encode("utf-8", "surrogatepass")


def slowly(seen: Outcome) -> Answer:
    """The same with every event's JSON read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai, "_PATIENCE", 0)
        return read_answer(seen)


@given(TEXTS, st.booleans(), st.sampled_from(["\n\n", "\r\n\r\n", "\n: comment\n\n"]))
def test_any_text_reads_as_with_json(texts: list[str], ascii_only: bool, end: str) -> None:
    seen = outcome([line(chunk(text), ascii_only=ascii_only, end=end) for text in texts] + [b"data: [DONE]\n\n"])
    assert read_answer(seen) == slowly(seen)


@given(TEXTS, st.sampled_from(["event", "choice", "delta", "message"]))
def test_texts_that_replace_read_as_with_json(texts: list[str], where: str) -> None:
    def whole(text: str) -> dict[str, object]:
        marked = {name: {"replace": True} if name == where else {} for name in ("event", "choice", "delta")}
        said = {"message" if where == "message" else "delta": {"content": text} | marked["delta"]}
        return {"choices": [{"index": 0} | said | marked["choice"]]} | marked["event"]

    seen = outcome([line(whole(text)) for text in texts] + [b"data: [DONE]\n\n"])
    assert read_answer(seen) == slowly(seen)


def parsed(seen: Outcome, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many times JSON was read for an answer."""
    asked: list[bytes] = []
    real = openai._json
    monkeypatch.setattr(openai, "_json", lambda data: (asked.append(data), real(data))[1])
    assert read_answer(seen).error is None
    return len(asked)


def test_a_regular_stream_is_hardly_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [line(chunk(f" word{n}")) for n in range(500)]
    assert parsed(outcome([*events, b"data: [DONE]\n\n"]), monkeypatch) <= 4


def test_a_stream_whose_every_event_differs_is_parsed_once_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [line(chunk(f" word{n}") | {"created": n}) for n in range(500)]
    assert parsed(outcome([*events, b"data: [DONE]\n\n"]), monkeypatch) <= 500 + 2 * openai._PATIENCE


@pytest.mark.parametrize(
    "odd",
    [
        line(chunk(" x") | {"usage": {"completion_tokens": 7}}),
        line({"error": {"message": "no"}}),
        line(chunk(" x", finish_reason="stop")),
        line({"id": "c", "choices": [{"index": 1, "delta": {"content": " x"}, "finish_reason": None}]}),
        line({"id": "c", "choices": [{"index": 0, "delta": {"reasoning": " x"}, "finish_reason": None}]}),
        line({"id": "c", "choices": [{"index": 0, "message": {"content": " x"}, "finish_reason": None}]}),
        line(chunk(" x") | {"replace": True}),
        line(chunk(" x") | {"timings": {"cache_n": 3}}),
        b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "\x01"}, "finish_reason": null}]}\n\n',
        b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "\xff"}, "finish_reason": null}]}\n\n',
        b"data: {\n\n",
        b"event: error\ndata: gone\n\n",
        b"\n\n",
        b"data:\n\n",
        b"data: [DONE]\n\n",
    ],
)
@pytest.mark.parametrize("before", [0, 1, 9])
def test_whatever_comes_between_is_seen(odd: bytes, before: int) -> None:
    plain = [line(chunk(f" w{n}")) for n in range(9)]
    seen = outcome([*plain[:before], odd, *plain, odd, b"data: [DONE]\n\n"])
    assert read_answer(seen) == slowly(seen)


def test_the_same_words_elsewhere_in_an_event_are_no_text() -> None:
    events = [line({"note": {"content": " fake"}, **chunk(f" w{n}")}) for n in range(9)]
    answer = read_answer(outcome([*events, b"data: [DONE]\n\n"]))
    assert answer.text == "".join(f" w{n}" for n in range(9))


def test_each_piece_has_the_time_of_the_read_that_completed_it() -> None:
    answer = read_answer(outcome([line(chunk(f" w{n}")) for n in range(9)] + [b"data: [DONE]\n\n"]))
    assert [piece.t_ns for piece in answer.pieces] == [n * 1_000 for n in range(9)]
