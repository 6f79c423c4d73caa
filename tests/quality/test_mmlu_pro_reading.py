"""Which letter an answer gives: strict, lenient and official rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.quality.tasks.mmlu_pro import guessed, read_lenient, read_official, read_strict

STRICT = ["The answer is ({0}).", "the answer is {0}", "The answer is: ({0})", "the answer is **{0}**.",
          "The answer is $\\boxed{{{0}}}$.", "The correct answer is ({0}).", "**The answer is ({0})**",
          "The answer is (\\text{{{0}}})", "Therefore, the answer is option ({0})."]  # fmt: skip
LENIENT = ["**{0}**", "({0})", "\\boxed{{{0}}}", "Answer: {0}", "Answer: ({0})", "**Answer:** {0}", "**({0})**",
           "Final answer: {0}", "{0}", "{0}.", "\\boxed{{\\text{{{0}}}}}", "The correct option is {0}.", "**{0}.**",
           "\\boxed{{({0})}}"]  # fmt: skip


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(STRICT))
def test_strict_forms_are_read_by_both_rules(letter: str, form: str) -> None:
    text = "Let me think.\n" + form.format(letter)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (letter, letter)


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(LENIENT))
def test_other_forms_are_read_by_the_lenient_rule_only(letter: str, form: str) -> None:
    text = "Let me think.\n" + form.format(letter)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (None, letter)


@pytest.mark.parametrize("form", STRICT)
def test_a_late_correction_wins(form: str) -> None:
    text = f"One may say the answer is (B), but {form.format('C')}"
    assert (read_strict(text, 10), read_lenient(text, 10)) == ("C", "C")


def test_a_late_box_corrects_an_earlier_phrase() -> None:
    assert read_lenient("The answer is (B). No, wait: \\boxed{C}", 10) == "C"


def test_the_official_rule_takes_the_first_phrase_and_reads_nothing_where_nothing_is() -> None:
    assert read_official("the answer is (B), but the answer is (C)") == "B"
    assert read_official("Answer: D") == "D"
    assert read_official("no idea") is None


def test_guesses_are_spread_over_the_options_and_the_same_each_time() -> None:
    assert {guessed(f"question {n}", 10) for n in range(200)} == set("ABCDEFGHIJ")
    assert {guessed(f"question {n}", 4) for n in range(200)} == set("ABCD")
    assert guessed("x", 10) == guessed("x", 10)


@pytest.mark.parametrize(
    "text", ["", "I can't tell.", "The answer is a matter of taste.", "The answer is I think unknown", "<think>(B)"]
)
def test_nothing_is_read_where_no_letter_is_given(text: str) -> None:
    assert (read_strict(text, 10), read_lenient(text, 10)) == (None, None)


def test_a_letter_that_is_not_offered_is_no_answer() -> None:
    assert read_lenient("The answer is (J).", 4) is None


@given(st.text(max_size=300), st.integers(2, 10))
def test_whatever_is_read_is_one_of_the_options(text: str, options: int) -> None:
    for found in (read_strict(text, options), read_lenient(text, options)):
        assert found is None or found in "ABCDEFGHIJ"[:options]
