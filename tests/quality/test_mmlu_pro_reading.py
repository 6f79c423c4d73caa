"""Which letter an answer gives: strict, lenient and official rules."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.quality.tasks.mmlu_pro import guessed, read_lenient, read_official, read_strict

STRICT = ["The answer is ({0}).", "the answer is {0}", "The answer is: ({0})", "the answer is **{0}**.",
          "The answer is $\\boxed{{{0}}}$.", "The correct answer is ({0}).", "**The answer is ({0})**",
          "The answer is (\\text{{{0}}})", "Therefore, the answer is option ({0}).",
          "The answer is “{0}”.", "The answer is ‘({0})’", "The answer is '{0}'.", "The answer is <{0}>",
          "the answer is $\\textsf{{{0}}}$", "the answer is \\boxed{{\\textit{{({0})}}}}.",
          "The answer is\n\n> **{0}**",
          "**The answer is**: {0}", "The answer is:\n\n- ({0}) 42"]  # fmt: skip
MENTIONS = ["**{0}. 42**", "**{0}) 42**", "{0}. 42", "{0}) 42", "({0}) 42", "I go with **{0}** here.",
            "({0}), not (Z)", "({0}) because option (Z) is wrong", "({0}), as (Z) and (Z) are incorrect",
            "It must be ({0}), since (Z) isn't it.", "Not (Z) but ({0})", "We take ({0}) rather than (Z).",
            "({0}) fits; (Z), (Z) and (Z) can't be."]  # fmt: skip
PROSE = ["", " Options (Z) and (Z) are incorrect.", "\n\n(Z) is wrong.", " Option (Z) is wrong.", " So (Z) is out.",
         "\n\n(Z) would give 42, and **Z** too.", "\n**Z. 41** is too small.", " It isn't (Z).",
         " Compare (Z) with (Z)",
         " (Z) is correct only if x > 0", "\nThe other choice, (Z), is a trap.", " Some say (Z)",
         "\n\nZ. 42"]  # fmt: skip
CORRECTIONS = [" No, wait: \\boxed{{{0}}}", "\n\n**{0}**", "\n({0})", " Wait, actually ({0}).", "\n\nActually: {0}.",
               " Correction: **{0}**", " Hmm, so ({0}).", " No, the answer is ({0}).", "\nFinal answer: {0}",
               " Thus option {0} is correct."]  # fmt: skip
LENIENT = ["**{0}**", "({0})", "\\boxed{{{0}}}", "Answer: {0}", "Answer: ({0})", "**Answer:** {0}", "**({0})**",
           "Final answer: {0}", "{0}", "{0}.", "\\boxed{{\\text{{{0}}}}}", "The correct option is {0}.", "**{0}.**",
           "\\boxed{{({0})}}"]  # fmt: skip
REASONS = [" because the sum is 3", " since it fits", " as shown", "\nbecause x > 0", ", which equals 3",
           " which equals 3", " and not Z.", ", not Z.", " (42)", ": the sum", " – the sum", " with 42 units",
           " is what we get", " and (Z) is wrong."]  # fmt: skip
SUPPOSED = ["\nIf the answer is (Z), the mass is negative.", "\nOne may ask whether the answer is (Z).",
            " Suppose the answer is **Z**: then x < 0.", "\nAssume that the correct answer is Z and see.",
            "\nUnless the answer is Z of course."]  # fmt: skip
TWO = ["{0} or {1}", "({0}) or ({1}).", "**{0}** or **{1}**", "either ({0}) or ({1})", "{0}/{1}", "({0}) and ({1}).",
       "option {0} or option {1}", "\\boxed{{{0} \\text{{ or }} {1}}}"]  # fmt: skip
FORMULAS = [
    "{0} = ma",
    "{0}=mc^2",
    "{0}^2",
    "${0}_2$",
    "{0}_{{max}}",
    "{0}+",
    "{0}-type",
    "{0} ≈ 3",
    "{0}12",
    "{0}'s law",
]


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(STRICT))
def test_strict_forms_are_read_by_both_rules(letter: str, form: str) -> None:
    text = "Let me think.\n" + form.format(letter)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (letter, letter)


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(LENIENT))
def test_other_forms_are_read_by_the_lenient_rule_only(letter: str, form: str) -> None:
    text = "Let me think.\n" + form.format(letter)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (None, letter)


def with_others(text: str, letter: str) -> str:
    """The text with other letters in place of each Z."""
    others = [other for other in "ABCDEFGHIJ" if other != letter]
    for number in range(text.count("Z")):
        text = text.replace("Z", others[number % 9], 1)
    return text


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(MENTIONS))
def test_a_mention_is_read_where_nothing_is_stated(letter: str, form: str) -> None:
    text = with_others("Let me think.\n" + form.format(letter), letter)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (None, letter)


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(STRICT + LENIENT), st.sampled_from(PROSE))
def test_prose_behind_a_statement_changes_nothing(letter: str, form: str, prose: str) -> None:
    text = with_others("Let me think.\n" + form.format(letter) + "." * (form[-1] not in ".*)") + prose, letter)
    if "\n" not in prose and form in ("**{0}**", "({0})", "**({0})**", "{0}", "{0}.", "**{0}.**"):
        return  # A letter that shares its sentence with prose is a mention.
    assert read_lenient(text, 10) == letter
    assert read_strict(text, 10) in ((letter,) if form in STRICT else (None,))


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(STRICT), st.sampled_from(CORRECTIONS), st.sampled_from(PROSE[:5]))
def test_a_correction_behind_a_statement_counts(letter: str, form: str, correction: str, prose: str) -> None:
    text = with_others(form.format("Z") + prose + correction.format(letter), letter)
    assert read_lenient(text, 10) == letter


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(REASONS))
def test_a_reason_behind_a_bare_letter_changes_nothing(letter: str, reason: str) -> None:
    text = with_others(f"The answer is {letter}{reason}", letter)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (letter, letter)


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(STRICT + LENIENT), st.sampled_from(SUPPOSED))
def test_what_is_supposed_is_not_chosen(letter: str, form: str, supposed: str) -> None:
    text = with_others(form.format(letter) + ".\n" + supposed, letter)
    assert read_lenient(text, 10) == letter
    assert read_strict(text, 10) in ((letter,) if form in STRICT else (None,))


@given(st.permutations("ABCDEFGHIJ"), st.sampled_from(TWO), st.sampled_from(["The answer is ", "Answer: ", ""]))
def test_one_of_two_letters_is_not_chosen(letters: list[str], form: str, phrase: str) -> None:
    text = phrase + form.format(*letters)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (None, None)


@given(st.sampled_from("ABCDEFGHIJ"), st.sampled_from(FORMULAS), st.sampled_from(["The answer is ", "Answer: "]))
def test_a_formula_is_no_letter(letter: str, form: str, phrase: str) -> None:
    text = phrase + form.format(letter)
    assert (read_strict(text, 10), read_lenient(text, 10)) == (None, None)


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


UPSTREAM = (r"answer is \(?([A-J])\)?", r".*[aA]nswer:\s*([A-J])")
PIECES = ["Answer: ", "answer:", "Answer:\n\n", "answer is ", "(", ")", "A", "B", "J", "K", "\n", " ", "x", ".", "the "]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_the_official_rule_reads_what_the_benchmarks_own_code_reads(text: str) -> None:
    found = next((match.group(1) for form in UPSTREAM if (match := re.search(form, text))), None)
    if found is None and (last := re.search(r"\b[A-J]\b(?!.*\b[A-J]\b)", text, re.DOTALL)):
        found = last.group(0)
    assert read_official(text) == found


def test_the_official_rule_takes_the_last_answer_of_the_first_line_that_has_one() -> None:
    assert read_official("x Answer: A then Answer: B") == "B"
    assert read_official("Answer:\nx Answer: A then answer: B\nAnswer: C") == "B"


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
