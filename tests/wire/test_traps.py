"""The traps, over the wire: each stream that other load generators get wrong, with what is right.

For each, the server's own clock bounds every piece: it can't have arrived before it was written. Where the trap is one
of time, something else was written much later, and the piece must have been stamped before that.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import pytest

from paribus.wire import standard_tokens, standard_tokens_after
from paribus.wire.sse import read_events
from scripted import (
    DONE,
    Asked,
    Script,
    Scripted,
    Step,
    ask,
    ask_one,
    chunk,
    content,
    error_event,
    event,
    finish,
    reasoning,
    role,
    steps,
    tool,
    usage,
    words,
)

LATER = 250.0
"""Milliseconds between two writes whose order a test relies on."""


def play(server: Scripted, name: str, *timed: Step, **how: object) -> Asked:
    """Ask for these steps, and hold every piece against the server's clock."""
    asked = ask_one(server, name, Script(tuple(timed), **how))  # type: ignore[arg-type]
    written = list(accumulate(len(step.data) for step in timed))
    carriers = [e.end for e in read_events(asked.outcome.body) if carries(e.data)]
    assert len(carriers) == len(asked.answer.pieces)
    for piece, end in enumerate(carriers):
        assert asked.arrival_ns(piece) >= asked.written_ns(bisect_left(written, end))
    return asked


def carries(data: bytes) -> bool:
    """Whether an event carries what the model wrote: in these scripts a text that begins with a blank, or a call."""
    return b'": " ' in data or b'"arguments"' in data


def end(reason: str = "stop", tokens: int | None = None) -> bytes:
    return finish(reason) + (usage(tokens) if tokens is not None else b"") + DONE


def counted(asked: Asked) -> int | None:
    return asked.answer.usage.completion_tokens if asked.answer.usage else None


def test_several_tokens_in_a_piece(scripted: Scripted) -> None:
    text = words(40)
    pieces = [content("".join(text[i : i + 4])) for i in range(0, 40, 4)]
    asked = play(scripted, "spec", *steps(pieces, first_ms=10, gap_ms=5, tokens=4), Step(60, end(tokens=40)))
    assert (counted(asked), len(asked.answer.pieces)) == (40, 10)
    assert standard_tokens_after(asked.answer) == list(range(4, 41, 4))


def test_a_whole_canvas_in_a_piece(scripted: Scripted) -> None:
    canvases = [content("".join(words(256, seed))) for seed in (1, 2)]
    asked = play(scripted, "canvas", Step(20, canvases[0]), Step(20 + LATER, canvases[1]), Step(0, end(tokens=512)))
    assert standard_tokens_after(asked.answer) == [256, 512]
    assert asked.arrival_ns(0) < asked.written_ns(1) <= asked.arrival_ns(1)


def test_an_answer_in_one_piece(scripted: Scripted) -> None:
    asked = play(scripted, "once", Step(30, content("".join(words(200)))), Step(30, end(tokens=200)))
    assert (len(asked.answer.pieces), counted(asked)) == (1, 200)
    assert asked.answer.ttft_ns == asked.answer.e2e_ns


def test_several_pieces_in_one_read(scripted: Scripted) -> None:
    one, two = (b"".join(content(word) for word in words(50, seed)) for seed in (1, 2))
    asked = play(scripted, "batched", Step(10, one), Step(10 + LATER, two), Step(0, end(tokens=100)))
    assert len(asked.answer.pieces) == 100
    assert asked.arrival_ns(49) < asked.written_ns(1) <= asked.arrival_ns(50)


def test_a_role_only_and_an_empty_first_piece(scripted: Scripted) -> None:
    opening = role() + content("") + event(chunk({"delta": {}}))
    asked = play(scripted, "role", Step(0, opening), Step(LATER, content(" words")), Step(LATER, end()))
    assert asked.arrival_ns(0) >= asked.written_ns(1)
    assert asked.outcome.reads[0][0] < asked.answer.pieces[0].t_ns, "the opening came, and started no clock"


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_before_the_answer(scripted: Scripted, key: str) -> None:
    thought = reasoning("".join(words(80)), key)
    asked = play(scripted, "thinking", Step(10, thought), Step(10 + LATER, content("".join(words(20)))), Step(0, end()))
    answer = asked.answer
    assert (standard_tokens(answer.reasoning), standard_tokens(answer.text)) == (80, 20)
    assert answer.ttft_ns == answer.pieces[0].t_ns
    assert answer.ttfa_ns == answer.pieces[1].t_ns
    assert asked.arrival_ns(0) < asked.written_ns(1)


