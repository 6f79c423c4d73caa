"""Intervals over questions hold what they promise on simulated benchmarks of known truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paribus.quality.statistics import (
    Interval,
    clustered_interval,
    detectable,
    equivalent,
    majority,
    mean_interval,
    paired_difference,
    pass_power,
    question_means,
)


@dataclass(frozen=True)
class Shape:
    """A task: the sizes of its groups (years, categories, domains), answers a question, how a score comes of them.

    `apart`: how far the groups' mean difficulties lie from the whole (logits). `power`: the k of pass^k.
    """

    groups: tuple[int, ...]
    repeats: int
    apart: float = 0.0
    power: int | None = None


_CATEGORIES = (100,) * 14
SHAPES = {
    "AIME 90 x 8": Shape((30, 30, 30), 8),
    "AIME 90 x 4": Shape((30, 30, 30), 4),
    "MMLU-Pro 1400, 100 of each category": Shape(_CATEGORIES, 1, apart=0.5),
    "LiveCodeBench 454 x 4": Shape((454,), 4),
    "LiveCodeBench 454 x 1": Shape((454,), 1),
    "Tau2 278 x 4": Shape((50, 114, 114), 4, apart=0.7),
    "Tau2 278 x 2": Shape((50, 114, 114), 2, apart=0.7),
    "Tau2 278 x 4, pass^4": Shape((50, 114, 114), 4, apart=0.7, power=4),
}
_SPREAD = 1.5


def group_means(shape: Shape, mean: float) -> np.ndarray:
    """Each group's mean difficulty: evenly spread on the logits, shifted so that the whole has the given mean."""
    offsets = np.linspace(-shape.apart, shape.apart, len(shape.groups)) if len(shape.groups) > 1 else np.zeros(1)
    weights = np.array(shape.groups) / sum(shape.groups)
    low, high = -9.0, 9.0
    for _ in range(60):
        middle = (low + high) / 2
        found = 1 / (1 + np.exp(-(middle + offsets)))
        low, high = (middle, high) if weights @ found < mean else (low, middle)
    return 1 / (1 + np.exp(-(middle + offsets)))


def chances(rng: np.random.Generator, shape: Shape, mean: float) -> np.ndarray:
    """Each question's chance of a right answer: a Beta distribution in each group."""
    means = group_means(shape, mean)
    return np.concatenate(
        [rng.beta(m * _SPREAD, (1 - m) * _SPREAD, n) for m, n in zip(means, shape.groups, strict=True)]
    )


def answered(rng: np.random.Generator, shape: Shape, chance: np.ndarray) -> np.ndarray:
    """Question scores: the share of right answers, or pass^k by our own function."""
    right = rng.binomial(shape.repeats, chance)
    if shape.power is None:
        return right / shape.repeats
    table = np.array([pass_power(c, shape.repeats, shape.power) for c in range(shape.repeats + 1)])
    return table[right]


def truth(shape: Shape, mean: float) -> float:
    """The score over all questions of which these are a sample: the mean, or the mean chance to the k-th power."""
    if shape.power is None:
        return mean
    total = 0.0
    for m, n in zip(group_means(shape, mean), shape.groups, strict=True):
        a, b = m * _SPREAD, (1 - m) * _SPREAD
        total += n * math.prod((a + i) / (a + b + i) for i in range(shape.power))
    return total / sum(shape.groups)


def simulated(rng: np.random.Generator, n: int, k: int, mean: float) -> np.ndarray:
    """Question means of one group."""
    shape = Shape((n,), k)
    return answered(rng, shape, chances(rng, shape, mean))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("mean", [0.15, 0.5, 0.85])
