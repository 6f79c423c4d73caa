"""A job measures what isn't done, seals the lead last, resumes, and leaves nothing behind, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paribus.conditions import EnvironmentFault, Manifest, UsageError, sha256_file
from paribus.engines import StartRecord, run_job
from paribus.engines.local import NoAnswer, ask_json
from paribus.machine import card_lock, read_telemetry
from paribus.machine.parent import start_time

SCRIPT = Path(__file__).with_name("job_process.py")


class Measuring:
    """A measuring function that remembers what it measured and may fail on one measure."""

    def __init__(self, fails: str | None = None):
        self.fails, self.seen, self.found = fails, [], []

    def __call__(self, session, planned, folder):
        self.seen.append(planned.id)
        self.found.append(sorted(p.name for p in folder.iterdir()))
        (folder / "journal.jsonl").write_text(f"{planned.id}\n")
        if planned.id == self.fails:
            raise RuntimeError("a bug while measuring")
        with session.measuring():
            ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})
            time.sleep(0.3)
        session.record.observed |= {"cached_tokens": 0, "admitted": None}
        (folder / "summary.json").write_text("{}")


def manifest(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / "manifest.json").read_text())


def run(workplace, measure, plan=None, **options):
    plan = plan or workplace.plan()
    run_job(workplace.root, plan, plan.jobs[0].job, measure, tell=False, **options)


def test_every_start_has_its_files_hashes_conditions_and_counters(workplace):
    run(workplace, Measuring())
    for measure in ("c1-long", "c16-long"):
        folder = workplace.start(measure)
        written = manifest(folder)
        names = sorted(p.name for p in folder.iterdir())
        assert names == ["engine.log", "journal.jsonl", "manifest.json", "summary.json", "telemetry.parquet"]
        assert [f.name for f in written.files] == [n for n in names if n != "manifest.json"]
        for entry in written.files:
            assert entry.sha256 == sha256_file(folder / entry.name)
            assert entry.bytes == (folder / entry.name).stat().st_size
            assert entry.raw == (entry.name != "summary.json")
        assert written.path == str(folder.relative_to(workplace.root / "results"))
        assert (written.kind, written.start, written.origin) == ("speed", 1, "catalog")
        assert written.declared == {"cap": 64}
        assert written.observed["cached_tokens"] == 0
        assert written.observed["admitted"] == 2
        assert written.counters["generated_tokens"] == 10.0
        assert written.timings.measuring >= 0.3
        assert {"paribus", "python", "commit", "env:xllamacpp"} <= written.versions.keys()
        assert any(row["t_ns"] > 0 for row in read_telemetry(folder / "telemetry.parquet"))


def test_the_engine_start_is_counted_once_and_the_lead_is_measured_and_sealed_last(workplace):
    measuring = Measuring()
    run(workplace, measuring, workplace.plan(lead=0))
    assert measuring.seen == ["c16-long", "c1-long"]
    first, lead = manifest(workplace.start("c16-long")), manifest(workplace.start("c1-long"))
    assert first.timings.engine_start > 0
    assert lead.timings.engine_start == 0
    sealed = [(workplace.start(m) / "manifest.json").stat().st_mtime_ns for m in ("c16-long", "c1-long")]
    assert sealed == sorted(sealed)


def test_logs_and_conditions_are_scrubbed(workplace):
    run(workplace, Measuring())
    log = (workplace.start("c1-long") / "engine.log").read_text()
    assert "listening for <address>" in log
    assert "loading ./build/weights" in log
    assert str(workplace.root) not in log
    assert str(workplace.root) not in (workplace.start("c1-long") / "manifest.json").read_text()


def test_a_job_that_is_done_starts_nothing(workplace):
    run(workplace, Measuring())
    workplace.play("dies")
    again = Measuring()
    run(workplace, again)
    assert again.seen == []


def test_a_job_that_failed_keeps_what_was_done_and_continues(workplace):
    with pytest.raises(RuntimeError, match="a bug while measuring"):
        run(workplace, Measuring(fails="c1-long"))
    assert (workplace.start("c16-long") / "manifest.json").exists()
    assert not (workplace.start("c1-long") / "manifest.json").exists()
    before = (workplace.start("c16-long") / "manifest.json").read_bytes()
    again = Measuring()
    run(workplace, again)
    assert again.seen == ["c1-long"]
    assert (workplace.start("c16-long") / "manifest.json").read_bytes() == before
    # A speed measure starts anew: what the failed one left is not mixed in.
    assert again.found == [[]]


def test_a_quality_start_continues_its_journal(workplace):
    plan = workplace.plan(kind="quality", measures=("smoke-aime",))
    with pytest.raises(RuntimeError):
        run(workplace, Measuring(fails="smoke-aime"), plan)
    again = Measuring()
    run(workplace, again, plan)
    assert "journal.jsonl" in again.found[0]
    assert manifest(workplace.start("smoke-aime")).kind == "quality"


def test_a_returned_record_is_taken_in_place_of_the_sessions(workplace):
    def measure(_session, _planned, folder):
        (folder / "summary.json").write_text("{}")
        return StartRecord(counters={"drafts": 3.0}, observed={"tokens_method": "usage"}, warm_up=1.5, measuring=2.5)

    run(workplace, measure, workplace.plan(measures=("c1-long",)))
    written = manifest(workplace.start("c1-long"))
    assert written.counters == {"drafts": 3.0}
    assert written.observed["tokens_method"] == "usage"
    assert (written.timings.warm_up, written.timings.measuring) == (1.5, 2.5)


def test_starts_of_a_run_are_chained(workplace):
    plan = workplace.plan(measures=("c1-long",))
    run(workplace, Measuring(), plan)
    second = plan.model_copy(update={"jobs": [plan.jobs[0].model_copy(update={"start": 2})]})
    run(workplace, Measuring(), second)
    first = workplace.start("c1-long")
    assert manifest(first).previous is None
    assert manifest(first.with_name("start-2")).previous == sha256_file(first / "manifest.json")


def test_an_engine_that_dies_while_measured_is_told_and_seals_nothing(workplace):
    workplace.play("crashes")

    def measure(session, _planned, _folder):
        ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})

    with pytest.raises(EnvironmentFault, match=r"llamacpp ended while it was measured \(exit code 9\)") as caught:
        run(workplace, measure)
    assert "out of luck on question 2" in str(caught.value)
    assert isinstance(caught.value.__cause__, NoAnswer)
    assert not list((workplace.root / "results").rglob("manifest.json"))


def test_a_job_that_is_not_in_the_plan_is_said(workplace):
    with pytest.raises(UsageError, match="the plan has no job 'rxxx-1'; its first ones: r"):
        run_job(workplace.root, workplace.plan(), "rxxx-1", Measuring())


def test_a_path_that_leaves_the_results_is_refused(workplace):
    plan = workplace.plan(measures=("c1-long",))
    measure = plan.jobs[0].measures[0].model_copy(update={"run": "../../outside"})
    bad = plan.model_copy(update={"jobs": [plan.jobs[0].model_copy(update={"measures": [measure]})]})
    with pytest.raises(UsageError, match="leaves"):
        run(workplace, Measuring(), bad)


def test_a_file_that_cannot_be_part_of_a_start_is_refused(workplace):
    def measure(_session, _planned, folder):
        (folder / "Bad Name").write_text("x")

    with pytest.raises(EnvironmentFault, match="holds 'Bad Name', which can't be part of a start"):
        run(workplace, measure)


class Child:
    """A job in a process of its own, in the middle of its first measure."""

    def __init__(self, workplace, mark: str | None = None):
        (workplace.root / "wait").touch()
        plan = workplace.root / "plan.json"
        plan.write_text(workplace.plan().model_dump_json())
        environment = os.environ | ({"PARIBUS_WORKFLOW_PID": mark} if mark else {})
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(workplace.root), str(plan)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        line = self.process.stdout.readline()
        assert line.startswith("measuring c16-long "), line or self.process.communicate()[1]
        self.engine = [int(pid) for pid in line.split()[2:]]

    def engine_gone(self) -> bool:
        return all(start_time(pid) is None for pid in self.engine)


def finish(workplace) -> None:
    """The next start of the same job goes through."""
    (workplace.root / "wait").unlink()
    measuring = Measuring()
    run(workplace, measuring)
    assert (workplace.start("c1-long") / "manifest.json").exists()
    assert (workplace.start("c16-long") / "manifest.json").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_job_that_is_told_to_stop_stops_its_engine_first(workplace, number, code):
    child = Child(workplace)
    child.process.send_signal(number)
    _, said = child.process.communicate(timeout=30)
    assert child.process.returncode == code
    assert "Traceback" not in said
    assert child.engine_gone()
    assert not list((workplace.root / "results").rglob("manifest.json"))
    finish(workplace)


def test_a_job_that_is_killed_leaves_no_engine_and_no_lock(workplace):
    child = Child(workplace)
    child.process.kill()
    child.process.communicate()
    # The lock is held until the engine is gone; the next start waits for that.
    with card_lock("cpu", timeout_s=20):
        assert child.engine_gone()
    finish(workplace)


def test_a_job_whose_workflow_was_killed_stops(workplace):
    workflow = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    child = Child(workplace, mark=str(workflow.pid))
    workflow.kill()
    workflow.wait()
    _, said = child.process.communicate(timeout=30)
    assert child.process.returncode == 143
    assert "the workflow that started this job is gone" in said
    assert child.engine_gone()
    finish(workplace)


def test_a_second_job_is_kept_off_the_card(workplace, monkeypatch):
    child = Child(workplace)
    monkeypatch.setattr("paribus.engines.job.LOCK_WAIT_S", 0.3)
    with pytest.raises(EnvironmentFault, match=rf"the card cpu is in use by process {child.process.pid} \(job r"):
        run(workplace, Measuring())
    child.process.terminate()
    child.process.communicate(timeout=30)


def test_a_disk_that_is_full_is_one_sentence(workplace):
    def measure(_session, _planned, folder):
        with Path("/dev/full").open("w") as device:
            device.write("x" * 100_000)

    with pytest.raises(EnvironmentFault, match=r"the disk that holds .* is full: free some space"):
        run(workplace, measure)


def test_telemetry_of_a_job_is_json_free_and_small(workplace):
    run(workplace, Measuring(), workplace.plan(measures=("c1-long",)))
    folder = workplace.start("c1-long")
    assert (folder / "telemetry.parquet").stat().st_size < 50_000
    assert json.loads((folder / "manifest.json").read_text())["schema"] == 1
