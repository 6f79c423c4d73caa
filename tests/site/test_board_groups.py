"""Which runs of a board may stand in one ranking: those of one card variant, at one power limit, at one scale."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paribus.site.pages.board import comparable

SXM = {"card": "NVIDIA H100 80GB HBM3", "card_variant": "H100 SXM 80 GB", "card_count": 1, "power_limit_w": 700.0}


def run(name: str, **observed: Any) -> SimpleNamespace:
    summary = SimpleNamespace(declared={"scale": "full"}, observed=SXM | observed)
    row = {"started_at": "2026-11-01T00:00:00Z"}
    return SimpleNamespace(id=name, demo=False, preliminary=False, summary=summary, row=row)


def test_runs_on_one_card_stand_together():
    assert [[r.id for r in group] for group in comparable([run("a"), run("b")])] == [["a", "b"]]


@pytest.mark.parametrize(
    "other",
    [
        {"card_variant": "H100 PCIe 80 GB", "card": "NVIDIA H100 PCIe"},
        {"power_limit_w": 450.0},
        {"card_count": 2},
        {"clock_state": "graphics clock offset +150 MHz"},
    ],
)
def test_another_variant_limit_number_or_clock_stands_apart(other):
    groups = comparable([run("a"), run("b", **other), run("c")])
    assert sorted(sorted(r.id for r in group) for group in groups) == [["a", "c"], ["b"]]


def test_research_models_stand_in_no_ranking_with_the_others():
    research = run("b")
    research.summary.declared["track"] = "research"
    assert sorted([r.id for r in group] for group in comparable([run("a"), research, run("c")])) == [["a", "c"], ["b"]]