def test_95_percent_intervals_hold_the_truth_in_95_percent_of_benchmarks(name: str, mean: float) -> None:
    """Where a task is a stratified sample (categories, domains), the interval ignores that and may be too wide."""
    shape = SHAPES[name]
    rng = np.random.default_rng(7)
    hits, true = 0, truth(shape, mean)
    for _ in range(1000):
        found = mean_interval(answered(rng, shape, chances(rng, shape, mean)).tolist())
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= true <= found.high
    assert 925 <= hits <= 975


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("mean", [0.15, 0.85])
def test_intervals_of_paired_differences_hold_the_truth_in_95_percent_of_benchmarks(name: str, mean: float) -> None:
    """The second system gets a tenth less of every question right; the true difference follows from that."""
    shape = SHAPES[name]
    rng = np.random.default_rng(17)
    names = [str(i) for i in range(sum(shape.groups))]
    share = 0.9 ** (shape.power or 1)
    hits, true = 0, (1 - share) * truth(shape, mean)
    for _ in range(1000):
        chance = chances(rng, shape, mean)
        left, right = (answered(rng, shape, each) for each in (chance, 0.9 * chance))
        found = paired_difference(
            dict(zip(names, left.tolist(), strict=True)), dict(zip(names, right.tolist(), strict=True))
        )
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= true <= found.high
    assert 925 <= hits <= 975


@pytest.mark.parametrize("name", SHAPES)
def test_equivalence_holds_its_promise_for_each_tasks_shape(name: str) -> None:
    """With a true loss of just the margin, "no loss" is said in at most about 5% of benchmarks."""
    shape = replace(SHAPES[name], power=None)
    rng = np.random.default_rng(19)
    names = [str(i) for i in range(sum(shape.groups))]
    margin = 0.05
    said = 0
    for _ in range(1000):
        chance = chances(rng, shape, 0.6)
        left, right = (answered(rng, shape, each) for each in (chance, chance * (1 - margin / 0.6)))
        gap = paired_difference(
            dict(zip(names, left.tolist(), strict=True)), dict(zip(names, right.tolist(), strict=True))
        )
        said += equivalent(gap, margin)
    assert said <= 75


@pytest.mark.parametrize("repeats", [4, 8])
def test_intervals_by_exam_year_hold_the_truth_where_years_differ(repeats: int) -> None:
    """Each year has a difficulty of its own, drawn anew: what questions alone can't show, and years can."""
    rng = np.random.default_rng(23)
    by_year = by_question = 0
    for _ in range(1000):
        years = [simulated(rng, 30, repeats, m).tolist() for m in np.clip(rng.normal(0.5, 0.12, 3), 0.05, 0.95)]
        wide, usual = clustered_interval(years), mean_interval([value for year in years for value in year])
        assert wide.value == pytest.approx(usual.value)
        by_year += (wide.low or 0.0) <= 0.5 <= (wide.high or 1.0)
        by_question += (usual.low or 0.0) <= 0.5 <= (usual.high or 1.0)
    assert 925 <= by_year <= 975
    assert by_question < 925


def test_an_interval_by_clusters_is_student_s_t_over_their_means_when_they_are_alike() -> None:
    means = [0.4, 0.5, 0.9]
    found = clustered_interval([[m - 0.1, m + 0.1] for m in means])
    error = np.std(means, ddof=1) / math.sqrt(3)
    assert found.value == pytest.approx(0.6)
    assert found.low == pytest.approx(max(0.0, 0.6 - 4.302653 * error))
    assert found.high == 1.0
    assert clustered_interval([[0.5, 1.0]]) == Interval(0.75, None, None)


@pytest.mark.parametrize("clusters", [[[0.0] * 4] * 3, [[1.0] * 30] * 3, [[0.1, 0.5], [0.5, 0.1], [0.2, 0.4]]])
def test_clusters_that_do_not_differ_have_no_interval_rather_than_one_of_no_width(clusters: list[list[float]]) -> None:
    found = clustered_interval(clusters)
    assert (found.low, found.high) == (None, None)
    assert found.value == pytest.approx(np.mean(clusters))
    assert clustered_interval([]) == Interval(0.0, None, None)


@pytest.mark.parametrize("n", [4, 10, 30])
def test_small_samples_do_not_promise_too_much(n: int) -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(1000):
        found = mean_interval(simulated(rng, n, 1, 0.4).tolist())
        hits += (found.low or 0.0) <= 0.4 <= (found.high or 1.0)
    assert hits >= 925


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=60))
def test_an_interval_holds_its_mean_and_stays_between_0_and_1(means: list[float]) -> None:
    found = mean_interval(means)
    assert found.value == pytest.approx(sum(means) / len(means))
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_all_right_or_all_wrong_still_leaves_doubt() -> None:
    wrong, right = mean_interval([0.0] * 10), mean_interval([1.0] * 10)
    assert (wrong.low, right.high) == (0.0, 1.0)
    assert wrong.high == pytest.approx(1 - right.low)
    assert 0.1 < wrong.high < 0.35


