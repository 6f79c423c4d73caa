"""Claims: what vendors, papers and testers have published about speed or quality, one file each (`claims/<id>.yaml`).

A claim is data about a sentence that somebody else published: its number, the conditions they gave, those they left
out, and how far it could be confirmed. It says nothing about whether the number is right.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from paribus.catalog.specs import Date, SlugName, Spec

Text = Annotated[str, Field(min_length=1, max_length=400)]
About = Literal["speed", "latency", "speed-up", "passes", "quality", "length", "cost", "limit", "statement"]
Metric = Literal["output_speed", "output_speed_standard", "decode_speed", "throughput", "ttft", "answer_time"]
Confirmed = Literal["primary", "secondary", "not found", "estimate"]


class Number(Spec):
    """One number as it was published: `said` in their figures; `low` and `high` what that means (equal for one value).

    `low` is None for "up to", `high` for "at least". `of` names what the number belongs to where a claim has several.
    """

    said: Text
    unit: str
    low: float | None = None
    high: float | None = None
    of: str | None = None

    @property
    def text(self) -> str:
        """The number as it was said, with its unit and what it belongs to: `1.9x (plain)`, `375 tokens/s`."""
        unit = "" if self.unit == "x" else f" {self.unit}"
        return f"{self.said}{unit}" + (f" ({self.of})" if self.of else "")

    @model_validator(mode="after")
    def _in_order(self) -> Number:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"{self.said}: low is above high")
        return self


class Disclosed(Spec):
    """The conditions that came with the number. None: not given, and then it stands under `not_disclosed`."""

    card: str | None = None
    precision: str | None = None
    requests_at_once: str | None = None
    prompts: str | None = None
    answers: str | None = None
    engine: str | None = None
    settings: str | None = None


class Remark(Spec):
    """A correction, an arithmetic consequence, or the claimant's reply, with its source."""

    text: Text
    source: Text
    date: Date | None = None


class Confirmation(Spec):
    """Where the claim itself was seen: at its primary source, in copies only, or nowhere but in a report."""

    status: Confirmed
    where: Text


class Claim(Spec):
    """`claims/<id>.yaml`, whole."""

    claim: Annotated[str, Field(pattern=r"^c\d{3}$")]
    by: Text
    date: Date | None = None
    """When it was published; None: not known."""
    system: Text
    """The system in the claimant's words."""
    ours: list[str] = []
    """Globs over names of our systems that come closest."""
    hardware: SlugName | None = None
    """Our hardware profile of the claim's card."""
    about: About
    metric: Text
    """The metric in the claimant's words."""
    numbers: list[Number] = []
    against: list[Number] = []
    """The opponent's numbers, and ratios to it, as published."""
    disclosed: Disclosed = Disclosed()
    not_disclosed: list[Text] = []
    confirmed: Confirmation
    sources: list[Text] = Field(min_length=1)
    remarks: list[Remark] = []
    """Corrections and what follows from the disclosed numbers."""
    scenario: SlugName | None = None
    """The scenario that runs the claim under its own conditions, as far as they are known; the settings that came with
    it are those of the systems in `ours`."""
    task: SlugName | None = None
    """Our quality task of the same benchmark; scores of another protocol only ever stand beside each other."""
    measured_as: Metric | None = None
    """Our metric that comes closest to the claim's."""
    same_metric: bool = False
    """Whether our metric is the claimant's, by its definition."""
    reply: Remark | None = None
    """The claimant's reply (right of reply, PROTOCOL section 7)."""

    @model_validator(mode="after")
    def _says_something(self) -> Claim:
        if not self.numbers and self.about != "statement":
            raise ValueError(f"{self.claim}: a claim has a number, or is a statement")
        return self

    @property
    def synthetic(self) -> bool:
        """Whether its own conditions say that the load was not natural text."""
        told = " ".join(filter(None, (self.disclosed.prompts, self.disclosed.answers, self.disclosed.settings))).lower()
        return any(word in told for word in ("random", "end of text ignored", "pinned", "synthetic"))
