"""Metrics on streams whose right values are known, and the identities that catch impossible numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from speed_making import by_word, make_outcome, make_row, make_trace, stream

from paribus.speed.derive import row_of
from paribus.speed.metrics import metrics
from paribus.speed.metrics.acceptance import acceptance
from paribus.speed.metrics.answer_time import answer_time
from paribus.speed.metrics.checked_pass import checked_pass
from paribus.speed.metrics.decode_speed import decode_speed
from paribus.speed.metrics.degenerate import ends_in_loop, is_degenerate
from paribus.speed.metrics.energy import energy
from paribus.speed.metrics.output_speed import output_speed, output_speed_standard
from paribus.speed.metrics.reader_wait import wait_s
from paribus.speed.metrics.stall import stall
from paribus.speed.metrics.time_to_k import time_to_k
from scripted import DONE, content, finish, role, tool, usage, words

pieces = st.lists(st.tuples(st.floats(0.5, 50), st.integers(1, 8)), min_size=1, max_size=40).map(
    lambda steps: [(float(at), n) for at, (_, n) in zip(np.cumsum([g for g, _ in steps]), steps, strict=True)]
)


@given(pieces, st.integers(0, 45))
def test_first_text_comes_before_the_answer_and_the_answer_before_the_end(arrivals, reasoned):
    row = row_of(make_trace(stream(arrivals, reasoned=reasoned)))
    assert row.ttft_ns <= row.e2e_ns
    if row.ttfa_ns is not None:
        assert row.ttft_ns <= row.ttfa_ns <= row.e2e_ns
    assert (row.ttfa_ns is None) == (reasoned >= len(arrivals)) == row.unanswered


@given(pieces)
def test_the_parts_of_an_answer_add_up_to_the_whole(arrivals):
    trace = make_trace(stream(arrivals))
    whole = sum(n for _, n in arrivals)
    assert trace.native[-1] == pytest.approx(trace.count.total) == pytest.approx(whole)
    assert trace.standard[-1] == whole  # each word is one standard token
    assert (np.diff(trace.native) >= 0).all()
    assert (np.diff(trace.standard) >= 0).all()


@given(pieces)
def test_output_speed_is_tokens_over_e2e(arrivals):
    row = row_of(make_trace(stream(arrivals)))
    assert output_speed([[row]]).value == pytest.approx(row.tokens / (row.e2e_ns / 1e9))
    assert output_speed_standard([[row]]).value == pytest.approx(row.standard_tokens / (row.e2e_ns / 1e9))


@given(st.lists(st.floats(1.5, 50), min_size=2, max_size=60), st.floats(1, 10))
def test_output_speed_is_at_most_decode_speed_where_one_piece_is_one_token(gaps, patience):
    # The first token takes at least a mean step: reading the prompt is never less work than writing one token.
    first = patience * float(np.mean(gaps))
    at = [first, *(first + np.cumsum(gaps))]
    row = row_of(make_trace(stream([(float(t), 1) for t in at]), tokenizer=by_word))
    speed, coverage = decode_speed([[row]])
    assert coverage == 1
    assert output_speed([[row]]).value <= speed.value * (1 + 1e-6)


@given(pieces)
def test_time_to_k_never_falls_with_k_and_lies_between_first_and_last_text(arrivals):
    row = row_of(make_trace(stream(arrivals)))
    reached = [t for k in (1, 32, 100, 300) if (t := row.time_to(k)) is not None]
    assert reached == sorted(reached)
    assert reached[0] == row.ttft_ns
    assert reached[-1] <= row.e2e_ns
    assert (row.time_to(32) is None) == (row.standard_tokens < 32)


def test_a_token_inside_a_piece_arrives_with_the_piece():
    row = row_of(make_trace(stream([(400, 256), (600, 256)])))
    assert [row.time_to(k) for k in (1, 32, 100)] == [400_000_000] * 3
    assert row.time_to(300) == 600_000_000
    assert row.time_to(800) is None


def test_time_to_k_states_its_share_and_is_withheld_under_half():
    rows = [make_row(t300_ns=3 * 10**9), make_row(t300_ns=10**9), make_row(), make_row()]
    found = time_to_k(rows)
    assert (found["300"].mean, found["300"].share) == (2000, 0.5)
    assert time_to_k([*rows, make_row()])["300"] is None
    assert time_to_k([*rows, make_row(ok=False)])["300"] is None, "a failed request counts among all"


def test_canvases_have_an_output_speed_and_a_decode_speed_of_their_own():
    row = row_of(make_trace(stream([(400, 256), (600, 256)]), tokenizer=by_word))
    assert output_speed([[row]]).value == pytest.approx(512 / 0.6)
    assert decode_speed([[row]])[0].value == pytest.approx(256 / 0.2)


def test_an_answer_in_one_piece_has_no_decode_speed():
    row = row_of(make_trace(stream([(400, 200)])))
    assert decode_speed([[row]]) == (None, 0.0)
    assert output_speed([[row]]).value == pytest.approx(500)
    assert row.arrivals == 1


def test_decode_speed_is_withheld_under_90_percent_coverage():
    whole, at_once = make_row(), make_row(decode_tokens=None, decode_ns=None)
    assert decode_speed([[whole] * 9 + [at_once]])[0] is not None
    assert decode_speed([[whole] * 8 + [at_once] * 2]) == (None, 0.8)


def test_pieces_in_one_read_are_one_arrival():
    # 50 one-token pieces at 0.5 s, 50 at 1.0 s: 50 tokens in half a second.
    text = words(100)
    at_once = [b"".join(content(t) for t in text[i : i + 50]) for i in (0, 50)]
    end = finish() + usage(100) + DONE
    row = row_of(make_trace(make_outcome((500, at_once[0]), (1000, at_once[1] + end)), tokenizer=by_word))
    assert row.ttft_ns == 500_000_000
    assert (row.arrivals, row.decode_tokens) == (2, 50)
    assert decode_speed([[row]])[0].value == pytest.approx(100)


def test_many_close_pieces_are_not_chained_into_one_arrival():
    row = row_of(make_trace(stream([(10 + i * 0.5, 1) for i in range(100)])))
    assert row.arrivals == 50


def test_stalls_are_gaps_between_arrivals_and_no_gap_comes_from_the_protocol():
    trace = make_trace(stream([(200 + 20 * i, 4) for i in range(25)]))
    found = stall([trace.at_ns])
    assert (found.p50, found.max) == (pytest.approx(20), pytest.approx(20))
    assert stall([np.array([5])]).p50 is None


def test_reasoning_is_text_but_no_answer():
    arrivals = [(100 + 10 * i, 1) for i in range(80)] + [(900 + 10 * i, 1) for i in range(20)]
    row = row_of(make_trace(stream(arrivals, reasoned=80)))
    assert (row.ttft_ns, row.ttfa_ns, row.tokens) == (100_000_000, 900_000_000, 100)
    assert row.reasoning_tokens == pytest.approx(80, rel=0.1)


def test_a_late_usage_block_does_not_extend_the_answer():
    assert row_of(make_trace(stream([(100, 1), (1190, 1)]))).e2e_ns == 1_190_000_000


def test_a_tool_call_is_an_answer():
    call = tool(0, '{"city": "Oslo"}', name="weather", id="1")
    outcome = make_outcome((10, role()), (1100, call), (1100, finish("tool_calls") + usage(100) + DONE))
    row = row_of(make_trace(outcome))
    assert (row.ttfa_ns, row.tokens, row.decode_ns) == (1_100_000_000, 100, None)


def test_a_cut_answer_failed_and_a_whole_one_without_done_did_not():
    text = b"".join(content(w) for w in words(10))
    cut = row_of(make_trace(make_outcome((10, text), error="cut")))
    assert (cut.ok, cut.cut) == (False, True)
    whole = row_of(make_trace(make_outcome((10, text), (20, finish() + usage(10)))))
    assert whole.ok


def test_answer_time_needs_whole_answers():
    whole, capped = make_row(e2e_ns=10**9), make_row(capped=True, e2e_ns=9 * 10**9)
    assert answer_time([whole] * 19 + [capped]).mean == 1000
    assert answer_time([whole] * 18 + [capped] * 2) is None


def test_a_reader_waits_for_what_is_not_there_yet():
    at, standard = np.array([0, 10**9, 2 * 10**9]), np.array([8, 16, 24])
    assert wait_s(at, standard, 8) == pytest.approx(0)
    assert wait_s(at, standard, 16) == pytest.approx(1.0)  # half a second before each of the two pieces
    assert wait_s(np.array([5 * 10**9]), np.array([100]), 8) == 0
    assert wait_s(np.array([]), np.array([]), 8) is None


@given(pieces, st.floats(1, 500))
def test_a_reader_never_waits_longer_than_the_stream_takes_and_a_faster_one_no_less(arrivals, speed):
    trace = make_trace(stream(arrivals))
    slow, fast = (wait_s(trace.at_ns, trace.standard, s) for s in (speed, 2 * speed))
    assert -1e-9 <= slow <= fast + 1e-9
    assert fast <= (trace.at_ns[-1] - trace.at_ns[0]) / 1e9 + 1e-9


def test_checked_pass_counts_failures_as_wrong_and_leaves_out_what_cannot_be_verified():
    rows = [make_row(check_passed=True), make_row(check_passed=False, ok=False), make_row()]
    assert checked_pass(rows) == 0.5
    assert checked_pass([make_row()]) is None


counts = st.integers(1, 10_000)


@given(counts, st.floats(0, 1), st.integers(1, 8), st.floats(0, 1))
def test_tokens_a_pass_at_most_acceptance_length_at_most_draft_plus_one(passes, drafted, draft, accepted):
    drafts = max(1, int(passes * drafted))
    taken = int(drafts * draft * accepted)
    found = acceptance({"drafts": drafts, "accepted_tokens": taken, "generated_tokens": passes + taken})
    assert 1 <= found.tokens_per_pass <= found.acceptance_length + 1e-12
    assert found.acceptance_length <= draft + 1


def test_there_were_never_fewer_passes_than_drafts():
    # 4 drafts of 2, all accepted, and a cap that cut 2 of their 12 tokens off.
    found = acceptance({"drafts": 4, "accepted_tokens": 8, "generated_tokens": 10})
    assert (found.tokens_per_pass, found.acceptance_length) == (2.5, 3)


def test_diffusion_counts_every_pass():
    found = acceptance({"committed_tokens": 512, "denoising_steps": 64})
    assert (found.tokens_per_pass, found.acceptance_length) == (8, None)
    assert acceptance({}) is None


PROSE = (
    "The lighthouse stood at the end of the pier, and every evening the keeper climbed its stairs with a lamp in one "
    "hand and a book in the other. Nobody in the village knew what he read up there, though the children had many "
    "theories: sea charts, love letters, or the names of all the ships that had ever passed in the night. "
)


@pytest.mark.parametrize(
    "text", ["word " * 900, PROSE + "And so it went. " * 30, "\n".join(f"- item {i % 3}" for i in range(200))]
)
def test_loops_are_degenerate(text):
    assert is_degenerate(text, capped=False)


def test_a_loop_that_counts_as_it_goes_is_one_where_the_cap_cut_it():
    text = "".join(f"{i}. The first step is to make sure that the system is working properly.\n" for i in range(1, 90))
    assert is_degenerate(text, capped=True)
    assert not is_degenerate(text, capped=False), "a long list may end"
    assert not is_degenerate(" " * 9000 + PROSE, capped=True), "blanks apart"


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "yes " * 20,
        "",
        "\n".join(f'{{"id": {i}, "name": "{w}", "price": {i * 37 % 101}}}' for i, w in enumerate(words(40))),
        "| a | b |\n|---|---|\n" + "\n".join(f"|{w}|{i * 7919 % 1000}|" for i, w in enumerate(words(60))),
    ],
)
def test_prose_lists_tables_and_short_answers_are_not(text):
    assert not is_degenerate(text, capped=False)
    assert not is_degenerate(text, capped=True)


@given(st.text(min_size=1, max_size=60), st.text(max_size=200))
def test_any_stretch_repeated_often_enough_at_the_end_is_a_loop(stretch, before):
    times = max(5, -(-240 // len(stretch))) + 1
    assert ends_in_loop(before + stretch * times)


def test_every_metric_has_a_title_a_unit_and_a_formula():
    found = metrics()
    wanted = "time_to_k output_speed throughput ttft ttfa e2e reader_wait decode_speed stall answer_time tokens"
    assert set(wanted.split()) <= set(found)
    assert {"acceptance_length", "checked_pass", "degenerate"} <= set(found)
    for one in found.values():
        assert one.title
        assert one.unit
        assert len(one.formula) > 60


def test_energy_is_divided_by_what_it_bought():
    rows = [make_row(check_passed=True), make_row(check_passed=False), make_row(counted=False), make_row()]
    found = energy(rows, 40.0)
    assert found.per_1k_standard_tokens == pytest.approx(100)
    assert found.per_answer == pytest.approx(10)
    assert found.per_checked_answer == pytest.approx(20)
    assert energy(rows, None).per_answer is None
    assert energy([], 40.0).per_1k_standard_tokens is None


def test_no_whole_answer_pays_for_what_was_cut_off():
    cut = make_row(ok=False, error="cancelled", standard_tokens=100)
    found = energy([make_row(check_passed=True), make_row(check_passed=True), cut, cut], 40.0)
    assert found.per_1k_standard_tokens == pytest.approx(100)
    assert found.per_answer == pytest.approx(10)
    assert found.per_checked_answer == pytest.approx(10)
