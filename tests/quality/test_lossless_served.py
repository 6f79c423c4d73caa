"""The gate at the served temperature and the canary, by simulation with known truth: who fails, who passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.quality.lossless_canary import canary_sentence, difference, judge_canary
from paribus.quality.lossless_served import Shift, judge_served, lengths, rightness, served_sentence, shift

Answers = dict[str, list[float]]


def tokens(rng: np.random.Generator, prompts: int, starts: int, factor: float = 1.0) -> tuple[Answers, Answers]:
    """Lengths of plain's and a decoder's answers: prompts differ by far more than answers to one prompt do."""
    middle = rng.normal(5.0, 1.0, prompts)
    spread = rng.uniform(0.05, 0.6, prompts)
    draw = [np.exp(rng.normal(middle[:, None], spread[:, None], (prompts, starts))) for _ in range(2)]
    return named(draw[0]), named(draw[1] * factor)


def right(rng: np.random.Generator, prompts: int, starts: int, loss: float = 0.0) -> tuple[Answers, Answers]:
    """Right or wrong: most prompts nearly always the one or the other."""
    chance = rng.beta(0.5, 0.5, prompts)[:, None]
    shape = prompts, starts
    return named(rng.random(shape) < chance), named(rng.random(shape) < np.clip(chance - loss, 0, 1))


def named(values: np.ndarray) -> Answers:
    return {f"p{n}": [float(each) for each in row] for n, row in enumerate(values)}


def standings(rng: np.random.Generator, runs: int, starts: int, factor: float, loss: float, prompts: int) -> list[str]:
    found = []
    for _ in range(runs):
        plain, decoder = tokens(rng, prompts, starts, factor)
        length = shift(lengths(plain), lengths(decoder))
        found.append(judge_served(length, rightness(*right(rng, prompts * 2 // 3, starts, loss))))
    return found


@pytest.mark.parametrize(("starts", "prompts"), [(2, 60), (3, 168), (5, 336)])
def test_plain_decoding_against_itself_rarely_fails(starts: int, prompts: int) -> None:
    runs = max(80, 40_000 // prompts // starts)
    found = standings(np.random.default_rng(5), runs, starts, 1.0, 0.0, prompts)
    assert found.count("failed") <= 0.01 * runs + 3 * (0.01 * runs) ** 0.5, "1%, and chance"
    if starts == 5:
        assert found.count("passed") >= 0.75 * runs


def test_a_test_is_as_rare_as_it_says() -> None:
    rng = np.random.default_rng(6)
    rare = [shift(*map(lengths, tokens(rng, 40, 3))).p for _ in range(1000)]
    assert 0.03 <= np.mean(np.array(rare) < 0.05) <= 0.075
    checked = [rightness(*right(rng, 40, 3)).p for _ in range(1000)]
    assert 0.03 <= np.mean(np.array(checked) < 0.05) <= 0.075


@pytest.mark.parametrize(("factor", "loss"), [(1.1, 0.0), (0.9, 0.0), (1.0, 0.12), (1.15, 0.15)])
def test_a_decoder_that_changes_the_answers_fails_at_full_scale(factor: float, loss: float) -> None:
    found = standings(np.random.default_rng(7), 60, 5, factor, loss, 336)
    assert found.count("failed") >= 48
    assert found.count("passed") <= 1


def test_few_starts_and_no_checks_decide_nothing() -> None:
    rng = np.random.default_rng(8)
    assert set(standings(rng, 60, 2, 1.0, 0.0, 20)) <= {"undecided", "failed"}
    length = Shift(0.0, 0.001, 1.0, 0.003, 300)
    assert judge_served(length, None) == "undecided"
    assert judge_served(None, None) == "undecided"
    assert shift({"a": [1.0]}, {"a": [1.0]}) is None
    assert shift({"a": [1.0, 2.0]}, {"b": [1.0, 2.0]}) is None
    assert shift({"a": [2.0, 2.0]}, {"a": [3.0]}) is None, "without any spread there is no band"


def test_right_answers_that_never_vary_still_tell() -> None:
    """Plain decoding always right, the decoder always wrong: no spread, and no doubt."""
    always, never = ({f"p{n}": [value] * 3 for n in range(8)} for value in (1.0, 0.0))
    broken, same = rightness(always, never), rightness(always, always)
    assert broken is not None
    assert same is not None
    length = Shift(0.0, 0.001, 1.0, 0.003, 300)
    assert judge_served(length, broken) == "failed"
    assert (same.value, same.p) == (0.0, 1.0)
    assert judge_served(length, same) == "undecided", "eight prompts can't rule out a shift of ten points"
    assert rightness({}, {}) is None


def test_a_sure_but_tiny_shift_is_none() -> None:
    tiny, large = Shift(0.01, 0.001, 1e-9, 0.003, 999), Shift(0.03, 0.001, 1e-9, 0.003, 999)
    assert judge_served(tiny, tiny) == "passed"
    assert judge_served(large, tiny) == judge_served(tiny, large) == "failed"
    between = Shift(0.03, 0.013, 0.01, 0.04, 999)
    assert judge_served(between, tiny) == "undecided"


def test_the_sentence_says_what_the_verdict_rests_on() -> None:
    length, score = Shift(0.031, 0.01, 0.002, 0.028, 168), Shift(-0.02, 0.02, 0.3, 0.056, 90)
    assert served_sentence(length, score, "failed") == (
        "served temperature: failed over 168 prompts (length +3.1% ±2.0, right answers -2.0 points ±3.9, by plain "
        "decoding's own spread)"
    )
    assert "no band" in served_sentence(None, None, "undecided")


def asked(rng: np.random.Generator, loss: float = 0.0, questions: int = 200) -> tuple[dict, dict]:
    """Answers to a canary: of many questions a model is sure."""
    chance = np.where(rng.random(questions) < 0.7, rng.random(questions) < 0.8, rng.random(questions))
    plain = rng.random(questions) < chance
    decoder = (rng.random(questions) < chance) & (rng.random(questions) >= loss)
    return tuple({str(n): float(v) for n, v in enumerate(side)} for side in (decoder, plain))


def judged(loss: float, runs: int = 500) -> list[str]:
    rng = np.random.default_rng(9)
    return [judge_canary(difference(*asked(rng, loss)), 0.08, 200) for _ in range(runs)]


def test_the_canary_lets_lossless_decoders_live_and_finds_broken_ones() -> None:
    same, broken = judged(0.0), judged(0.3)
    assert same.count("failed") <= 10
    assert same.count("passed") >= 425
    assert broken.count("failed") >= 490
    assert broken.count("passed") == 0
    # A loss of the margin itself (8 of about 65 points right: 12% of the right answers) passes in 5% of the cases.
    assert judged(0.125).count("passed") <= 45


def test_a_part_of_the_canary_never_passes() -> None:
    decoder, plain = asked(np.random.default_rng(10), questions=150)
    assert judge_canary(difference(decoder, plain), 0.08, 200) == "undecided"
    assert judge_canary(difference(plain, plain), 0.08, 200) == "undecided"
    assert judge_canary(difference({}, {}), 0.08, 200) == "undecided"
    same = {str(n): float(n % 2) for n in range(200)}
    assert judge_canary(difference(same, same), 0.08, 200) == "passed"


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60))
def test_a_canary_that_is_no_worse_never_fails(answers: list[tuple[bool, bool]]) -> None:
    better = {str(n): float(a or b) for n, (a, b) in enumerate(answers)}
    plain = {str(n): float(b) for n, (_, b) in enumerate(answers)}
    assert judge_canary(difference(better, plain), 0.08, len(answers)) != "failed"


def test_the_canarys_sentence_has_its_arithmetic() -> None:
    plain = {str(n): 1.0 for n in range(200)}
    found = difference({**plain, "1": 0.0, "2": 0.0}, plain)
    said = canary_sentence(found, judge_canary(found, 0.08, 200), 0.08, 200)
    assert said == "canary: passed on 200 questions (-1.0 points ±1.4 beside plain decoding, margin 8)"
    assert canary_sentence(difference({}, {}), "undecided", 0.08, 200) == "canary: undecided on 0 of 200 questions"


def test_a_canary_without_a_differing_question_says_so_in_place_of_an_interval_without_width() -> None:
    same = {str(n): n % 3 / 3 for n in range(200)}
    said = canary_sentence(difference(same, same), "passed", 0.08, 200)
    assert said == "canary: passed on 200 questions (not one question differs from plain decoding, margin 8)"
    rounded = {question: value + 1e-12 for question, value in same.items()}
    assert canary_sentence(difference(rounded, same), "passed", 0.08, 200) == said
    plain, worse = {"1": 1.0, "2": 1.0}, {"1": 0.0, "2": 0.0}
    said = canary_sentence(difference(worse, plain), "undecided", 0.08, 200)
    assert said.endswith("2 of 200 questions (-100.0 points beside plain decoding, on each question alike, margin 8)")


def test_where_plain_decoding_is_hardly_ever_right_nobody_passes() -> None:
    """16 of 200 are the margin itself: who loses them all has lost no more than that."""
    for right, standing in ((0, "undecided"), (16, "undecided"), (17, "passed")):
        plain = {str(n): float(n < right) for n in range(200)}
        assert judge_canary(difference(plain, plain), 0.08, 200) == standing
    nothing = dict.fromkeys(plain, 0.0)
    said = canary_sentence(difference(nothing, nothing), "undecided", 0.08, 200)
    assert said.endswith("plain decoding, margin 8; plain decoding is right in 0.0%: too few to lose any)")
    assert "too few" not in canary_sentence(difference(plain, plain), "passed", 0.08, 200)
    # What is lost there all the same is a failure.
    assert judge_canary(difference(nothing, {str(n): float(n < 16) for n in range(200)}), 0.08, 200) == "failed"


def test_the_canarys_interval_is_students() -> None:
    """Of four questions, one worse: -25 points, a standard error of 25, times 3.18 and not 1.96."""
    plain = dict.fromkeys("abcd", 1.0)
    said = canary_sentence(difference({**plain, "a": 0.0}, plain), "undecided", 0.08, 200)
    assert "(-25.0 points ±79.6 beside plain decoding" in said


def test_a_few_questions_that_all_got_worse_alike_decide_nothing() -> None:
    """Two of them have no spread, from which no test could follow."""
    plain, worse = {"1": 1.0, "2": 1.0}, {"1": 0.0, "2": 0.0}
    assert judge_canary(difference(worse, plain), 0.08, 200) == "undecided"
    thirds = {str(n): n % 3 / 3 + 1 / 3 for n in range(6)}
    assert judge_canary(difference({n: v - 1 / 3 for n, v in thirds.items()}, thirds), 0.08, 200) == "undecided"
    every = {str(n): 1.0 for n in range(200)}
    assert judge_canary(difference(dict.fromkeys(every, 0.0), every), 0.08, 200) == "failed"
