"""The summary of one quality run: scores with their intervals. Scores are shares of 1."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from paribus.conditions import Flag


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Score(_Part):
    """One score: value in 0..1 with its 95% interval over questions (null bounds under two questions)."""

    name: str
    title: str
    value: float
    low: float | None
    high: float | None
    headline: bool = False


class TokenAccount(_Part):
    """Means an item: tokens and times; split by right and wrong where both exist."""

    prompt_tokens: float | None
    answer_tokens: float | None
    reasoning_tokens: float | None
    ttft_ms: float | None
    answer_time_ms: float | None


class QualitySummary(_Part):
    """`score.json` of a scored start and the heart of a quality run's `summary.json`."""

    schema_version: Literal[1] = Field(1, alias="schema")
    task: str
    family: str
    scorer: str
    items: int
    repeats: int
    answered: int
    failed: int
    capped: int
    cap: int
    scores: list[Score]
    by_group: dict[str, float] = {}
    """Score by year, category or domain."""
    account: TokenAccount
    account_right: TokenAccount | None = None
    account_wrong: TokenAccount | None = None
    items_hash: str
    partial: bool
    stand_in: bool
    flags: list[Flag]
