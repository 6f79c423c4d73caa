"""A race's candidate whose engine dies is kept as a result; whatever else goes wrong fails the job."""

import contextlib
import errno
import shutil
from pathlib import Path

import psutil
import pytest
from test_jobs import Measuring, manifest

from paribus.catalog import Plan, Race
from paribus.conditions import EnvironmentFault
from paribus.engines import job, run_job
from paribus.engines.deaths import EngineDied
from paribus.engines.local import NoAnswer, ask_json
from paribus.engines.logs import last_words
from paribus.machine import held
from paribus.machine.held import memory_held

RACES = ("race-c1-long", "race-c16-long")


class Writing:
    """Writes a start without requests, and remembers for what reason."""

    def __init__(self):
        self.reasons = []

    def __call__(self, planned, folder, why):
        self.reasons.append((planned.id, why))
        (folder / "summary.json").write_text("{}")


def race_plan(workplace, kind: str = "race") -> Plan:
    """A plan of one job of a candidate, and its two races against plain decoding."""
    made = workplace.plan(kind=kind, measures=RACES)
    (job,) = made.jobs
    plain = [measure.run for measure in job.measures]
    decoder = "ngram-simple-n3"
    system = f"tiny--q4--llamacpp--{decoder}"
    measures = [m.model_copy(update={"run": m.run.replace(job.system, system)}) for m in job.measures]
    races = [
        Race(
            verdict=f"results/cpu/m-test/tiny--q4--llamacpp--race/{name}/{'a' * 12}.1/race.json",
            stack="tiny--q4--llamacpp", scenario=name, measure=name, runs=[before, measure.run],
            candidates=["plain", decoder], not_tried={}, decided=False,
        )
        for name, before, measure in zip(RACES, plain, measures, strict=True)
    ]  # fmt: skip
    return made.model_copy(
        update={"jobs": [job.model_copy(update={"system": system, "measures": measures})], "races": races}
    )


def plain_ran(workplace) -> None:
    """Plain decoding has been measured in both races."""
    plan = workplace.plan(kind="race", measures=RACES)
    run_job(workplace.root, plan, plan.jobs[0].job, Measuring(), tell=False)


def run(workplace, plan: Plan, writing: Writing | None) -> Measuring:
    measuring = Measuring()
    run_job(workplace.root, plan, plan.jobs[0].job, measuring, write_unasked=writing)
    return measuring


def starts(workplace, plan: Plan) -> list[Path]:
    return [workplace.root / "results" / m.run / "start-1" for m in plan.jobs[0].measures]


def test_every_measure_of_the_job_is_sealed_with_the_reason_the_lead_last_and_it_is_told(workplace, capfd):
    plain_ran(workplace)
    workplace.play("dies")
    plan, writing = race_plan(workplace), Writing()
    assert run(workplace, plan, writing).seen == []
    reason = "llamacpp died while loading (exit code 3): error: the model is not a model"
    assert writing.reasons == [("race-c16-long", {"not_started": reason}), ("race-c1-long", {"not_started": reason})]
    for folder in starts(workplace, plan):
        written = manifest(folder)
        assert written.observed["not_started"] == reason
        assert written.observed["cpu_count"] > 0
        assert written.versions["env:xllamacpp"] == "0"
        assert written.counters == {}
        assert written.timings.measuring == 0
        assert [f.name for f in written.files] == ["engine.log", "summary.json"]
        assert "the model is not a model" in (folder / "engine.log").read_text()
        assert str(workplace.root) not in (folder / "engine.log").read_text()
    lead, other = (folder / "manifest.json" for folder in starts(workplace, plan))
    assert other.stat().st_mtime_ns <= lead.stat().st_mtime_ns
    said = capfd.readouterr().err
    assert "tiny--q4--llamacpp--ngram-simple-n3 did not start; this is kept as its result" in said
    assert "| error: the model is not a model" in said
    for place in (*(f"results/{m.run}" for m in plan.jobs[0].measures), *(race.verdict for race in plan.races)):
        assert f"rm -rf {place}\n" in said


def test_a_job_that_is_done_so_starts_nothing_and_after_removing_it_tries_again(workplace):
    plain_ran(workplace)
    workplace.play("dies")
    plan, writing = race_plan(workplace), Writing()
    run(workplace, plan, writing)
    workplace.play("well")
    assert run(workplace, plan, writing).seen == []
    for folder in starts(workplace, plan):
        for path in folder.iterdir():
            path.unlink()
    assert run(workplace, plan, writing).seen == ["race-c16-long", "race-c1-long"]
    assert "not_started" not in manifest(starts(workplace, plan)[0]).observed


def test_an_engine_that_never_answers_is_one_too(workplace):
    plain_ran(workplace)
    workplace.play("empty")
    plan, writing = race_plan(workplace), Writing()
    run(workplace, plan, writing)
    assert "started but doesn't answer (its first answer is empty)" in writing.reasons[0][1]["not_started"]


