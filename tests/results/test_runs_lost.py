"""A race's candidate whose server didn't start, or died: sealed, checked and built as what it is, its race decided."""

import json
from pathlib import Path

import duckdb
import pytest
from synthetic_runs import BUILD, STACK, Clone

from paribus.catalog import Plan, PlannedMeasure, PlannedRun, Race, Totals, Verdict
from paribus.catalog.declare import Place, declare_scenario
from paribus.cli.tune import judge, sentence
from paribus.conditions import CheckFailed, Manifest, RunPath
from paribus.engines.base import StartRecord
from paribus.engines.starts import Measured, StartFolder, manifest_of
from paribus.results.build import DATABASE, build
from paribus.results.check import check
from paribus.results.check_race import decide_again
from paribus.results.run import RunFolder
from paribus.results.seal import seal
from paribus.speed.flags import Facts
from paribus.speed.run import finish, write_unasked
from paribus.speed.summarise import Around
from paribus.wire import Spool, read_outcomes

FAST, OTHER = "ngram-simple-n4-m4", "ngram-map-k-n4-m4"
DIED = "llamacpp ended while it was measured (exit code 9): out of luck"
REASON = "llamacpp died while loading (exit code 3): error: no such drafter"


def broken(clone: Clone, decoder: str, scenario: str = "race-c1-long", *, start: int = 1) -> RunFolder:
    """An unsealed run, of which this start's server didn't start."""
    catalog, config = clone.catalog, clone.configuration("small", start)
    system = catalog.system(f"{STACK}--{decoder}")
    wanted = declare_scenario(catalog, config, catalog.scenario(scenario), start)
    planned = wanted.planned(system, BUILD, system.use.launch, Place("cpu", "m-test", 1))
    relative = f"{planned.run}/start-{start}"
    folder = StartFolder(clone.root, clone.root / config.results / relative, relative, "race", start)
    folder.prepare()
    write_unasked(planned, catalog, folder.path, {"not_started": REASON})
    (folder.path / "engine.log").write_text("error: no such drafter\n")
    seen = {"card": "Test CPU", "cpu": "Test CPU", "not_started": REASON}
    stamp = "2026-12-01T10:00:00Z"
    folder.seal(manifest_of(folder, Measured(planned, StartRecord(), seen, {"engine": "1"}, stamp, stamp, 0.0, 4.0)))
    return RunFolder(clone.root / config.results, RunPath.parse(planned.run))


def dead(clone: Clone, decoder: str, *, asked: int = 3) -> RunFolder:
    """An unsealed run whose server died after so many answers (0: before the measure's turn came)."""
    whole = clone.run(decoder, "race-c1-long", words=40)
    path = whole.folder / "start-1"
    manifest = Manifest.model_validate_json((path / "manifest.json").read_text())
    outcomes = list(read_outcomes(path / "requests.parquet"))[:asked]
    catalog, declared = clone.catalog, manifest.declared
    scenario, scale = catalog.scenario("race-c1-long"), catalog.scale(str(declared["scale"]))
    planned = PlannedMeasure(
        measure=whole.path.measure, id="race-c1-long", run=str(whole.path), declared=declared, hashes=manifest.hashes
    )
    record = StartRecord()
    folder = StartFolder(clone.root, path, manifest.path, "race", 1)
    folder.prepare()
    seen = {"card": "Test CPU", "cpu": "Test CPU", "engine_version": "1.0", "died": DIED}
    if asked:
        record.observed = {"sampling_accepted": sorted(declared["sampling"]), "died": DIED}
        facts = Facts(rows=(), cpu=True, preliminary_scale=scale.scale if scale.preliminary else None, died=DIED)
        with Spool() as spool:
            for outcome in outcomes:
                spool.add(outcome)
            finish(
                path, spool, catalog.scenario_prompts(scenario, scale), Around(concurrency=1, facts=facts),
                needs_answers=False,
            )  # fmt: skip
    else:
        write_unasked(planned, catalog, path, {"died": DIED})
    stamp = "2026-12-01T10:00:00Z"
    folder.seal(manifest_of(folder, Measured(planned, record, seen, {"engine": "1"}, stamp, stamp, 0.0, 4.0)))
    return whole


def failures(clone: Clone, *folders: Path) -> str:
    """What a check says fails."""
    report = check(clone.root, [str(folder) for folder in folders])
    return "\n".join(f"{f.subject}: {f.text}" for f in report.findings if f.verdict == "fails")


