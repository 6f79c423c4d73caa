"""A quality run with thinking off whose answers hold reasoning is not the run that it says it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from quality_journals import HEADER, entry

from paribus.catalog import Catalog
from paribus.quality.journal import Entry
from paribus.quality.samples import Sample, accounts
from paribus.quality.score import flags_of

TASK = Catalog(Path(__file__).parents[2]).task("mmlu-pro")


def answered(*entries: Entry) -> Sample:
    return Sample(item="1", repeat=0, group=None, correct=1.0, answer="A", **accounts(entries))


def sample(*reasoning: int | None, error: str | None = None) -> Sample:
    """An answer, or a dialogue's, with as many tokens of reasoning in each turn."""
    turns = [entry("t", "1", 0, "A", turn=n, reasoning_tokens=each, error=error) for n, each in enumerate(reasoning)]
    return answered(*turns)


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
        ([*QUIET, sample(*[8] * 10)], None),
        ([*QUIET, sample(*[0] * 9, 9)], "warning"),
        ([sample(*[0] * 28, 100, 100)], "invalid"),
        ([*[sample(*[0] * 30)] * 9, sample(*[0] * 28, 100, 100)], "warning"),
        ([*QUIET, sample(900, error="http_500")], None),
        ([sample(None)], None),
    ],
)
def test_reasoning_with_thinking_off_is_flagged(samples: list[Sample], expected: str | None) -> None:
    assert severity(samples) == expected


LONG = "I must think about it. " * 20


@pytest.mark.parametrize(
    "said",
    [
        {"text": f"<think>{LONG}</think>42", "reasoning_tokens": 0},
        {"text": f"{LONG}</think>42", "reasoning_tokens": 0},
        {"text": "42", "reasoning": LONG, "reasoning_tokens": 0},
        {"text": f"<think>{LONG}</think>42", "reasoning_tokens": None, "completion_tokens": None},
    ],
)
def test_reasoning_in_the_text_is_seen_whatever_the_engine_counts(said: dict[str, object]) -> None:
    """An engine may count none of what its parser doesn't know, or send no usage at all."""
    assert severity([answered(entry("t", "1", 0, **said))]) == "invalid"  # type: ignore[arg-type]


def test_a_flag_says_how_many_turns_thought() -> None:
    header = HEADER.model_copy(update={"scale": "full"})
    [flag] = [f for f in flags_of(TASK, header, [], [sample(*[0] * 28, 100, 100)]) if f.id == "thinking_mismatch"]
    assert "2 of 30 answers (6.7%) hold 200 tokens" in flag.text


def test_a_system_that_thinks_may_and_a_server_asked_ad_hoc_declared_nothing() -> None:
    thought = [sample(300)] * 4
    assert severity(thought) == "invalid"
    assert severity(thought, thinking=True) is None
    assert severity(thought, scale=None) is None