def test_one_question_has_no_interval() -> None:
    assert mean_interval([0.25]) == Interval(0.25, None, None)
    assert mean_interval([]) == Interval(0.0, None, None)


def test_repeats_are_averaged_within_a_question_first() -> None:
    assert question_means([("a", 1.0), ("a", 0.0), ("b", 1.0)]) == {"a": 0.5, "b": 1.0}


def test_repeating_the_same_answers_does_not_narrow_the_interval() -> None:
    once = question_means([(f"q{n}", float(n % 3 == 0)) for n in range(30)])
    often = question_means([(f"q{n}", float(n % 3 == 0)) for n in range(30) for _ in range(8)])
    assert mean_interval(list(once.values())) == mean_interval(list(often.values()))


def test_pairing_sees_what_unpaired_intervals_hide() -> None:
    rng = np.random.default_rng(3)
    hard = rng.uniform(0, 1, 200)
    left = {f"q{n}": float(v) for n, v in enumerate(np.clip(hard + 0.03, 0, 1))}
    right = {f"q{n}": float(v) for n, v in enumerate(hard)}
    found = paired_difference(left, right)
    assert found.low is not None
    assert found.low > 0
    a, b = mean_interval(list(left.values())), mean_interval(list(right.values()))
    assert (a.low or 0) < (b.high or 0)


@given(st.dictionaries(st.integers(0, 30).map(str), st.floats(0, 1), min_size=2, max_size=30), st.floats(-0.5, 0.5))
def test_differences_turn_their_sign_with_their_sides(left: dict[str, float], shift: float) -> None:
    right = {name: value * 0.5 + shift for name, value in left.items()}
    one, other = paired_difference(left, right), paired_difference(right, left)
    assert one.value == pytest.approx(-other.value)
    assert one.low == pytest.approx(-(other.high or 0))
    assert one.questions == len(left)


def test_only_shared_questions_are_compared() -> None:
    found = paired_difference({"a": 1.0, "b": 0.0, "c": 1.0}, {"b": 1.0, "c": 0.0, "d": 1.0})
    assert (found.questions, found.value) == (2, 0.0)
    assert paired_difference({"a": 1.0}, {"b": 1.0}).error is None


def test_a_difference_of_the_detectable_size_is_found_in_80_percent() -> None:
    rng = np.random.default_rng(5)
    n, sd = 300, 0.4
    true = detectable(sd / math.sqrt(n))
    found = 0
    for _ in range(1000):
        gaps = rng.normal(true, sd, n)
        low = paired_difference({str(i): float(g) for i, g in enumerate(gaps)}, {str(i): 0.0 for i in range(n)}).low
        found += low is not None and low > 0
    assert 760 <= found <= 840


def test_equivalence_is_rarely_claimed_at_the_margin_and_often_without_a_loss() -> None:
    rng = np.random.default_rng(9)
    zero = {str(i): 0.0 for i in range(400)}

    def claimed(true: float) -> int:
        return sum(
            equivalent(
                paired_difference({str(i): float(g) for i, g in enumerate(rng.normal(true, 0.4, 400))}, zero), 0.07
            )
            for _ in range(500)
        )

    assert claimed(0.07) <= 40
    assert claimed(0.0) >= 400


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        (["1", "1", "2"], 1.0),
        (["2", "2", "1"], 0.0),
        (["1", "2"], 0.5),
        (["1", "2", "3"], 1 / 3),
        (["1", None, None], 1.0),
        ([None, None], 0.0),
        ([], 0.0),
    ],
)
def test_majority(answers: list[str | None], value: float) -> None:
    assert majority(answers, "1") == pytest.approx(value)


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_pass_power_is_the_share_of_draws_without_a_failure(case: tuple[int, int, int]) -> None:
    good, n, k = case
    assume(k <= n)
    value = pass_power(good, n, k)
    assert 0 <= value <= 1
    assert value == (1 if good == n else value)
    assert (value == 0) == (good < k)
    if k == 1:
        assert value == pytest.approx(good / n)
