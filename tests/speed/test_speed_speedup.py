"""The speed-up of the same amount of text, on systems whose true speed-up is known."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from speed_making import make_row, steady_row

from paribus.speed.answer_speedup import answer_speedup, answer_split
from paribus.speed.metrics.time_to_k import time_to_k
from paribus.speed.speedup import largest_k, level, reached_by_all, speedup
from paribus.speed.statistics import Cell, ratio_of_sums

KINDS = {"chat": 10.0, "code": 20.0}
"""Milliseconds a token of the base system."""


def run_of(factor: float, lengths: dict[str, int], prompts: int = 3) -> list:
    return [
        steady_row(f"{kind}{i}", kind, length=lengths[kind], ms_a_token=ms / factor)
        for kind, ms in KINDS.items()
        for i in range(prompts)
    ]


def speed(rows: list) -> float:
    return sum(r.standard_tokens for r in rows) / sum(r.e2e_ns / 1e9 for r in rows)


@pytest.mark.parametrize(
    ("base", "fast", "by_sums"),
    [
        # Twice as fast in each kind; what differs is only how long the answers are.
        ({"chat": 400, "code": 100}, {"chat": 400, "code": 200}, 1.8),
        ({"chat": 300, "code": 300}, {"chat": 300, "code": 100}, 2.4),
    ],
)
def test_twice_as_fast_in_each_kind_reads_two_whatever_the_answers_length(base, fast, by_sums):
    slow, quick = run_of(1, base), run_of(2, fast)
    assert speed(quick) / speed(slow) == pytest.approx(by_sums, abs=0.01)
    assert speedup([slow], [quick], 100).value == pytest.approx(2.00, abs=0.005)


def test_kinds_weigh_the_same_however_many_prompts_they_have():
    base = [steady_row(f"a{i}", "chat", length=100, ms_a_token=10) for i in range(9)]
    base += [steady_row("b0", "code", length=100, ms_a_token=10)]
    fast = [steady_row(f"a{i}", "chat", length=100, ms_a_token=10) for i in range(9)]
    fast += [steady_row("b0", "code", length=100, ms_a_token=2.5)]
    found = speedup([base], [fast], 100)
    assert found.value == pytest.approx(2)  # geometric mean of 1 and 4
    assert found.kinds == {"chat": pytest.approx(1), "code": pytest.approx(4)}


def test_only_prompts_where_both_reach_k_count_and_under_half_it_is_withheld():
    long = [steady_row(f"p{i}", "chat", length=400, ms_a_token=10) for i in range(4)]
    half = [steady_row(f"p{i}", "chat", length=400 if i < 2 else 50, ms_a_token=5) for i in range(4)]
    found = speedup([long], [half], 300)
    assert (found.value, found.prompts, found.share) == (pytest.approx(2), 2, 0.5)
    less = [steady_row(f"p{i}", "chat", length=400 if i < 1 else 50, ms_a_token=5) for i in range(4)]
    withheld = speedup([long], [less], 300)
    assert withheld.value is None
    assert withheld.share == 0.25


def test_what_under_half_of_one_sides_requests_reach_is_withheld_though_every_prompt_does_once():
    def some(reaching: int, ms: float) -> list:
        lengths = [100] * reaching + [50] * (10 - reaching)
        return [steady_row(f"p{i}", "chat", length=length, ms_a_token=ms) for i in range(10) for length in lengths]

    whole = some(10, 10)
    for one, two in ((whole, some(4, 5)), (some(4, 10), some(10, 5))):
        assert time_to_k(one)["100"] is None or time_to_k(two)["100"] is None
        found = speedup([one], [two], 100)
        assert (found.value, found.share, found.prompts) == (None, 0.4, 10)
        assert largest_k([[one], [two]], (32, 100)) == 32, "nor is a race decided there"
    assert speedup([whole], [some(5, 5)], 100).value == pytest.approx(2), "half is enough"
    assert speedup([whole], [some(5, 5)], 100).share == 0.5
    failed = [dataclasses.replace(row, ok=False, error="cut") if i % 2 else row for i, row in enumerate(some(8, 5))]
    assert speedup([whole], [failed], 100).value is None, "a failed request reaches nothing"


def test_prompts_that_only_one_side_ran_do_not_count():
    both = steady_row("p", "chat", length=100, ms_a_token=10)
    extra = steady_row("q", "chat", length=100, ms_a_token=1)
    assert speedup([[both]], [[both, extra]], 100).value == pytest.approx(1)
    assert speedup([[both]], [[extra]], 100) is None


def test_failed_and_uncounted_requests_do_not_count():
    good = steady_row("p", "chat", length=100, ms_a_token=10)
    soak = make_row(prompt_id="p", counted=False, t100_ns=1)
    failed = make_row(prompt_id="p", ok=False, error="cut", t100_ns=1)
    assert speedup([[good]], [[good, soak, failed]], 100).value == pytest.approx(1)


def test_what_the_interval_rests_on_is_said():
    rows = run_of(1, {"chat": 100, "code": 100})
    assert speedup([rows], [rows], 100).basis == "prompts"
    assert speedup([rows, rows], [rows, rows], 100).basis == "starts and prompts"
    assert speedup([rows, rows], [rows], 100).basis == "prompts"
    single = run_of(1, {"chat": 100, "code": 100}, prompts=1)
    single.append(steady_row("maths0", "maths", length=100, ms_a_token=10))
    assert speedup([single], [single], 100).basis == "kinds"


def test_fewer_than_three_units_of_one_start_give_no_interval():
    """Two prompts differ by chance alone; Student's t on one degree of freedom spans powers of ten."""
    single = run_of(1, {"chat": 100, "code": 50, "maths": 100}, prompts=1)
    for few in (1, 2):
        found = speedup([single[:few]], [single[:few]], 32)
        assert (found.low, found.high, found.basis) == (None, None, "none")
    cells = [Cell(1, f"p{i}", over, 1.0) for i, over in enumerate((1.0, 9.0, 4.0))]
    assert ratio_of_sums(cells[:2]).low is None
    assert ratio_of_sums(cells).low is not None


