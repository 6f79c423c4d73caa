"""Intervals of shares stay between 0 and 1, and hold the truth as often as they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from speed_making import make_row

from paribus.speed.metrics.checked_pass import checked_pass, checked_share
from paribus.speed.shares import share_of
from paribus.speed.statistics import Cell

_PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage.py"
_SPEC = importlib.util.spec_from_file_location("coverage_by_hand", _PATH)
coverage = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(coverage)


def answers(*right: list[int]) -> list[list]:
    """Rows of starts: 1 for each prompt answered rightly."""
    return [[make_row(prompt_id=f"p{i}", check_passed=bool(each)) for i, each in enumerate(start)] for start in right]


RIGHT = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=30), min_size=1, max_size=6)


@given(RIGHT)
def test_a_share_and_its_interval_lie_between_0_and_1(right):
    starts = answers(*right)
    found = checked_share(starts)
    assert found.value == pytest.approx(checked_pass([row for rows in starts for row in rows]))
    if found.low is None:
        assert (found.high, found.basis) == (None, "none")
        assert max(map(len, right)) < 3
    else:
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_eleven_of_twelve_and_three_starts_at_sixteen():
    one = checked_share(answers([1] * 11 + [0]))
    assert one.low == pytest.approx(0.55, abs=0.05)
    assert one.value < one.high < 1
    three = checked_share(answers([1] * 12, [1] * 11 + [0], [1] * 12))
    assert three.basis == "starts and prompts"
    assert three.low < three.value < three.high <= 1


def test_all_right_is_not_certain():
    whole = checked_share(answers([1] * 12, [1] * 12))
    assert (whole.value, whole.high) == (1, 1)
    assert 0.6 < whole.low < 0.8, "as twelve prompts say it, not as twenty-four requests would"
    none = checked_share(answers([0] * 12))
    assert (none.low, none.value) == (0, 0)
    assert none.high < 0.4


def test_the_same_answers_again_say_nothing_new():
    once = checked_share(answers([1, 1, 0, 1, 0, 1, 1, 1]))
    again = checked_share(answers(*[[1, 1, 0, 1, 0, 1, 1, 1]] * 5))
    assert (again.low, again.high) == (pytest.approx(once.low), pytest.approx(once.high))


def test_starts_that_differ_widen_it():
    mixed = [[1, 0] * 8, [0, 1] * 8, [1, 0] * 8, [0, 1] * 8]
    apart = [[1] * 16, [0] * 16, [1] * 16, [0] * 16]
    one, two = checked_share(answers(*mixed)), checked_share(answers(*apart))
    assert one.value == two.value
    assert two.high - two.low > 1.5 * (one.high - one.low)


def test_no_verifiable_prompt_no_share():
    assert checked_share([[make_row()]]) is None
    assert share_of([Cell(0, "a", 1, 1), Cell(0, "b", 0, 1)]).basis == "none"


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(("starts", "prompts"), [(1, 12), (3, 16), (5, 24)])
def test_intervals_of_shares_cover(share, starts, prompts):
    assert coverage.share_coverage(400, share, starts=starts, prompts=prompts) >= 0.925
