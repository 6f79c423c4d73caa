"""What every profile plans, on a machine without its card and with races that are recorded as decided.

Each golden file is small: servers to start, what is measured of each system, what is left out and why. After a wanted
change of the catalog they are renewed with

    PARIBUS_GOLDEN=write pytest tests/workflow/test_golden_plans.py

and looked at as a diff: it is what contributors will run.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.catalog import Catalog, Plan, Race, Surroundings, resolve

OURS = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
PROFILES = sorted(path.parent.name for path in OURS.glob("hardware/*/hardware.yaml"))
EXPECTED = {
    "h100", "h200", "b200", "gb300", "dgx-spark", "dgx-station", "rtx-5090", "rtx-4090", "rtx-6000-pro", "rtx-5070-ti",
    "a100", "m4-pro", "m3-max", "hosted", "any", "cpu",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Our catalog with results of its own."""
    for name in ("systems", "hardware", "tasks", "envs", "claims", "pairs.yaml"):
        (tmp_path / name).symlink_to(OURS / name)
    return tmp_path


def around(root: Path) -> Surroundings:
    """The same on every machine: engines that have a lock, under one build id; the hub, a sandbox, no data, no card."""
    seen = Surroundings.observe(Catalog(root), "m-golden")
    builds = {name: "0" * 12 for name in seen.builds if not name.startswith("program:")}
    return replace(seen, builds=builds, data=None, hub=True, sandbox=True, memory_gb=16, user_simulator=None)


def decide(root: Path, race: Race) -> None:
    """Record a race as decided: the last candidate wins."""
    verdict = {
        "stack": race.stack, "scenario": race.scenario, "measure": race.measure, "metric": "time_to_k", "unit": "x",
        "candidates": [{"decoder": d, "run": r, "value": 1.0} for d, r in zip(race.candidates, race.runs, strict=True)],
        "winner": race.candidates[-1], "plain_is_faster": False, "not_tried": race.not_tried, "runs": race.runs,
        "decided_at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    path = root / race.verdict
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(verdict))


def planned(root: Path, profile: str) -> Plan:
    """The plan of a profile once its races are decided."""
    here = around(root)
    plan = resolve(root, profile, {}, here)
    for race in plan.races:
        decide(root, race)
    return resolve(root, profile, {}, here)


def summary(plan: Plan) -> dict[str, Any]:
    """A plan in so few lines that a person reads them."""
    measures: dict[str, dict[str, list[str]]] = {}
    for job in plan.jobs:
        told = measures.setdefault(job.system, {}).setdefault(job.kind, [])
        told += [name for m in job.measures if (name := m.measure) not in told]
    return {
        "profile": plan.hardware,
        "scale": plan.scale,
        "servers": dict(sorted(Counter(job.kind for job in plan.jobs).items())),
        "races": sorted(f"{race.stack}, {race.scenario}: {' '.join(race.candidates)}" for race in plan.races),
        "systems": {
            system: "; ".join(f"{kind}: {' '.join(names)}" for kind, names in told.items())
            for system, told in sorted(measures.items())
        },
        "excluded": sorted(f"{item.name}: {item.reason}" for item in plan.excluded),
        "waiting": plan.waiting,
    }


def test_there_is_a_profile_for_every_card():
    assert set(PROFILES) >= EXPECTED


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_plans_what_its_golden_file_says(root, profile):
    made = summary(planned(root, profile))
    path = GOLDEN / f"{profile}.json"
    if os.environ.get("PARIBUS_GOLDEN") == "write":
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert made == json.loads(path.read_text(encoding="utf-8"))
    assert made["waiting"] == []


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.json")} == {"plan", *PROFILES}


def test_no_card_plans_what_it_cannot_multiply():
    """NVFP4 needs Blackwell; the A100 has no FP8: said by its golden file, not only by the plan."""
    for profile in PROFILES:
        told = json.loads((GOLDEN / f"{profile}.json").read_text(encoding="utf-8"))
        precisions = {name.split("--")[1] for name in told["systems"]}
        if profile in ("h100", "h200", "a100", "rtx-4090", "m4-pro", "m3-max", "cpu"):
            assert not any("nvfp4" in precision for precision in precisions), profile
        if profile == "a100":
            assert not any(precision.startswith("fp8") for precision in precisions)