times = st.lists(st.floats(1, 1000), min_size=4, max_size=4)


@given(times, times, st.integers(1, 4))
def test_the_speed_up_turned_round_is_its_inverse_and_lies_in_the_range_of_kinds(a, b, starts):
    kinds = ["chat", "chat", "code", "code"]
    base = [[steady_row(f"p{i}", kinds[i], length=32, ms_a_token=t) for i, t in enumerate(a)]] * starts
    fast = [[steady_row(f"p{i}", kinds[i], length=32, ms_a_token=t) for i, t in enumerate(b)]] * starts
    there, back = speedup(base, fast, 32), speedup(fast, base, 32)
    assert there.value == pytest.approx(1 / back.value)
    low, high = min(there.kinds.values()), max(there.kinds.values())
    assert low * (1 - 1e-9) <= there.value <= high * (1 + 1e-9)
    assert there.low <= there.high


@given(st.floats(0.1, 10))
def test_a_constant_factor_between_all_times_is_the_speed_up(factor):
    base = [steady_row(f"p{i}", "chat" if i % 2 else "code", length=32, ms_a_token=7 + i) for i in range(6)]
    fast = [steady_row(f"p{i}", "chat" if i % 2 else "code", length=32, ms_a_token=(7 + i) / factor) for i in range(6)]
    found = speedup([base], [fast], 32)
    assert found.value == pytest.approx(factor, rel=1e-4)
    assert found.low == pytest.approx(factor, rel=1e-4)
    assert found.high == pytest.approx(factor, rel=1e-4)


def test_the_largest_shared_k_needs_half_of_the_prompts_in_every_run():
    long = [steady_row(f"p{i}", "chat", length=900, ms_a_token=1) for i in range(4)]
    some = [steady_row(f"p{i}", "chat", length=[900, 350, 350, 40][i], ms_a_token=1) for i in range(4)]
    assert largest_k([[long]]) == 800
    assert largest_k([[long], [some]]) == 300
    assert reached_by_all([[long], [some]], 300) == {"p0", "p1", "p2"}
    assert largest_k([]) is None


def test_a_level_is_the_geometric_mean_over_kinds():
    rows = run_of(1, {"chat": 100, "code": 100})
    assert level([rows], 100).seconds == pytest.approx((1.0 * 2.0) ** 0.5)
    assert level([rows], 800) is None


@given(*(st.floats(1, 500) for _ in range(4)), st.integers(2, 500), st.integers(2, 500))
def test_the_parts_of_the_answer_speed_up_multiply_to_the_whole(wait1, wait2, step1, step2, length1, length2):
    base = [steady_row("p", "chat", length=length1, ms_a_token=step1, wait_ms=wait1)]
    fast = [steady_row("p", "chat", length=length2, ms_a_token=step2, wait_ms=wait2)]
    split = answer_split(base, fast)
    assert split.first_wait * split.length * split.rate == pytest.approx(split.total)
    assert split.total == pytest.approx(base[0].e2e_ns / fast[0].e2e_ns)


def test_an_answer_in_one_piece_has_no_rate_to_split_off():
    at_once = make_row(ttft_ns=10**9, e2e_ns=10**9)
    assert answer_split([at_once], [make_row()]) is None