def test_thinking_in_parts_of_the_content(scripted: Scripted) -> None:
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "".join(words(80))}]}]
    said = event(chunk({"delta": {"content": thought}}))
    asked = play(scripted, "parts", Step(10, said), Step(10 + LATER, content("".join(words(20)))), Step(0, end()))
    answer = asked.answer
    assert (standard_tokens(answer.reasoning), standard_tokens(answer.text), answer.unread) == (80, 20, {})
    assert (answer.ttft_ns, answer.ttfa_ns) == tuple(piece.t_ns for piece in answer.pieces)
    assert asked.arrival_ns(0) < asked.written_ns(1)


def test_text_under_a_name_that_is_not_read(scripted: Scripted) -> None:
    lost = event(chunk({"delta": {"musing": "hm"}}))
    asked = play(scripted, "musing", Step(5, lost), Step(LATER, content(" words")), Step(LATER, end()))
    assert (asked.answer.text, asked.answer.unread) == (" words", {"musing": 2})


def test_reasoning_only(scripted: Scripted) -> None:
    asked = play(scripted, "pondering", Step(10, reasoning("".join(words(50)))), Step(20, end("length", 50)))
    assert (asked.answer.error, asked.answer.ttfa_ns, asked.answer.finish_reason) == (None, None, "length")
    assert (asked.answer.text, counted(asked)) == ("", 50)


def test_tool_call_deltas_after_empty_ones(scripted: Scripted) -> None:
    empty = event(chunk({"delta": {}}))
    call = tool(0, "", name="find", id="c1") + tool(0, '{"q": "words"}')
    asked = play(
        scripted, "tools", *steps([empty] * 9, first_ms=0, gap_ms=2), Step(LATER, call + end("tool_calls", 30))
    )
    assert asked.arrival_ns(0) >= asked.written_ns(9)
    assert asked.answer.tool_calls == ({"name": "find", "arguments": '{"q": "words"}', "id": "c1"},)
    assert counted(asked) == 30


def test_usage_missing(scripted: Scripted) -> None:
    asked = play(scripted, "uncounted", Step(5, content("".join(words(9)))), Step(9, end()))
    assert (asked.answer.usage, asked.answer.error) == (None, None)
    assert standard_tokens(asked.answer.text) == 9


def test_usage_on_the_finishing_piece(scripted: Scripted) -> None:
    asked = play(scripted, "late-count", Step(5, content(" words")), Step(LATER, finish(tokens=1) + DONE))
    assert counted(asked) == 1
    assert asked.arrival_ns(-1) < asked.written_ns(1), "the answer ended with its last text"


def test_usage_on_every_piece_is_not_summed(scripted: Scripted) -> None:
    asked = ask_one(scripted, "f5-n50-i500-U-u")
    assert counted(asked) == 50
    assert [piece.tokens for piece in asked.answer.pieces] == list(range(1, 51))


def test_usage_after_done_and_delayed(scripted: Scripted) -> None:
    asked = play(scripted, "after", Step(5, content(" words") + end()), Step(5 + LATER, usage(1)))
    assert counted(asked) == 1
    assert asked.arrival_ns(0) < asked.written_ns(1)


def test_usage_that_counts_past_the_end_is_told_from_the_text(scripted: Scripted) -> None:
    asked = play(scripted, "padded", Step(5, content("".join(words(40)))), Step(9, end(tokens=256)))
    assert (counted(asked), standard_tokens(asked.answer.delivered)) == (256, 40)


def test_an_error_event_after_http_200(scripted: Scripted) -> None:
    asked = play(scripted, "failing", Step(5, content("".join(words(10)))), Step(9, error_event("no memory") + DONE))
    assert asked.outcome.status == 200
    assert (asked.outcome.error, asked.answer.error, asked.answer.detail) == (None, "in_band", "no memory")


def test_no_done(scripted: Scripted) -> None:
    asked = play(scripted, "undone", Step(5, content(" words") + finish() + usage(1)), framing="close")
    assert (asked.answer.error, asked.answer.done) == (None, False)


def test_closed_in_the_middle_without_a_length_to_tell(scripted: Scripted) -> None:
    asked = play(scripted, "half", Step(5, content(" words")), framing="close")
    assert (asked.outcome.error, asked.answer.error) == (None, "cut")


@pytest.mark.parametrize("page", [b"<html><body>Sign in</body></html>", b""])
def test_a_page_under_http_200_is_no_stream(scripted: Scripted, page: bytes) -> None:
    asked = play(scripted, f"page{len(page)}", Step(5, page), framing="length", content_type="text/html")
    assert asked.answer.error == "protocol"
    assert "not an event stream: text/html" in asked.answer.detail


