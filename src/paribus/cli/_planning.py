"""Plans on disk and in words: shared by the commands that show a plan and by the Snakefile."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from paribus.catalog import Job, Plan
from paribus.catalog.faults import one_sentence
from paribus.conditions import UsageError
from paribus.machine import write_atomic


def write_plan(path: Path, plan: Plan) -> None:
    """`build/plan.json`: the plan as JSON, whole or not at all."""
    write_atomic(path, (plan.model_dump_json(indent=1) + "\n").encode())


def read_plan(path: Path) -> Plan:
    """The plan that a workflow put on disk."""
    try:
        return Plan.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise UsageError(f"there is no plan in {path}: `paribus plan --profile NAME` makes one") from error
    except ValidationError as error:
        raise UsageError(f"{path} is not a plan of this version ({one_sentence(error)}): make it again") from error
    except ValueError as error:
        raise UsageError(f"{path} is not a plan: make it again with `paribus plan --profile NAME`") from error


def root_of(plan_file: Path) -> Path:
    """The repository that a plan's file lies in: above `build/`, or else the file's own folder."""
    folder = plan_file.resolve().parent
    return folder.parent if folder.name == "build" else folder


def as_it_stands(root: Path, plan: Plan) -> Plan:
    """A plan from disk with what has been measured and decided since it was made."""

    def done(job: Job) -> bool:
        starts = (root / plan.results / m.run / f"start-{job.start}" / "manifest.json" for m in job.measures)
        return all(path.exists() for path in starts)

    jobs = [job.model_copy(update={"done": done(job)}) for job in plan.jobs]
    races = [race.model_copy(update={"decided": (root / race.verdict).exists()}) for race in plan.races]
    # What waits for a race counts in the plan's hours and is no job yet: only what was done since is taken off.
    since = sum(job.seconds for job, before in zip(jobs, plan.jobs, strict=True) if job.done and not before.done)
    hours = max(0.0, plan.totals.hours - since / 3600)
    totals = plan.totals.model_copy(update={"jobs_done": sum(job.done for job in jobs), "hours": hours})
    return plan.model_copy(update={"jobs": jobs, "races": races, "totals": totals})


def duration(seconds: float) -> str:
    """A duration as people say it: `40 s`, `12 min`, `7.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def announcement(plan: Plan) -> str:
    """What a plan will do and cost, what it leaves out and what it can't know yet: a few lines."""
    totals = plan.totals
    to_do = totals.jobs - totals.jobs_done
    head = f"Paribus, {plan.hardware}, scale {plan.scale}: "
    if to_do:
        cost = f"{totals.download_gb:.2f} GB to fetch, {totals.disk_gb:.2f} GB of disk"
        head += f"{to_do} server starts to measure ({totals.jobs_done} done), {duration(totals.hours * 3600)}, {cost}"
    elif not totals.jobs:
        head += "nothing to measure, no server start is planned"
    else:
        head += f"all {totals.jobs} server starts are measured"
    lines = [head]
    if to_do and totals.energy_kwh is not None:
        lines.append(
            f"  energy: at most {totals.energy_kwh:.1f} kWh for the card "
            f"(the hours at its default power limit of {totals.power_limit_w:g} W; an upper bound, not a measurement)"
        )
    lines += [f"  waits for a race: {text}" for text in plan.waiting]
    parts = {m.measure for job in plan.jobs for m in job.measures if m.measure.startswith(f"{m.id}.partial-")}
    lines += [f"  only a part of its items is here, so that it meets no whole: {name}" for name in sorted(parts)]
    if to_do and totals.unknown_sizes:
        lines.append(f"  size not known, not counted: {', '.join(totals.unknown_sizes)}")
    lines += [f"  left out: {item.name}: {item.reason}" for item in plan.excluded]
    return "\n".join(lines)