def test_the_interval_of_whole_answers_is_paired_by_prompt():
    """Prompts that differ a hundredfold say nothing of the ratio when each takes half as long on the other side."""
    base = [steady_row(f"p{i}", "chat", length=10 * 2**i, ms_a_token=10) for i in range(8)]
    fast = [dataclasses.replace(row, e2e_ns=row.e2e_ns // 2) for row in base]
    found = answer_speedup([base], [fast])
    assert found.basis == "prompts"
    assert (found.value, found.low, found.high) == tuple(pytest.approx(2, rel=1e-6) for _ in range(3))


def test_whole_answers_vary_over_starts_and_over_prompts():
    base = [[steady_row(f"p{i}", "chat", length=100, ms_a_token=ms * (i + 1)) for i in range(4)] for ms in (10, 11, 12)]
    fast = [[dataclasses.replace(row, e2e_ns=row.e2e_ns // 2) for row in rows] for rows in base]
    found = answer_speedup(base, fast)
    assert found.basis == "starts and prompts"
    assert found.value == pytest.approx(2)
    assert found.low * found.high == pytest.approx(4, rel=0.01)
    assert found.high / found.low > 1.2
    assert answer_speedup(base[:1], fast).basis == "prompts"
    # Starts that are all alike: what is left is how the speed-up differs between prompts.
    twice_to_eightfold = [
        [dataclasses.replace(row, e2e_ns=row.e2e_ns // (2 + 2 * i)) for i, row in enumerate(base[0])] for _ in base
    ]
    apart = answer_speedup([base[0]] * 3, twice_to_eightfold)
    assert apart.low < 0.9 * apart.value < 1.1 * apart.value < apart.high


def test_too_little_has_no_interval_of_whole_answers_and_nothing_no_value():
    one = [steady_row("p", "chat", length=100, ms_a_token=10)]
    assert answer_speedup([one], [one]).basis == "none"
    assert answer_speedup([one], [[dataclasses.replace(one[0], capped=True)]]) is None


def _slow_at_two(slow_s: float, starts: int = 5) -> list[list]:
    """Answers of 10 s to 40 prompts, but of two whose answers take longer."""
    row = steady_row("p", "chat", length=100, ms_a_token=100)
    times = [slow_s if i < 2 else 10.0 for i in range(40)]
    return [
        [dataclasses.replace(row, prompt_id=f"p{i}", e2e_ns=round(s * 1e9)) for i, s in enumerate(times)]
        for _ in range(starts)
    ]


@pytest.mark.parametrize("of", [{0, 1, 2, 3, 4}, {0, 2, 3, 4}], ids=["in every start", "in all but one"])
def test_a_side_that_is_cut_at_its_longest_answers_is_not_faster_for_it(of):
    """Two equal systems; one was cut at the two prompts that take longest, which is few enough to be let pass."""
    base = _slow_at_two(160.0)
    cut = [
        [dataclasses.replace(row, capped=start in of and row.prompt_id in ("p0", "p1")) for row in rows]
        for start, rows in enumerate(base)
    ]
    for one, two in ((base, cut), (cut, base)):
        found = answer_speedup(one, two)
        assert (found.value, found.low, found.high) == tuple(pytest.approx(1, rel=1e-9) for _ in range(3))
        split = answer_split(*([row for rows in side for row in rows] for side in (one, two)))
        assert split.total == pytest.approx(1, rel=1e-9)


def test_no_prompt_that_is_whole_on_both_sides_gives_no_speed_up_of_whole_answers():
    one, two = (steady_row(name, "chat", length=100, ms_a_token=10) for name in ("p", "q"))
    assert answer_speedup([[one]], [[two]]) is None
    assert answer_split([one], [two]) is None


def test_the_interval_of_whole_answers_reaches_below_a_value_that_one_kind_makes():
    """Two of three kinds show no speed-up at all: what is drawn without the third can't be left out of the interval."""
    base, fast = (
        [
            dataclasses.replace(steady_row(k, k, length=100, ms_a_token=10), e2e_ns=s * 10**9)
            for k, s in zip(("chat", "code", "maths"), seconds, strict=True)
        ]
        for seconds in ((60, 1, 1), (1, 1, 1))
    )
    found = answer_speedup([base], [fast])
    assert found.basis == "kinds"
    assert found.value == pytest.approx(62 / 3)
    assert found.low < 1 < found.value < 60 < found.high
    back = answer_speedup([fast], [base])
    assert (back.low, back.high) == (pytest.approx(1 / found.high), pytest.approx(1 / found.low))
