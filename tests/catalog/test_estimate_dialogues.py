"""Hours of a task of dialogues: answers x tokens x dialogues, and the waits for the simulated user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paribus.catalog import Catalog, PlannedMeasure
from paribus.catalog.estimate import Estimator
from paribus.catalog.estimate_dialogues import ANSWERS, NEW_PROMPT_TOKENS, TOKENS, USER_MESSAGES, USER_SECONDS
from paribus.catalog.hardware import Speeds

ROOT = Path(__file__).resolve().parents[2]
SPEEDS = Speeds(decode_1=100, decode_16=1_000, prompt=10_000, engine_start_s=60)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog(ROOT)


def planned(**changed: Any) -> PlannedMeasure:
    declared = {"task": "tau2", "repeats": 2, "requests_at_once": 32, "cap": 32_768, "thinking": False, "scale": "full"}
    declared |= {"user_simulator": "open/model@1, temperature 0.0"}
    return PlannedMeasure(measure="tau2", id="tau2", run="r", hashes={}, declared=declared | changed)


def seconds(catalog: Catalog, **changed: Any) -> float:
    return Estimator(catalog, catalog.scale("full"), SPEEDS).job_seconds("quality", [planned(**changed)])


def test_the_estimate_is_what_its_parts_add_up_to(catalog: Catalog) -> None:
    dialogues, answers = 278 * 2, 278 * 2 * ANSWERS
    policies = (4539 + 4432 + 6880) / 3 * 32
    expected = 60 + answers * TOKENS[False] / 1_000 + (answers * NEW_PROMPT_TOKENS + policies) / 10_000
    expected += dialogues * ANSWERS * USER_MESSAGES * USER_SECONDS / 32
    assert seconds(catalog) == pytest.approx(expected, abs=0.1)
    estimator = Estimator(catalog, catalog.scale("full"), SPEEDS)
    assert estimator.tokens(planned()) == answers * TOKENS[False]


def test_more_of_anything_takes_longer_and_more_at_once_shorter(catalog: Catalog) -> None:
    usual = seconds(catalog)
    assert seconds(catalog, repeats=4) > 1.9 * usual - 60
    assert seconds(catalog, thinking=True) > usual
    assert seconds(catalog, requests_at_once=1) > usual
    assert seconds(catalog, cap=16) < usual


def test_a_scripted_user_takes_no_time_and_leaves_early(catalog: Catalog) -> None:
    estimator = Estimator(catalog, catalog.scale("full"), SPEEDS)
    assert estimator.tokens(planned(user_simulator="scripted")) == 278 * 2 * 8 * TOKENS[False]
    assert seconds(catalog, user_simulator="scripted") < seconds(catalog) / 2


def test_other_tasks_are_estimated_as_before(catalog: Catalog) -> None:
    other = planned(task="mmlu-pro").model_copy(update={"id": "mmlu-pro"})
    assert Estimator(catalog, catalog.scale("full"), SPEEDS).tokens(other) == 1_400 * 2 * 1_500
