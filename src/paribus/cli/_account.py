"""The account that a workflow ends with: where the time went and where to look."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paribus.catalog import Job, Plan
from paribus.cli._planning import duration
from paribus.conditions import Manifest


@dataclass
class Spent:
    """Seconds by phase."""

    starting: float = 0.0
    warming_up: float = 0.0
    measuring: float = 0.0

    @property
    def known(self) -> float:
        """Seconds that manifests account for."""
        return self.starting + self.warming_up + self.measuring


def spent(root: Path, plan: Plan, since: float) -> Spent:
    """Where the time of all jobs went that ended after `since`, from their manifests.

    The measures of a job share one server: its start counts once.
    """
    total = Spent()
    for job in plan.jobs:
        manifests = [m for m in _manifests(root / plan.results, job) if _ended(m) >= since]
        total.starting += max((m.timings.engine_start for m in manifests), default=0.0)
        total.warming_up += sum(m.timings.warm_up for m in manifests)
        total.measuring += sum(m.timings.measuring for m in manifests)
    return total


LOST = {"not_started": "Did not start", "died": "Died while it was measured"}
"""Observed conditions of starts that raced and had no server, or lost it."""


def lost(root: Path, plan: Plan, since: float) -> list[str]:
    """One line for each job that ended after `since` and had, or kept, no server: which, why, which log says more."""
    lines = []
    for job in plan.jobs:
        ended = [m.observed for m in _manifests(root / plan.results, job) if _ended(m) >= since]
        told = next(((what, each[name]) for name, what in LOST.items() for each in ended if each.get(name)), None)
        if told is None:
            continue
        logs = [Path("build/logs") / plan.results / m.run / f"start-{job.start}.log" for m in job.measures]
        log = next((f"; how to try it again: {path}" for path in logs if (root / path).is_file()), "")
        what, reason = told[0], str(told[1]).rstrip(".")
        lines.append(f"{what}, and is left out of its race: {job.system}, start {job.start}: {reason}{log}.")
    return lines


def _manifests(results: Path, job: Job) -> list[Manifest]:
    found = []
    for measure in job.measures:
        path = results / measure.run / f"start-{job.start}" / "manifest.json"
        if path.is_file():
            found.append(Manifest.model_validate(json.loads(path.read_bytes())))
    return found


def _ended(manifest: Manifest) -> float:
    return datetime.fromisoformat(manifest.ended_at).timestamp()


def account(root: Path, plan: Plan, since: float, now: float) -> str:
    """What was done since `since`, where the time went, what was left out, where to look and what to type next."""
    time_spent, wall = spent(root, plan, since), max(now - since, 1e-9)
    rest = max(wall - time_spent.known, 0.0)
    parts = (
        ("starting servers", time_spent.starting),
        ("warming up", time_spent.warming_up),
        ("measuring", time_spent.measuring),
        ("the rest", rest),
    )
    where = ", ".join(f"{name} {duration(seconds)} ({seconds / wall:.0%})" for name, seconds in parts)
    lines = ["", f"Done in {duration(wall)}: {where}."]
    lines += lost(root, plan, since)
    lines += [f"Left out: {item.name}: {item.reason}." for item in plan.excluded]
    lines.append(f"Results: {plan.results}/{plan.hardware}/{plan.machine}")
    site = root / "build" / "site" / "index.html"
    if not plan.committed and site.is_file():
        lines.append(f"Look at:  {site.as_uri()}")
    lines.append(f"Next:     {_next(plan)}")
    return "\n".join(lines)


def _next(plan: Plan) -> str:
    races = "paribus show tuning  (how the races went)" if plan.races else "paribus status"
    if plan.committed:
        site = f"snakemake --profile {plan.hardware} site  (look at the results)"
        return f"{races}; {site}; then a pull request with {plan.results}/"
    return f"{races}; paribus compare --help  (two runs, like with like)"


def failed_log(root: Path, since: float) -> Path | None:
    """The log that was written last since `since`: a failed step's, as one step runs at a time.

    Engines' own logs don't count: the step's log holds what matters of them.
    """
    logs = [path for path in (root / "build" / "logs").rglob("*.log") if not path.name.endswith(".engine.log")]
    recent = [(path.stat().st_mtime, path) for path in logs if path.stat().st_mtime >= since]
    return max(recent)[1] if recent else None