def test_an_event_stream_of_comments_alone_was_cut(scripted: Scripted) -> None:
    assert play(scripted, "comments", Step(5, b": keep-alive\n\n")).answer.error == "cut"


def test_the_last_chunk_missing_after_a_whole_answer(scripted: Scripted) -> None:
    asked = play(scripted, "no-end", Step(5, content(" words") + end(tokens=1)), terminated=False)
    asked_cut = play(scripted, "no-end-cut", Step(5, content(" words")), Step(9, act="cut"))
    assert (asked.answer.error, asked_cut.answer.error) == (None, "cut")


def test_a_reset_after_a_whole_answer_spoils_nothing(scripted: Scripted) -> None:
    asked = play(scripted, "reset", Step(5, content(" words") + finish() + usage(1)), Step(LATER, act="reset"))
    asked_cut = play(scripted, "reset-cut", Step(5, content(" words")), Step(LATER, act="reset"))
    assert (asked.outcome.error, asked.answer.error, asked.answer.done) == ("reset", None, False)
    assert (asked_cut.outcome.error, asked_cut.answer.error) == ("reset", "reset")


def test_a_character_split_between_reads(scripted: Scripted) -> None:
    data = content(" words 日本 é")
    middle = data.index("本".encode()) + 1
    asked = play(scripted, "split", Step(5, data[:middle]), Step(LATER, data[middle:]), Step(LATER, end()))
    assert asked.outcome.reads[0][1] == middle
    assert asked.answer.text == " words 日本 é"
    assert asked.arrival_ns(0) >= asked.written_ns(1), "half an event is no piece yet"


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("prefix", [b"data: ", b"data:"])
def test_line_ends_comments_fields_and_strange_separators(scripted: Scripted, newline: bytes, prefix: bytes) -> None:
    text = " words\u2028and\u2029more\x85here"
    value = chunk({"delta": {"content": text}})
    body = b": hello" + newline * 2 + event(value, name="token", prefix=prefix, end=newline)
    asked = play(scripted, "styles", Step(5, body + b"id: 3" + newline + b"retry: 5" + newline * 2), Step(9, end()))
    assert asked.answer.text == text


def test_gzip(scripted: Scripted) -> None:
    pieces = [content(word) for word in words(20)]
    asked = play(scripted, "gzip", *steps(pieces, first_ms=5, gap_ms=5), Step(110, end(tokens=20)), encoding="gzip")
    assert asked.answer.text == "".join(words(20))
    assert len({piece.t_ns for piece in asked.answer.pieces}) > 1, "pieces keep their own times"


def test_an_event_of_a_megabyte(scripted: Scripted) -> None:
    text = "".join(words(200_000))
    asked = play(scripted, "huge", Step(5, content(text)), Step(9, end()))
    assert len(text) > 1 << 20
    assert asked.answer.text == text
    assert len(asked.outcome.reads) > 2


def test_identical_answers_to_different_prompts_can_be_seen(scripted: Scripted) -> None:
    same, other = (ask(scripted, name, requests=4) for name in ("f2-n20-i100-same", "f2-n20-i100"))
    assert len({asked.answer.delivered for asked in same}) == 1
    assert len({asked.answer.delivered for asked in other}) == 4


def test_a_loop_is_delivered_as_it_is(scripted: Scripted) -> None:
    asked = ask_one(scripted, "f2-n900-i10-w50-loop-length")
    assert (asked.answer.text, asked.answer.finish_reason) == (" word" * 900, "length")


def test_text_revised_after_it_was_shown(scripted: Scripted) -> None:
    final = event(chunk({"message": {"role": "assistant", "content": " words, final"}}))
    asked = ask_one(scripted, "drafts", Script((Step(5, content(" a draft")), Step(LATER, final + end()))))
    assert (asked.answer.text, asked.answer.revised) == (" words, final", True)
    assert asked.arrival_ns(0) >= asked.written_ns(1)


def test_sixteen_at_once_are_kept_apart(scripted: Scripted) -> None:
    asked = ask(scripted, "f90-n60-i1000-r-k3-w2-R12", requests=48, at_once=16)
    assert max(a.emission.active for a in asked if a.emission) == 16
    for one in asked:
        assert one.answer.error is None
        assert counted(one) == standard_tokens(one.answer.delivered) == 60
        assert standard_tokens(one.answer.reasoning) == 12
    assert len({one.answer.delivered for one in asked}) == 48
