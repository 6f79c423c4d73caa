"""A dialogue task in the plan: its user simulator, its harness's environment, domains that don't fit a context."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.catalog import Plan, Surroundings, resolve
from paribus.catalog.envs import environment_marker

HARNESS = "build/envs/talks-fedcba987654.json"


@pytest.fixture
def dialogues(small: Path) -> Path:
    """The small catalog with a task that needs a simulator and a harness; the models' context is 4,096."""
    path = small / "tasks/quality/tau2.yaml"
    task = yaml.safe_load(path.read_text())
    task["settings"] |= {"environment": "talks", "prompt_tokens": {"short": 1_000, "long": 4_000}, "room": 500}
    path.write_text(yaml.safe_dump(task))
    return small


def plan_with(root: Path, around: Surroundings, simulator: str | None, **settings: Any) -> Plan:
    builds = {**around.builds, "harness:talks": "fedcba987654"}
    return resolve(root, "small", settings, dataclasses.replace(around, builds=builds, user_simulator=simulator))


def talks(plan: Plan) -> list[Any]:
    return [(job, m) for job in plan.jobs for m in job.measures if m.id == "tau2"]


def test_with_a_simulator_it_is_planned_and_needs_its_harness(dialogues: Path, around: Surroundings) -> None:
    assert environment_marker("talks", "fedcba987654") == HARNESS
    [(job, measure)] = talks(plan_with(dialogues, around, "http://sim:8000/v1"))
    assert HARNESS in job.needs
    assert measure.declared["user_simulator"].startswith("org/user@000000000000")


def test_another_simulator_is_another_run(dialogues: Path, around: Surroundings) -> None:
    [(_, pinned)] = talks(plan_with(dialogues, around, "http://sim:8000/v1"))
    [(_, elsewhere)] = talks(plan_with(dialogues, around, "http://other:9000/v1"))
    [(_, scripted)] = talks(plan_with(dialogues, around, "scripted"))
    assert pinned.run == elsewhere.run != scripted.run
    assert scripted.declared["user_simulator"] == "scripted"


def test_without_one_it_is_left_out_with_the_reason(dialogues: Path, around: Surroundings) -> None:
    plan = plan_with(dialogues, around, None)
    assert talks(plan) == []
    assert "PARIBUS_USER_SIM_URL" in next(e.reason for e in plan.excluded if e.name == "tau2")


def test_a_demo_without_data_keeps_to_the_stand_ins(dialogues: Path, around: Surroundings) -> None:
    plan = plan_with(dialogues, around, "scripted", scale="demo")
    assert {m.id for job in plan.jobs if job.kind == "quality" for m in job.measures} == {"smoke-exam", "smoke-code"}
    assert not [need for job in plan.jobs for need in job.needs if "talks" in need]


def test_a_domain_that_does_not_fit_is_said_and_the_rest_is_planned(dialogues: Path, around: Surroundings) -> None:
    plan = plan_with(dialogues, around, "scripted")
    assert len(talks(plan)) == 1
    [said] = [e for e in plan.excluded if e.name.startswith("tau2, ")]
    assert said.reason.startswith("long: its policy and tools take about 4,000 tokens")
    assert "holds 4,096" in said.reason


def test_where_no_domain_fits_the_task_is_left_out(dialogues: Path, around: Surroundings) -> None:
    path = dialogues / "tasks/quality/tau2.yaml"
    path.write_text(path.read_text().replace("1000", "3700"))
    plan = plan_with(dialogues, around, "scripted")
    assert talks(plan) == []
    assert len([e for e in plan.excluded if e.name.startswith("tau2, ")]) == 2


def test_a_context_that_is_too_short_for_the_task_is_widened_up_to_the_model_s(
    dialogues: Path, around: Surroundings
) -> None:
    model = dialogues / "systems/alpha.yaml"
    model.write_text(model.read_text().replace("poll: 0", "context_per_slot: 1024"))
    path = dialogues / "tasks/quality/tau2.yaml"
    path.write_text(path.read_text().replace("  environment: talks", "  context: 32768\n  environment: talks"))
    plan = plan_with(dialogues, around, "scripted", measures="tau2,one-long")
    assert [m.declared["launch"]["context_per_slot"] for _, m in talks(plan)] == [4096]
    others = {m.declared["launch"]["context_per_slot"] for j in plan.jobs for m in j.measures if m.id != "tau2"}
    assert others == {1024}
