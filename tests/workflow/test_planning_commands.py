"""`paribus plan`, `status`, `doctor` and `show`, and the account that a workflow ends with."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from paribus.catalog import Card, Catalog, HardwareFile
from paribus.catalog.configuration import open_catalog, read_overrides
from paribus.catalog.reading import read_yaml
from paribus.catalog.workflow import Workflow
from paribus.cli._account import account, failed_log, spent
from paribus.cli._launches import check_launches
from paribus.cli._options import read_settings, resolve_here
from paribus.cli._planning import announcement, as_it_stands, duration, read_plan, write_plan
from paribus.cli.doctor import examine
from paribus.cli.status import failure, overview
from paribus.conditions import UsageError
from paribus.machine.proof import prove

OURS = Path(__file__).resolve().parents[2]


def paribus(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PARIBUS_")}
    environment = {**kept, "PARIBUS_MACHINE": "m-test", "HF_HUB_OFFLINE": "1", **more}
    command = [sys.executable, "-c", "from paribus.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def manifest(path: str, start: int, ended: str, **timings: float) -> str:
    return json.dumps(
        {
            "schema": 1, "kind": "speed", "path": path, "start": start, "started_at": ended, "ended_at": ended,
            "origin": "catalog", "declared": {}, "observed": {}, "hashes": {}, "versions": {}, "timings": timings,
            "files": [], "contributor": "test",
        }
    )  # fmt: skip


def test_the_announcement_says_cost_waiting_and_what_is_left_out(plan_of):
    text = announcement(plan_of(systems="alpha--*,giant--*"))
    assert "server starts to measure (0 done)" in text
    assert "1.00 GB to fetch" in text
    assert "waits for a race: one-long of the winner of race-one-long" in text
    assert "left out: giant--q8--llamacpp--plain: it needs 500 GB" in text


def test_a_plan_reads_the_catalog_once(small, monkeypatch):
    read = []

    def counted(path, kind):
        read.append(path.relative_to(small).as_posix())
        return read_yaml(path, kind)

    monkeypatch.setattr("paribus.catalog.load.read_yaml", counted)
    assert resolve_here(small, "small", {}, check=True).jobs
    shared = [name for name in read if not name.startswith("hardware/")]
    assert "systems/alpha.yaml" in shared
    assert sorted(shared) == sorted(set(shared))


def test_a_plan_comes_back_from_disk(plan_of, tmp_path):
    plan = plan_of()
    write_plan(tmp_path / "build/plan.json", plan)
    assert read_plan(tmp_path / "build/plan.json") == plan


@pytest.mark.parametrize("text", [None, "", "{", "{}", "[]", '{"schema_version": 2}'])
def test_a_missing_or_broken_plan_says_how_to_make_one(tmp_path, text):
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=r"plan\.json"):
        read_plan(path)


def test_what_was_measured_since_counts_as_done(plan_of, finish, decide, small):
    plan = plan_of()
    job = plan.jobs[0]
    finish(plan, f"{job.measures[0].run}/start-{job.start}/manifest.json")
    assert as_it_stands(small, plan).totals.jobs_done == 0
    for measure in job.measures:
        finish(plan, f"{measure.run}/start-{job.start}/manifest.json")
    decide(plan, "race-one-long", "fast-n4")
    now = as_it_stands(small, plan)
    assert now.totals.jobs_done == 1
    assert now.totals.hours == pytest.approx(plan.totals.hours - job.seconds / 3600), "what waits for a race stays"
    assert as_it_stands(small, now).totals.hours == now.totals.hours
    assert [race.decided for race in now.races] == [False, True]


def test_the_account_counts_an_engines_start_once_and_only_what_is_new(plan_of, finish, small):
    plan = plan_of()
    job = plan.jobs[0]
    new, old = "2026-01-01T00:01:00+00:00", "2025-01-01T00:00:00+00:00"
    for number, measure in enumerate(job.measures):
        path = f"{measure.run}/start-1/manifest.json"
        finish(plan, path, manifest(path, 1, new, engine_start=5.0 * (number == 0), warm_up=2.0, measuring=10.0))
    other = plan.jobs[1]
    path = f"{other.measures[0].run}/start-{other.start}/manifest.json"
    finish(plan, path, manifest(path, other.start, old, engine_start=100.0, measuring=100.0))
    since = 1767225600.0  # 2026-01-01T00:00:00Z
    total = spent(small, plan, since)
    assert (total.starting, total.warming_up, total.measuring) == (5.0, 4.0, 20.0)
    text = account(small, plan, since, since + 58)
    assert (
        "Done in 58 s: starting servers 5 s (9%), warming up 4 s (7%), measuring 20 s (34%), the rest 29 s (50%)"
        in text
    )
    assert "Results: results/small/m-test" in text
    assert "pull request" in text


def test_the_account_names_each_server_that_did_not_start_and_the_log_that_says_how_to_try_again(
    plan_of, finish, small
):
    plan = plan_of()
    job = next(job for job in plan.jobs if job.system.endswith("fast-n4") and job.start == 1)
    for measure in job.measures:
        path = f"{measure.run}/start-1/manifest.json"
        text = json.loads(manifest(path, 1, "2026-01-01T00:01:00+00:00"))
        text["observed"] = {"not_started": "llamacpp died while loading (exit code 1): error: no drafter."}
        finish(plan, path, json.dumps(text))
    log = Path("build/logs") / plan.results / job.measures[0].run / "start-1.log"
    since = 1767225600.0  # 2026-01-01T00:00:00Z
    said = (
        "Did not start, and is left out of its race: alpha--q8--llamacpp--fast-n4, start 1: "
        "llamacpp died while loading (exit code 1): error: no drafter"
    )
    assert f"{said}.\n" in account(small, plan, since, since + 58)
    (small / log).parent.mkdir(parents=True)
    (small / log).write_text("")
    text = account(small, plan, since, since + 58)
    assert f"{said}; how to try it again: {log}.\n" in text
    assert text.count("Did not start") == 1
    assert "Did not start" not in account(small, plan, since + 3600, since + 3700)


def test_the_account_of_a_demo_names_the_page_to_look_at(plan_of, small):
    page = small / "build/site/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("")
    text = account(small, plan_of(scale="demo"), 0, 1)
    assert f"Look at:  {page.as_uri()}" in text


def test_the_failed_steps_log_is_the_one_written_last(tmp_path):
    assert failed_log(tmp_path, 0) is None
    logs = tmp_path / "build/logs/a"
    logs.mkdir(parents=True)
    for number, name in enumerate(("first", "second")):
        (logs / f"{name}.log").write_text(name)
        os.utime(logs / f"{name}.log", (1000 + number, 1000 + number))
    (logs / "third.engine.log").write_text("an engine's own log is not the step's")
    assert failed_log(tmp_path, 0) == logs / "second.log"
    assert failed_log(tmp_path, 2000) is None


def test_a_failure_shows_the_commands_sentence_and_the_end_of_the_log(tmp_path):
    log = tmp_path / "build/logs/x.log"
    log.parent.mkdir(parents=True)
    log.write_text("starting\nparibus: the engine ended while loading:\n" + "".join(f"  | {n}\n" for n in range(40)))
    text = failure(tmp_path, 0)
    assert "paribus: the engine ended while loading:" in text
    assert "| 39" in text
    assert "| 20" not in text
    assert "starting" not in text
    log.write_text("one\ntwo\n")
    assert "  one\n  two\n" in failure(tmp_path, 0)
    log.write_text("")
    assert "the log is empty" in failure(tmp_path, 0)
    log.unlink()
    assert "before a step began" in failure(tmp_path, 0)


def test_the_overview_counts_what_is_done_and_names_what_is_next(plan_of, small):
    text = overview(small, plan_of())
    assert "race: 0 of 6 server starts measured" in text
    assert "races decided: 0 of 2" in text
    assert "no workflow is running" in text
    assert "next: alpha--q8--llamacpp--plain, start 1" in text
    flow = Workflow(small, plan_of(), plan_of, lambda *_: None)
    flow.start()
    assert "a workflow is running in this folder" in overview(small, plan_of())


H100 = Card.model_validate(
    {
        "kind": "nvidia",
        "title": "H100 SXM 80 GB",
        "count": 2,
        "variants": [{"title": "SXM", "pci_device_ids": ["2330:10de"]}],
    }
)


@pytest.mark.parametrize(
    ("machine", "state"),
    [
        ({"card": "a CPU", "card_count": 1}, "lacks"),
        ({"card": "H100", "card_count": 2, "pci_device_id": "2330:10DE"}, "good"),
        ({"card": "H100", "card_count": 1, "pci_device_id": "2330:10de"}, "lacks"),
        ({"card": "A100", "card_count": 2, "pci_device_id": "20b2:10de"}, "lacks"),
    ],
)
def test_a_card_is_proven_by_its_id_and_number(machine, state):
    finding = prove("h100", H100, machine).findings[0]
    assert (finding.subject, finding.state) == ("card", state)
    assert str(machine["card"]) in finding.text


def test_too_little_disk_is_lacking(plan_of, small):
    plan = plan_of()
    huge = plan.model_copy(update={"totals": plan.totals.model_copy(update={"disk_gb": 1e9})})
    states = {f.subject: f.state for f in examine(Catalog(small), huge, {"card": "a CPU", "card_count": 1})}
    assert states["disk"] == "lacks"
    assert states["card"] == "good"


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5400, "1.5 h")])
def test_durations_read_as_people_say_them(seconds, words):
    assert duration(seconds) == words


def test_settings_are_read_as_snakemake_reads_them():
    assert read_settings(("starts=2", "systems=*", "quality=false", "scale=small")) == {
        "starts": 2,
        "systems": "*",
        "quality": False,
        "scale": "small",
    }
    with pytest.raises(UsageError, match="KEY=VALUE"):
        read_settings(("starts",))


def test_plan_prints_a_table_and_writes_the_plan(small):
    shown = paribus("plan", "--profile", "small", cwd=small)
    assert shown.returncode == 0, shown.stderr
    assert "alpha--q8--llamacpp--fast-n8" in shown.stdout
    assert json.loads((small / "build/plan.json").read_text())["hardware"] == "small"
    as_json = paribus("plan", "--profile", "small", "--json", cwd=small)
    assert json.loads(as_json.stdout)["machine"] == "m-test"
    unknown = paribus("plan", "--profile", "h999", cwd=small)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == "paribus: there is no hardware profile 'h999'; known: small\n"


def test_a_plan_without_a_start_does_not_read_like_done(plan_of):
    text = announcement(plan_of(systems="giant--*"))
    assert "nothing to measure, no server start is planned" in text
    assert "are measured" not in text
    assert "left out: giant--q8--llamacpp--plain: it needs 500 GB" in text


@pytest.mark.parametrize("key", ["systems", "measures", "scale", "catalog", "results", "starts", "repeat"])
def test_an_empty_setting_is_refused_and_not_taken_for_the_default(small, key):
    run = paribus("plan", "--profile", "small", "--config", f"{key}=", cwd=small)
    assert (run.returncode, run.stdout) == (2, "")
    assert f"paribus: --config {key}= is empty" in run.stderr
    run = paribus("plan", "--profile", "small", "--config", f"{key}=' '", cwd=small)
    assert f"paribus: --config {key}= is empty" in run.stderr


def test_a_private_catalog_that_holds_nothing_is_refused(small, tmp_path):
    other = tmp_path / "other"
    (other / "systems").mkdir(parents=True)
    with pytest.raises(UsageError, match="holds nothing of a catalog"):
        open_catalog(small, read_overrides({"catalog": str(other)}))
    (other / "systems" / "new.yaml").touch()
    assert open_catalog(small, read_overrides({"catalog": str(other)})).extra == other.resolve()


def test_show_claims_says_that_there_are_none(small):
    shown = paribus("show", "claims", cwd=small)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == "no claim is on file yet\n"


@pytest.mark.parametrize("what", ["systems", "hardware", "scenarios", "tuning"])
def test_show_lists_our_catalog(what):
    shown = paribus("show", what, cwd=OURS)
    assert shown.returncode == 0
    words = {"systems": "smollm2-135m--q4-1--llamacpp  ", "hardware": "cpu", "scenarios": "c16-long"}
    assert words.get(what, "rac") in shown.stdout


def test_data_that_is_not_there_is_said(small):
    run = paribus("plan", "--profile", "small", cwd=OURS, PARIBUS_DATA="/nowhere/at/all")
    assert run.returncode == 2
    assert "no such folder" in run.stderr


@pytest.mark.parametrize(
    ("where", "text", "words"),
    [
        ("decoders", "size_n: 4", "decoder fast-n4: llamacpp knows no parameter of ngram-simple bogus"),
        ("launch", "poll: 0", "decoder plain: llamacpp knows no launch setting bogus"),
    ],
)
def test_what_an_engine_does_not_know_is_told_when_the_plan_is_made(small, where, text, words):
    path = small / "systems/alpha.yaml"
    before = path.read_text()
    path.write_text(before.replace(text, text.replace(text.split(":")[0], "bogus")))
    run = paribus("plan", "--profile", "small", cwd=small)
    assert run.returncode == 2, run.stdout
    assert run.stderr.startswith(f"paribus: systems/alpha.yaml, engines.llamacpp, {words}; known: ")
    assert not (small / "build/plan.json").exists()
    path.write_text(before)
    assert paribus("plan", "--profile", "small", cwd=small).returncode == 0


def test_an_engine_without_an_adapter_is_told_when_the_plan_is_made(small):
    path = small / "systems/beta.yaml"
    path.write_text(path.read_text().replace("llamacpp", "nobodys"))
    shutil.copytree(small / "envs/llamacpp", small / "envs/nobodys")
    run = paribus("plan", "--profile", "small", "--config", "systems=beta--*", cwd=small)
    assert run.returncode == 2
    assert "systems/beta.yaml, engines.nobodys, decoder plain: there is no adapter for the engine" in run.stderr


def test_a_system_that_is_not_planned_or_done_is_not_looked_at(small, plan_of, finish):
    path = small / "systems/alpha.yaml"
    path.write_text(path.read_text().replace("size_n: 4", "bogus: 4"))
    assert paribus("plan", "--profile", "small", "--config", "systems=beta--*", cwd=small).returncode == 0
    plan = plan_of()
    for job in plan.jobs:
        for measure in job.measures:
            finish(plan, f"{measure.run}/start-{job.start}/manifest.json")
    check_launches(Catalog(small), plan_of())


def test_settings_may_follow_one_config_as_for_snakemake_or_each_its_own(small):
    together = paribus("plan", "--profile", "small", "--config", "repeat=2", "starts=1", "--json", cwd=small)
    apart = ["--config", "repeat=2", "--config", "starts=1"]
    each = paribus("plan", "--profile", "small", *apart, "--json", cwd=small)
    assert together.returncode == each.returncode == 0, together.stderr
    assert json.loads(together.stdout) == json.loads(each.stdout)
    for words in (["nonsense"], ["--config", "starts=1", "nonsense"], ["starts=1"]):
        refused = paribus("plan", "--profile", "small", *words, cwd=small)
        assert refused.returncode == 2
        assert "unexpected extra argument" in refused.stderr


@pytest.mark.parametrize("typed", [True, "true", "1", 1])
def test_what_is_typed_may_be_text_and_what_is_in_a_file_may_not(typed: object) -> None:
    read = read_overrides({"quality": typed, "starts": "3"})
    assert (read.quality, read.starts) == (True, 3)
    for starts in ("3", True):
        with pytest.raises(ValidationError, match="starts"):
            HardwareFile.model_validate({"starts": starts})
