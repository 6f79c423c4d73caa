"""Numbers in words: digits that the interval supports; a direction only when the interval leaves 1 (or 0) out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.results.words import NO_DIFFERENCE, difference_sentence, ratio_sentence, with_interval
from paribus.site.words import shown
from paribus.speed.statistics import Estimate

PAIR = ("one", "two")


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1.1234, 1.05, 1.2, "starts"), "1.12 x [1.05 to 1.20]"),
        (Estimate(123.456, 100.0, 150.0, "starts"), "123 x [100 to 150]"),
        (Estimate(98.76, 97.0, 100.5, "starts"), "98.8 x [97.0 to 100.5]"),
        (Estimate(12345.6, None, None, "none"), "12,000 x (no interval)"),
        (Estimate(0.0, 0.0, 0.0, "starts"), "0 x [0 to 0]"),
    ],
)
def test_a_number_has_the_digits_of_its_interval(estimate: Estimate, text: str) -> None:
    assert with_interval(estimate, "x") == text


@given(st.floats(1e-3, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_a_citation_and_a_page_round_alike(value: float, below: float, above: float) -> None:
    low, high = value * (1 - below), value * (1 + above)
    page = shown(value, low, high, "")
    assert with_interval(Estimate(value, low, high, "starts")) == f"{page.value} {page.interval}"
    assert with_interval(Estimate(value, None, None, "none")) == f"{shown(value).value} (no interval)"


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_direction_is_claimed_only_when_the_interval_leaves_one_out(a: float, b: float, c: float) -> None:
    low, value, high = sorted((a, b, c))
    text = ratio_sentence(PAIR, "speed", Estimate(value, low, high, "starts"))
    assert (NO_DIFFERENCE in text) == (low <= 1 <= high)
    if low > 1:
        assert "one is" in text
    if high < 1:
        assert "two is" in text


def test_without_an_interval_nothing_is_claimed() -> None:
    text = ratio_sentence(PAIR, "speed", Estimate(3.0, None, None, "none"))
    assert "as fast as" not in text
    assert "shows no difference" in text


def test_scores_differ_in_points() -> None:
    assert "two scores 5 points [2 to 8] more than one" in difference_sentence(
        PAIR, "score", Estimate(-0.05, -0.08, -0.02, "none")
    )
    assert NO_DIFFERENCE in difference_sentence(PAIR, "score", Estimate(0.05, -0.02, 0.12, "none"))