def decide_race(clone: Clone, runs: list[RunFolder]) -> tuple[Verdict, Path]:
    """Seal the candidates and decide their race."""
    for run in runs:
        seal(run, clone.catalog)
    first = runs[0].path
    path = RunPath(first.hardware, first.machine, f"{STACK}--race", first.measure, "0123456789ab", 1)
    race = Race(
        verdict=f"{path}/race.json", stack=STACK, scenario="race-c1-long", measure=first.measure,
        runs=[str(run.path) for run in runs], candidates=[], not_tried={"ngram-cache-d4": "it keeps state"},
        decided=False,
    )  # fmt: skip
    draft = Verdict(
        **race.model_dump(exclude={"verdict", "candidates", "decided"}), metric="", unit="", candidates=[],
        winner="", plain_is_faster=False, decided_at="2026-12-01T12:00:00Z",
    )  # fmt: skip
    verdict = decide_again(runs[0].results, path, draft, clone.catalog)
    place = runs[0].results / str(path) / "race.json"
    place.parent.mkdir(parents=True)
    place.write_text(verdict.model_dump_json(indent=1) + "\n")
    return verdict, place


def test_it_is_sealed_without_numbers_and_holds(clone: Clone) -> None:
    for scenario in ("race-c1-long", "race-c16-long"):
        run = broken(clone, FAST, scenario)
        summary = seal(run, clone.catalog)
        assert summary.kind == "race"
        assert not summary.ranked
        assert summary.flags[0].model_dump() == {
            "id": "not_started",
            "severity": "invalid",
            "text": f"Its server did not start: {REASON}.",
        }
        assert summary.speed is not None
        assert (summary.speed.requests.ok, summary.speed.output_speed.value) == (0, None)
        assert failures(clone, run.folder) == ""


def edit(run: RunFolder, name: str, change: object) -> None:
    path = run.folder / "start-1" / name
    data = json.loads(path.read_text())
    change(data)  # type: ignore[operator]
    path.write_text(json.dumps(data))


def test_what_is_altered_is_found(clone: Clone) -> None:
    run = broken(clone, FAST)
    edit(run, "manifest.json", lambda m: m["observed"].update(not_started="it was raining"))
    assert "flags[0].text is" in failures(clone, run.folder)
    edit(run, "manifest.json", lambda m: (m["observed"].update(not_started=" "), m["counters"].update(drafts=3.0)))
    found = failures(clone, run.folder)
    assert "it doesn't say why it had no server to the end" in found
    assert "it has counters of a server that was gone" in found


def test_a_measured_run_cannot_hide_behind_it(clone: Clone) -> None:
    run = clone.run(FAST, "race-c1-long", words=40)
    edit(run, "manifest.json", lambda m: m["observed"].update(not_started="bad luck"))
    assert "it has requests to a server that did not start" in failures(clone, run.folder)


@pytest.mark.parametrize(("decoder", "scenario"), [("plain", "race-c1-long"), (FAST, "c1-long")])
def test_only_a_races_candidate_may_be_kept_so(clone: Clone, decoder: str, scenario: str) -> None:
    run = broken(clone, decoder, scenario)
    assert "only a race's candidate that drafts may be kept without a server" in failures(clone, run.folder)


def test_its_race_is_decided_among_the_others_and_shows_it(clone: Clone) -> None:
    runs = [
        clone.run("plain", "race-c1-long", words=40),
        broken(clone, FAST),
        clone.run(OTHER, "race-c1-long", words=40),
    ]
    verdict, place = decide_race(clone, runs)
    assert verdict.winner == OTHER
    candidate = verdict.candidates[1]
    assert (candidate.value, candidate.flags[0]) == (None, "not_started")
    assert candidate.left_out == f"Its server did not start: {REASON}."
    assert f"  {FAST}: no value; left out: Its server did not start: {REASON}." in sentence(verdict)
    assert failures(clone, place.parent, *(run.folder for run in runs)) == ""
    build(clone.root)
    with duckdb.connect(str(clone.root / DATABASE), read_only=True) as found:
        row = found.execute("SELECT left_out, run_id IS NULL FROM races WHERE decoder = ?", [FAST]).fetchone()
        figures = found.execute("SELECT count(*) FROM figures WHERE run_id = ?", [runs[1].run_id]).fetchone()
        kept = found.execute("SELECT ranked FROM runs WHERE run_id = ?", [runs[1].run_id]).fetchone()
    assert row == (f"Its server did not start: {REASON}.", False)
    assert figures == (0,)
    assert kept == (False,)


