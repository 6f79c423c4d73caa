"""A dialogue that the user simulator broke off is no failure of the system: told apart, and not left out."""

from __future__ import annotations

from typing import Any

import pytest
from quality_journals import ROOT, entry

from paribus.catalog import Catalog
from paribus.cli._quality_view import report
from paribus.quality.asking import Asking
from paribus.quality.data import load_items
from paribus.quality.dialogue import Dialogue, ToolUse
from paribus.quality.run import Evaluation, _samples
from paribus.quality.score import summarise
from paribus.quality.summary import QualitySummary
from paribus.wire import Endpoint

WELL, BADLY, OURS, USERS = "well", "badly", "ours", "users"


def dialogue(item: str, repeat: int, fate: str) -> Dialogue:
    said = entry("smoke-tau2", item, repeat, text="Hello.", error="http_500" if fate == OURS else None)
    entries = () if fate == USERS else (said,)
    failed = fate in (OURS, USERS)
    return Dialogue(float(fate == WELL), len(entries), ToolUse(), entries, failed, "so it went", fate == USERS)


def scored(*fates: str) -> QualitySummary:
    """The fates of one item's dialogues after the other, for as many items as there are."""
    task = Catalog(ROOT).task("smoke-tau2")
    items = load_items(task, ROOT, 2)
    evaluation = Evaluation(task, items, len(fates) // 2, 256, 2, None, "m", None, False)
    ids = [str(item["id"]) for item in items.items]
    played = [
        (ids[place % 2], place // 2, dialogue(ids[place % 2], place // 2, fate)) for place, fate in enumerate(fates)
    ]
    header = evaluation.header(Asking(Endpoint("http://127.0.0.1:9/v1", "m"), {}, 256, 4))
    return summarise(task, header, items.items, _samples(evaluation, played))


def flags(summary: QualitySummary) -> dict[str, Any]:
    return {flag.id: flag for flag in summary.flags}


def test_they_have_a_word_a_count_and_a_flag_of_their_own() -> None:
    found = scored(WELL, USERS, WELL, BADLY)
    assert (found.answered, found.failed, found.user_failed) == (3, 0, 1)
    assert found.finish_reasons["user"] == 1
    assert "failed" not in found.finish_reasons
    assert "failures" not in flags(found)
    assert flags(found)["user_failures"].severity == "invalid", "a quarter wasn't measured"
    assert "The user simulator, not the system" in flags(found)["user_failures"].text
    assert "broken off by the user simulator 1" in report(found)


def test_they_count_as_not_ended_well_and_the_score_without_them_stands_beside() -> None:
    scores = {one.name: one for one in scored(WELL, USERS, WELL, BADLY).scores}
    assert scores["pass^1"].value == pytest.approx(0.5)
    assert scores["pass^1"].headline
    assert scores["pass^1-played"].value == pytest.approx((1 + 0) / 2), "of each item: 2 of 2, 0 of 1"
    assert not scores["pass^1-played"].headline
    assert scores["pass^1-played"].title == (
        "share of dialogues that end well, without the 1 that the user simulator broke off"
    )
    assert {one.name for one in scored(WELL, BADLY, WELL, WELL).scores}.isdisjoint({"pass^1-played"})
    assert "pass^1-played" not in {one.name for one in scored(USERS, USERS).scores}


def test_the_limit_of_failures_holds_for_both_kinds_together() -> None:
    few = [WELL] * 198
    one = flags(scored(*few, WELL, USERS))
    assert one["user_failures"].severity == "warning"
    three = flags(scored(*few[:-2], USERS, USERS, USERS, WELL))
    assert three["user_failures"].severity == "invalid"
    both = flags(scored(*few[:-2], USERS, USERS, OURS, WELL))
    assert (both["failures"].severity, both["user_failures"].severity) == ("invalid", "invalid")
    assert "1 of 200 answers (http_500)" in both["failures"].text
