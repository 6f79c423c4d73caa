"""How published claims stand beside what was measured: a row a claim for the table `claims`.

A claim is *replicated* when a run of its own scenario, in which every disclosed condition matches and nothing material
was left undisclosed, reaches its number; *approximated* when one reaches it under conditions that differ or weren't
disclosed; *not reproduced* when a run misses it. Never "false": a run says what it found under its own conditions.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from paribus.catalog import matches
from paribus.catalog.claims import Claim, Number
from paribus.results.rows import TableRow

Standing = Literal["not measured", "replicated", "approximated", "not reproduced"]

TOLERANCE = 0.05
"""A number is reached when our interval comes within 5% of it: the bound beyond which two runs of ours would be
disputed (PROTOCOL section 7)."""

_GLOB = re.compile(r"[a-z0-9.*-]+")
_MILLISECONDS = {"s": 1000.0, "ms": 1.0}


@dataclass(frozen=True)
class Measured:
    """What a run of ours found: value and 95% interval in the claim's unit (the value itself where there is none)."""

    run_id: str
    value: float
    low: float
    high: float


def reached(claimed: Number, measured: Measured) -> bool:
    """Whether our interval meets what was claimed, within the tolerance. An open bound is met by anything beyond it."""
    low = measured.low if claimed.low is None else claimed.low * (1 - TOLERANCE)
    high = measured.high if claimed.high is None else claimed.high * (1 + TOLERANCE)
    return measured.low <= high and measured.high >= low


def differences(claim: Claim, run: Mapping[str, object]) -> list[str]:
    """What of the claim's conditions a run doesn't meet, or can't be known to: in words, the undisclosed ones first.

    `run`: a row of the table `runs`, of the claim's scenario. Prompts, answers and settings are the scenario's and the
    system's by the claim's file; card, precision, requests and engine are looked at here.
    """
    found = [f"not disclosed: {what}" for what in claim.not_disclosed]
    told = claim.disclosed
    if not claim.same_metric:
        found.append(f"another metric: theirs is {claim.metric}")
    if claim.hardware != run["hardware"] or (told.card or "").startswith(("2 x", "4 x", "8 x")):
        found.append(f"card: theirs is {told.card or 'not disclosed'}")
    if told.precision is not None and _plain(str(run["precision"])) not in _plain(told.precision):
        found.append(f"precision: theirs is {told.precision}")
    declared = run["declared"]
    at_once = declared.get("requests_at_once") if isinstance(declared, Mapping) else None
    if told.requests_at_once is not None and told.requests_at_once != str(at_once):
        found.append(f"requests at once: theirs is {told.requests_at_once}")
    if told.engine is not None and _plain(str(run["engine"])) not in _plain(told.engine):
        found.append(f"engine: theirs is {told.engine}")
    if faults := _faults(run):
        found.append(f"what is wrong with our run: {', '.join(faults)}")
    return found


def _faults(run: Mapping[str, object]) -> list[str]:
    """The flags that say that something is wrong with a run. A synthetic load is what the scenario is for."""
    summary = run.get("summary")
    flags = summary.get("flags", ()) if isinstance(summary, Mapping) else ()
    return [str(one["id"]) for one in flags if one["severity"] == "invalid" and one["id"] != "synthetic"]


def standing(claim: Claim, measured: Measured | None, differs: Sequence[str]) -> Standing:
    """How a claim stands, given what a run under its own conditions found and what of them differed."""
    if measured is None or not claim.numbers:
        return "not measured"
    if not reached(claim.numbers[0], measured):
        return "not reproduced"
    return "approximated" if differs else "replicated"


def claim_rows(claims: Iterable[Claim], runs: Sequence[TableRow], figures: Sequence[TableRow]) -> list[TableRow]:
    """Every claim with how it stands: under its own conditions, and under ours on the same card."""
    values = {(row["run_id"], row["metric"]): row for row in figures if row.get("other_run_id") is None}
    ours = [run for run in runs if run["kind"] == "speed" and not run["demo"] and run["superseded_by"] is None]
    return [_row(claim, ours, values) for claim in claims]


Values = Mapping[tuple[object, object], TableRow]


def _row(claim: Claim, runs: Sequence[TableRow], values: Values) -> TableRow:
    candidates = [run for run in runs if claim.hardware in (None, run["hardware"]) and _meant(claim, run)]
    own = [run for run in candidates if run["scenario_or_task"] == claim.scenario]
    replica, differs = _closest(claim, own, values)
    # A claim that names no card of ours has no run "on the same card".
    same_card = [run for run in candidates if run["hardware"] == claim.hardware]
    under_ours = [run for run in same_card if run["ranked"] and run["scenario_or_task"] == "c1-long"]
    beside, _ = _closest(claim, under_ours, values)
    return {
        "claim": claim.claim,
        "said_by": claim.by,
        "said_on": claim.date,
        "system": claim.system,
        "hardware": claim.hardware,
        "about": claim.about,
        "metric": claim.metric,
        "said": "; ".join(number.text for number in claim.numbers),
        "against": "; ".join(number.text for number in claim.against),
        "low": claim.numbers[0].low if claim.numbers else None,
        "high": claim.numbers[0].high if claim.numbers else None,
        "unit": claim.numbers[0].unit if claim.numbers else None,
        "synthetic": claim.synthetic,
        "confirmed": claim.confirmed.status,
        "scenario": claim.scenario,
        "standing": standing(claim, replica, differs),
        "differs": differs,
        "replica_run_id": replica.run_id if replica else None,
        "replica_value": replica.value if replica else None,
        "measured_run_id": beside.run_id if beside else None,
        "measured_value": beside.value if beside else None,
        "file": claim.model_dump(mode="json"),
    }


def command_of(hardware: str | None, ours: Iterable[str], scenario: str | None) -> str | None:
    """The command that measures what a claim is about; None where no card or no system of ours is meant.

    It is shown to people, who paste it into a shell: globs of anything but the characters of our names are left out.
    """
    globs = [glob for glob in ours if _GLOB.fullmatch(glob)]
    if hardware is None or not globs:
        return None
    settings = [f"systems={','.join(globs)}", *([f"measures={scenario}"] if scenario else [])]
    return shlex.join(["snakemake", "--profile", hardware, "--config", *settings])


def _meant(claim: Claim, run: TableRow) -> bool:
    return any(matches(str(run["system"]), glob) for glob in claim.ours)


def _closest(claim: Claim, runs: Sequence[TableRow], values: Values) -> tuple[Measured | None, list[str]]:
    """The run that meets most of the claim's conditions; of several, the first by id."""
    found = []
    for run in runs:
        row = values.get((run["run_id"], claim.measured_as))
        if row is not None and row["value"] is not None:
            found.append((differences(claim, run), _measured(claim, row)))
    best = min(found, key=lambda one: (len(one[0]), one[1].run_id), default=None)
    return (best[1], best[0]) if best else (None, [])


def _measured(claim: Claim, figure: TableRow) -> Measured:
    unit = claim.numbers[0].unit if claim.numbers else ""
    scale = 1 / _MILLISECONDS[unit] if figure["unit"] == "ms" and unit in _MILLISECONDS else 1.0
    value = float(figure["value"]) * scale
    low, high = (value if figure[name] is None else float(figure[name]) * scale for name in ("low", "high"))
    return Measured(str(figure["run_id"]), value, low, high)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
