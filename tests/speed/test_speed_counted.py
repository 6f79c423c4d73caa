"""What the engine counted, beside what the requests brought."""

from __future__ import annotations

import pytest
from speed_making import make_row

from paribus.speed.counted import cached_prompt_tokens, generated

WHOLE = make_row(tokens=100.0, ok=True, tokens_method="usage")
BROKEN = make_row(tokens=40.0, ok=False, error="cancelled", tokens_method="standard")


def apart(counted: float, rows: list[object]) -> bool:
    found = generated(rows, {"generated_tokens": counted})  # type: ignore[arg-type]
    assert found is not None
    return found.apart


def test_whole_answers_agree_within_a_hundredth():
    assert not apart(10_100, [WHOLE] * 100)
    assert not apart(9_900, [WHOLE] * 100)
    assert apart(10_101, [WHOLE] * 100)
    assert apart(9_899, [WHOLE] * 100)


def test_reasoning_that_nobody_was_shown_was_generated_all_the_same():
    hiding = make_row(tokens=40.0, hidden_tokens=60.0)
    assert not apart(10_000, [hiding] * 100)
    assert apart(4_000, [hiding] * 100)


def test_requests_of_the_soak_count_as_the_engine_counts_them():
    soak = make_row(tokens=100.0, ok=True, tokens_method="usage", counted=False)
    assert not apart(20_000, [WHOLE, soak] * 100)
    assert apart(10_000, [WHOLE, soak] * 100)


def test_answers_cut_off_at_the_windows_end_leave_room_for_themselves_and_no_more():
    rows = [*[WHOLE] * 100, *[BROKEN] * 15]
    assert not apart(10_000 + 15 * 40, rows)
    assert not apart(10_000 + 15 * 60, rows)
    assert apart(10_000 + 15 * 40 + 100 + 15 * 28 + 1, rows)
    assert apart(20_000, rows), "twice as much is no matter of what was cut"


def test_one_answer_without_usage_hides_no_miscount_of_the_others():
    untold = make_row(tokens=90.0, ok=True, tokens_method="standard")
    assert not apart(10_000 + 90, [*[WHOLE] * 100, untold])
    assert not apart(10_000 + 120, [*[WHOLE] * 100, untold])
    assert apart(10_000 + 90 + 100 + 45 + 8 + 1, [*[WHOLE] * 100, untold])
    assert apart(20_000, [*[WHOLE] * 100, untold])


@pytest.mark.parametrize("rows", [[], [BROKEN], [make_row(ok=True, tokens_method="standard")]], ids=str)
def test_without_usage_there_is_nothing_to_compare(rows):
    assert generated(rows, {"generated_tokens": 500.0}) is None


def test_an_engine_without_a_counter_is_not_judged():
    assert generated([WHOLE], {}) is None


@pytest.mark.parametrize(
    ("told", "counters", "right"),
    [
        ([None, None], {}, None),
        ([0, 0], {}, 0),
        ([3, 4], {}, 7),
        ([None, None], {"cached_prompt_tokens": 5000.0}, 5000),
        ([0, 0], {"cached_prompt_tokens": 5000.0}, 5000),
        ([6000, None], {"cached_prompt_tokens": 5000.0}, 6000),
        ([None], {"cached_prompt_tokens": 0.0}, 0),
    ],
)
def test_cached_prompt_tokens_are_what_usage_or_the_engine_says(told, counters, right):
    assert cached_prompt_tokens([make_row(cached_tokens=n) for n in told], counters) == right
