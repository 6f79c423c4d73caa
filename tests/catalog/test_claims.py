"""Claims on file: what was published, with its conditions, what was left out, and where it was seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from paribus.catalog import Catalog
from paribus.catalog.claims import Claim, Number

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = Catalog(ROOT).claims
MATERIAL = ("card", "precision", "requests_at_once", "prompts", "answers")
"""Conditions that move a speed: a claim of a speed gives each or says that it wasn't given."""


def claim(name: str) -> Claim:
    return CLAIMS[name]


def test_every_claim_known_is_on_file():
    assert sorted(CLAIMS) == [f"c{number:03d}" for number in range(1, 71)]


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_claim_says_who_where_it_was_seen_and_what_it_is_about(name):
    told = claim(name)
    assert told.by
    assert told.sources
    assert told.confirmed.where
    assert told.numbers or told.about == "statement"


@pytest.mark.parametrize("name", sorted(name for name, told in CLAIMS.items() if told.about in ("speed", "latency")))
def test_a_speed_gives_its_conditions_or_says_that_they_were_not_given(name):
    told = claim(name)
    given = told.disclosed.model_dump(exclude_none=True)
    missing = [condition for condition in MATERIAL if condition not in given]
    assert len(missing) == 0 or told.not_disclosed, f"{name} is silent about {missing}"


def test_corrections_stand_beside_the_claims_they_correct():
    drafter = claim("c064")
    assert drafter.about == "statement"
    assert "without a drafter" in drafter.remarks[0].text
    assert "one row" in claim("c026").remarks[0].text
    for name in ("c011", "c012", "c013"):
        text = claim(name).remarks[0].text
        assert all(ratio in text for ratio in ("1.9x", "6.2x", "3.3x"))


def test_a_load_that_is_not_natural_text_is_synthetic():
    assert {name for name, told in CLAIMS.items() if told.synthetic} == {"c008", "c009", "c010"}


def test_the_same_recipe_gives_three_ratios():
    ratios = [number.low for name in ("c011", "c012", "c013") for number in claim(name).against if number.unit == "x"]
    assert ratios == [1.9, 6.2, 3.3]


def test_a_bound_is_not_a_value():
    assert (claim("c001").numbers[0].low, claim("c001").numbers[0].high) == (1000, None)
    assert (claim("c015").numbers[0].low, claim("c015").numbers[0].high) == (None, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"claim": "x1"},
        {"numbers": [], "about": "speed"},
        {"sources": []},
        {"numbers": [{"said": "2 to 1", "unit": "x", "low": 2, "high": 1}]},
        {"surprise": 1},
    ],
)
def test_a_wrong_claim_is_refused(wrong):
    right = claim("c003").model_dump()
    Claim.model_validate(right)
    with pytest.raises(ValidationError):
        Claim.model_validate({**right, **wrong})


def test_a_number_keeps_the_figures_as_they_were_said():
    assert claim("c010").numbers == [Number(said="1,003.79", unit="tokens/s", low=1003.79, high=1003.79)]
