"""What counts as an integer answer: hundreds of written forms, and the last one wins."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.quality.tasks.aime import as_integer, final_answer, read_integer

NUMBERS = ["{n}", "{n:03d}", "{n}.", "{n}.0",
           "\\text{{{n}}}", "\\textbf{{{n}}}", "\\mathbf{{{n}}}", " {n} ", "+{n}",
           "\\mathrm{{{n}}}", "x = {n}", "m+n={n}", "{n}^\\circ", "{n}\\text{{ units}}", "\\,{n}", "{{{n}}}", "({n})",
           "\\displaystyle {n}", "10 + 15 = {n}", "{n} \\text{{ degrees}}", "\\left({n}\\right)",
           "{n},", "{n};", "{n}°", "{n}%", "≈{n}", "x ≈ {n}", "x \\approx {n}", "x \\equiv {n}", "{n}_{{10}}",
           "{n}_10",
           "{n}\\pmod{{1000}}", "{n} \\pmod{{1000}}", "{n} \\bmod 7", "{n} (mod 1000)",
           "\\Large{{{n}}}", "{{\\huge {n}}}", "\\underline{{{n}}}", "\\textcolor{{red}}{{{n}}}",
           "\\color{{blue}} {n}",
           "{n}\u200b", "\u200b{n}\u2060", "{n} square units", "{n} \\text{{ square units}}",
           "{n}\\text{{ coins}}", "{n}^{{\\circ}}",
           "\\quad {n}", "{n}\\;", "`{n}`", "N = 7 + 18 = {n}"]  # fmt: skip
BOXES = ["\\boxed{{{0}}}", "$\\boxed{{{0}}}$", "\\[\\boxed{{{0}}}\\]", "\\(\\boxed{{{0}}}\\)", "**\\boxed{{{0}}}**",
         "\\fbox{{{0}}}", "The answer is $\\boxed{{{0}}}$.", "\\boxed {{{0}}}", "$$\\boxed{{{0}}}$$\n",
         "Final Answer: The final answer is $\\boxed{{{0}}}$. I hope it is correct."]  # fmt: skip
PHRASES = ["The answer is {0}", "The answer is {0}.", "the final answer is {0}.", "The answer is: {0}", "Answer: {0}",
           "**Answer:** {0}", "**Answer: {0}**", "ANSWER: ${0}$", "The answer is **{0}**.", "The answer is ${0}$.",
           "Final answer: {0}", "The answer is therefore {0}.", "So the answer is\n\n{0}", "answer = {0}",
           "Thus, the answer is \\({0}\\).", "The final answer is:\n**{0}**", "The answer to the problem is {0}.",
           "The answer is 7 + 18 = {0}.", "The answer is $m+n = 7+18 = {0}$.", "### Answer\n**{0}**",
           "Therefore the answer equals {0}", "**{0}**", "We are done.\n**{0}**\n", "**{0}.**", "__{0}__",
           "The answer is simply {0}!", "#### {0}", "It is so.\n#### {0}\n", "The answer is 7 + 18, which is {0}.",
           "The answer is m+n = 7+18. So {0}.", "The answer is {0} \\boxed{{}}",
           "The answer is m + n, which equals {0}.",
           "The answer is m+n = 7+18.\nThus, {0}", "The answer is {0} = 5 + 20.",
           "The answer is {0}, i.e. all of them.",
           "The answer is {0} because 24 + 1 = 99.", "The answer is {0} since n = 99",
           "The answer is {0} (see above).",
           "The answer is {0} degrees.", "The answer is {0}°.", "The answer is {0} — all of them.",
           "The answer is\u200b {0}",
           "The answer is $m+n={0}$, as $m=7$.", "**Final answer: ${0}$**", "The answer is {0} \\pmod{{1000}}.",
           "The answer is $\\textbf{{{0}}}$", "the answer is {0} modulo 1000.", "Answer: {0} ways"]  # fmt: skip
AFTER = [
    "",
    "\n",
    "\n\nThat is all.",
    "\n\nCheck: 24 + 1 = 9 and x is 3.",
    "\n\n\\[ 3 + 4 = 7 \\]\n",
    "\n**Note**\nDone.",
]
NOT_THE_NUMBER = ["\\pi", " \\pi", "abc", "x", "\\sqrt{2}", "\\sqrt2", " \\cdot 2", " \\times 3", "!", "^2",
                  "^{10}", "_7", "_{7}", "/2",
                  " or 26", " pi", " plus 3", ".5", ",5", " + 3", "-1", "\\frac{1}{2}", "n", " x", ":3",
                  "\\alpha", "e5",
                  "\\text{ or }26", "\\text{x}y2", " to 30", "\\ldots 7", " (x)"]  # fmt: skip
BEFORE = ["", "Let x = 7. Then 3x = 21.\n\n", "We guess \\boxed{999} first. But wait, that is wrong.\n",
          "The answer is 998? No.\n",
          "**997**\n\nhm, no.\n", "<think>the answer is \\boxed{996}</think>\n"]  # fmt: skip

CORRECTIONS = ["\n\nWait, I forgot a case: the answer is {0}, counting it.", "\nActually,\n**{0}**\n",
               " Oops: one more.\n#### {0}",
               "\n\nCorrection: {0} is the answer, not that.", "\nNo, that is wrong.\n\n#### {0}"]  # fmt: skip
ABOUT = ["\nIf the answer is {0}, then n = 3.", "\n\nThe answer is {0} digits long.",
         "\n\nThe answer is {0} less than 999.",
         "\n\n**{0}**\nstep", "\nSuppose the answer is {0}; then it fails.", " (For n = 3 the answer is {0}, too.)",
         "\nOne asks whether the answer is {0}.", "\nThe answer is {0} of 999.", "\nThe answer isn't {0}.",
         "\nIs the answer {0}?", "\nSo the answer is {0}? By no means", "\n#### {0}\nnext"]  # fmt: skip
OPENERS = [
    "\\[\n",
    "\\[",
    "\\(",
    "$$\n",
    "$",
    "\\begin{align*}\n",
    "\\begin{equation}\n",
    "\n\n",
    "**",
    "`",
    "> ",
    "\n- ",
    "",
]
HEADINGS = [
    "### Answer\n\n",
    "## Final Answer\n",
    "**Final answer**\n\n",
    "**Answer:**\n",
    "Answer\n---\n",
    "| Answer |\n|---|\n| ",
]
CLOSERS = ["", "\n", ".", "\n\\]", "\n\n---\n\nThat is all."]
FIRM = ["\\boxed{{{0}}}", "$\\boxed{{{0}}}$.", "The answer is {0}.", "**Answer:** {0}", "### Final Answer\n\n{0}"]


@pytest.mark.parametrize("before", BEFORE)
def test_every_form_of_the_last_answer_is_read(before: str) -> None:
    forms = [box.format(number.format(n=25)) for box, number in itertools.product(BOXES, NUMBERS)]
    forms += [phrase.format(n) for phrase, n in itertools.product(PHRASES, ["25", "025"])]
    assert len(forms) > 550
    wrong = [form for form in forms if read_integer(before + form) != 25]
    assert wrong == []


@given(st.integers(0, 999), st.sampled_from(BOXES), st.sampled_from(NOT_THE_NUMBER))
def test_a_box_with_another_number_is_an_answer_and_wrong(n: int, box: str, more: str) -> None:
    text = "\\boxed{999}\n" + box.format(f"{n}{more}")
    assert read_integer(text) is None
    assert final_answer(text) == unicodedata.normalize("NFKC", f"{n}{more}")


@given(st.integers(0, 999), st.sampled_from(BOXES + PHRASES[:12]), st.sampled_from(AFTER))
def test_text_behind_an_answer_changes_nothing(n: int, form: str, after: str) -> None:
    assert read_integer(form.format(n) + after) == n


@given(st.integers(0, 999), st.sampled_from(BOXES + PHRASES), st.sampled_from(BEFORE))
def test_any_answer_from_0_to_999(n: int, form: str, before: str) -> None:
    assert read_integer(before + form.format(n)) == n


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from(FIRM), st.lists(st.sampled_from(ABOUT), max_size=4))
def test_prose_about_a_firm_answer_is_none(n: int, other: int, form: str, about: list[str]) -> None:
    assert read_integer(form.format(n) + "".join(about).format(other)) == n


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from(FIRM), st.sampled_from(CORRECTIONS))
def test_a_loose_answer_behind_a_word_of_correction_counts(n: int, other: int, form: str, correction: str) -> None:
    assert read_integer(form.format(other) + correction.format(n)) == n


@given(st.integers(0, 999), st.sampled_from(FIRM), st.sampled_from(FIRM))
def test_the_last_firm_answer_counts(n: int, first: str, last: str) -> None:
    assert read_integer(first.format(998) + "\n\n" + last.format(n)) == n


@given(st.integers(0, 999), st.sampled_from(HEADINGS), st.sampled_from(OPENERS), st.sampled_from(CLOSERS))
def test_a_heading_states_what_stands_below_it(n: int, heading: str, opener: str, closer: str) -> None:
    assert read_integer("We get \\boxed{999}.\n\n" + heading + opener + str(n) + closer) == n


@given(
    st.integers(0, 999), st.sampled_from(["is", "should be", "has to be", "isn't 1000 but"]), st.sampled_from(OPENERS)
)
def test_a_statement_may_open_a_formula(n: int, link: str, opener: str) -> None:
    assert read_integer(f"The final answer {link} {opener}{n}") == n
    assert read_integer(f"The final answer {link} {opener}m + n = {n}") == n


@given(
    st.integers(0, 999),
    st.integers(0, 999),
    st.sampled_from(BOXES),
    st.sampled_from(["m+n", "7 \\cdot 18", "x", "S_3"]),
)
def test_an_equation_in_a_box_is_read_from_either_side(n: int, other: int, box: str, side: str) -> None:
    assert read_integer(box.format(f"{n} = {side}")) == n
    assert read_integer(box.format(f"{side} = {n}")) == n
    assert read_integer(box.format(f"x = {n}, y = {other}")) is None


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("\\boxed{24}. Wait, I made a mistake: \\boxed{25}", 25),
        ("The answer is 24. Correction: the answer is 25.", 25),
        ("\\boxed{24}\n\nActually,\n**25**", 25),
        ("\\boxed{1{,}024}", 1024),
        ("\\boxed{1,024}", 1024),
        ("\\boxed{\\boxed{25}}", 25),
        ("\\boxed{２５}", 25),
        ("\\boxed{-3}", -3),
        ("\\boxed{\u22123}", -3),
        ("\\boxed25", 25),
        ("The answer is 25, since 24 + 1 = 25 and 26 is too large.", 25),
        ("**Step 1**\nadd\n**Step 2**\nThe answer is 25", 25),
        ("\\boxed{25} is the answer. The box \\boxed{} stays empty.", 25),
        ("\\boxed{25\\%}", 25),
        ("It all adds up.\n\n25", 25),
        ("so\n$$x = 25$$\n", 25),
        ("\\boxed{25}\n\n3", 25),
    ],
)
def test_particular_texts(text: str, n: int) -> None:
    assert read_integer(text) == n


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I don't know.",
        "We have 25 apples and 3 pears, so there is more to do",
        "The answer is left to the reader.",
        "\\boxed{",
        "<think>The answer is \\boxed{25}",
        "\\boxed{25} no, \\boxed{\\frac{1}{2}}",
        "\\boxed{25.5}",
        "\\boxed{25 or 26}",
        "\\boxed{2x+5}",
    ],
)
def test_no_integer_is_read_where_none_is_stated(text: str) -> None:
    assert read_integer(text) is None


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = final_answer(text)
    assert found is None or isinstance(as_integer(found), int | None)


def test_a_hostile_length_is_read_quickly() -> None:
    assert read_integer("\\boxed{" * 20_000 + "answer is " * 20_000 + "\n\\boxed{7}") == 7
