"""What deltas say under names of all kinds, and which call a part of one belongs to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_answers import ms, read

from paribus.wire import Answer
from paribus.wire.delta import read_delta
from scripted import DONE, chunk, content, event, finish, reasoning, tool, usage


def delta(**said: Any) -> bytes:
    return event(chunk({"delta": said}))


def message(**said: Any) -> bytes:
    return event(chunk({"message": {"role": "assistant"} | said}))


def parts(*calls: dict[str, Any]) -> bytes:
    return delta(tool_calls=list(calls))


def part(name: str = "", arguments: str = "", **more: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments} | ({"name": name} if name else {})} | more


def calls(answer: Answer) -> list[tuple[str, str]]:
    return [(call["name"], call["arguments"]) for call in answer.tool_calls]


def whole(*events: bytes) -> Answer:
    answer = read((1, b"".join(events) + finish() + DONE))
    assert answer.error is None
    return answer


THINKING: list[dict[str, Any]] = [
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": " hm"}]}]},
    {"content": [{"type": "thinking", "thinking": " hm"}]},
    {"content": [{"type": "reasoning", "text": " hm"}]},
    {"content": {"type": "thinking", "thinking": " hm"}},
    {"thinking": " hm"},
    {"thinking": [{"type": "text", "text": " hm"}]},
    {"reasoning_text": " hm"},
    {"content": None, "reasoning": "", "reasoning_content": None, "thinking": " hm"},
]


@pytest.mark.parametrize("said", THINKING)
def test_reasoning_has_many_names(said: dict[str, Any]) -> None:
    answer = read((100, delta(**said)), (900, content(" text")), (910, finish() + usage(2) + DONE))
    assert (answer.reasoning, answer.text, answer.unread) == (" hm", " text", {})
    assert (ms(answer.ttft_ns), ms(answer.ttfa_ns)) == (100, 900)


@pytest.mark.parametrize("said", THINKING)
def test_a_message_that_repeats_the_reasoning_revises_nothing(said: dict[str, Any]) -> None:
    answer = whole(reasoning(" hm"), message(**said))
    assert (answer.reasoning, answer.revised, len(answer.pieces)) == (" hm", False, 1)


def test_thinking_and_text_may_come_in_one_list() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": " hm"}, {"type": "text", "text": " so"}]}
    answer = whole(delta(content=[thought, {"type": "text", "text": " yes"}, {"type": "reference", "ids": [1]}]))
    assert (answer.reasoning, answer.text, answer.unread) == (" hm so", " yes", {})


@pytest.mark.parametrize(
    "said",
    [{"refusal": " I"}, {"content": [{"type": "refusal", "refusal": " I"}]}, {"content": " I", "refusal": None},
     {"content": [" I"]}, {"content": None, "refusal": " I"}],
)  # fmt: skip
def test_a_refusal_is_text(said: dict[str, Any]) -> None:
    answer = read((100, delta(**said)), (900, delta(refusal=" won't") + finish() + DONE))
    assert (answer.text, ms(answer.ttft_ns), ms(answer.ttfa_ns), answer.unread) == (" I won't", 100, 100, {})


def test_the_older_form_of_a_call_is_a_call() -> None:
    opening = delta(role="assistant", content=None, function_call={"name": "f", "arguments": ""})
    more = [delta(function_call={"arguments": text}) for text in ('{"a":', "1}")]
    answer = read((100, opening), (110, more[0]), (120, more[1]), (130, finish("function_call") + usage(9) + DONE))
    assert (calls(answer), ms(answer.ttft_ns), ms(answer.ttfa_ns)) == ([("f", '{"a":1}')], 100, 100)
    assert [piece.tool for piece in answer.pieces] == ["f", '{"a":', "1}"]
    closed = whole(opening, *more, message(content=None, function_call={"name": "f", "arguments": '{"a":1}'}))
    assert calls(closed) == [("f", '{"a":1}')]
    both = {"tool_calls": [part("f", "{}", index=0)], "function_call": {"name": "f", "arguments": "{}"}}
    assert calls(whole(delta(**both))) == [("f", "{}")]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"draft": " lost"}, "draft"),
        ({"content": "", "draft": [" lo", "st"]}, "draft"),
        ({"draft": [{"type": "text", "text": " lost"}]}, "draft"),
        ({"audio": {"id": "a", "transcript": " lost"}}, "audio"),
        ({"content": [{"type": "sketch", "sketch": " lost"}]}, "content.sketch"),
        ({"content": " text", "draft": " lost"}, "draft"),
        ({"reasoning": " hm", "reasoning_content": " lost"}, "reasoning"),
        ({"reasoning": " hm", "content": [{"type": "thinking", "thinking": " lost"}]}, "content"),
        ({"a\nb\ud800": " lost"}, "(an odd name)"),
    ],
)
def test_text_under_a_name_that_is_not_read_is_told(said: dict[str, Any], name: str) -> None:
    odd = event(json.dumps(chunk({"delta": said})).encode())
    answer = whole(odd, content(" word"), odd)
    if name == "reasoning":
        assert answer.unread == {"reasoning": 6}, "the first name is read, the other told"
    else:
        assert answer.unread == {name: 10}
    assert answer.text.endswith(" word") or " word text" in answer.text


@pytest.mark.parametrize(
    "said",
    [
        {"content": " a", "role": "assistant", "name": "m", "signature": "x", "item_id": "i", "thought_signature": "x"},
        {"content": " a", "text": " a"},
        {"reasoning_content": " a", "thinking_blocks": [{"type": "thinking", "thinking": " a", "signature": "x"}]},
        {"reasoning": " a", "reasoning_content": " a", "reasoning_details": [{"type": "reasoning.text", "text": " a"}]},
        {"content": " a", "annotations": [{"type": "url_citation", "url_citation": {"title": "x"}}], "audio": None},
        {"content": " a", "draft": "", "count": 7, "sure": True, "images": [], "more": [[], {}, None, 1]},
    ],
)
def test_what_is_no_text_or_repeats_it_is_not_told(said: dict[str, Any]) -> None:
    answer = whole(delta(**said))
    assert (answer.delivered, answer.unread) == (" a", {})


def test_an_answer_that_is_all_under_such_a_name_is_empty_and_says_why() -> None:
    answer = read((1, delta(draft=" lost") + finish() + usage(1) + DONE))
    assert (answer.error, answer.detail) == ("empty", "text stands under names that are not read: draft")


def test_an_unread_name_is_told_in_every_event_of_a_run() -> None:
    answer = whole(*[delta(content=f" w{n}", draft=" lost") for n in range(9)])
    assert answer.unread == {"draft": 45}


def test_text_in_parts_is_read_without_its_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from paribus.wire import openai

    seen: list[bytes] = []
    real = openai._json
    monkeypatch.setattr(openai, "_json", lambda data: (seen.append(data), real(data))[1])
    answer = whole(*[delta(content=[{"type": "text", "text": f" w{n}"}]) for n in range(99)])
    assert (len(answer.pieces), answer.text[:6]) == (99, " w0 w1")
    assert len(seen) < 9


def test_texts_in_texts_have_an_end() -> None:
    deep: Any = " lost"
    for _ in range(900):
        deep = [{"text": deep}]
    for name in ("content", "thinking", "draft"):
        assert read_delta({name: deep}).text == ""


AB = (part("f", "{}", id="a"), part("g", "{}", id="b"))


@pytest.mark.parametrize("index", [{}, {"index": None}, {"index": 0}], ids=["none", "null", "shared"])
@pytest.mark.parametrize("together", [False, True])
def test_calls_that_share_an_index_or_have_none_are_told_apart_by_id(index: dict[str, Any], together: bool) -> None:
    given = [one | index for one in AB]
    answer = whole(parts(*given)) if together else whole(*map(parts, given))
    assert calls(answer) == [("f", "{}"), ("g", "{}")]
    assert [call["id"] for call in answer.tool_calls] == ["a", "b"]
    assert "".join(piece.tool for piece in answer.pieces) == "f{}g{}"


@pytest.mark.parametrize("index", [{}, {"index": 0}], ids=["none", "shared"])
@pytest.mark.parametrize("id_again", [{}, {"id": ""}, {"id": None}, "same"])
def test_the_parts_of_calls_that_share_an_index_go_on_with_the_last(index: dict[str, Any], id_again: Any) -> None:
    given = []
    for name in ("f", "g"):
        again = {"id": name} if id_again == "same" else id_again
        given += [part(name, id=name), part("", '{"a":', **again), part("", "1}", **again)]
    assert calls(whole(*[parts(one | index) for one in given])) == [("f", '{"a":1}'), ("g", '{"a":1}')]


def test_parts_that_name_their_call_may_come_in_any_order() -> None:
    given = [part("f", id="a"), part("g", id="b"), part("", "1", id="a"), part("", "2", id="b"), part("", "3", id="a")]
    assert calls(whole(*map(parts, given))) == [("f", "13"), ("g", "2")]
    by_index = [part("f", id="a", index=0), part("g", id="b", index=1), part("", "1", index=0), part("", "2", index=1)]
    assert calls(whole(*map(parts, by_index))) == [("f", "1"), ("g", "2")]


def test_without_ids_another_name_after_arguments_is_another_call() -> None:
    assert calls(whole(parts(part("f", "{}", index=0)), parts(part("g", "{}", index=0)))) == [("f", "{}"), ("g", "{}")]
    assert calls(whole(parts(part("get_", index=0)), parts(part("it", "{}", index=0)))) == [("get_it", "{}")]


def test_a_name_that_comes_with_each_part_is_one_name() -> None:
    given = [part("f", text, id="a", index=0) for text in ("{", "}")]
    assert calls(whole(*map(parts, given))) == [("f", "{}")]


def test_an_id_that_changes_in_the_middle_of_a_call_begins_none() -> None:
    given = [part("f", id="a"), part("", '{"a":', id="x"), part("", "1}", id="y"), part("g", "{}", id="b")]
    answer = whole(*[parts(one | {"index": 0}) for one in given])
    assert calls(answer) == [("f", '{"a":1}'), ("g", "{}")]
    assert answer.tool_calls[0]["id"] == "a"


def test_an_id_may_come_before_or_after_the_name() -> None:
    before = [part(id="a", index=0), part("f", "{}", index=0), part(id="b", index=0), part("g", "{}", index=0)]
    assert calls(whole(*map(parts, before))) == [("f", "{}"), ("g", "{}")]
    after = whole(parts(part("f", index=0)), parts(part("", "{}", id="a", index=0)))
    assert after.tool_calls == ({"name": "f", "arguments": "{}", "id": "a"},)


@pytest.mark.parametrize("again", [
    [part("f", "{}", id="a", index=0), part("g", "{}", id="b", index=1)],
    [part("f", "{}", id="a", index=0), part("g", "{}", id="b", index=0)],
    list(AB),
    [part("f", "{}", index=0), part("g", "{}", index=1)],
    [part("f", "{}"), part("g", "{}")],
    [part("f", "{}", id="c"), part("g", "{}", id="d")],
], ids=["as streamed", "one index", "no index", "no id", "neither", "other ids"])  # fmt: skip
@pytest.mark.parametrize("first", [0, 1])
def test_a_message_at_the_end_does_not_double_the_calls(again: list[dict[str, Any]], first: int) -> None:
    streamed = [tool(first, "{}", name="f", id="a"), tool(first + 1, "{}", name="g", id="b")]
    answer = whole(*streamed, message(content=None, tool_calls=again))
    assert calls(answer) == [("f", "{}"), ("g", "{}")]
    assert [piece.tool for piece in answer.pieces] == ["f{}", "g{}"]


@pytest.mark.parametrize("index", [{}, {"index": 0}, "own"], ids=["none", "shared", "own"])
def test_messages_that_grow_bring_their_new_calls(index: Any) -> None:
    both = [one | ({"index": n} if index == "own" else index) for n, one in enumerate(AB)]
    answer = whole(message(tool_calls=both[:1]), message(tool_calls=both), message(tool_calls=both))
    assert calls(answer) == [("f", "{}"), ("g", "{}")]
    assert [piece.tool for piece in answer.pieces] == ["f{}", "g{}"]


COUNTS = {"prompt_tokens": 5, "completion_tokens": 10, "total_tokens": 15}


@pytest.mark.parametrize("last", [
    chunk({"delta": {}, "finish_reason": "stop", "usage": COUNTS}),
    chunk({"delta": {}, "finish_reason": "stop", "usage": COUNTS}, usage=None),
    chunk({"delta": {}, "finish_reason": "stop"}, x_groq={"id": "r", "usage": COUNTS}),
    chunk(None, x_groq={"usage": COUNTS}),
    chunk({"delta": {}, "usage": {"completion_tokens": 7}}, usage=COUNTS),
    chunk({"delta": {}}, usage=COUNTS, x_groq={"usage": {"completion_tokens": 7}}),
])  # fmt: skip
def test_usage_may_stand_in_the_choice_or_in_groqs_block(last: dict[str, Any]) -> None:
    answer = whole(content(" a"), event(last))
    assert answer.usage is not None
    assert (answer.usage.completion_tokens, answer.usage.prompt_tokens) == (10, 5)


def test_usage_in_the_choice_of_each_piece_is_cumulative() -> None:
    given = [event(chunk({"delta": {"content": " a"}, "usage": {"completion_tokens": n}})) for n in (1, 2, 3)]
    assert [piece.tokens for piece in whole(*given).pieces] == [1, 2, 3]
