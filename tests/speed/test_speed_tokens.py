"""Counting tokens: usage, the model's own tokenizer, standard tokens; and usage against the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from speed_making import by_word, make_outcome, make_trace, stream

from paribus.conditions import UsageError
from paribus.conditions.thinking import thought
from paribus.speed.derive import row_of
from paribus.speed.metrics.tokens import check_usage
from paribus.speed.summarise import Around, summarise
from paribus.speed.tokenizer import load_tokenizer
from scripted import DONE, chunk, content, event, finish, reasoning, usage, words


def answer(n: int, said: int | None, **options):
    text = [(10.0 + i, content(w)) for i, w in enumerate(words(n))]
    end = finish() + (usage(said) if said is not None else b"") + DONE
    return make_trace(make_outcome(*text, (500, end)), **options)


def flags_of(*traces) -> dict[str, str]:
    return {f.id: f.severity for f in summarise(list(traces), Around(1))[1].flags}


def texts_of(*traces) -> dict[str, str]:
    return {f.id: f.text for f in summarise(list(traces), Around(1))[1].flags}


def test_usage_counts_not_pieces():
    trace = make_trace(stream([(10.0 * i, 4) for i in range(1, 26)]))
    assert (trace.count.total, trace.count.method) == (100, "usage")


def test_without_usage_the_text_is_counted_again_and_said_so():
    again = make_trace(stream([(10.0, 4), (20.0, 4)], counted=False), tokenizer=by_word)
    assert (again.count.total, again.count.method) == (8, "tokenizer")
    standard = make_trace(stream([(10.0, 4), (20.0, 4)], counted=False))
    assert (standard.count.total, standard.count.method) == (8, "standard")
    assert flags_of(standard)["usage_missing"] == "note"


def test_cumulative_usage_on_each_piece_is_not_summed_and_places_the_tokens():
    text = words(100)
    events = [(10.0 + i, content(w, tokens=i + 1)) for i, w in enumerate(text)]
    trace = make_trace(make_outcome(*events, (200, finish() + DONE)))
    assert trace.count.total == 100
    assert trace.count.after_method == "usage"
    assert trace.native[49] == 50


def test_tokens_after_a_piece_follow_the_tokenizer_scaled_to_the_total():
    trace = make_trace(stream([(10.0, 30), (20.0, 10)]), tokenizer=by_word)
    assert trace.count.after_method == "tokenizer"
    assert list(trace.native) == [30, 40]


def test_usage_past_the_end_of_sequence_is_flagged_and_not_delivered():
    assert flags_of(answer(40, 256))["usage_mismatch"] == "invalid"
    known = answer(40, 256, tokenizer=by_word)
    assert flags_of(known)["usage_mismatch"] == "invalid"
    assert known.count.total == 40, "the model's own tokenizer says what was delivered"


def test_an_end_of_sequence_token_an_answer_is_no_mismatch():
    assert "usage_mismatch" not in flags_of(*(answer(40, 41, tokenizer=by_word) for _ in range(50)))
    assert "usage_mismatch" in flags_of(*(answer(40, 43, tokenizer=by_word) for _ in range(50)))


@given(st.integers(20, 3000), st.integers(-200, 200))
def test_the_tolerance_is_eight_tokens_or_two_percent(text, more):
    trace = answer(20, 20, tokenizer=by_word)
    count = type(trace.count)(**trace.count.__dict__ | {"usage": text + more, "text": text})
    found = check_usage([(count, text, False)])
    assert found.mismatch == (abs(more) > max(8, 0.02 * text))


def test_usage_that_counts_past_the_text_is_caught_by_the_tokenizer_however_plausible_it_looks():
    for said, total in ((120, 40), (30, 30)):
        n = 40 if said == 120 else 100
        assert flags_of(answer(n, said, tokenizer=by_word))["usage_mismatch"] == "invalid"
        assert answer(n, said, tokenizer=by_word).count.total == total
        assert flags_of(answer(n, said)) == {"usage_unverified": "warning"}, "nobody could say: that is said"
    assert "usage_unverified" not in flags_of(answer(40, 41, tokenizer=by_word))


def test_a_tokenizer_that_only_counts_checks_usage_too():
    counted = answer(40, 120, tokenizer=lambda text: len(by_word(text)))
    assert (counted.count.text, counted.count.total, counted.count.after_method) == (40, 40, "characters")
    assert flags_of(counted)["usage_mismatch"] == "invalid"
    silent = answer(40, 40, tokenizer=lambda _: None)
    assert (silent.count.text, flags_of(silent)) == (None, {"usage_unverified": "warning"})


def test_usage_is_missing_only_where_none_was_sent():
    assert "usage_missing" not in flags_of(answer(40, 256, tokenizer=by_word)), "what it said was wrong, not missing"
    assert "usage_missing" not in flags_of(answer(400, 0))
    assert "by the model's own tokenizer" in texts_of(answer(40, None, tokenizer=by_word))["usage_missing"]


def test_tags_around_reasoning_are_no_mismatch():
    def thought(said: int):
        pieces = [(10.0 + i, reasoning(w) if i < 30 else content(w)) for i, w in enumerate(words(60))]
        return make_trace(make_outcome(*pieces, (500, finish() + usage(said) + DONE)), tokenizer=by_word)

    assert "usage_mismatch" not in flags_of(*(thought(63) for _ in range(50)))
    assert "usage_mismatch" in flags_of(*(thought(65) for _ in range(50)))


def per_piece(said: list[int], total: int, **options):
    """An answer of a token a piece, every 10 ms, each piece with the server's own count so far; then the whole one."""
    pieces = [
        (10.0 + 10 * i, content(w, tokens=n)) for i, (w, n) in enumerate(zip(words(len(said)), said, strict=True))
    ]
    return make_trace(make_outcome(*pieces, (5000, finish() + usage(total) + DONE)), **options)


