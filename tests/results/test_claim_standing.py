"""How a published claim stands beside a run of ours: replicated, approximated, not reproduced; never anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.catalog.claims import Claim, Number
from paribus.results.claims import TOLERANCE, Measured, claim_rows, command_of, differences, reached, standing

NUMBERS = st.floats(min_value=0.1, max_value=1e5)


def claim(**changes):
    told = {
        "claim": "c999",
        "by": "a vendor",
        "system": "Some Model",
        "ours": ["some-model--fp8--vllm--*"],
        "hardware": "h100",
        "about": "speed",
        "metric": "output speed",
        "numbers": [{"said": "1,000", "unit": "tokens/s", "low": 1000, "high": 1000}],
        "disclosed": {
            "card": "1 x H100",
            "precision": "FP8",
            "requests_at_once": "1",
            "prompts": "1,024 random tokens",
            "answers": "1,024 tokens",
            "engine": "vLLM",
        },
        "confirmed": {"status": "primary", "where": "a page"},
        "sources": ["a page"],
        "scenario": "claim-random-1024",
        "measured_as": "output_speed",
        "same_metric": True,
    }
    return Claim.model_validate(told | changes)


def run(**changes):
    return {
        "run_id": "rabcdefghij",
        "kind": "speed",
        "demo": False,
        "superseded_by": None,
        "ranked": False,
        "hardware": "h100",
        "system": "some-model--fp8--vllm--block",
        "precision": "fp8",
        "engine": "vllm",
        "scenario_or_task": "claim-random-1024",
        "declared": {"requests_at_once": 1},
    } | changes


def figure(value, low=None, high=None, unit="tok/s", metric="output_speed", **changes):
    row = {"run_id": "rabcdefghij", "other_run_id": None, "metric": metric, "unit": unit}
    return row | {"value": value, "low": low, "high": high} | changes


def row_of(told, runs, figures):
    (row,) = claim_rows([told], runs, figures)
    return row


def test_a_claim_that_nobody_has_run_is_not_measured():
    row = row_of(claim(), [], [])
    assert (row["standing"], row["replica_value"], row["measured_value"]) == ("not measured", None, None)


def test_all_conditions_met_and_the_number_reached_is_replicated():
    row = row_of(claim(), [run()], [figure(980, 940, 1020)])
    assert (row["standing"], row["differs"], row["replica_value"]) == ("replicated", [], 980)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"not_disclosed": ["content of the prompts"]}, "not disclosed"),
        ({"same_metric": False}, "another metric"),
        ({"disclosed": {**claim().disclosed.model_dump(), "precision": "NVFP4"}}, "precision"),
        ({"disclosed": {**claim().disclosed.model_dump(), "engine": "SGLang"}}, "engine"),
        ({"disclosed": {**claim().disclosed.model_dump(), "requests_at_once": "low batch"}}, "requests at once"),
        ({"disclosed": {**claim().disclosed.model_dump(), "card": "2 x H100"}}, "card"),
    ],
)
def test_any_condition_that_differs_or_was_not_disclosed_makes_it_approximated(changes, word):
    row = row_of(claim(**changes), [run()], [figure(1000, 990, 1010)])
    assert row["standing"] == "approximated"
    assert any(word in text for text in row["differs"])


def test_a_faulty_run_replicates_nothing_and_stands_behind_a_sound_one():
    flags = [
        {"id": "synthetic", "severity": "invalid", "text": ""},
        {"id": "throttled", "severity": "invalid", "text": ""},
        {"id": "busy", "severity": "warning", "text": ""},
    ]
    faulty = run(run_id="raaaaaaaaaa", summary={"flags": flags})
    figures = [figure(600, 590, 610, run_id="raaaaaaaaaa"), figure(1000, 990, 1010)]
    alone = row_of(claim(), [faulty], figures)
    assert (alone["standing"], alone["differs"]) == ("not reproduced", ["what is wrong with our run: throttled"])
    assert row_of(claim(), [run(summary={"flags": flags})], figures)["standing"] == "approximated"
    both = row_of(claim(), [faulty, run(summary={"flags": flags[:1]})], figures)
    assert (both["standing"], both["replica_run_id"]) == ("replicated", "rabcdefghij")


def test_a_number_that_was_missed_is_not_reproduced_under_the_conditions_of_the_run():
    row = row_of(claim(), [run()], [figure(600, 590, 610)])
    assert row["standing"] == "not reproduced"


def test_another_card_is_never_taken_for_the_claims():
    assert row_of(claim(), [run(hardware="h200")], [figure(1000, 990, 1010)])["standing"] == "not measured"


@pytest.mark.parametrize(
    "changes", [{"demo": True}, {"superseded_by": "rzzzzzzzzzz"}, {"superseded_by": ""}, {"kind": "race"}]
)
def test_a_demo_a_replaced_run_or_a_race_stands_beside_no_claim(changes):
    assert row_of(claim(), [run(**changes)], [figure(1000, 990, 1010)])["standing"] == "not measured"


def test_beside_a_claim_that_names_no_card_stands_no_run_of_ours_on_the_same_card():
    runs = [run(run_id="rownconds00", scenario_or_task="c1-long", ranked=True)]
    row = row_of(claim(hardware=None), runs, [figure(300, 290, 310, run_id="rownconds00")])
    assert (row["measured_run_id"], row["measured_value"]) == (None, None)


def test_the_command_quotes_globs_and_leaves_hostile_ones_out():
    command = command_of("h100", ["a-b*", "x'; reboot; '", "q$(id)"], "claim-random-1024")
    assert command == "snakemake --profile h100 --config 'systems=a-b*' measures=claim-random-1024"
    assert command_of("h100", ["`id`"], None) is None
    assert command_of(None, ["a*"], None) is None


def test_what_was_measured_under_our_conditions_stands_apart():
    runs = [run(run_id="rownconds00", scenario_or_task="c1-long", ranked=True)]
    row = row_of(claim(), runs, [figure(300, 290, 310, run_id="rownconds00")])
    assert (row["standing"], row["measured_value"], row["measured_run_id"]) == ("not measured", 300, "rownconds00")


def test_a_claim_in_seconds_meets_our_milliseconds():
    told = claim(
        measured_as="answer_time", numbers=[{"said": "0.88", "unit": "s", "low": 0.88, "high": 0.88}], about="latency"
    )
    row = row_of(told, [run()], [figure(880, 870, 890, unit="ms", metric="answer_time")])
    assert (row["standing"], row["replica_value"]) == ("replicated", pytest.approx(0.88))


def test_a_ratio_of_two_runs_is_no_level():
    assert row_of(claim(), [run()], [figure(1000, 990, 1010, other_run_id="rother00000")])["standing"] == "not measured"


@given(low=NUMBERS, width=NUMBERS, value=NUMBERS)
def test_at_least_is_reached_by_everything_above_and_up_to_by_everything_below(low, width, value):
    measured = Measured("r", value, value, value + width)
    at_least, up_to = Number(said="x", unit="x", low=low), Number(said="x", unit="x", high=low)
    assert reached(at_least, measured) == (measured.high >= low * (1 - TOLERANCE))
    assert reached(up_to, measured) == (measured.low <= low * (1 + TOLERANCE))


@given(value=NUMBERS, off=st.floats(min_value=0, max_value=3))
def test_a_number_is_reached_within_the_tolerance_and_not_beyond(value, off):
    measured = Measured("r", value * off, value * off, value * off)
    inside = 1 - TOLERANCE <= off <= 1 + TOLERANCE
    if abs(off - 1 + TOLERANCE) > 1e-9 and abs(off - 1 - TOLERANCE) > 1e-9:
        assert reached(Number(said="x", unit="x", low=value, high=value), measured) == inside


@given(st.lists(st.text(min_size=1, max_size=20), max_size=3), NUMBERS)
def test_a_claim_stands_in_one_of_four_ways_and_never_as_false(differs, value):
    told = standing(claim(), Measured("r", value, value, value), differs)
    assert told in ("replicated", "approximated", "not reproduced")
    assert told != "replicated" or not differs


def test_every_material_thing_left_out_is_named():
    told = claim(not_disclosed=["precision", "prompts"], disclosed={"card": "H100"})
    assert differences(told, run())[:2] == ["not disclosed: precision", "not disclosed: prompts"]
