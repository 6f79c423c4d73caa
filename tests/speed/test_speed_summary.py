"""Summaries of starts and runs, and the rows they can be made from again."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from speed_making import by_word, make_row, make_trace, stream

from paribus.conditions import UsageError, flag
from paribus.speed.flags import Facts
from paribus.speed.load import completions
from paribus.speed.rows import Row, read_rows, write_rows
from paribus.speed.summarise import Around, StartPart, concurrency_seen, pool, summarise
from paribus.speed.summary import SpeedSummary
from paribus.speed.trace import Prompt
from paribus.speed.window import Window

MS = 10**6


def start(n: int = 6, *, step_ms: float = 10, workers: int = 1, **around) -> tuple[list[Row], SpeedSummary]:
    """`n` answers of 40 tokens, `workers` at a time."""
    length = 40 * step_ms
    traces = [
        make_trace(
            stream(
                [(step_ms * (i + 1), 1) for i in range(40)],
                seed=k,
                index=k,
                prompt_id=f"p{k}",
                due_ns=round((k // workers) * length * MS),
                sent_ns=round((k // workers) * length * MS),
                ended_ns=round((k // workers + 1) * length * MS),
            ),
            Prompt(f"p{k}", ("chat", "code")[k % 2], "long"),
            tokenizer=by_word,
        )
        for k in range(n)
    ]
    return summarise(traces, Around(workers, **around))


def test_a_summary_counts_every_request_once():
    rows, summary = start()
    assert len(rows) == 6
    assert (summary.requests.ok, summary.requests.failed) == (6, 0)
    assert summary.tokens.total == sum(k.ok * 40 for k in summary.kinds.values()) == 240
    assert summary.time_to_k_ms["32"].share == 1
    assert summary.time_to_k_ms["100"] is None
    assert summary.throughput.value is None, "one request at once has no throughput"
    assert summary.ranked


def test_a_window_gives_throughput_with_its_kind_of_interval():
    few = start(16, workers=4, window=Window(400 * MS, 1200 * MS))[1].throughput
    assert (few.low, few.basis) == (None, "none"), "two answers a worker make ten batches alike"
    _, summary = start(48, workers=4, window=Window(400 * MS, 4400 * MS))
    assert summary.throughput.value == pytest.approx(400, rel=0.01)
    assert summary.throughput.basis == "batches"
    assert summary.window_ns == (400 * MS, 4400 * MS)
    assert summary.throughput.requests_per_s == pytest.approx(10, rel=0.3)
    assert summary.concurrency_seen == 4


def test_a_completion_in_the_window_is_the_end_of_its_exchange_not_its_last_text():
    traces = [
        make_trace(
            stream([(10.0 * (i + 1), 1) for i in range(40)], seed=k, index=k, ended_ns=end * MS, prompt_id=f"p{k}")
        )
        for k, end in enumerate([400, 410, 900])
    ]
    window = Window(0, 800 * MS)
    _, summary = summarise(traces, Around(3, window=window))
    assert summary.throughput.requests_per_s * window.seconds == completions([t.ended_ns for t in traces], window) == 2


def test_the_engines_count_is_compared_only_where_it_counted_what_is_counted_here():
    def told(*phases: str, error: str | None = None, each: float = 40.0) -> set[str]:
        traces = [
            make_trace(
                stream([(10.0 * (i + 1), 1) for i in range(40)], seed=k, index=k, phase=phase, prompt_id=f"p{k}",
                       error=error if k == 0 else None),
            )
            for k, phase in enumerate(phases)
        ]  # fmt: skip
        counters = {"generated_tokens": each * len(phases)}
        return {flag.id for flag in summarise(traces, Around(1, counters=counters))[1].flags}

    assert "counters_disagree" not in told("measured", "measured")
    assert "counters_disagree" not in told("soak", "measured"), "it counted the soak too"
    assert "counters_disagree" not in told("measured", "measured", error="reset"), "and what was broken off"
    assert "counters_disagree" in told("soak", "measured", "measured", "measured", each=80.0)
    assert "counters_disagree" in told("measured", "measured", "measured", "measured", error="reset", each=80.0)
    _, summary = start(2, counters={"generated_tokens": 120.0})
    assert "counters_disagree" in {flag.id for flag in summary.flags}


def test_acceptance_of_a_run_is_a_ratio_of_sums_not_a_mean_of_ratios():
    one = {"generated_tokens": 100.0, "accepted_tokens": 60.0, "drafts": 20.0}
    two = {"generated_tokens": 900.0, "accepted_tokens": 90.0, "drafts": 80.0}
    made = [start(4, counters=counters) for counters in (one, two)]
    found = pool([StartPart(rows, summary) for rows, summary in made]).acceptance
    assert found.acceptance_length == pytest.approx(1 + 150 / 100)
    assert found.tokens_per_pass == pytest.approx(1000 / (1000 - 150))
    assert found.counted_tokens == 1000


def test_a_run_had_as_many_at_once_as_its_worst_start():
    made = [start(8, workers=workers) for workers in (4, 2, 4)]
    assert [summary.concurrency_seen for _, summary in made] == [4, 2, 4]
    assert pool([StartPart(rows, summary) for rows, summary in made]).concurrency_seen == 2


def test_soak_requests_fill_the_window_but_are_not_counted():
    traces = [
        make_trace(stream([(10.0 * (i + 1), 1) for i in range(40)], seed=k, index=k, phase=phase, prompt_id=f"p{k}"))
        for k, phase in enumerate(["soak", "measured", "warm-up"])
    ]
    rows, summary = summarise(traces, Around(2, window=Window(0, 400 * MS)))
    assert [row.counted for row in rows] == [False, True]
    assert summary.requests.ok == 1
    assert summary.throughput.value == pytest.approx(200)


def test_an_empty_start_has_a_summary_too():
    rows, summary = summarise([], Around(1))
    assert rows == []
    assert summary.requests.ok == 0
    assert summary.output_speed.value is None
    assert summary.decode_speed.coverage == 0


def test_concurrency_is_what_was_really_open():
    rows = [make_row(sent_ns=s, ended_ns=e) for s, e in ((0, 10), (5, 15), (10, 20), (12, 14))]
    assert concurrency_seen(rows) == 3
    assert concurrency_seen([make_row(status=0, error="connect")]) == 0
    assert concurrency_seen([make_row(status=0, error="timeout_idle")]) == 1, "it waited, though nothing came"


def test_the_summary_survives_its_json():
    _, summary = start()
    text = summary.model_dump_json(by_alias=True)
    assert SpeedSummary.model_validate_json(text) == summary
    assert '"schema":1' in text


def parts(*steps: float, **around) -> list[StartPart]:
    return [
        StartPart(*start(16, step_ms=s, workers=4, window=Window(round(40 * s) * MS, round(120 * s) * MS), **around))
        for s in steps
    ]


def test_a_run_pools_requests_and_takes_t_over_its_starts():
    run = pool(parts(10, 10.2, 9.9, 10.1, 10))
    assert run.requests.ok == 80
    assert run.throughput.basis == "starts"
    assert run.throughput.low < run.throughput.value < run.throughput.high
    assert run.output_speed.basis == "starts and prompts"
    assert run.flags == []


def test_a_run_of_one_start_keeps_what_the_start_says_of_itself():
    (only,) = parts(10)
    run = pool([only])
    assert run.throughput == only.summary.throughput
    assert run.output_speed == only.summary.output_speed
    assert run.stall_ms == only.summary.stall_ms
    assert run.model_copy(update={"flags": []}) == only.summary.model_copy(update={"flags": []})


def test_three_starts_at_full_scale_are_limited_and_preliminary_ones_are_not():
    assert [f.id for f in pool(parts(10, 10, 10)).flags] == ["limited"]
    small = parts(10, 10, 10, facts=Facts(rows=(), preliminary_scale="small"))
    assert [f.id for f in pool(small).flags] == ["preliminary"]


def test_a_start_without_a_window_leaves_the_run_without_throughput():
    run = pool([*parts(10), StartPart(*start(16, workers=4))])
    assert run.throughput.value is None
    assert run.window_s is None


def test_the_worst_start_counts_where_it_must():
    one, two = parts(10, 10)
    slow = dataclasses.replace(
        two, summary=two.summary.model_copy(update={"admitted": 3, "flags": [flag("busy", "9%")]})
    )
    run = pool([one, slow])
    assert run.admitted == 3
    assert [f.id for f in run.flags] == ["busy"]


optional = {
    "error": st.none() | st.sampled_from(["cut", "http_500"]),
    "check_passed": st.none() | st.booleans(),
    "t300_ns": st.none() | st.integers(0, 2**60),
    "tokens": st.floats(0, 1e9),
    "prompt_id": st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    "counted": st.booleans(),
}


@given(st.lists(st.fixed_dictionaries(optional), max_size=5))
def test_rows_come_back_as_they_were_written(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("rows") / "requests-lite.parquet"
    rows = [make_row(index=i, **v) for i, v in enumerate(values)]
    write_rows(path, rows)
    assert read_rows(path) == rows
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_files_that_are_not_rows_are_refused_in_one_sentence(tmp_path):
    broken = tmp_path / "a.parquet"
    broken.write_bytes(b"PAR1 no")
    with pytest.raises(UsageError, match="can't read the requests"):
        read_rows(broken)
    other = tmp_path / "b.parquet"
    pq.write_table(pa.table({"index": [1]}), other)
    with pytest.raises(UsageError, match="lacks the columns"):
        read_rows(other)


def test_energy_is_told_a_thousand_standard_tokens_and_an_answer():
    _, summary = start(6, energy_j=48.0, energy_scope="board")
    assert (summary.energy_j, summary.energy_scope, summary.energy_missing) == (48.0, "board", None)
    assert summary.energy_per_1k_standard_tokens_j == pytest.approx(48 / 0.24)
    assert summary.energy_per_answer_j == pytest.approx(8)
    assert summary.energy_per_checked_answer_j is None, "no prompt of these has a check"


def test_without_energy_there_are_no_figures_and_a_reason():
    _, summary = start(6, energy_missing="the energy counter went back")
    assert summary.energy_missing == "the energy counter went back"
    assert summary.energy_per_1k_standard_tokens_j is summary.energy_per_answer_j is summary.energy_j is None
    assert start(6)[1].energy_missing == "nobody read an energy counter"


def test_energy_of_a_run_is_that_of_all_its_starts_in_one_scope():
    board, also = (StartPart(*start(6, energy_j=joules, energy_scope="board")) for joules in (48.0, 96.0))
    run = pool([board, also])
    assert (run.energy_j, run.energy_scope, run.energy_missing) == (144.0, "board", None)
    assert run.energy_per_answer_j == pytest.approx(12)
    package = StartPart(*start(6, energy_j=10.0, energy_scope="package"))
    mixed = pool([board, package])
    assert (mixed.energy_j, mixed.energy_per_answer_j, mixed.energy_scope) == (None, None, None)
    assert mixed.energy_missing == "the starts have different scopes: board, package"
    none = pool([board, StartPart(*start(6, energy_missing="the energy counter went back"))])
    assert (none.energy_j, none.energy_missing) == (None, "the energy counter went back")


def test_traces_are_let_go_as_soon_as_they_are_read():
    alive: list[weakref.ref] = []

    def one_by_one():
        for k in range(5):
            gc.collect()
            assert sum(ref() is not None for ref in alive) <= 1, "the one before, at most"
            trace = make_trace(stream([(10.0 * (i + 1), 1) for i in range(40)], seed=k, index=k, prompt_id=f"p{k}"))
            alive.append(weakref.ref(trace))
            yield trace
            del trace

    _, told = summarise(one_by_one(), Around(1))
    assert told.requests.ok == 5