def test_counts_on_pieces_that_are_no_running_count_place_no_tokens():
    padded = per_piece([*range(1, 41), 256], 256, tokenizer=by_word)
    assert (padded.count.total, padded.native[0], padded.native[-1]) == (41, 1, 41)
    assert row_of(padded).decode_tokens == 40
    noughts = per_piece([0] * 100, 100)
    assert noughts.count.after_method == "characters"
    assert row_of(noughts).decode_tokens == pytest.approx(99, abs=1.5), "the first piece brought something"
    late = per_piece([0] * 99 + [100], 100)
    assert late.count.after_method == "characters", "said at the end only"
    assert row_of(late).decode_tokens == pytest.approx(99, abs=1.5)
    assert per_piece([*range(50, 100)], 50).count.after_method == "characters", "of another beginning"
    assert per_piece([1] * 100, 100).count.after_method == "characters", "one for each piece is no running count"
    honest = per_piece([*range(1, 101)], 101)
    assert (honest.count.after_method, list(honest.native[-2:])) == ("usage", [99, 101])


def test_a_running_count_never_falls():
    falling = per_piece([1, 2, 5, 3, 5, 6], 6)
    assert (falling.count.after_method, list(falling.native)) == ("usage", [1, 2, 5, 5, 5, 6])


def reasoned(
    completion: int, told: int, *, total: int | None = None, shown=words(200), thought: bytes = b"", **options
):
    """An answer whose usage tells of reasoning."""
    counts = {"completion_tokens": completion, "completion_tokens_details": {"reasoning_tokens": told}}
    counts |= {"prompt_tokens": 32, "total_tokens": total} if total is not None else {}
    parts = [(5.0, thought)] if thought else []
    parts += [(10.0 + i, content(w)) for i, w in enumerate(shown)]
    end = (500.0, finish() + event(chunk(None, usage=counts)) + DONE)
    return make_trace(make_outcome(*parts, end), **options).count


@pytest.mark.parametrize("tokenizer", [None, by_word])
def test_reasoning_that_nobody_was_shown_is_told_from_what_was_delivered(tokenizer):
    assert (reasoned(500, 300, tokenizer=tokenizer).total, reasoned(500, 300, tokenizer=tokenizer).hidden) == (200, 300)
    beside = reasoned(200, 300, total=532, tokenizer=tokenizer)
    assert (beside.usage, beside.total, beside.hidden) == (500, 200, 300), "counted beside the completion, by the total"


def test_reasoning_that_was_shown_is_delivered_however_it_came():
    thought = "".join(words(300, 1))
    apart = reasoned(500, 300, thought=reasoning(thought))
    inline = reasoned(500, 300, thought=content(f"<think>{thought}</think>"))
    unmarked = reasoned(256, 250, shown=words(256))
    assert [(c.total, c.hidden) for c in (apart, inline, unmarked)] == [(500, 0), (500, 0), (256, 0)]
    assert (apart.reasoning, unmarked.reasoning) == (300, 250)


def test_a_summary_in_place_of_reasoning_is_all_that_was_delivered_of_it():
    told = reasoned(500, 300, thought=reasoning("".join(words(40, 1))))
    assert (told.total, told.hidden, told.reasoning) == (240, 260, 40)


def test_an_empty_block_of_reasoning_hides_nothing():
    assert reasoned(204, 4).hidden == 0


def test_a_call_after_hidden_reasoning_is_counted_without_it():
    from scripted import tool

    told = reasoned(500, 440, shown=(), thought=tool(0, '{"q": "' + "".join(words(40)) + '"}', name="f", id="1"))
    assert (told.total, told.hidden) == (60, 440)
    assert check_usage([(told, 45, 1)]).mismatch


