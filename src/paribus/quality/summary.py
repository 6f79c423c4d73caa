"""The summary of one quality run: scores with their intervals. Scores are shares of 1."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from paribus.conditions import Flag

NAMED_CAP = 0.15
"""A score of which the cap cut more answers than this share carries its budget in its name."""

BY_EXAM_YEAR = "by-exam-year"
"""Name of the score whose interval is over exam years, not over questions."""


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


class GroupScore(_Part):
    """The headline score of one year, category, difficulty or domain. `majority`: AIME's vote, where there is one."""

    value: float
    low: float | None
    high: float | None
    questions: int
    majority: float | None = None


class TokenAccount(_Part):
    """Means an answer, over the answers that came; null where the engine didn't say.

    `tokens` are all that the model wrote: `reasoning_tokens` and `answer_tokens` together.
    """

    answers: int
    prompt_tokens: float | None
    reasoning_tokens: float | None
    answer_tokens: float | None
    tokens: float | None
    ttft_ms: float | None
    answer_time_ms: float | None
    reasoning_split: int = 0
    """Answers whose reasoning the engine sent and didn't count: their tokens are split in proportion to standard
    tokens."""


class Grading(_Part):
    """How programs were graded: the grading machine's speed, and what follows for the time limit of a test.

    `workload_s` is the CPU time of a fixed workload here, `reference_s` that of the reference machine; `factor` is
    their ratio within bounds. `starved`: tests that got more of the wall clock, because their core was busy.
    """

    workload_s: float
    reference_s: float
    factor: float
    test_seconds: float
    cores: int
    starved: int
    interpreter: str | None = None
    """Minor versions of the Python that ran the programs, and of its numpy: part of the scorer's id. Null: not told."""


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
    user_failed: int = 0
    """Dialogues that the user simulator broke off: counted as not ended well, and no failure of the system."""
    capped: int
    cap: int
    scores: list[Score]
    by_group: dict[str, GroupScore] = {}
    """Score by year, category, difficulty or domain."""
    account: TokenAccount
    account_right: TokenAccount | None = None
    account_wrong: TokenAccount | None = None
    finish_reasons: dict[str, int] = {}
    """Answers by the reason for their end (`failed`: none came)."""
    requests_at_once: int = 1
    """The load at which tokens and times were measured."""
    grading: Grading | None = None
    items_hash: str
    partial: bool
    stand_in: bool
    flags: list[Flag]

    @property
    def capped_share(self) -> float:
        """Share of the answers that the token cap cut."""
        return self.capped / max(1, self.items * self.repeats)

    @property
    def within(self) -> str:
        """What must stand in the score's name where the cap cut many answers: its budget; else nothing."""
        return f"within {self.cap:,} tokens" if self.capped_share > NAMED_CAP else ""
