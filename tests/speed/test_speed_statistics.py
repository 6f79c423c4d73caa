"""Uncertainty: what intervals are made of, and what they say about themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from paribus.speed.statistics import (
    Cell,
    percentile,
    ratio_of_batches,
    ratio_of_starts,
    ratio_of_sums,
    students,
    t_over_starts,
    throughput_estimate,
)

positive = st.floats(0.1, 1e4)


def test_percentiles_are_interpolated_linearly():
    assert percentile([1, 2, 3, 4], 0.5) == 2.5
    assert percentile([10, 20], 0.99) == pytest.approx(19.9)
    assert percentile([], 0.5) is None


@given(st.lists(positive, min_size=1, max_size=40), st.floats(0, 1))
def test_a_percentile_lies_between_the_extremes(values, share):
    found = percentile(values, share)
    assert min(values) <= found * (1 + 1e-12)
    assert found <= max(values) * (1 + 1e-12)


def test_the_interval_over_starts_is_students():
    found = t_over_starts([98, 100, 102, 101, 99])
    half = stats.t.ppf(0.975, 4) * np.std([98, 100, 102, 101, 99], ddof=1) / np.sqrt(5)
    assert found.value == 100
    assert found.high - 100 == pytest.approx(half)
    assert 100 - found.low == pytest.approx(half)
    assert found.basis == "starts"


@pytest.mark.parametrize("share", [0.75, 0.9, 0.95, 0.975, 0.99])
@pytest.mark.parametrize("freedom", [0.8, 1, 1.5, 2, 2.37, 3, 4, 9, 9.81, 23, 55.5, 167, 1000])
def test_quantiles_of_students_t_are_scipys(freedom, share):
    assert students(freedom, share) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-11)


def test_only_the_upper_half_of_students_t_is_known():
    with pytest.raises(ValueError, match="upper half"):
        students(4, 0.5)


def test_one_start_has_no_interval_over_starts_but_one_over_its_batches_and_says_so():
    assert t_over_starts([100]).basis == "none"
    inside = throughput_estimate([100], [[99, 101, 100, 100]])
    assert inside.low < 100 < inside.high
    assert inside.basis == "batches"
    assert throughput_estimate([100], []).low is None


def test_with_several_starts_batches_are_not_mixed_in():
    assert throughput_estimate([100, 102], [[1, 999]]) == t_over_starts([100, 102])


def test_a_ratio_of_starts_is_of_geometric_means_and_needs_two_on_each_side():
    found = ratio_of_starts([200, 202, 198], [100, 101, 99])
    assert found.value == pytest.approx(2, rel=1e-4)
    assert found.low < 2 < found.high
    assert ratio_of_starts([200], [100, 101]).low is None
    assert ratio_of_batches([200, 202], [100, 99]).basis == "batches"


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=8, unique=True))
def test_a_ratio_turned_round_has_the_turned_interval(pairs):
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = ratio_of_starts(left, right), ratio_of_starts(right, left)
    assert there.value == pytest.approx(1 / back.value)
    assert there.low == pytest.approx(1 / back.high)


def test_a_ratio_of_sums_weighs_by_what_is_below_the_line():
    cells = [Cell(0, "a", 100, 1), Cell(0, "b", 100, 9)]
    assert ratio_of_sums(cells).value == 20


def test_a_ratio_of_sums_says_what_its_interval_rests_on():
    one = [Cell(0, p, n, 1) for p, n in (("a", 90), ("b", 110), ("c", 100))]
    two = one + [Cell(1, p, n, 1) for p, n in (("a", 91), ("b", 111), ("c", 101))]
    assert ratio_of_sums(one).basis == "prompts"
    assert ratio_of_sums(two).basis == "starts and prompts"
    assert ratio_of_sums(one[:1]).basis == "none"
    assert ratio_of_sums([]) is None


def test_starts_that_differ_widen_the_interval():
    def width(factor: float) -> float:
        cells = [Cell(s, f"p{p}", 100 * factor**s, 1 + p / 100) for s in range(3) for p in range(6)]
        found = ratio_of_sums(cells)
        return found.high / found.low

    assert width(1.1) > 1.2 * width(1.0)


def test_prompts_are_drawn_again_inside_their_kind_so_that_kinds_that_differ_widen_nothing():
    def width(kinds: str, starts: int = 2) -> float:
        cells = [
            Cell(s, f"{kind}{i}", 10.0 ** "ab".index(kind) * (100 + i), 1, told)
            for s in range(starts)
            for kind, told in zip("ab", kinds, strict=True)
            for i in range(8)
        ]
        found = ratio_of_sums(cells)
        return found.high / found.low

    assert width("ab") < 1.05
    assert width("ab", starts=1) < 1.05
    assert width("cc") > 2


def test_a_kind_with_a_single_prompt_is_drawn_with_all_others():
    several = [(f"a{i}", 100.0 + i) for i in range(4)]
    alone = ratio_of_sums([*(Cell(0, p, n, 1, "a") for p, n in several), Cell(0, "b", 900, 1, "b")])
    assert alone == ratio_of_sums([Cell(0, p, n, 1) for p, n in [*several, ("b", 900.0)]])
    assert alone.high > 300


def test_starts_in_which_nobody_waited_leave_an_interval_of_the_waits_size():
    """Their logarithm is none: held at a smallest wait it gave intervals that ended at thousands of times the mean."""
    cells = [Cell(s, f"p{i}", s / 10 * (i % 3), 1) for s in range(5) for i in range(24)]
    found = ratio_of_sums(cells)
    assert found.value == pytest.approx(0.2)
    assert 0 < found.low < 0.1
    assert 0.4 < found.high < 1


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcdef"), positive, positive), min_size=2, max_size=30))
def test_a_ratio_of_sums_is_the_same_each_time_and_inside_its_interval_or_without_one(rows):
    cells = [Cell(*row) for row in rows]
    found = ratio_of_sums(cells)
    assert found == ratio_of_sums(cells)
    if found.low is not None:
        assert 0 < found.low <= found.high


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=6))
def test_an_interval_of_what_cant_be_negative_isnt(values):
    found = t_over_starts(values)
    assert 0 <= found.low <= found.value <= found.high