@pytest.mark.parametrize("case", ["speed", "plain", "first", "adhoc"])
def test_other_jobs_fail_as_ever(workplace, case):
    """Not a race; plain decoding; an engine of which no other candidate ran; nobody who writes such starts."""
    if case != "first":
        plain_ran(workplace)
    plan = race_plan(workplace, kind="speed" if case == "speed" else "race")
    if case == "plain":
        run(workplace, plan, Writing())
        plan = plan.model_copy(update={"jobs": workplace.plan(kind="race", measures=RACES).jobs})
        for folder in starts(workplace, plan):
            (folder / "manifest.json").unlink()
    workplace.play("dies")
    with pytest.raises(EngineDied, match="died while loading"):
        run(workplace, plan, None if case == "adhoc" else Writing())
    assert not [folder for folder in starts(workplace, plan) if (folder / "manifest.json").exists()]


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [("port", "was taken while llamacpp started"), ("full", "No space left on device"), ("told", "signal 15")],
)
def test_what_is_not_the_engines_fault_fails_the_job(workplace, behaviour, said):
    plain_ran(workplace)
    workplace.play(behaviour)
    plan = race_plan(workplace)
    with pytest.raises(EnvironmentFault, match=said) as caught:
        run(workplace, plan, Writing())
    assert not isinstance(caught.value, EngineDied)
    assert not any((folder / "manifest.json").exists() for folder in starts(workplace, plan))


def test_missing_weights_fail_the_job(workplace):
    plain_ran(workplace)
    workplace.marker.unlink()
    with pytest.raises(EnvironmentFault, match="tiny"):
        run(workplace, race_plan(workplace), Writing())


def test_memory_that_others_hold_fails_the_job(workplace, monkeypatch):
    plain_ran(workplace)
    workplace.play("dies")
    monkeypatch.setattr("paribus.engines.deaths.memory_held", lambda _needs: "1 other process is computing")
    with pytest.raises(EngineDied):
        run(workplace, race_plan(workplace), Writing())


class Asking:
    """A measuring function whose engine dies of its question; with `keeps`, it writes what there is of the measure."""

    def __init__(self, keeps: bool = False, first: bool = True):
        self.keeps, self.first, self.seen = keeps, first, []

    def __call__(self, session, planned, folder):
        self.seen.append(planned.id)
        if not self.first and len(self.seen) == 1:
            return  # the first measure asks nothing, and is done
        try:
            ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})
        except NoAnswer:
            assert session.dead()
            died = session.death()
            if self.keeps:
                session.record.observed |= {"sampling_accepted": ["temperature"], **died.why}
                (folder / "summary.json").write_text('{"what": "there is"}')
            raise died from None


def test_a_candidate_that_dies_while_it_is_measured_is_a_result_with_what_there_is_of_it(workplace, capfd):
    plain_ran(workplace)
    workplace.play("crashes")
    plan, writing, asking = race_plan(workplace), Writing(), Asking(keeps=True)
    run_job(workplace.root, plan, plan.jobs[0].job, asking, write_unasked=writing)
    reason = "llamacpp ended while it was measured (exit code 9): out of luck on question 2"
    assert asking.seen == ["race-c16-long"], "the lead's turn never came"
    assert writing.reasons == [("race-c1-long", {"died": reason})]
    lead, other = (manifest(folder) for folder in starts(workplace, plan))
    for written in (lead, other):
        assert written.observed["died"] == reason
        assert "not_started" not in written.observed
        assert written.observed["engine_version"]
        assert written.counters == {}
    assert other.observed["sampling_accepted"] == ["temperature"]
    assert "sampling_accepted" not in lead.observed
    assert [f.name for f in other.files] == ["engine.log", "summary.json", "telemetry.parquet"]
    assert [f.name for f in lead.files] == ["engine.log", "summary.json"]
    said = capfd.readouterr().err
    assert "ngram-simple-n3 died while it was measured; this is kept as its result" in said
    assert "| out of luck on question 2" in said
    for place in (*(f"results/{m.run}" for m in plan.jobs[0].measures), *(race.verdict for race in plan.races)):
        assert f"rm -rf {place}\n" in said
    workplace.play("well")
    again = Asking()
    run_job(workplace.root, plan, plan.jobs[0].job, again, write_unasked=writing, tell=False)
    assert again.seen == [], "it is done"
    for folder in starts(workplace, plan):
        shutil.rmtree(folder)
    run(workplace, plan, writing)
    assert "died" not in manifest(starts(workplace, plan)[0]).observed, "removed, it was tried again"