def test_without_a_tokenizer_one_implausible_answer_shows_among_sound_ones():
    sound = [answer(40, 40) for _ in range(9)]
    assert flags_of(*sound, answer(40, 256))["usage_mismatch"] == "invalid"
    assert flags_of(*sound, answer(400, 40))["usage_mismatch"] == "invalid", "a third is no tokenizer's either"
    assert flags_of(*sound, answer(40, 120)) == {"usage_unverified": "warning"}
    assert answer(40, 256).count.total == 40
    assert answer(40, 131).count.total == 131, "three times, two tags, an end and eight are another tokenizer's"
    assert answer(40, 132).count.total == 40


FOREIGN = [
    ("कृत्रिम बुद्धिमत्ता कंप्यूटर विज्ञान की एक शाखा है जो मशीनों को बुद्धिमान बनाती है। ", 373),
    ("கலங்கரை விளக்கம் கப்பல் துறையின் முடிவில் நின்றது. ", 348),
]
"""Sentences, and what an honest tokenizer that knows little but English, SmolLM2's, makes of four of them."""


@pytest.mark.parametrize(("sentence", "honest"), FOREIGN)
def test_a_tokenizer_that_falls_back_on_bytes_is_believed_and_padding_is_not(sentence, honest):
    def said(number: int):
        return make_trace(make_outcome((10.0, content(sentence * 4)), (500, finish() + usage(number) + DONE)))

    sound = [answer(40, 40) for _ in range(9)]
    trace = said(honest)
    assert honest > 3 * trace.standard[-1] + 11
    assert (trace.count.total, trace.count.method) == (honest, "usage")
    assert flags_of(trace) == flags_of(*sound, trace) == {"usage_unverified": "warning"}
    padded = said(1024)
    assert (padded.count.total, padded.count.method) == (trace.standard[-1], "standard")
    assert flags_of(*sound, padded)["usage_mismatch"] == "invalid"


def test_reasoning_in_another_script_is_not_hidden():
    sentence, honest = FOREIGN[0]
    thoughts = make_outcome(
        (10.0, reasoning(sentence * 4)), (500, content("yes") + finish() + usage(honest + 1, reasoning=honest) + DONE)
    )
    assert make_trace(thoughts).count.hidden == 0


def test_a_tool_call_brings_tokens_that_no_piece_shows():
    from scripted import tool

    call = tool(0, "{}", name="f", id="1")
    outcome = make_outcome((10, call), (20, finish("tool_calls") + usage(60) + DONE))
    assert check_usage([(make_trace(outcome).count, 2, True)]) is None


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no tokenizer"):
        load_tokenizer(tmp_path / "none.json")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="not a tokenizer"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_file_gives_character_offsets(tmp_path):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    model = Tokenizer(WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    model.pre_tokenizer = Whitespace()
    model.save(str(tmp_path / "tokenizer.json"))
    assert list(load_tokenizer(tmp_path)("a é a")) == [1, 3, 5]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("<think>abcdef</think>" + "y" * 39, 0.1),
        ("\n<think>" + "x" * 52, 52 / 60),
        ("<think>\n\n</think>" + "y" * 43, 0.0),
        ("I must think" + "x" * 30 + "</think>42", 42 / 52),
        ("<think>a</think>b\n<think>" + "c" * 27 + "</think>" + "d" * 8, 28 / 68),
        ("\n\n</think>" + "y" * 50, 0.0),
        ("y" * 43 + "<think>" + "z" * 10, 0.0),
        ("Write <think>abc</think> around it.", 0.0),
        ("No tag in it.", 0.0),
    ],
)
def test_reasoning_that_a_server_sends_as_text_is_reasoning(text, share):
    """A server without a parser of its own: what opens the answer, whoever wrote the tag; blanks left out."""
    read = make_trace(make_outcome((10.0, content(text)), (20.0, finish() + usage(60) + DONE)))
    assert read.count.reasoning == pytest.approx(read.count.total * share)


def test_thoughts_whose_opening_tag_stood_in_the_prompt_are_seen_with_thinking_off():
    text = "I must think " * 20 + "</think>42"
    row = make_trace(make_outcome((10.0, content(text)), (20.0, finish() + usage(100) + DONE)))
    thoughts = thought([row.count.reasoning])
    assert (thoughts.thought, thoughts.many) == (1, True)


def test_a_servers_count_of_no_reasoning_is_not_believed_beside_reasoning():
    told = event(chunk(None, usage={"completion_tokens": 60, "completion_tokens_details": {"reasoning_tokens": 0}}))
    end = (20.0, finish() + told + DONE)
    text = "".join(words(30))
    read = make_trace(make_outcome((10.0, reasoning(text)), (11.0, content(text)), end))
    assert read.count.reasoning == pytest.approx(30)
