"""The whole pipeline on the real engine with the real small model, at the tiny scale: part of `make test`."""

import json
import shutil
import subprocess

import duckdb
import pytest
from real_clone import RealClone

pytestmark = [pytest.mark.tiny, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[RealClone, subprocess.CompletedProcess[str]]:
    clone = RealClone(tmp_path_factory.mktemp("pipeline") / "clone")
    run = clone.run()
    assert run.returncode == 0, run.stdout
    return clone, run


def plan_of(clone: RealClone) -> dict:
    return json.loads((clone.root / "build/plan.json").read_text())


def test_it_ends_with_where_to_look_and_where_the_time_went(finished):
    clone, run = finished
    assert f"Look at:  {(clone.root / 'build/site/index.html').as_uri()}" in run.stdout
    assert "Done in" in run.stdout
    assert "starting servers" in run.stdout
    assert "Traceback" not in run.stdout


def test_every_planned_start_and_run_is_there(finished):
    clone, _ = finished
    plan = plan_of(clone)
    assert plan["waiting"] == []
    for job in plan["jobs"]:
        for measure in job["measures"]:
            manifest = clone.root / plan["results"] / measure["run"] / f"start-{job['start']}" / "manifest.json"
            recorded = json.loads(manifest.read_text())
            assert recorded["hashes"] == measure["hashes"]
            assert recorded["origin"] == "catalog"
            assert recorded["declared"].items() >= measure["declared"].items()
    for run in plan["runs"]:
        folder = clone.root / plan["results"] / run["run"]
        assert len(json.loads((folder / "manifest.json").read_text())["starts"]) == run["starts"]
        assert (folder / "summary.json").exists()


def test_both_races_are_decided_among_plain_and_at_least_three_others(finished):
    clone, _ = finished
    plan = plan_of(clone)
    assert {race["scenario"] for race in plan["races"]} == {"race-c1-long", "race-c16-long"}
    for race in plan["races"]:
        verdict = json.loads((clone.root / race["verdict"]).read_text())
        raced = {candidate["decoder"] for candidate in verdict["candidates"]}
        assert raced == set(race["candidates"])
        assert "plain" in raced
        assert len(raced) >= 4
        assert verdict["winner"] in raced


def test_plain_and_the_winners_are_measured_in_all_four_scenarios(finished):
    clone, _ = finished
    plan = plan_of(clone)
    winners = {}
    for race in plan["races"]:
        winners[race["scenario"]] = json.loads((clone.root / race["verdict"]).read_text())["winner"]
    measured = {
        (job["system"].split("--")[3], measure["id"])
        for job in plan["jobs"]
        if job["kind"] == "speed"
        for measure in job["measures"]
    }
    expected = {("plain", s) for s in ("c1-short", "c1-long", "c16-short", "c16-long")}
    expected |= {(winners["race-c1-long"], s) for s in ("c1-short", "c1-long")}
    expected |= {(winners["race-c16-long"], s) for s in ("c16-short", "c16-long")}
    assert measured == expected


def test_every_run_holds_up_when_it_is_recomputed(finished):
    clone, _ = finished
    plan = plan_of(clone)
    folders = [f"{plan['results']}/{run['run']}" for run in plan["runs"]]
    checked = clone.call("paribus", "check", *folders)
    assert checked.returncode == 0, checked.stdout


def test_the_database_holds_every_run(finished):
    clone, _ = finished
    with duckdb.connect(str(clone.root / "build/paribus.duckdb"), read_only=True) as database:
        found = {row[0] for row in database.execute("select run from runs").fetchall()}
    assert found >= {run["run"] for run in plan_of(clone)["runs"]}


def test_the_site_names_the_card_the_model_and_every_run(finished):
    clone, _ = finished
    site = clone.root / "build/site"
    front = (site / "index.html").read_text()
    assert "SmolLM2" in front
    pages = {path.name for path in site.rglob("*.html")}
    assert len(pages) > 5


def test_without_data_the_stand_ins_are_answered_and_scored(finished):
    clone, _ = finished
    quality = [run for run in plan_of(clone)["runs"] if run["kind"] == "quality"]
    families = {run["measure"].removeprefix("smoke-").split(".")[0] for run in quality}
    assert families >= {"aime", "mmlu-pro", "tau2"}
    assert ("livecodebench" in families) == (shutil.which("bwrap") is not None)
    for run in quality:
        score = json.loads((clone.root / "build/demo-results" / run["run"] / "start-1/score.json").read_text())
        assert score["stand_in"] is True
        assert score["items"] == 2


def test_nothing_is_left_running(finished):
    clone, _ = finished
    assert clone.processes() == []


def test_a_second_time_there_is_nothing_to_do(finished):
    clone, _ = finished
    before = clone.manifests()
    again = clone.run()
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout
    assert clone.manifests() == before