def test_what_an_earlier_job_left_is_not_taken_for_what_was_asked(workplace):
    """A job that was killed before its last manifest left a whole summary of the lead; its other run was removed."""
    plain_ran(workplace)
    workplace.play("crashes")
    plan, writing = race_plan(workplace), Writing()
    lead = starts(workplace, plan)[0]
    lead.mkdir(parents=True)
    for name in ("summary.json", "requests.parquet"):
        (lead / name).write_text('{"of": "another server"}')
    run_job(workplace.root, plan, plan.jobs[0].job, Asking(keeps=True), write_unasked=writing, tell=False)
    assert [name for name, _ in writing.reasons] == ["race-c1-long"]
    assert [f.name for f in manifest(lead).files] == ["engine.log", "summary.json"]
    assert (lead / "summary.json").read_text() == "{}"


def test_what_was_measured_before_it_died_stands(workplace):
    plain_ran(workplace)
    workplace.play("crashes")
    plan, writing = race_plan(workplace), Writing()
    run_job(workplace.root, plan, plan.jobs[0].job, Asking(first=False), write_unasked=writing, tell=False)
    lead, other = (manifest(folder) for folder in starts(workplace, plan))
    assert "died" not in other.observed
    assert "died" in lead.observed
    assert [name for name, _ in writing.reasons] == ["race-c1-long"]


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("is-ended", "signal 15"),
        ("crashes OSError: [Errno 28] No space left on device", "No space left"),
        ("crashes CUDA error: no CUDA-capable device is detected", "no CUDA-capable device"),
    ],
)
def test_a_death_while_measured_that_is_not_the_engines_fault_fails_the_job(workplace, behaviour, said):
    plain_ran(workplace)
    workplace.play(behaviour)
    plan = race_plan(workplace)
    with pytest.raises(EnvironmentFault, match=said) as caught:
        run_job(workplace.root, plan, plan.jobs[0].job, Asking(), write_unasked=Writing(), tell=False)
    assert not isinstance(caught.value, EngineDied)
    assert not any((folder / "manifest.json").exists() for folder in starts(workplace, plan))


@pytest.mark.parametrize("case", ["speed", "memory", "card", "disk"])
def test_a_death_while_measured_fails_other_jobs_and_where_the_set_up_is_the_reason(workplace, monkeypatch, case):
    plain_ran(workplace)
    workplace.play("crashes")
    plan, asking, fault = race_plan(workplace, kind="speed" if case == "speed" else "race"), Asking(), EngineDied
    if case == "memory":
        monkeypatch.setattr("paribus.engines.deaths.memory_held", lambda _needs: "others")
    if case == "card":
        fault = EnvironmentFault
        proofs = iter([job.require_card("cpu", workplace.catalog.hardware("cpu").card)])

        def gone(*_):
            for proof in proofs:
                return proof
            raise EnvironmentFault("no card answers")

        monkeypatch.setattr(job, "require_card", gone)
    if case == "disk":
        fault = EnvironmentFault

        def asking(session, _planned, _folder):
            with contextlib.suppress(NoAnswer):
                ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(fault) as caught:
        run_job(workplace.root, plan, plan.jobs[0].job, asking, write_unasked=Writing(), tell=False)
    assert {"card": "no card answers", "disk": "is full"}.get(case, "out of luck on question 2") in str(caught.value)
    assert not any((folder / "manifest.json").exists() for folder in starts(workplace, plan))


class Card:
    """A card as NVML tells of it: others that compute, memory in use of 80 GB."""

    def __init__(self, computing: int = 0, used: float = 0.0):
        self.computing, self.used = computing, used

    def users(self):
        return self.computing, 1

    def facts(self):
        return {"card_memory_gb": 80.0, "card_count": 1}

    def sample(self):
        return {"memory_used_gb": self.used}


def test_who_holds_memory_is_told_by_the_card_or_else_by_the_machine(monkeypatch):
    monkeypatch.setattr(held, "RELEASE_S", 0.0)
    for card, said in (
        (Card(), None),
        (Card(used=7.9), None),
        (Card(used=8.1), "8.1 of the card's 80.0 GB are in use by others"),
        (Card(computing=2), "2 other processes are computing on the card"),
    ):
        monkeypatch.setattr(held, "open_nvml", lambda card=card: card)
        assert memory_held(1e6) == said
    monkeypatch.setattr(held, "open_nvml", lambda: None)
    free = psutil.virtual_memory().total / 1e9
    assert memory_held(None) is None
    assert memory_held(0.001) is None
    assert "GB of memory are free" in (memory_held(10 * free) or "")


def test_the_last_words_are_the_first_error_and_the_last_line_scrubbed(tmp_path):
    log = tmp_path / "log"
    log.write_text("loading\n(worker) ValueError: no  drafter for 203.0.113.7\n  at x\nRuntimeError: see above\n\n")
    assert last_words(log) == "(worker) ValueError: no drafter for <address> ... RuntimeError: see above"
    log.write_text("only this")
    assert last_words(log) == "only this"
    log.write_text("")
    assert last_words(log) == "its log is empty"
    log.unlink()
    assert last_words(log) == "its log can't be read"
