"""The plan: which jobs, in which order, at which cost, and what is left out."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
import yaml

from paribus.catalog import Catalog, Plan, Surroundings, resolve
from paribus.catalog.envs import weights_marker
from paribus.catalog.order import interleave
from paribus.conditions import RunPath, SystemName, UsageError, conditions_hash, hash12, run_id

OURS = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden" / "plan.json"


def kinds(plan: Plan) -> list[tuple[str, str, int]]:
    return [(job.kind, SystemName.parse(job.system).decoder, job.start) for job in plan.jobs]


def test_every_candidate_races_and_only_plain_is_measured_before_the_verdict(plan_of):
    plan = plan_of()
    raced = {decoder for kind, decoder, _ in kinds(plan) if kind == "race"}
    measured = {decoder for kind, decoder, _ in kinds(plan) if kind == "speed"}
    assert raced == {"plain", "fast-n4", "fast-n8"}
    assert measured == {"plain"}
    assert [race.scenario for race in plan.races] == ["race-many-long", "race-one-long"]
    assert all(race.not_tried == {"odd": "it needs another build"} for race in plan.races)
    assert plan.waiting == [
        "many-long of the winner of race-many-long for alpha--q8--llamacpp",
        "one-long of the winner of race-one-long for alpha--q8--llamacpp",
    ]


def test_each_verdict_sends_its_own_winner_to_its_own_scenarios(plan_of, decide):
    decide(plan_of(), "race-one-long", "fast-n8")
    decide(plan_of(), "race-many-long", "fast-n4")
    plan = plan_of()
    speed = {
        SystemName.parse(job.system).decoder: {measure.id for measure in job.measures}
        for job in plan.jobs
        if job.kind == "speed"
    }
    assert speed == {"plain": {"one-long", "many-long"}, "fast-n8": {"one-long"}, "fast-n4": {"many-long"}}
    assert plan.waiting == []
    assert all(race.decided for race in plan.races)


def test_starts_to_be_compared_alternate(plan_of, decide):
    for scenario in ("race-one-long", "race-many-long"):
        decide(plan_of(starts=4), scenario, "fast-n4")
    speed = [(decoder, start) for kind, decoder, start in kinds(plan_of(starts=4)) if kind == "speed"]
    a, b = "plain", "fast-n4"
    assert speed == [(a, 1), (b, 1), (b, 2), (a, 2), (a, 3), (b, 3), (b, 4), (a, 4)]


def test_races_come_first_and_priorities_fall(plan_of):
    plan = plan_of()
    order = [job.kind for job in plan.jobs]
    assert order == sorted(order, key=("race", "speed", "quality").index)
    priorities = [job.priority for job in plan.jobs]
    assert priorities == sorted(set(priorities), reverse=True)


@pytest.mark.parametrize(("starts", "systems", "order"), [(2, "AB", "ABBA"), (3, "ABC", "ABCCBAABC"), (1, "AB", "AB")])
def test_every_other_round_runs_backwards(starts, systems, order):
    jobs = [(name, start) for name in systems for start in range(1, starts + 1)]
    placed = interleave(jobs, lambda _: "speed", lambda job: job[0], lambda job: job[1])
    assert "".join(name for name, _ in placed) == order


def test_measures_of_one_launch_configuration_share_a_job(plan_of):
    plan = plan_of()
    speed = next(job for job in plan.jobs if job.kind == "speed")
    assert {measure.id for measure in speed.measures} == {"one-long", "many-long"}
    assert speed.launch == {"poll": 0, "slots": 16}


def test_a_decoder_that_keeps_state_gets_a_server_for_each_scenario(small, plan_of):
    path = small / "systems/alpha.yaml"
    model = yaml.safe_load(path.read_text())
    model["engines"]["llamacpp"]["decoders"]["plain"]["keeps_state"] = True
    path.write_text(yaml.safe_dump(model))
    first = [job for job in plan_of().jobs if job.kind == "speed" and job.start == 1]
    assert [len(job.measures) for job in first] == [1, 1]


def test_a_job_leads_with_its_first_missing_measure_and_needs_nothing_when_done(plan_of, finish, small):
    plan = plan_of()
    job = next(job for job in plan.jobs if job.kind == "speed")
    assert (job.lead, job.done) == (0, False)
    assert job.needs == ["build/envs/llamacpp-0123456789ab.json", weights_marker(Catalog(small).system(job.system))]
    finish(plan, f"{job.measures[0].run}/start-1/manifest.json")
    half = next(j for j in plan_of().jobs if j.kind == "speed")
    assert (half.lead, half.done, half.sentinel) == (1, False, f"{job.measures[1].run}/start-1/manifest.json")
    assert half.job == f"{run_id(job.measures[1].run)}-1"
    assert half.seconds < job.seconds
    finish(plan, f"{job.measures[1].run}/start-1/manifest.json")
    whole = next(j for j in plan_of().jobs if j.kind == "speed")
    assert (whole.lead, whole.done, whole.needs, whole.seconds) == (0, True, [], 0.0)


def test_paths_and_hashes_follow_from_what_is_declared(plan_of):
    for job in plan_of().jobs:
        for measure in job.measures:
            path = RunPath.parse(measure.run)
            hashes = measure.hashes
            assert (
                path.conditions
                == conditions_hash(hashes["system_hash"], hashes["measure_hash"])
                == hashes["conditions"]
            )
            assert path.system == job.system
            assert path.measure == measure.measure == f"{measure.id}.short"
            system = SystemName.parse(job.system)
            assert measure.declared["model"] == system.model
            assert measure.declared["decoder"] == system.decoder


def test_more_starts_continue_a_run_and_other_conditions_make_another(plan_of):
    runs = {job.measures[0].run for job in plan_of().jobs if job.kind == "speed"}
    assert {job.measures[0].run for job in plan_of(starts=5).jobs if job.kind == "speed"} == runs
    assert {job.measures[0].run for job in plan_of(sampling="greedy").jobs if job.kind == "speed"}.isdisjoint(runs)
    repeated = {job.measures[0].run for job in plan_of(repeat=2).jobs if job.kind == "speed"}
    assert repeated == runs | {run.removesuffix(".1") + ".2" for run in runs}


def test_names_of_measures_say_what_is_not_default(plan_of):
    names = {m.measure for job in plan_of(sampling="greedy", scale="full").jobs for m in job.measures}
    assert "one-long.greedy" in names
    names = {m.measure for job in plan_of(sampling="greedy").jobs for m in job.measures}
    assert "one-long.greedy.short" in names


def test_greedy_runs_declare_temperature_zero(plan_of):
    job = plan_of(sampling="greedy").jobs[0]
    assert job.measures[0].declared["sampling"] == {"temperature": 0}
    assert plan_of().jobs[0].measures[0].declared["sampling"] == {"temperature": 0.5}


def test_quality_belongs_to_the_answer_class_and_shares_one_job(plan_of):
    quality = [job for job in plan_of(scale="demo").jobs if job.kind == "quality"]
    assert [SystemName.parse(job.system).decoder for job in quality] == ["plain"]
    assert [m.id for m in quality[0].measures] == ["smoke-code", "smoke-exam"]
    assert quality[0].measures[0].declared["cap"] == 50
    assert quality[0].measures[0].declared["repeats"] == 2


def test_a_quality_run_declares_as_many_requests_at_once_as_its_items_can_fill(small, around, tmp_path):
    (tmp_path / "real.jsonl").write_text("{}\n")
    for scale, at_once in (("demo", 4), ("full", 16)):  # 2 and 8 items, asked twice each; the task allows 16
        plan = resolve(small, "small", {"scale": scale}, dataclasses.replace(around, data=tmp_path))
        (job,) = [job for job in plan.jobs if job.kind == "quality"]
        assert [m.declared["requests_at_once"] for m in job.measures] == [at_once]
        assert job.launch["slots"] == at_once


def test_real_tasks_where_their_data_are_and_stand_ins_never_beside_them(small, around, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/real.jsonl").write_text("{}\n")
    (tmp_path / "data/tau2").mkdir()
    plan = resolve(small, "small", {"scale": "demo"}, dataclasses.replace(around, data=tmp_path / "data"))
    assert {m.id for job in plan.jobs if job.kind == "quality" for m in job.measures} == {"exam"}
    assert [(e.name, e.reason[:28]) for e in plan.excluded] == [("tau2", "it needs its user simulator:")]


def test_what_is_committed_never_holds_stand_ins(plan_of):
    plan = plan_of()
    assert not [job for job in plan.jobs if job.kind == "quality"]
    assert {e.name for e in plan.excluded} == {"exam", "tau2"}


def test_without_a_sandbox_the_code_task_is_left_out_with_the_reason(small, around):
    plan = resolve(small, "small", {"scale": "demo"}, dataclasses.replace(around, sandbox=False))
    assert {m.id for job in plan.jobs if job.kind == "quality" for m in job.measures} == {"smoke-exam"}
    assert ["sandbox" in e.reason for e in plan.excluded if e.name == "smoke-code"] == [True]


def test_what_does_not_fit_is_excluded_with_the_reason(plan_of, small):
    plan = plan_of(systems="*")
    assert [(e.name, e.reason) for e in plan.excluded if "giant" in e.name] == [
        ("giant--q8--llamacpp--plain", "it needs 500 GB and a CPU has 16 GB")
    ]
    assert any(job.system.startswith("beta") for job in plan.jobs)


def test_a_system_without_rivals_is_measured_without_a_race(plan_of):
    plan = plan_of(systems="beta--*")
    assert plan.races == []
    assert {job.kind for job in plan.jobs} == {"speed"}


def test_only_chosen_measures_and_the_races_they_need(plan_of):
    plan = plan_of(measures="one-*")
    assert {m.id for job in plan.jobs for m in job.measures} == {"one-long", "race-one-long"}


def test_runs_wait_for_the_sentinels_of_the_jobs_that_measure_them(plan_of, finish):
    plan = plan_of()
    job = next(job for job in plan.jobs if job.kind == "speed" and job.start == 1)
    finish(plan, f"{job.measures[0].run}/start-1/manifest.json")
    plan = plan_of()
    by_run = {run.run: run for run in plan.runs}
    second = f"{job.measures[1].run}/start-1/manifest.json"
    # Start 1 leads with its second measure now; both runs wait for it, as it is written last.
    assert by_run[job.measures[0].run].sentinels[0] == second
    assert by_run[job.measures[1].run].sentinels[0] == second
    assert by_run[job.measures[0].run].starts == 2


def test_costs_count_only_what_is_open(plan_of, finish, small):
    plan = plan_of()
    assert plan.totals.jobs_done == 0
    assert plan.totals.download_gb == 1.0
    assert plan.totals.hours > sum(job.seconds for job in plan.jobs) / 3600  # the winners' runs are in it
    (small / "build/weights").mkdir(parents=True)
    (small / weights_marker(Catalog(small).system("alpha--q8--llamacpp--plain"))).write_text("{}")
    assert plan_of().totals.download_gb == 0
    for job in plan.jobs:
        for measure in job.measures:
            finish(plan, f"{measure.run}/start-{job.start}/manifest.json")
    done = plan_of()
    assert done.totals.jobs_done == done.totals.jobs == len(plan.jobs)
    assert all(job.needs == [] for job in done.jobs)


def test_demo_results_stay_out_of_git(plan_of):
    assert (plan_of(scale="demo").results, plan_of(scale="demo").committed) == ("build/demo-results", False)
    assert (plan_of().results, plan_of().committed) == ("results", True)
    assert plan_of(results="build/elsewhere").results == "build/elsewhere"


def test_a_private_catalog_stands_beside_ours(small, around, tmp_path):
    private = tmp_path / "private"
    (private / "systems").mkdir(parents=True)
    text = (small / "systems/beta.yaml").read_text().replace("beta", "gamma")
    (private / "systems/gamma.yaml").write_text(text)
    plan = resolve(small, "small", {"catalog": str(private), "systems": "gamma--*"}, around)
    assert {job.system for job in plan.jobs} == {"gamma--q8--llamacpp--plain"}
    assert plan.catalog == str(private)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scal": "demo"}, "no key 'scal'"),
        ({"scale": "huge"}, "no scale 'huge'"),
        ({"starts": 0}, "starts"),
        ({"starts": "many"}, "starts"),
        ({"systems": "nobody--*"}, "names no system"),
        ({"measures": "nothing"}, "names no scenario and no task"),
        ({"sampling": "hot"}, "sampling"),
        ({"results": "../elsewhere"}, "below the repository"),
        ({"results": "."}, "below the repository"),
        ({"catalog": "/nowhere/at/all"}, "no such folder"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(plan_of, settings, words):
    with pytest.raises(UsageError) as caught:
        plan_of(**settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_profile_names_the_known_ones(small, around):
    with pytest.raises(UsageError, match="known: small"):
        resolve(small, "h999", {}, around)


def test_a_broken_verdict_is_named(plan_of, small):
    race = plan_of().races[0]
    (small / race.verdict).parent.mkdir(parents=True)
    for text in ("{", "[]", '{"winner": 3}', "\udcff".encode("utf-8", "surrogateescape")):
        (small / race.verdict).write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(UsageError, match=r"race\.json is not a race's verdict"):
            plan_of()


def test_a_verdict_for_a_decoder_that_is_gone_is_named(plan_of, decide):
    decide(plan_of(), "race-one-long", "odd")
    with pytest.raises(UsageError, match="no candidate any more"):
        plan_of()


def test_another_field_of_candidates_is_another_race(plan_of, small):
    before = plan_of().races[0].verdict
    path = small / "systems/alpha.yaml"
    model = yaml.safe_load(path.read_text())
    model["engines"]["llamacpp"]["decoders"]["fast-n16"] = {"method": "ngram", "acceptance": "strict"}
    path.write_text(yaml.safe_dump(model))
    assert plan_of().races[0].verdict != before


def test_the_golden_plan(plan_of, decide):
    """One whole plan, with one race decided and one open. To renew it after a wanted change: PARIBUS_GOLDEN=write."""
    decide(plan_of(), "race-one-long", "fast-n8")
    plan = json.loads(plan_of().model_dump_json())
    if os.environ.get("PARIBUS_GOLDEN") == "write":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(plan, indent=1) + "\n")
    assert plan == json.loads(GOLDEN.read_text())


def test_resolving_twice_gives_the_same_plan(plan_of):
    assert plan_of() == plan_of()


def test_our_cpu_profile_races_at_least_three_methods_and_measures_four_scenarios():
    around = Surroundings("m-test", {"llamacpp": "0123456789ab"}, sandbox=True, memory_gb=16)
    plan = resolve(OURS, "cpu", {}, around)
    assert plan.scale == "demo"
    assert {race.scenario for race in plan.races} == {"race-c1-long", "race-c16-long"}
    assert all("plain" in race.candidates and len(race.candidates) >= 4 for race in plan.races)
    speed = {m.id for job in plan.jobs if job.kind == "speed" for m in job.measures}
    assert speed == {"c1-short", "c1-long", "c16-short", "c16-long"}
    tasks = {m.id for job in plan.jobs if job.kind == "quality" for m in job.measures}
    assert tasks == {"smoke-aime", "smoke-livecodebench", "smoke-mmlu-pro", "smoke-tau2"}
    # All four scenarios share one launch, hence one server a start.
    assert len([job for job in plan.jobs if job.kind == "speed"]) == 1


def test_hashes_of_declared_conditions_are_those_of_the_types():
    catalog = Catalog(OURS)
    system = catalog.system("smollm2-135m--q4-1--llamacpp--plain")
    around = Surroundings("m-test", {"llamacpp": "0123456789ab"}, sandbox=True, memory_gb=16)
    plan = resolve(OURS, "cpu", {"systems": str(system.name)}, around)
    job = plan.jobs[0]
    assert job.measures[0].hashes["system_hash"] == hash12(system.declared("0123456789ab", job.launch))
    assert job.measures[0].hashes["answer_class"] == system.answer_class_hash("0123456789ab", job.launch)
