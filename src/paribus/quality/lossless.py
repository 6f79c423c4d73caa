"""The lossless gate at temperature 0 (PROTOCOL rule 5): does a decoder give plain decoding's answers?

Where an engine scores given text, its speculative text is fed through plain decoding, and a token that lies more than a
margin below the top one is a violation (`violations`). Where it doesn't, whole answers are compared. Either way plain
decoding is compared with itself at another number of requests at once: rounding alone turns some answers, and a
decoder may turn no more than that. Pure functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy import special

MARGIN = 0.5
"""Natural logarithms that a token may lie below the top one and still be a tie decided by rounding."""

ALPHA = 0.05
FEWEST = 14
"""Prompts under which nothing passes: two of each of the seven kinds."""

Standing = Literal["passed", "failed", "undecided"]


Gap = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Scored(_Part):
    """One answer fed through plain decoding: its tokens, and how far those that aren't the likeliest lie below it.

    `gaps`: natural logarithms, in the order of the tokens.
    """

    tokens: int = Field(ge=1)
    gaps: list[Gap] = []

    @model_validator(mode="after")
    def _no_more_gaps_than_tokens(self) -> Scored:
        if len(self.gaps) > self.tokens:
            raise ValueError(f"{len(self.gaps)} gaps of {self.tokens} tokens")
        return self

    @property
    def violations(self) -> int:
        """Tokens that lie more than the margin below the likeliest."""
        return violations(self.gaps)


class Compared(_Part):
    """One prompt: sha256 (first 16 hex digits) of three answers at temperature 0, and two of them scored.

    `plain` one at a time; `control` plain again, several at once; `subject` the decoder, one at a time. Scores are null
    where the engine scores no given text; then the answers are compared.
    """

    prompt: str
    plain: str
    control: str
    subject: str
    control_scored: Scored | None = None
    subject_scored: Scored | None = None


class LosslessVerdict(_Part):
    """`lossless.json`: the gate of one decoder on one machine, with everything that the verdict is made from."""

    schema_version: Literal[1] = Field(1, alias="schema")
    system: str
    plain: str
    form: Literal["equal-outputs", "teacher-forced"] = "equal-outputs"
    margin: float | None = None
    """Of the teacher-forced form: natural logarithms."""
    temperature: float = Field(0.0, ge=0, le=0)
    max_tokens: int = Field(ge=1)
    at_once: int = Field(ge=2)
    engine: str
    hashes: dict[str, str]
    """`answer_class` of both, `plain` and `subject`: their system hashes."""
    prompts: list[Compared] = Field(min_length=1)
    differ: int
    control_differ: int
    p: float
    standing: Standing
    measured_at: str

    @property
    def sentence(self) -> str:
        """What a reader is told."""
        prompts = f"{len(self.prompts)} prompts"
        if self.form == "equal-outputs" and self.standing == "passed":
            return f"lossless: passed at T=0 on {prompts}"
        if self.form == "equal-outputs":
            counts = (
                f"{self.differ} of {len(self.prompts)} answers differ from plain decoding's, {self.control_differ} "
            )
            return f"lossless: {self.standing} at T=0 ({counts}of plain's own at another load)"
        subject, control = totals(self.prompts)
        tokens = sum(one.subject_scored.tokens for one in self.prompts if one.subject_scored)
        counts = (
            f"{subject} of {tokens:,} tokens lie more than {MARGIN} below plain decoding's likeliest, {control} of "
        )
        return f"lossless: {self.standing} at T=0 on {prompts} ({counts}plain's own at another load)"


def digest(text: str) -> str:
    """16 hex digits of an answer."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def violations(gaps: Sequence[float], margin: float = MARGIN) -> int:
    """Tokens that lie more than a margin below plain decoding's top token (gaps in natural logarithms, 0: the top)."""
    return sum(gap > margin for gap in gaps)


def judge(prompts: Sequence[Compared]) -> tuple[int, int, float, Standing]:
    """Prompts that differ, those of plain against plain, a p-value, and the standing.

    A prompt differs when its answer holds violations; where nothing is scored, when it isn't plain's. Passed: no more
    prompts differ than of plain against plain, nor are there more violations in all. Else McNemar's exact one-sided
    test over the prompts where only one of the two differs decides between failed (p under 5%) and undecided: ask more
    prompts.
    """
    subject = [_differs(one.subject_scored, one.subject, one.plain) for one in prompts]
    control = [_differs(one.control_scored, one.control, one.plain) for one in prompts]
    only_subject = sum(a and not b for a, b in zip(subject, control, strict=True))
    only_control = sum(b and not a for a, b in zip(subject, control, strict=True))
    p = sign_test(only_subject, only_control)
    more = sum(subject) > sum(control) or totals(prompts)[0] > totals(prompts)[1]
    passed = not more and len(prompts) >= FEWEST
    standing: Standing = "passed" if passed else "failed" if p < ALPHA else "undecided"
    return sum(subject), sum(control), p, standing


def totals(prompts: Sequence[Compared]) -> tuple[int, int]:
    """Violations of the decoder and of plain decoding at another load, over all prompts; 0 where nothing is scored."""
    subject = sum(one.subject_scored.violations for one in prompts if one.subject_scored)
    return subject, sum(one.control_scored.violations for one in prompts if one.control_scored)


def sign_test(more: int, less: int) -> float:
    """The chance of at least `more` heads in `more + less` throws of a fair coin."""
    return 1.0 if more == 0 else float(special.betainc(more, less + 1, 0.5))


def _differs(scored: Scored | None, answer: str, plain: str) -> bool:
    return answer != plain if scored is None else scored.violations > 0
