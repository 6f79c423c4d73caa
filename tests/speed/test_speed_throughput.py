"""Throughput of the window: unbiased for streams and canvases alike, and its parts are the whole."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.speed.load import completions, steady_window
from paribus.speed.metrics.throughput import arrived, credited, steps, throughput
from paribus.speed.window import Window

SECOND = 10**9


@dataclass(frozen=True)
class Stream:
    sent_ns: int
    at_ns: np.ndarray
    amount: np.ndarray


def pieces_of(streams):
    return steps([(s, s.amount) for s in streams])


def canvases(workers: int, canvas: int, seconds: float, answers: int, seed: int = 0) -> list[Stream]:
    """Each worker writes answer after answer of 4 canvases, each in the making for `seconds`."""
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(workers):
        now = 0.0
        for _ in range(answers):
            at = np.cumsum(np.full(4, seconds) * chance.uniform(0.9, 1.1, 4))
            found.append(
                Stream(round(now * SECOND), (at * SECOND).astype(np.int64), canvas * np.arange(1, 5, dtype=float))
            )
            now += float(at[-1])
    return found


@pytest.mark.parametrize(("canvas", "seconds"), [(256, 0.4), (256, 2.0), (1, 0.01), (1024, 5.0)])
@pytest.mark.parametrize("edge", [0.0, 0.3, 0.77])
def test_canvases_are_unbiased_wherever_the_window_falls(canvas, seconds, edge):
    streams = canvases(16, canvas, seconds, answers=40)
    start = (seconds * 20 + edge * seconds) * SECOND
    window = Window(round(start), round(start + 40 * seconds * SECOND))
    found = throughput(pieces_of(streams), window, window)
    assert found.value == pytest.approx(16 * canvas / seconds, rel=0.01)


def test_raw_arrivals_are_not_unbiased_for_canvases():
    # One worker, a canvas a second: a window of 1.5 s sees one or two arrivals, though 1.5 were made.
    one = [Stream(0, np.arange(1, 11) * SECOND, 256 * np.arange(1, 11, dtype=float))]
    window = Window(round(2.4 * SECOND), round(3.9 * SECOND))
    found = throughput(pieces_of(one), window, window)
    assert found.value == pytest.approx(256)
    assert found.raw_arrival == pytest.approx(256 / 1.5)


streams_of = st.lists(
    st.tuples(
        st.integers(0, 5 * SECOND), st.lists(st.tuples(st.integers(0, SECOND), st.integers(0, 300)), max_size=20)
    ),
    min_size=1,
    max_size=8,
).map(
    lambda many: [
        Stream(
            sent,
            np.cumsum([g for g, _ in parts], dtype=np.int64),
            np.cumsum([n for _, n in parts]).astype(float),
        )
        for sent, parts in many
    ]
)


@given(streams_of, st.lists(st.integers(0, 30 * SECOND), max_size=6))
def test_windows_side_by_side_add_up_to_everything_that_was_written(streams, inner):
    pieces = pieces_of(streams)
    everything = sum(float(s.amount[-1]) for s in streams if len(s.amount))
    edges = sorted({-1, *inner, 100 * SECOND})
    windows = [Window(a, b) for a, b in itertools.pairwise(edges)]
    assert sum(credited(pieces, w) for w in windows) == pytest.approx(everything, abs=1e-6)
    assert sum(arrived(pieces, w) for w in windows) == pytest.approx(everything, abs=1e-6)


@given(streams_of)
def test_the_window_times_its_length_is_what_it_was_credited_with(streams):
    pieces, window = pieces_of(streams), Window(SECOND, 4 * SECOND)
    found = throughput(pieces, window, Window(0, 40 * SECOND))
    assert found.value * window.seconds == pytest.approx(credited(pieces, window))
    assert np.mean(found.batches) == pytest.approx(found.value)


def test_without_a_window_only_the_whole_run_is_told():
    found = throughput(pieces_of(canvases(1, 4, 1.0, 1)), None, Window(0, 4 * SECOND))
    assert (found.value, found.raw_arrival, found.batches) == (None, None, ())
    assert found.whole_run == pytest.approx(4, rel=0.3)


def test_the_steady_window_leaves_out_rise_and_fall_and_keeps_to_the_clock():
    # 4 workers, 16 requests, 0.217 s each, in step: the last four find no successor after 0.868 s.
    ends = [round((i // 4 + 1) * 0.217 * SECOND) for i in range(16)]
    window = steady_window(ends, 4)
    assert window == Window(300_000_000, 800_000_000)


def test_a_single_wave_gives_no_window():
    # 24 requests at 16: all prompts are read together, and the stretch up to the first idle worker saw only decoding.
    ends = [round((30 + i / 4) * SECOND) for i in range(24)]
    assert steady_window(ends, 16) is None
    assert steady_window([round((30 + i) * SECOND) for i in range(32)], 16) is None, "a second wave is the fall"


def test_the_window_opens_when_every_worker_is_past_its_first_wave_and_holds_as_many_ends_as_workers():
    window = steady_window([(i + 1) * SECOND for i in range(64)], 16)
    assert window == Window(16 * SECOND, 49 * SECOND)
    # One end less than there are workers, and there is none.
    assert steady_window([(i + 1) * SECOND for i in range(46)], 16) is None
    assert (
        completions([(i + 1) * SECOND for i in range(47)], steady_window([(i + 1) * SECOND for i in range(47)], 16))
        == 16
    )


def test_too_few_requests_have_no_steady_window():
    assert steady_window([SECOND] * 16, 16) is None
    assert steady_window([SECOND] * 24, 16) is None
    assert steady_window(range(SECOND, 5 * SECOND, SECOND // 10), 1) is None
