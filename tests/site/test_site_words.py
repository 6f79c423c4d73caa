"""Numbers and sentences: the precision of the interval, units always, and no claim where the interval includes 1."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.site import words

positive = st.floats(min_value=1e-3, max_value=1e6)


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "printed"),
    [
        (82.31, 79.02, 85.6, "tok/s", "82 tokens/s [79 to 86]"),
        (1.1742, 1.081, 1.293, "x", "1.17 times [1.08 to 1.29]"),
        (1.1742, None, None, "x", "1.2 times"),
        (1219.5, 1170.7, 1268.3, "ms", "1.22 s [1.17 to 1.27]"),
        (96.4, None, None, "ms", "96 ms"),
        (0.25, 0.01, 0.8, "share", "25% [1 to 80]"),
        (12345.0, 11900.0, 12800.0, "tok/s", "12,300 tokens/s [11,900 to 12,800]"),
        (None, None, None, "ms", "not measured"),
        (float("nan"), None, None, "ms", "not measured"),
        (0.0, None, None, "tok/s", "0 tokens/s"),
        (-0.2, -1.1, 0.7, "points", "-0.2 points [-1.1 to 0.7]"),
    ],
)
def test_a_number_is_printed_with_unit_and_interval_to_the_precision_that_supports_it(value, low, high, unit, printed):
    assert str(words.shown(value, low, high, unit)) == printed


@given(value=positive, half=st.floats(min_value=1e-3, max_value=1e5))
def test_the_printed_value_is_off_by_at_most_half_of_its_last_digit(value, half):
    places = words.decimals_for(value, value - half, value + half)
    printed = float(words.shown(value, value - half, value + half).value.replace(",", ""))
    assert abs(printed - value) <= 0.5 * 10.0**-places * (1 + 1e-9)


@given(value=positive, half=st.floats(min_value=1e-3, max_value=1e5))
def test_the_last_digit_is_never_finer_than_a_hundredth_of_the_interval_allows(value, half):
    places = words.decimals_for(value, value - half, value + half)
    if places > 0:
        assert 10.0**-places * 100 >= half * (1 - 1e-9)


@given(value=positive, low=positive, high=positive)
def test_a_ratio_whose_interval_includes_one_is_never_called_faster(value, low, high):
    low, high = sorted((low, high))
    said = words.speedup_sentence(
        "a", "b", requests=1, ratio=(value, low, high), measure="until 100 tokens have arrived"
    )
    verdict = words.ratio_verdict(value, low, high)
    if low <= 1 <= high:
        assert words.NO_DIFFERENCE in said
        assert words.NO_DIFFERENCE in verdict
    else:
        assert words.NO_DIFFERENCE not in said
        assert f"times as fast as b [{words.shown(value, low, high, 'x').interval[1:]}" in said


def test_a_ratio_without_an_interval_allows_no_verdict():
    said = words.speedup_sentence(
        "a", "b", requests=16, ratio=(2.0, None, None), measure="until 100 tokens have arrived"
    )
    assert "without a verdict" in said
    assert "with 16 requests at once" in said
    verdict = words.ratio_verdict(2.0, None, None)
    for text in (said, verdict):  # several starts may have no interval either: few kinds, each with one prompt
        assert words.NO_INTERVAL in text
        assert "one start" not in text
        assert "single start" not in text


def test_what_was_not_compared_says_so():
    assert words.ratio_verdict(None, None, None) == "nobody has run this yet"


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9), st.integers(-3, 6))
def test_a_printed_number_never_says_minus_zero(value, places):
    text = words.fixed(value, places)
    assert not (text.startswith("-") and float(text.replace(",", "")) == 0)
    assert math.isclose(float(text.replace(",", "")), round(value, places), abs_tol=10.0 ** -max(places, 0))


def test_lists_counts_and_dates_read_as_sentences_do():
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.count(1, "request") == "1 request"
    assert words.count(1600, "request") == "1,600 requests"
    assert words.date("2026-12-03T10:00:00Z") == "2026-12-03"
    assert words.date(None) == "no date"
