"""The sampler fingerprint of a diffusion model: does this engine denoise as the reference implementation does?

64 fixed prompts, the first canvas of each, twice (PROTOCOL section 3): the denoising passes that a canvas took, and
its first standard token. Held against the reference's readings on the same prompts: mean passes more than 5% apart are
another sampler, and with it another answer class. Canvases start from noise, so that their mean has an error of its
own: apart counts only where the paired interval says that it is not chance. Pure: nothing here talks to a server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from paribus.catalog import PromptLine
from paribus.catalog.specs import Scalar, Spec
from paribus.conditions import hash12
from paribus.wire import standard_token_ends

PROMPTS = 64
CANVASES = 2
"""Canvases of each prompt: one alone leaves a mean that chance moves by nearly 5%."""

APART = 0.05
"""Means further apart than this share of the reference's are another sampler."""

UNVERIFIED = "unverified"
NO_REFERENCE = "no readings of the reference to compare"


class Reading(Spec):
    """One prompt: the denoising passes that its first canvas took, and the first standard token of its text.

    `passes`: the mean of the times it was asked. `first`: of the first time; none: no text.
    """

    prompt: str
    passes: float = Field(gt=0)
    first: str | None = None


class Reference(Spec):
    """`systems/fingerprints/<model>--<precision>--<decoder>.json`: the reference's readings, and what gave them."""

    schema_version: Literal[1] = 1
    model: str
    precision: str
    decoder: str
    lossy: dict[str, Scalar]
    engine_version: str
    readings: list[Reading] = Field(min_length=PROMPTS, max_length=PROMPTS)

    @property
    def id(self) -> str:
        """12 hex digits over the readings."""
        return hash12([reading.model_dump() for reading in self.readings])


@dataclass(frozen=True)
class Comparison:
    """Readings against a reference's. `ratio`: mean passes here / there, with its 95% interval, paired by prompt.

    `agreement`: share of prompts with the same first token. `verdict`: `agrees`, `mismatch`, or `unresolved` where the
    means are apart and chance could explain it.
    """

    passes: float
    reference_passes: float
    ratio: float
    low: float
    high: float
    agreement: float
    verdict: Literal["agrees", "mismatch", "unresolved"]

    def words(self) -> str:
        """The comparison in a few words."""
        return (
            f"{self.passes:.1f} passes a canvas where the reference takes {self.reference_passes:.1f} "
            f"(ratio {self.ratio:.3f}, {self.low:.3f} to {self.high:.3f}); "
            f"the first token agrees in {100 * self.agreement:.0f}%"
        )


def fixed_prompts(prompts: Iterable[PromptLine]) -> list[PromptLine]:
    """The 64 prompts of a set that fingerprints are taken on: spread evenly over the set in the order of their ids.

    Raises `ValueError` where there are fewer.
    """
    ordered = sorted(prompts, key=lambda prompt: prompt.id)
    if len(ordered) < PROMPTS:
        raise ValueError(f"a fingerprint needs {PROMPTS} prompts, there are {len(ordered)}")
    return [ordered[i * len(ordered) // PROMPTS] for i in range(PROMPTS)]


def read(
    prompts: Sequence[PromptLine], answer: Callable[[PromptLine], str], counters: Callable[[], Mapping[str, float]]
) -> list[Reading]:
    """Readings, one prompt after the other, each `CANVASES` times.

    `answer`: the text of one canvas; `counters`: the engine's, settled.

    Empty where the engine counts no denoising steps. Raises `ValueError` where an answer took none.
    """
    readings = []
    before = counters().get("denoising_steps")
    if before is None:
        return []
    for prompt in prompts:
        texts = [answer(prompt) for _ in range(CANVASES)]
        after = counters().get("denoising_steps", before)
        if after <= before:
            raise ValueError(f"the engine counted no denoising step for the prompt {prompt.id}")
        readings.append(Reading(prompt=prompt.id, passes=(after - before) / CANVASES, first=first_token(texts[0])))
        before = after
    return readings


def first_token(text: str) -> str | None:
    """The first standard token of a text."""
    ends = standard_token_ends(text)
    return text[: ends[0]] if ends else None


def compare(here: Sequence[Reading], there: Sequence[Reading]) -> Comparison:
    """Readings against a reference's, prompt by prompt. Raises `ValueError` when the prompts are not the same."""
    known = {reading.prompt: reading for reading in there}
    if len(here) < 2 or {reading.prompt for reading in here} != known.keys():
        raise ValueError("the readings are not of the reference's prompts")
    pairs = [(reading, known[reading.prompt]) for reading in here]
    mine = np.array([one.passes for one, _ in pairs])
    other = np.array([two.passes for _, two in pairs])
    reference, apart = float(other.mean()), mine - other
    from scipy import stats  # a second of CPU time that only a comparison is worth

    error = float(apart.std(ddof=1)) / math.sqrt(len(pairs)) * float(stats.t.ppf(0.975, len(pairs) - 1))
    ratio = float(mine.mean()) / reference
    low, high = ratio - error / reference, ratio + error / reference
    verdict: Literal["agrees", "mismatch", "unresolved"] = "agrees"
    if abs(ratio - 1) > APART + 1e-9:
        verdict = "unresolved" if low <= 1 <= high else "mismatch"
    agreement = sum(one.first == two.first for one, two in pairs) / len(pairs)
    return Comparison(float(mine.mean()), reference, ratio, low, high, agreement, verdict)


def verify(readings: Sequence[Reading], reference: Reference | None) -> dict[str, Any]:
    """What is observed of a sampler: `sampler_fingerprint`, `sampler_readings`, and `sampler_note` in words.

    The fingerprint names the reference that it agrees with: runs compare by it, and only with the same one.
    """
    if not readings:
        return {"sampler_fingerprint": UNVERIFIED, "sampler_note": "no pass counters"}
    kept = {"sampler_readings": [[each.prompt, each.passes, each.first] for each in readings]}
    if reference is None:
        return kept | {"sampler_fingerprint": UNVERIFIED, "sampler_note": NO_REFERENCE}
    found = compare(readings, reference.readings)
    if found.verdict == "agrees":
        return kept | {"sampler_fingerprint": f"reference {reference.id}", "sampler_note": found.words()}
    if found.verdict == "unresolved":
        note = f"too close to chance: {found.words()}"
        return kept | {"sampler_fingerprint": UNVERIFIED, "sampler_note": note}
    own = f"{_NOT} {reference.id}: {found.passes:.1f} passes for {found.reference_passes:.1f}"
    return kept | {"sampler_fingerprint": own, "sampler_note": found.words()}


_NOT = "not reference"


def faults(observed: Mapping[str, Any]) -> tuple[str, str]:
    """Out of observed conditions: why the sampler is another than the reference's, and why it could not be verified.

    Both empty where it agrees, or where no fingerprint was taken.
    """
    fingerprint, note = str(observed.get("sampler_fingerprint", "")), str(observed.get("sampler_note", ""))
    return note if fingerprint.startswith(_NOT) else "", note if fingerprint == UNVERIFIED else ""
