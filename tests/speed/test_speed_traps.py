"""The traps, down to the summary: streams that load generators read wrongly, each with the value that is right.

Times are given, not measured: these are streams as the client stores them. `tests/wire/test_traps.py` plays the same
over a real connection, against the clock of a scripted endpoint.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence

import pytest
from speed_making import by_word, make_outcome, make_trace, stream

from paribus.catalog import SetPrompt
from paribus.speed.flags import Facts
from paribus.speed.load import LoadRequest, run_closed_loop, steady_window
from paribus.speed.summarise import Around, summarise
from paribus.speed.summary import SpeedSummary
from paribus.speed.trace import Prompt
from paribus.speed.warm_up import warm_up
from paribus.speed.window import Window
from paribus.wire import Client, Outcome, payload, read_answer, run
from scripted import DONE, chunk, content, error_event, event, finish, reasoning, role, tool, usage, words

MS, S = 10**6, 10**9


def summary(
    *outcomes: Outcome, at_once: int = 1, window: Window | None = None, tokenizer=by_word, **facts
) -> SpeedSummary:
    """What is told of these requests."""
    prompts = [Prompt(outcome.prompt_id, "chat", "long") for outcome in outcomes]
    traces = [make_trace(o, p, tokenizer=tokenizer) for o, p in zip(outcomes, prompts, strict=True)]
    return summarise(traces, Around(at_once, window=window, facts=Facts(rows=(), **facts)))[1]


def flags(told: SpeedSummary) -> dict[str, str]:
    return {flag.id: flag.severity for flag in told.flags}


def said(*texts: str) -> bytes:
    return b"".join(content(text) for text in texts)


def steps(n: int, first: float, gap: float, size: int = 1) -> list[tuple[float, int]]:
    """`n` pieces of `size` tokens from `first` ms on."""
    return [(first + i * gap, size) for i in range(n)]


def test_1_a_role_is_no_first_token():
    told = summary(stream(steps(100, 500, 10)))  # the role comes at 0
    assert told.ttft_ms.p50 == 500


def test_2_and_3_several_tokens_in_a_piece():
    told = summary(stream(steps(25, 200, 20, 4)))
    assert told.decode_speed.value == pytest.approx(96 / 0.48)
    assert (told.stall_ms.p50, told.stall_ms.p99, told.stall_ms.max) == pytest.approx((20, 20, 20))
    assert not [name for name in SpeedSummary.model_fields if "peak" in name or "inter" in name], "no such rates"


def test_4_canvases():
    told = summary(stream([(400, 256), (600, 256)]))
    assert told.output_speed.value == pytest.approx(512 / 0.6)
    assert told.decode_speed.value == pytest.approx(256 / 0.2)


def test_4b_many_pieces_in_one_write():
    text = words(100)
    told = summary(
        make_outcome((500, said(*text[:50])), (1000, said(*text[50:])), (1001, finish() + usage(100) + DONE))
    )
    assert told.ttft_ms.p50 == 500
    assert told.decode_speed.value == pytest.approx(100)


def test_5_an_answer_in_one_piece():
    told = summary(stream([(400, 200)]))
    assert told.output_speed.value == pytest.approx(500)
    assert told.decode_speed.value is None
    assert told.stall_ms.p50 is None


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_6_reasoning_is_text_and_its_end_begins_the_answer(key):
    text = words(100)
    told = summary(
        make_outcome(
            (0, role()),
            *[(100 + 10 * i, reasoning(text[i], key)) for i in range(80)],
            *[(900 + 10 * i, content(text[80 + i])) for i in range(20)],
            (1090, finish() + usage(100) + DONE),
        )
    )
    assert (told.ttft_ms.p50, told.ttfa_ms.p50, told.tokens.total) == (100, 900, 100)
    assert told.reasoning_tokens.total == pytest.approx(80, rel=0.02)


def mistral(text: str) -> bytes:
    return event(chunk({"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}}))


@pytest.mark.parametrize("think", [mistral, *(lambda text, key=key: reasoning(text, key)
                                              for key in ("thinking", "reasoning_text"))])  # fmt: skip
def test_6b_reasoning_under_other_names_begins_the_answer_too(think):
    text = words(100)
    thought = [(100 + 10 * i, think(text[i])) for i in range(80)]
    shown = [(900 + 10 * i, content(text[80 + i])) for i in range(20)]
    told = summary(make_outcome((0, role()), *thought, *shown, (1090, finish() + usage(100) + DONE)), thinking=False)
    assert (told.ttft_ms.p50, told.ttfa_ms.p50, told.tokens.total) == (100, 900, 100)
    assert told.reasoning_tokens.total == pytest.approx(80, rel=0.02)
    assert flags(told) == {"thinking_mismatch": "invalid"}


@pytest.mark.parametrize(("pieces", "severity"), [(80, "invalid"), (1, "warning")])
def test_6c_text_under_a_name_that_is_not_read_is_no_silence(pieces, severity):
    text = words(100)
    lost = [(100 + 10 * i, event(chunk({"delta": {"musing": text[i][:2]}}))) for i in range(pieces)]
    shown = [(900 + 10 * i, content(word)) for i, word in enumerate(text)]
    told = summary(make_outcome(*lost, *shown, (1990, finish() + usage(100) + DONE)))
    assert flags(told) == {"unread_text": severity}
    assert f"musing ({2 * pieces} bytes)" in told.flags[0].text
    assert told.ranked == (severity == "warning")


def test_6d_an_answer_that_is_all_under_such_a_name_is_no_answer_and_says_why():
    lost = event(chunk({"delta": {"musing": " word"}}))
    told = summary(make_outcome((100, lost), (110, finish() + usage(1) + DONE)))
    assert (told.requests.ok, flags(told)) == (0, {"failures": "invalid", "unread_text": "invalid"})


def test_6e_a_refusal_and_the_older_form_of_a_call_are_answers():
    refusal = [(100 + 10 * i, event(chunk({"delta": {"refusal": word}}))) for i, word in enumerate(words(40))]
    told = summary(make_outcome(*refusal, (900, finish() + usage(40) + DONE)))
    assert (told.ttft_ms.p50, told.ttfa_ms.p50, told.tokens.total, flags(told)) == (100, 100, 40, {})
    given = [{"name": "find", "arguments": ""}, {"arguments": '{"q": "'}, {"arguments": "".join(words(30)) + '"}'}]
    parts = [(100.0 + 10 * i, event(chunk({"delta": {"function_call": part}}))) for i, part in enumerate(given)]
    told = summary(make_outcome(*parts, (130, finish("function_call") + usage(36) + DONE)))
    assert (told.ttft_ms.p50, told.ttfa_ms.p50, told.e2e_ms.p50, flags(told)) == (100, 100, 120, {})


def test_7_reasoning_alone_is_no_answer():
    thought = reasoning("".join(words(100)))
    told = summary(make_outcome((100, thought), (200, finish("length") + usage(100) + DONE)))
    assert (told.tokens.total, told.requests.unanswered, told.ttfa_ms.p50) == (100, 1, None)
    assert told.requests.ok == 1


@pytest.mark.parametrize(("tokenizer", "method"), [(by_word, "tokenizer"), (None, "standard")])
def test_8_without_usage_tokens_are_counted_again(tokenizer, method):
    told = summary(stream(steps(25, 200, 20, 4), counted=False), tokenizer=tokenizer)
    assert (told.tokens.total, told.tokens_method) == (100, method)
    assert "usage_missing" in flags(told)


def test_9_cumulative_usage_is_not_summed():
    text = words(100)
    pieces = [(10.0 * i + 10, content(text[i], tokens=i + 1)) for i in range(100)]
    each = summary(make_outcome(*pieces, (1000, finish(tokens=100) + DONE)))
    inside = summary(make_outcome((10, said(*text)), (20, finish(tokens=100) + DONE)))
    assert each.tokens.total == inside.tokens.total == 100


@pytest.mark.parametrize("block", [chunk({"delta": {}, "usage": {"completion_tokens": 40}}),
                                   chunk(None, x_groq={"usage": {"completion_tokens": 40}})])  # fmt: skip
def test_9b_usage_in_the_choice_or_in_groqs_block_is_usage(block):
    told = summary(make_outcome((400, said(*words(40))), (410, finish() + event(block) + DONE)))
    assert (told.tokens.total, told.tokens_method, flags(told)) == (40, "usage", {})


def test_10_an_error_after_http_200_is_a_failure():
    told = summary(make_outcome((10, said(*words(10))), (20, error_event("no memory") + DONE)))
    assert (told.requests.ok, told.requests.failed, told.requests.cut) == (0, 1, 1)
    assert told.ttft_ms.p50 is None
    assert flags(told)["failures"] == "invalid"


def test_11_cut_is_failed_and_a_missing_done_is_a_note():
    text = said(*words(10))
    assert summary(make_outcome((10, text))).requests.failed == 1
    told = summary(make_outcome((10, text), (20, finish() + usage(10))))
    assert (told.requests.ok, flags(told)) == (1, {"no_done": "note"})


def test_11b_done_alone_does_not_say_that_an_answer_is_whole():
    told = summary(make_outcome((10, said(*words(10))), (20, usage(10) + DONE)))
    assert (told.requests.ok, flags(told)) == (1, {"no_finish_reason": "warning"})


def test_11c_a_reset_or_an_event_that_says_nothing_spoils_no_whole_answer():
    text = event(b"null") + said(*words(10)) + event(b"null")
    told = summary(make_outcome((10, text), (20, finish() + usage(10) + event(b"null") + DONE), error="reset"))
    assert (told.requests.ok, told.tokens.total, flags(told)) == (1, 10, {})


def test_12_a_late_usage_block_does_not_stretch_the_answer():
    told = summary(make_outcome((1190, said(*words(100))), (2000, finish() + usage(100) + DONE)))
    assert told.e2e_ms.p50 == 1190


def test_13_a_character_between_reads_comments_and_an_event_without_a_blank():
    data = b": hi\r\n\r\n" + event(chunk({"delta": {"content": " 日本"}}), prefix=b"data:", end=b"\r\n")
    middle = data.index("本".encode()) + 1
    told = summary(make_outcome((10, data[:middle]), (30, data[middle:]), (40, finish() + usage(1) + DONE)))
    assert (told.requests.ok, told.bytes.total, told.ttft_ms.p50) == (1, len(" 日本".encode()), 30)


def test_14_empty_deltas_before_a_tool_call():
    empty = [(200.0 + i, event(chunk({"delta": {}}))) for i in range(90)]
    call = tool(0, '{"q": "' + "".join(words(98)) + '"}', name="find", id="c1")
    told = summary(make_outcome(*empty, (1100, call), (1110, finish("tool_calls") + usage(100) + DONE)))
    assert (told.ttft_ms.p50, told.ttfa_ms.p50, told.tokens.total) == (1100, 1100, 100)
    assert told.decode_speed.value is None
    assert "usage_mismatch" not in flags(told), "markup of a call is tokens that no piece shows"


def test_14b_a_message_at_the_end_does_not_double_a_call_and_parallel_calls_are_apart():
    given = [{"id": name, "index": 0, "function": {"name": name, "arguments": "{}"}} for name in ("find", "sort")]
    streamed = [(100.0 + 10 * i, event(chunk({"delta": {"tool_calls": [call]}}))) for i, call in enumerate(given)]
    last = event(chunk({"message": {"role": "assistant", "content": None, "tool_calls": given}}))
    once = make_outcome(*streamed, (900, finish("tool_calls") + usage(12) + DONE))
    again = make_outcome(*streamed, (900, last + finish("tool_calls") + usage(12) + DONE))
    assert summary(once) == summary(again)
    assert summary(again).e2e_ms.p50 == 110
    assert [call["name"] for call in read_answer(again).tool_calls] == ["find", "sort"]


def test_15_usage_past_the_end_of_sequence():
    padded = make_outcome((400, said(*words(40))), (410, finish() + usage(256) + DONE))
    own = summary(padded)
    assert (own.tokens.total, own.output_speed.value) == (40, pytest.approx(100))
    assert flags(own)["usage_mismatch"] == "invalid"
    blind = summary(padded, tokenizer=None)
    assert flags(blind)["usage_mismatch"] == "invalid", "more than three times the standard tokens is no tokenizer's"


def test_15b_one_padded_answer_among_sound_ones():
    sound = [
        make_outcome((400, said(*words(40, i))), (410, finish() + usage(40) + DONE), prompt_id=f"p{i}")
        for i in range(9)
    ]
    padded = make_outcome((400, said(*words(40, 9))), (410, finish() + usage(256) + DONE))
    told = summary(*sound, padded, tokenizer=None)
    assert told.output_speed.value == pytest.approx(100)
    assert flags(told)["usage_mismatch"] == "invalid"


def hiding(*, beside: bool) -> Outcome:
    """200 tokens from 3 s on, one every 10 ms, after 300 of reasoning that nobody is shown."""
    counts = {"prompt_tokens": 16, "completion_tokens": 200 if beside else 500, "total_tokens": 516}
    block = event(chunk(None, usage=counts | {"completion_tokens_details": {"reasoning_tokens": 300}}))
    text = [(3010 + 10 * i, content(word)) for i, word in enumerate(words(200))]
    return make_outcome(*text, (5010, finish() + block + DONE))


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    ("hosted", "found", "severity"), [(True, "hidden_tokens", "warning"), (False, "usage_mismatch", "invalid")]
)
def test_15c_reasoning_that_nobody_was_shown_is_no_output(beside, hosted, found, severity):
    told = summary(hiding(beside=beside), tokenizer=None, hosted=hosted)
    assert (told.tokens.total, told.reasoning_tokens.total) == (200, 0)
    assert told.output_speed.value == pytest.approx(40, rel=0.01)
    assert told.decode_speed.value == pytest.approx(100, rel=0.01)
    assert flags(told)[found] == severity


def test_15d_hidden_reasoning_is_thinking_all_the_same():
    told = summary(hiding(beside=False), tokenizer=None, thinking=False)
    assert flags(told)["thinking_mismatch"] == "invalid"


def test_16_prompt_tokens_are_not_output():
    counts = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    told = summary(
        make_outcome((500, said(*words(100))), (510, finish() + event(chunk(None, usage=counts)) + DONE)),
    )
    assert told.tokens.total == 100
    assert told.output_speed.value == pytest.approx(200)


def test_17_a_loop_is_no_speed():
    loop = make_outcome((100, said(" word" * 900)), (110, finish("length") + usage(900) + DONE))
    told = summary(loop)
    assert (told.requests.degenerate, flags(told)["degenerate"]) == (1, "invalid")
    assert not told.ranked


def test_18_as_many_at_once_as_asked_or_no_rank():
    def at_once(n: int) -> SpeedSummary:
        return summary(
            *[stream(steps(20, 10, 10), index=i, prompt_id=f"p{i}", sent_ns=(i // n) * S, ended_ns=(i // n + 1) * S,
                     seed=i) for i in range(128)],
            at_once=128,
        )  # fmt: skip

    assert (at_once(128).concurrency_seen, "fewer_at_once" in flags(at_once(128))) == (128, False)
    assert (at_once(100).concurrency_seen, flags(at_once(100))["fewer_at_once"]) == (100, "invalid")
    assert not at_once(100).ranked


def test_18_the_client_has_no_limit_of_its_own(scripted):
    endpoint = scripted.endpoint("f400-n4-i100")

    async def go() -> Sequence[Outcome]:
        async with Client(endpoint) as client:
            await client.open(128)
            prompt = SetPrompt(id="p", prompt="p", kind="chat", length="long", split="measured")
            body = payload(endpoint, prompt, max_tokens=64, sampling={})
            outcomes: list[Outcome] = []
            requests = (LoadRequest(i, "p", body) for i in range(128))
            await run_closed_loop(client, requests, 128, on_end=outcomes.append)
            return outcomes

    told = summary(*run(go()), at_once=128)
    assert told.concurrency_seen == 128
    assert max(emission.active for emission in scripted.log()) == 128


def test_19_a_tail_is_in_the_whole_run_and_not_in_the_window():
    outcomes = []
    for worker in range(16):
        for turn in range(10 if worker < 15 else 5):
            outcomes.append((turn * S, steps(100, 10, 10)))
    outcomes.append((5 * S, steps(100, 100, 100)))
    made = [
        stream(pieces, index=i, prompt_id=f"p{i}", sent_ns=sent, ended_ns=sent + round(pieces[-1][0] * MS), seed=i)
        for i, (sent, pieces) in enumerate(outcomes)
    ]
    window = steady_window([o.ended_ns for o in made], 16)
    told = summary(*made, at_once=16, window=window)
    # The last worker writes 100 tokens a second for five seconds, then 10.
    seconds = window.seconds
    right = 1500 + (100 * (5 - window.start_ns / S) + 10 * (window.end_ns / S - 5)) / seconds
    assert told.throughput.value == pytest.approx(right, rel=0.01)
    assert told.throughput.whole_run == pytest.approx((150 * 100 + 500 + 100) / 15, rel=0.01)
    assert (told.window_s, told.wall_s) == (seconds, 15)


class Slow:
    """A server that is three times slower for its first answers, on a clock of its own."""

    def __init__(self, slow: int):
        self.now, self.answered, self.slow = 0, 0, slow
        self.prompts: list[str] = []

    def now_ns(self) -> int:
        return self.now

    def abort(self) -> None: ...

    async def send(self, body, *, index, prompt_id, due_ns, phase, worker=0) -> Outcome:
        gap = 30 if self.answered < self.slow else 10
        self.answered += 1
        self.prompts.append(prompt_id)
        await asyncio.sleep(0)
        made = stream(
            steps(40, gap, gap), index=index, prompt_id=prompt_id, phase=phase, sent_ns=self.now, seed=index,
            ended_ns=self.now + 40 * gap * MS,
        )  # fmt: skip
        self.now = made.ended_ns
        return made


def tuning(n: int) -> list[SetPrompt]:
    return [SetPrompt(id=f"t{i}", prompt="x", kind="chat", length="long", split="tuning") for i in range(n)]


@pytest.mark.parametrize("slow", [1, 2, 3, 50])
def test_20_a_slow_beginning_is_warmed_up_or_flagged(slow):
    async def go() -> tuple[Slow, SpeedSummary, bool]:
        server = Slow(slow)
        warm = await warm_up(server, tuning(6), lambda prompt, index, cap: b"", concurrency=1, cap=64, max_blocks=12)
        outcomes: list[Outcome] = []
        await run_closed_loop(server, (LoadRequest(i, f"p{i}", b"") for i in range(60)), 1, on_end=outcomes.append)
        return server, summary(*outcomes), warm.settled

    server, told, settled = asyncio.run(go())
    assert len(set(server.prompts[:2])) == 2, "one repeated prompt is no warm-up"
    steady = told.output_speed_standard.value == pytest.approx(100, rel=0.02)
    assert (steady and settled) or "drift" in flags(told)


def test_21_failures_count_as_such_and_never_in_the_times():
    refused = make_outcome(
        (2, b'{"error": {"message": "busy"}}'), status=503, error="http_503", content_type="application/json"
    )
    fine = [stream(steps(100, 500, 10), index=i, prompt_id=f"p{i}", seed=i) for i in range(1, 20)]
    told = summary(refused, *fine)
    assert (told.requests.ok, told.requests.failed) == (19, 1)
    assert (told.ttft_ms.mean, told.ttft_ms.p50, told.e2e_ms.p50) == (500, 500, 1490)
    assert flags(told)["failures"] == "invalid"


def test_24_every_answer_of_a_batch_counts_its_own_tokens():
    batch = [stream(steps(1, 1000, 0, n), index=i, prompt_id=f"p{i}", seed=i) for i, n in enumerate((10, 20, 30, 40))]
    told = summary(*batch, at_once=4)
    assert (told.tokens.total, told.tokens.mean) == (100, 25)


def test_the_same_answer_to_different_prompts_is_a_cache():
    text = words(40)
    same = [make_outcome((10, said(*text)), (20, finish() + usage(40) + DONE), prompt_id=f"p{i}") for i in range(8)]
    own = [stream(steps(40, 10, 10), prompt_id=f"p{i}", seed=i) for i in range(8)]
    assert flags(summary(*same))["cached_answers"] == "invalid"
    assert "cached_answers" not in flags(summary(*own))


@pytest.mark.parametrize("make", [
    lambda n: tool(0, '{"q": "' + "".join(words(30, n)) + '"}', name="find", id=f"c{n}"),
    lambda n: reasoning("".join(words(30, n))) + content("Yes."),
], ids=["a call", "a thought"])  # fmt: skip
def test_the_same_call_or_thought_for_different_prompts_is_a_cache_too(make):
    def answers(seeds: Sequence[int]) -> SpeedSummary:
        end = finish("tool_calls") + usage(40) + DONE
        return summary(*[make_outcome((10, make(n)), (20, end), prompt_id=f"p{i}") for i, n in enumerate(seeds)])

    assert flags(answers([0] * 8))["cached_answers"] == "invalid"
    assert "cached_answers" not in flags(answers(range(8)))


def test_cached_prompt_tokens_are_no_speed_of_a_headline():
    told = summary(make_outcome((10, said(*words(40))), (20, finish() + usage(40, cached=12) + DONE)))
    assert flags(told)["cached"] == "invalid"


def test_a_text_that_was_replaced_counts_once_in_its_final_form():
    final = event(chunk({"message": {"role": "assistant", "content": "".join(words(20, 1))}}))
    told = summary(make_outcome((10, said(*words(30))), (500, final), (510, finish() + usage(20) + DONE)))
    assert (told.tokens.total, told.standard_tokens.total, told.ttft_ms.p50) == (20, 20, 500)
    assert "revised" in flags(told)


def test_an_empty_text_in_its_place_takes_a_draft_back():
    drop = event(chunk({"delta": {"content": "", "replace": True}}))
    final = said(*words(20, 1))
    told = summary(make_outcome((10, said(*words(30))), (490, drop), (510, final), (520, finish() + usage(20) + DONE)))
    assert (told.tokens.total, told.standard_tokens.total, told.ttft_ms.p50) == (20, 20, 510)
    assert "revised" in flags(told)


@pytest.mark.parametrize("told", [{"message": "out of memory", "type": "InternalServerError", "code": 500},
                                  {"detail": "out of memory"}])  # fmt: skip
def test_10b_an_error_without_its_name_is_a_failure_too(told):
    told = summary(make_outcome((10, said(*words(3))), (20, event(told) + DONE)))
    assert (told.requests.ok, told.requests.failed, told.ttft_ms.p50) == (0, 1, None)
    assert flags(told)["failures"] == "invalid"


def test_loops_compress_and_prose_of_these_tests_does_not():
    # The scripted words must not count as loops, or the traps above would be flagged for another reason.
    text = "".join(words(900))
    assert len(zlib.compress(text.encode())) > 0.2 * len(text)
