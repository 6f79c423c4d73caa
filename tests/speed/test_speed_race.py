"""Races: the fastest valid speculation wins, and every candidate stays in sight."""

from __future__ import annotations

import pytest
from speed_making import steady_row

from paribus.catalog import Race
from paribus.conditions import CheckFailed, flag
from paribus.speed.race import Entry, decide
from paribus.speed.summarise import StartPart, pool
from paribus.speed.summary import Throughput

KINDS = ("chat", "code", "maths")
RACE = Race(
    verdict="results/x/race.json", stack="m--p--e", scenario="race-c1-long", measure="race-c1-long", runs=["a", "b"],
    candidates=["plain", "fast"], not_tried={"mtp": "no weights"}, decided=False,
)  # fmt: skip


def part(ms: float, *, length: int = 350, flags=(), tokens_a_second: float | None = None) -> StartPart:
    rows = [steady_row(f"{kind}{i}", kind, length=length, ms_a_token=ms + i / 10) for kind in KINDS for i in range(2)]
    summary = pool([StartPart(rows, _empty(rows))])
    value = tokens_a_second
    through = Throughput(value=value, low=value, high=value, raw_arrival=value, whole_run=value)
    return StartPart(rows, summary.model_copy(update={"flags": list(flags), "throughput": through}))


def _empty(rows):
    from paribus.speed.summarise import _from_rows

    return _from_rows([rows], cpu=False)


def entry(decoder: str, *parts: StartPart) -> Entry:
    return Entry(decoder, f"run/{decoder}", decoder != "plain", parts)


def verdict(*entries: Entry, requests: int = 1):
    return decide(RACE, "race-c1-long", requests, entries, decided_at="2026-12-01T00:00:00Z")


def test_the_fastest_speculation_wins_over_the_same_amount_of_text():
    found = verdict(entry("plain", part(10)), entry("ngram", part(9)), entry("eagle", part(5)))
    assert (found.winner, found.metric, found.plain_is_faster) == ("eagle", "speed_to_300", False)
    values = {c.decoder: c.value for c in found.candidates}
    assert values["eagle"] == pytest.approx(300 / (300 * 5.05e-3), rel=1e-3)
    assert found.candidates[2].low < values["eagle"] < found.candidates[2].high
    assert found.not_tried == {"mtp": "no weights"}


def test_longer_answers_do_not_win_a_race():
    # The looper writes more tokens a second over its long answers' whole, but is no faster to the 300th.
    looper = entry("looper", part(6, length=900))
    assert verdict(entry("plain", part(10)), entry("short", part(5.9)), looper).winner == "short"


def test_plain_may_be_faster_and_then_it_is_said_but_the_winner_speculates():
    found = verdict(entry("plain", part(5)), entry("ngram", part(6)))
    assert (found.winner, found.plain_is_faster) == ("ngram", True)


def test_an_invalid_candidate_is_left_out_with_its_reason_and_still_shown():
    bad = part(1, flags=[flag("usage_mismatch", "256 against 40")])
    found = verdict(entry("plain", part(10)), entry("fast", bad), entry("ngram", part(9)))
    assert found.winner == "ngram"
    fast = found.candidates[1]
    assert "256 against 40" in fast.left_out
    assert fast.flags == ["usage_mismatch"]


def test_a_candidate_with_short_answers_lowers_k_for_all():
    assert verdict(entry("plain", part(10)), entry("ngram", part(9, length=120))).metric == "speed_to_100"


def test_sixteen_at_once_race_by_throughput():
    found = verdict(
        entry("plain", part(10, tokens_a_second=900.0)),
        entry("a", part(1, tokens_a_second=1000.0)),
        entry("b", part(2, tokens_a_second=1100.0), part(2, tokens_a_second=1120.0)),
        requests=16,
    )
    assert (found.winner, found.metric) == ("b", "throughput")
    assert found.candidates[2].value == pytest.approx(1110)
    assert found.candidates[2].low < 1110


def test_where_nothing_speculates_the_best_of_all_wins():
    assert verdict(entry("plain", part(10))).winner == "plain"


def test_a_race_without_a_valid_candidate_says_why():
    bad = part(1, flags=[flag("usage_mismatch", "9 of 9")])
    with pytest.raises(CheckFailed, match="9 of 9"):
        verdict(entry("plain", bad), entry("ngram", bad))


def test_sixteen_requests_at_sixteen_have_no_steady_window_and_race_by_the_whole_run():
    def whole(ms, value):
        made = part(ms)
        through = Throughput(value=None, low=None, high=None, raw_arrival=None, whole_run=value)
        return StartPart(made.rows, made.summary.model_copy(update={"throughput": through}))

    found = verdict(entry("plain", whole(9, 90.0)), entry("a", whole(8, 80.0)), entry("b", whole(9, 85.0)), requests=16)
    assert (found.winner, found.metric, found.plain_is_faster) == ("b", "throughput_whole_run", True)


def test_where_one_candidate_has_no_window_all_race_by_the_whole_run():
    def told(window, whole):
        made = part(1)
        through = Throughput(value=window, low=window, high=window, raw_arrival=None, whole_run=whole)
        return StartPart(made.rows, made.summary.model_copy(update={"throughput": through}))

    found = verdict(
        entry("plain", told(None, 30.0)), entry("a", told(90.0, 29.0)), entry("b", told(50.0, 31.0)), requests=16
    )
    assert (found.winner, found.metric) == ("b", "throughput_whole_run")
    assert [c.value for c in found.candidates] == [30.0, 29.0, 31.0]
    assert [c.left_out for c in found.candidates] == [None, None, None]


def test_a_candidate_without_any_throughput_is_left_out_at_sixteen():
    found = verdict(entry("plain", part(1, tokens_a_second=5.0)), entry("a", part(1)), requests=16)
    assert found.winner == "plain"
    assert found.candidates[1].left_out == "no throughput_whole_run"
