"""What the rules get from the plan, and which profiles are refused."""

import json
from types import SimpleNamespace

import pytest

from paribus.catalog.workflow import Workflow, check_profile, is_running
from paribus.conditions import RunPath, UsageError


def wildcards(run: str, start: int = 1) -> SimpleNamespace:
    path = RunPath.parse(run)
    conditions = f"{path.conditions}.{path.n}"
    return SimpleNamespace(
        hardware=path.hardware, machine=path.machine, system=path.system, measure=path.measure,
        conditions=conditions, start=str(start),
    )  # fmt: skip


@pytest.fixture
def flow(small, plan_of):
    written = []
    view = Workflow(small, plan_of(), plan_of, lambda path, plan: written.append((path, plan)))
    view.written = written
    return view


def test_a_job_gets_its_needs_its_id_and_its_place(flow):
    job = flow.plan.jobs[0]
    at = wildcards(job.measures[job.lead].run, job.start)
    assert flow.needs(at) == job.needs != []
    assert flow.job_of(at) == job.job
    assert flow.order(at) == job.priority
    assert flow.says(at) == "race-many-long, race-one-long"


def test_a_manifest_that_no_job_leads_with_needs_nothing(flow):
    job = next(job for job in flow.plan.jobs if len(job.measures) > 1)
    assert flow.needs(wildcards(job.measures[1].run, job.start)) == []


def test_sealing_waits_for_all_starts_until_the_run_is_sealed_with_all_of_them(flow, finish):
    run = flow.plan.runs[0]
    at = wildcards(run.run)
    assert flow.starts(at) == [f"results/{sentinel}" for sentinel in run.sentinels]
    finish(flow.plan, f"{run.run}/manifest.json", json.dumps({"starts": [{}] * (run.starts - 1)}))
    assert flow.starts(at) != []
    finish(flow.plan, f"{run.run}/manifest.json", json.dumps({"starts": [{}] * run.starts}))
    assert flow.starts(at) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"starts": 3}', "null"])
def test_a_broken_run_manifest_counts_as_not_sealed(flow, finish, text):
    run = flow.plan.runs[0]
    finish(flow.plan, f"{run.run}/manifest.json", text)
    assert flow.starts(wildcards(run.run)) != []


def test_a_quality_run_is_sealed_after_scoring(small, plan_of):
    view = Workflow(small, plan_of(scale="demo"), plan_of, lambda *_: None)
    run = next(run for run in view.plan.runs if run.kind == "quality")
    assert view.starts(wildcards(run.run)) == [f"build/demo-results/{run.run}/start-1/score.json"]
    assert view.answers(wildcards(run.run)) == [f"build/demo-results/{run.sentinels[0]}"]


def test_a_race_waits_for_its_candidates_sealed_runs(flow):
    race = flow.plan.races[0]
    folder = race.verdict.removeprefix("results/").removesuffix("/race.json")
    hardware, machine, system, measure, conditions = folder.split("/")
    at = SimpleNamespace(hardware=hardware, machine=machine, system=system, measure=measure, conditions=conditions)
    assert flow.candidates(at) == [f"results/{run}/manifest.json" for run in race.runs]
    assert flow.open_races()[0] == vars(at)


def test_after_a_verdict_the_plan_is_resolved_again_in_place(flow, decide):
    asked = []
    flow.checkpoints = SimpleNamespace(race=SimpleNamespace(get=lambda **race: asked.append(race)))
    flow.start()
    before = set(flow.sealed())
    for race in ("race-one-long", "race-many-long"):
        decide(flow.plan, race, "fast-n4")
    after = set(flow.sealed_after_races(None))
    assert len(asked) == 2
    assert before < after
    assert len(flow.written) == 2  # once at the start, once after the races
    flow.sealed_after_races(None)
    assert len(asked) == 2
    new = next(job for job in flow.plan.jobs if job.kind == "speed" and "fast-n4" in job.system)
    assert flow.needs(wildcards(new.measures[new.lead].run, new.start)) == new.needs


def test_the_site_is_part_of_the_default_target_only_for_what_is_not_committed(flow, small, plan_of):
    assert flow.shown() == []
    assert Workflow(small, plan_of(scale="demo"), plan_of, lambda *_: None).shown() == ["build/site/index.html"]


def test_a_private_catalog_is_named_to_whatever_fetches(small, plan_of):
    assert Workflow(small, plan_of(), plan_of, lambda *_: None).private == ""
    plan = plan_of().model_copy(update={"catalog": "/my own/catalog"})
    assert Workflow(small, plan, plan_of, lambda *_: None).private == " --catalog '/my own/catalog'"


def test_one_workflow_a_clone(flow, small, plan_of):
    assert not is_running(small)
    flow.start()
    assert is_running(small)
    with pytest.raises(UsageError, match="another Snakemake is running"):
        Workflow(small, plan_of(), plan_of, lambda *_: None).start()


def test_a_profile_must_be_set_and_of_this_clone(small, tmp_path):
    assert check_profile(small, None, {"hardware": "small"}, [small / "hardware/small/hardware.yaml"]) == "small"
    with pytest.raises(UsageError, match=r"no hardware profile is set.*small"):
        check_profile(small, None, {}, [])
    other = tmp_path / "other/hardware/small"
    other.mkdir(parents=True)
    (other / "hardware.yaml").write_text("")
    with pytest.raises(UsageError, match="another clone"):
        check_profile(small, None, {"hardware": "small"}, [other / "hardware.yaml"])
    assert check_profile(small, tmp_path / "other", {"hardware": "small"}, [other / "hardware.yaml"]) == "small"


def test_a_link_to_this_clones_profile_is_accepted(small, tmp_path):
    link = tmp_path / "config"
    link.symlink_to(small / "hardware")
    assert check_profile(small, None, {"hardware": "small"}, [link / "small/hardware.yaml"]) == "small"
