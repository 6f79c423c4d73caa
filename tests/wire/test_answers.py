"""Reading answers: each rule with the stream that breaks it when it is dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.wire import Answer, Outcome, Usage, read_answer, standard_tokens, standard_tokens_after
from scripted import DONE, answer_body, chunk, content, error_event, event, finish, reasoning, role, tool, usage, words

MS = 1_000_000


def outcome(*timed: tuple[float, bytes], error: str | None = None, status: int = 200) -> Outcome:
    """An exchange that received these bytes at these milliseconds."""
    body, reads = b"", []
    for ms, data in timed:
        body += data
        reads.append((int(ms * MS), len(body)))
    ended = reads[-1][0] if reads else 0
    return Outcome(
        0, "p", 0, 0, 0, ended, status, error, body, tuple(reads), "text/event-stream", "measured", "chat", 0
    )


def read(*timed: tuple[float, bytes], **more: Any) -> Answer:
    return read_answer(outcome(*timed, **more))


def ms(value: int | None) -> float | None:
    return None if value is None else value / MS


def test_a_role_only_piece_starts_no_clock() -> None:
    tokens = [(500 + 10 * i, content(word)) for i, word in enumerate(words(100))]
    answer = read((10, role()), *tokens, (1490, finish("length") + usage(100) + DONE))
    assert ms(answer.ttft_ns) == 500
    assert (len(answer.pieces), answer.error, answer.done) == (100, None, True)


def test_empty_deltas_are_no_pieces() -> None:
    empty = event(chunk({"delta": {}})) + event(chunk({"delta": {"content": None}})) + content("")
    answer = read((1, empty), (2, content("a")), (3, empty + finish() + DONE))
    assert [ms(piece.t_ns) for piece in answer.pieces] == [2]


def test_usage_and_finish_do_not_stretch_the_answer() -> None:
    answer = read((10, content("a")), (1190, content("b")), (2000, finish() + usage(2) + DONE))
    assert ms(answer.e2e_ns) == 1190


def test_several_tokens_in_a_piece_are_one_piece_with_all_their_tokens() -> None:
    text = words(100)
    pieces = [(200 + 20 * i, content("".join(text[4 * i : 4 * i + 4]))) for i in range(25)]
    answer = read(*pieces, (700, finish() + usage(100) + DONE))
    assert len(answer.pieces) == 25
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 100
    assert standard_tokens_after(answer) == [4 * (i + 1) for i in range(25)]


def test_several_pieces_in_one_read_share_its_time() -> None:
    one, two = (b"".join(content(word) for word in words(50, seed)) for seed in (1, 2))
    answer = read((500, one), (1000, two + finish() + DONE))
    assert {ms(piece.t_ns) for piece in answer.pieces[:50]} == {500}
    assert {ms(piece.t_ns) for piece in answer.pieces[50:]} == {1000}


def test_a_piece_arrives_with_the_read_that_completes_it() -> None:
    data = content("a")
    answer = read((1, data[:20]), (2, data[20:-1]), (9, data[-1:]), (10, finish() + DONE))
    assert [ms(piece.t_ns) for piece in answer.pieces] == [9]


def test_a_character_split_between_reads_is_whole() -> None:
    data = content("日本語 👩‍👩‍👧 é")
    for cut in range(1, len(data)):
        answer = read((1, data[:cut]), (2, data[cut:] + finish() + DONE))
        assert answer.text == "日本語 👩‍👩‍👧 é"


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_counts_from_its_first_piece(key: str) -> None:
    thought = [(100 + 10 * i, reasoning(word, key)) for i, word in enumerate(words(80))]
    said = [(900 + 10 * i, content(word)) for i, word in enumerate(words(20, 1))]
    answer = read(*thought, *said, (1100, finish() + usage(100) + DONE))
    assert (ms(answer.ttft_ns), ms(answer.ttfa_ns)) == (100, 900)
    assert standard_tokens(answer.reasoning) == 80
    assert standard_tokens_after(answer)[-1] == 100


def test_the_same_reasoning_under_both_names_counts_once() -> None:
    both = event(chunk({"delta": {"reasoning": "hm", "reasoning_content": "hm"}}))
    assert read((1, both + content("a") + finish() + DONE)).reasoning == "hm"


def test_reasoning_alone_is_no_visible_answer() -> None:
    answer = read((100, reasoning(" hm")), (200, finish("length") + usage(1) + DONE))
    assert (answer.error, answer.ttfa_ns, ms(answer.ttft_ns), answer.finish_reason) == (None, None, 100, "length")


def test_tool_calls_come_in_parts_by_index() -> None:
    answer = read(
        *[(10 * i, event(chunk({"delta": {}}))) for i in range(1, 91)],
        (1100, tool(0, "", name="add", id="call_a") + tool(0, '{"a":')),
        (1110, tool(1, '{"q":"x"}', name="find", id="call_b")),
        (1120, tool(0, " 1}") + finish("tool_calls") + usage(100) + DONE),
    )
    assert (ms(answer.ttft_ns), ms(answer.ttfa_ns)) == (1100, 1100)
    assert answer.tool_calls == (
        {"name": "add", "arguments": '{"a": 1}', "id": "call_a"},
        {"name": "find", "arguments": '{"q":"x"}', "id": "call_b"},
    )
    assert [piece.tool for piece in answer.pieces] == ["add", '{"a":', 'find{"q":"x"}', " 1}"]
    assert answer.text == ""


def test_missing_usage_is_missing() -> None:
    answer = read((1, content("a") + finish() + DONE))
    assert (answer.usage, answer.pieces[0].tokens, answer.error) == (None, None, None)


def test_usage_on_the_finishing_piece() -> None:
    assert completion(read((1, content("a") + finish(tokens=100) + DONE))) == 100


def test_usage_on_each_piece_is_cumulative_and_never_summed() -> None:
    pieces = [(10 * i, content(word, tokens=i + 1)) for i, word in enumerate(words(100))]
    answer = read(*pieces, (1000, finish(tokens=100) + DONE))
    assert completion(answer) == 100
    assert [piece.tokens for piece in answer.pieces] == list(range(1, 101))


def test_usage_in_a_trailing_block_and_after_done() -> None:
    assert completion(read((1, content("a") + finish()), (9, usage(7) + DONE))) == 7
    late = read((1, content("a") + finish() + DONE), (500, usage(8)))
    assert (completion(late), ms(late.e2e_ns)) == (8, 1)


def test_usage_tells_prompt_cached_and_reasoning_tokens_apart() -> None:
    block = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    block |= {"prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 80}}
    answer = read((1, content("a") + finish() + event(chunk(None, usage=block)) + DONE))
    assert answer.usage == Usage(completion_tokens=100, prompt_tokens=1000, cached_tokens=64, reasoning_tokens=80)


@pytest.mark.parametrize(
    "nonsense",
    [{"completion_tokens": -1}, {"completion_tokens": "7"}, {"completion_tokens": True}, {}, [], 7, True, None],
)
def test_usage_that_is_no_count_is_no_usage(nonsense: object) -> None:
    assert read((1, content("a") + finish() + event(chunk(None, usage=nonsense)) + DONE)).usage is None


def test_usage_may_disagree_with_the_text_and_is_kept_as_it_was_said() -> None:
    answer = read((400, b"".join(content(word) for word in words(40)) + finish() + usage(256) + DONE))
    assert (completion(answer), standard_tokens(answer.delivered)) == (256, 40)


def completion(answer: Answer) -> int | None:
    return answer.usage.completion_tokens if answer.usage else None


def test_an_error_in_the_stream_is_a_failure_under_any_status() -> None:
    said = b"".join(content(word) for word in words(10))
    for error in (error_event("out of memory"), error_event("out of memory", name="error")):
        answer = read((1, said), (2, error + DONE))
        assert (answer.error, answer.detail) == ("in_band", "out of memory")
        assert len(answer.pieces) == 10


def test_an_error_beats_a_finish_reason() -> None:
    assert read((1, content("a") + finish() + error_event() + DONE)).error == "in_band"


@pytest.mark.parametrize(
    "late",
    [
        event(b"overloaded", name="error"),
        event({"object": "error", "message": "overloaded"}),
        event(chunk({"delta": {}, "finish_reason": "error", "error": {"message": "overloaded"}})),
        event({"error": "overloaded"}),
    ],
)
def test_errors_come_in_many_forms(late: bytes) -> None:
    answer = read((1, content("a") + late + DONE))
    assert (answer.error, answer.detail) == ("in_band", "overloaded")


def test_an_error_body_under_http_200() -> None:
    assert read((1, b'{"error": {"message": "no such model"}}')).error == "in_band"


def test_an_http_error_keeps_its_words() -> None:
    answer = read((1, b'{"detail": "busy"}'), error="http_503", status=503)
    assert (answer.error, answer.detail, answer.pieces) == ("http_503", "busy", ())


def test_a_stream_without_done_is_whole_when_it_finished() -> None:
    answer = read((1, content("a") + finish() + usage(1)))
    assert (answer.error, answer.done) == (None, False)


def test_a_stream_without_a_finish_was_cut_however_politely() -> None:
    answer = read((1, b"".join(content(word) for word in words(10))))
    assert (answer.error, answer.text) == ("cut", "".join(words(10)))


def test_a_stream_cut_inside_an_event() -> None:
    assert read((1, content("a") + content("b")[:30])).error == "cut"
    assert read((1, content("a") + content("b")[:30]), error="cut").error == "cut"


@pytest.mark.parametrize("lost", ["cut", "reset"])
def test_a_connection_lost_after_the_finish_spoils_nothing(lost: str) -> None:
    answer = read((1, content("a") + finish() + usage(1)), error=lost)
    assert (answer.error, answer.done) == (None, False)
    assert read((1, content("a")), error=lost).error == lost


@pytest.mark.parametrize("word", ["timeout_idle", "timeout_total", "cancelled", "protocol"])
def test_other_faults_of_the_exchange_stay_faults(word: str) -> None:
    assert read((1, content("a") + finish() + DONE), error=word).error == word


def test_an_answer_with_nothing_in_it_is_empty() -> None:
    assert read((1, role() + finish() + usage(0) + DONE)).error == "empty"


def test_several_choices_are_refused() -> None:
    two = event(chunk({"index": 1, "delta": {"content": "b"}}))
    assert read((1, content("a") + two + finish() + DONE)).error == "choices"


def test_an_event_that_is_no_json_is_a_protocol_error() -> None:
    answer = read((1, content("a") + b"data: {nonsense}\n\n" + content("b") + finish() + DONE))
    assert (answer.error, answer.text) == ("protocol", "ab")


@pytest.mark.parametrize("odd", [b"null", b" null ", b"7", b'"text"', b"[]", b'["text"]', b"true", b"NaN"])
def test_an_event_that_is_no_object_fails_no_whole_answer(odd: bytes) -> None:
    events = event(odd) + content("a") + event(odd) + content("b") + finish() + event(odd) + DONE
    answer = read((1, events))
    assert (answer.error, answer.text, answer.detail) == (None, "ab", "")
    assert answer.unread == ({"data": 12} if b"text" in odd else {}), "its text is not lost without a word"
    assert read((1, content("a") + finish() + DONE + b"data: " + odd)).error is None, "nor one that was cut off"


@pytest.mark.parametrize(("odd", "cut", "empty"), [(b"null", "cut", "empty"), (b"7", "protocol", "protocol")])
def test_an_event_that_is_no_object_is_why_an_answer_is_not_whole_unless_it_says_nothing(
    odd: bytes, cut: str, empty: str
) -> None:
    assert read((1, content("a") + event(odd))).error == cut
    assert read((1, event(odd) + finish() + DONE)).error == empty


def test_an_error_event_may_hold_anything() -> None:
    assert read((1, content("a") + event(b"null", name="error") + finish() + DONE)).error == "in_band"


def test_comments_keep_alives_and_unknown_events_are_passed_over() -> None:
    noise = b": OPENROUTER PROCESSING\n\n" + event({"type": "ping"}, name="ping") + b"data:\n\n"
    answer = read((1, noise + content("a") + noise), (2, noise + finish() + DONE))
    assert (answer.error, answer.text) == (None, "a")


def test_a_whole_answer_in_one_body_is_one_piece_at_its_arrival() -> None:
    body = answer_body("all of it", 200)
    answer = read((390, body[:10]), (400, body[10:]))
    assert [(ms(p.t_ns), p.text, p.tokens) for p in answer.pieces] == [(400, "all of it", 200)]
    assert (answer.error, answer.done, answer.finish_reason) == (None, True, "stop")


def test_a_whole_body_with_reasoning_and_calls() -> None:
    message = {
        "content": None,
        "reasoning": "hm",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }
    answer = read((1, json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()))
    assert (answer.reasoning, answer.tool_calls[0]["name"], answer.error) == ("hm", "f", None)


def test_completions_carry_text() -> None:
    parts = content("a", api="completions") + content("b", api="completions")
    end = event(chunk({"text": "", "finish_reason": "length"}))
    answer = read((1, parts + end + usage(2) + DONE))
    assert (answer.text, len(answer.pieces), answer.finish_reason) == ("ab", 2, "length")
    assert read((1, answer_body("ab", 2, api="completions"))).text == "ab"


def test_text_revised_after_it_was_shown_counts_in_its_final_form_only() -> None:
    draft = content("The draft") + content(" is wrong")
    final = event(chunk({"message": {"role": "assistant", "content": "The final text"}}))
    answer = read((100, draft), (900, final + finish() + DONE))
    assert (answer.text, answer.revised) == ("The final text", True)
    assert [ms(piece.t_ns) for piece in answer.pieces] == [900]
    assert ms(answer.ttft_ns) == 900


@pytest.mark.parametrize("where", ["event", "choice", "delta"])
def test_a_flag_may_say_that_the_text_replaces(where: str) -> None:
    choice: dict[str, Any] = {"delta": {"content": "new"}}
    whole = chunk(choice)
    target = {"event": whole, "choice": whole["choices"][0], "delta": whole["choices"][0]["delta"]}[where]
    target["replace"] = True
    answer = read((1, content("old")), (2, event(whole) + finish() + DONE))
    assert (answer.text, answer.revised) == ("new", True)


@pytest.mark.parametrize("texts", [("Hello", "Goodbye"), ("Hello", "Hello world", "Hello world again", "Goodbye")])
@pytest.mark.parametrize("where", ["event", "delta", "message"])
def test_a_stream_of_whole_texts_is_replaced_each_time(where: str, texts: tuple[str, ...]) -> None:
    def whole(text: str) -> bytes:
        if where == "message":
            return event(chunk({"message": {"content": text}}))
        said = chunk({"delta": {"content": text} | ({"replace": True} if where == "delta" else {})})
        return event(({"replace": True} if where == "event" else {}) | said)

    timed = [(number, whole(text)) for number, text in enumerate(texts, 1)]
    answer = read(*timed, (9, finish() + DONE))
    assert (answer.text, answer.revised, answer.error) == ("Goodbye", True, None)
    assert [ms(piece.t_ns) for piece in answer.pieces] == [len(texts)]


@pytest.mark.parametrize("where", ["replace", "message"])
def test_whole_texts_that_only_grow_are_pieces_of_what_is_new(where: str) -> None:
    texts = ("Hello", "Hello world", "Hello world again")
    wholes = [chunk({"message": {"content": t}} if where == "message" else {"delta": {"content": t}}) for t in texts]
    timed = [(n, event(one | {"replace": where == "replace"})) for n, one in enumerate(wholes, 1)]
    answer = read(*timed, (9, finish() + DONE))
    assert (answer.revised, [piece.text for piece in answer.pieces]) == (False, ["Hello", " world", " again"])


@pytest.mark.parametrize("where", ["event", "choice", "delta"])
@pytest.mark.parametrize("name", ["content", "reasoning_content", "reasoning"])
def test_an_empty_replacement_drops_what_was_shown(where: str, name: str) -> None:
    said = chunk({"delta": {name: ""}})
    target = {"event": said, "choice": said["choices"][0], "delta": said["choices"][0]["delta"]}[where]
    target["replace"] = True
    draft = event(chunk({"delta": {name: "a draft"}}))
    final = event(chunk({"delta": {name: "the end"}}))
    answer = read((10, draft), (20, event(said)), (500, final), (510, finish() + DONE))
    assert (answer.delivered, answer.revised, ms(answer.ttft_ns)) == ("the end", True, 500)


@pytest.mark.parametrize("delta", [{}, {"content": None}, {"reasoning": None}, {"reasoning": "a thought"}])
def test_a_replacement_without_a_text_leaves_the_text(delta: dict[str, Any]) -> None:
    answer = read((10, content("shown")), (20, event(chunk({"delta": delta | {"replace": True}}))), (30, finish()))
    assert (answer.text, answer.revised, ms(answer.ttft_ns)) == ("shown", False, 10)


def test_a_message_at_the_end_may_leave_its_text_empty() -> None:
    last = event(chunk({"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}))
    answer = read((10, content("shown")), (20, last + DONE))
    assert (answer.text, answer.revised) == ("shown", False)


def test_an_empty_replacement_of_a_completion_drops_what_was_shown() -> None:
    draft, final = content("a draft", api="completions"), content("the end", api="completions")
    answer = read((10, draft), (20, event(chunk({"text": "", "replace": True}))), (500, final), (510, finish() + DONE))
    assert (answer.text, answer.revised) == ("the end", True)


def test_half_a_character_of_a_draft_is_none_of_the_final_text() -> None:
    half = event(b'{"choices": [{"delta": {"content": "draft\\ud83d"}}]}')
    final = event(chunk({"delta": {"content": "final"}}, replace=True))
    assert read((10, half), (20, final), (30, finish() + DONE)).text == "final"


BARE = [
    {"message": "out of memory", "type": "InternalServerError", "code": 500},
    {"detail": "out of memory"},
    {"detail": [{"msg": "out of memory"}]},
    {"code": 1301, "msg": "out of memory"},
    {"choices": [], "usage": None, "message": "out of memory"},
]


@pytest.mark.parametrize("told", BARE)
@pytest.mark.parametrize("streamed", [True, False])
def test_an_error_without_its_name_is_an_error(told: dict[str, Any], streamed: bool) -> None:
    before = content("one") + content(" two") if streamed else b""
    answer = read((10, before + (event(told) + DONE if streamed else json.dumps(told).encode())))
    assert (answer.error, "out of memory" in answer.detail) == ("in_band", True)


@pytest.mark.parametrize(
    "told",
    [
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "model": "", "id": "", "created": 0},
        {"id": "c", "object": "chat.completion.chunk", "choices": [], "code": 0, "message": None, "detail": ""},
        {"choices": [], "usage": {"completion_tokens": 1}, "message": "done"},
        {"type": "ping"},
    ],
)
def test_events_that_tell_of_nothing_are_no_errors(told: dict[str, Any]) -> None:
    answer = read((10, event(told) + content("one")), (20, event(told) + finish() + DONE))
    assert (answer.error, answer.text) == (None, "one")


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_a_finish_reason_may_be_a_failure(reason: str) -> None:
    assert read((10, content("one")), (20, finish(reason) + usage(1) + DONE)).error == "in_band"


def test_cached_tokens_have_two_names() -> None:
    hit = {"prompt_tokens": 16, "completion_tokens": 1, "prompt_cache_hit_tokens": 12}
    other = hit | {"prompt_tokens_details": {"cached_tokens": 8}}
    for told, cached in ((hit, 12), (other, 8)):
        answer = read((10, content("one")), (20, finish() + event(chunk(None, usage=told)) + DONE))
        assert answer.usage is not None
        assert answer.usage.cached_tokens == cached


def test_an_event_that_was_cut_off_after_the_finish_reason_spoils_nothing() -> None:
    answer = read((10, content("one")), (20, finish() + usage(1)[:30]), error="cut")
    assert (answer.error, answer.text, answer.finish_reason) == (None, "one", "stop")
    before = read((10, content("one") + content(" two")[:30]), error="cut")
    assert (before.error, before.text) == ("cut", "one")


def test_reasoning_counted_beside_the_completion_is_told_by_the_total() -> None:
    def told(total: int | None) -> int | None:
        counts = {"prompt_tokens": 32, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 94}}
        block = event(chunk(None, usage=counts | ({} if total is None else {"total_tokens": total})))
        usage_ = read((10, content("one")), (20, finish() + block + DONE)).usage
        return usage_.completion_tokens if usage_ else None

    assert [told(135), told(41), told(None)] == [103, 9, 9]


def test_a_whole_text_that_goes_on_revises_nothing() -> None:
    longer = event(chunk({"message": {"content": "one two"}}))
    same = event(chunk({"message": {"content": "one two"}, "finish_reason": "stop"}))
    answer = read((1, content("one")), (2, longer), (3, same + DONE))
    assert (answer.revised, [piece.text for piece in answer.pieces]) == (False, ["one", " two"])


def test_a_revision_leaves_the_thoughts_alone() -> None:
    final = event(chunk({"message": {"content": "new"}}))
    answer = read((1, reasoning("hm") + content("old")), (2, final + finish() + DONE))
    assert (answer.reasoning, answer.text) == ("hm", "new")


def test_surrogate_halves_in_two_pieces_are_one_character() -> None:
    halves = [event(b'{"choices":[{"index":0,"delta":{"content":"\\u%s"}}]}' % half) for half in (b"d83d", b"de00")]
    answer = read((1, halves[0]), (2, halves[1] + finish() + DONE))
    assert (answer.text, [ms(piece.t_ns) for piece in answer.pieces]) == ("😀", [2])


def test_a_lone_surrogate_becomes_storable() -> None:
    lone = event(b'{"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}')
    answer = read((1, lone + content("b") + lone + finish() + DONE))
    assert answer.text == "a\ufffdba\ufffd"
    assert answer.text.encode()


def test_the_engines_own_timings_are_kept() -> None:
    block = usage(3, timings={"draft_n": 10, "draft_n_accepted": 4, "note": "x"})
    assert read((1, content("a") + finish() + block + DONE)).timings == {"draft_n": 10, "draft_n_accepted": 4}


def test_an_event_of_a_megabyte() -> None:
    text = "word " * 200_000
    assert read((1, content(text) + finish() + DONE)).text == text


NAMES = (
    "choices delta content index message text usage error tool_calls function arguments name finish_reason timings "
    "completion_tokens replace reasoning"
)
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(tuple(NAMES.split())), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(json_like, max_size=4), st.sampled_from([None, "cut", "http_500"]), st.booleans())
def test_nothing_a_server_sends_raises(values: list[Any], error: str | None, stream: bool) -> None:
    body = b"".join(map(event, values)) if stream else json.dumps({"choices": values}).encode()
    answer = read((1, body), error=error)
    assert answer.text.encode() is not None
    assert answer.error is None or answer.error
    assert answer.delivered == "".join(p.reasoning + p.text + p.tool for p in answer.pieces)


@given(st.binary(max_size=300))
def test_no_bytes_raise(body: bytes) -> None:
    assert read((1, body)).error is not None or b"finish" in body or b"DONE" in body