def test_where_every_other_candidate_failed_plain_decoding_remains_and_the_verdict_says_so(clone: Clone) -> None:
    verdict, place = decide_race(
        clone, [clone.run("plain", "race-c1-long", words=40), broken(clone, FAST), broken(clone, OTHER)]
    )
    assert (verdict.winner, verdict.plain_is_faster) == ("plain", False)
    assert "no candidate that speculates could be used" in sentence(verdict).splitlines()[0]
    assert failures(clone, place.parent) == ""


def test_paribus_tune_decides_it_from_the_plan(clone: Clone) -> None:
    runs = [clone.run("plain", "race-c1-long", words=40), broken(clone, FAST)]
    paths = [str(run.path) for run in runs]
    race = Race(
        verdict="results/x/race.json", stack=STACK, scenario="race-c1-long", measure=runs[0].path.measure, runs=paths,
        candidates=["plain", FAST], not_tried={}, decided=False,
    )  # fmt: skip
    plan = Plan(
        edition="test", protocol=1, hardware="cpu", machine="m-test", scale="small", results="results", races=[race],
        jobs=[], excluded=[], waiting=[], totals=Totals(jobs=0, jobs_done=0, hours=0, download_gb=0, disk_gb=0),
        runs=[
            PlannedRun(run=path, kind="race", system="", measure=race.measure, starts=1, sentinels=[])
            for path in paths
        ],
    )  # fmt: skip
    verdict = judge(clone.root, plan, race, "2026-12-01T12:00:00Z")
    assert verdict.winner == "plain"
    assert verdict.candidates[1].left_out == f"Its server did not start: {REASON}."


def test_a_run_of_which_one_start_had_no_server_is_left_out_too(clone: Clone) -> None:
    run = clone.run(FAST, "race-c1-long", words=40)
    assert broken(clone, FAST, start=2).path == run.path
    summary = seal(run, clone.catalog)
    told = {flag.id: flag.text for flag in summary.flags}
    assert "(in 1 of 2 starts)" in told["not_started"]
    assert not summary.ranked
    assert failures(clone, run.folder) == ""
    build(clone.root)


def test_where_nothing_ran_there_is_no_verdict(clone: Clone) -> None:
    with pytest.raises(CheckFailed, match=r"has no valid candidate: .*no such drafter"):
        decide_race(clone, [broken(clone, FAST), broken(clone, OTHER)])


@pytest.mark.parametrize("asked", [3, 0])
def test_one_that_died_is_kept_with_what_it_answered_and_its_race_goes_on(clone: Clone, asked: int) -> None:
    runs = [
        clone.run("plain", "race-c1-long", words=40),
        dead(clone, FAST, asked=asked),
        clone.run(OTHER, "race-c1-long", words=40),
    ]
    verdict, place = decide_race(clone, runs)
    assert verdict.winner == OTHER
    candidate = verdict.candidates[1]
    assert candidate.flags[0] == "died"
    assert candidate.left_out == f"Its server died while it was measured: {DIED}."
    assert failures(clone, place.parent, *(run.folder for run in runs)) == ""
    summary = seal(runs[1], clone.catalog)
    assert summary.speed is not None
    assert (summary.ranked, summary.speed.requests.ok) == (False, asked)
    (runs[1].folder / "start-1" / "requests.parquet").unlink()  # as in git, which has no bodies
    assert failures(clone, runs[1].folder) == ""
    build(clone.root)


def test_what_is_altered_of_one_that_died_is_found(clone: Clone) -> None:
    run = dead(clone, FAST)
    edit(run, "summary.json", lambda s: s["requests"].update(ok=4))
    assert "requests.ok is" in failures(clone, run.folder)
    run = dead(clone, "plain")
    assert "only a race's candidate that drafts may be kept without a server" in failures(clone, run.folder)


def test_starts_that_ran_died_and_did_not_start_make_one_run(clone: Clone) -> None:
    run = dead(clone, FAST)
    assert broken(clone, FAST, start=2).path == run.path
    summary = seal(run, clone.catalog)
    assert {"not_started", "died"} <= {flag.id for flag in summary.flags}
    assert failures(clone, run.folder) == ""
