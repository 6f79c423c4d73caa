"""A quality run with thinking off whose answers hold reasoning is not the run that it says it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from quality_journals import HEADER

from paribus.catalog import Catalog
from paribus.quality.samples import Sample
from paribus.quality.score import flags_of

TASK = Catalog(Path(__file__).parents[2]).task("mmlu-pro")


def sample(reasoning: int | None, *, status: str = "ok", turns: int = 1) -> Sample:
    return Sample(
        item="1", repeat=0, group=None, correct=1.0, answer="A", status=status, error=None, finish_reason="stop",
        seed=1, prompt_tokens=10, tokens=400, reasoning_tokens=reasoning, ttft_ms=1.0, answer_time_ms=2.0, turns=turns,
    )  # fmt: skip


def severity(samples: list[Sample], *, thinking: bool = False, scale: str | None = "full") -> str | None:
    header = HEADER.model_copy(update={"thinking": thinking, "scale": scale})
    found = {f.id: f.severity for f in flags_of(TASK, header, [], samples)}
    return found.get("thinking_mismatch")


QUIET = [sample(0)] * 99


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([*QUIET, sample(8)], None),
        ([*QUIET, sample(9)], "warning"),
        ([*QUIET, sample(9), sample(9)], "invalid"),
        ([*QUIET, sample(80, turns=10)], None),
        ([*QUIET, sample(90, turns=10)], "warning"),
        ([*QUIET, sample(900, status="failed")], None),
        ([sample(None)], None),
    ],
)
def test_reasoning_with_thinking_off_is_flagged(samples: list[Sample], expected: str | None) -> None:
    assert severity(samples) == expected


def test_a_system_that_thinks_may_and_a_server_asked_ad_hoc_declared_nothing() -> None:
    thought = [sample(300)] * 4
    assert severity(thought) == "invalid"
    assert severity(thought, thinking=True) is None
    assert severity(thought, scale=None) is None
