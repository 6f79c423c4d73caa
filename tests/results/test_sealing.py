"""Sealing makes one run out of its starts, or says what is missing."""

import json
from pathlib import Path

import pytest
from synthetic_runs import Clone

from paribus.conditions import CheckFailed
from paribus.results.run import RunManifest, RunSummary, find_runs, locate, read_summary
from paribus.results.seal import seal


def test_a_sealed_run_says_what_its_starts_share(clone: Clone) -> None:
    run = clone.run("plain", "c1-long", starts=3)
    summary = seal(run, clone.catalog)
    assert summary.kind == "speed"
    assert summary.run_id == run.run_id
    assert [start.start for start in summary.starts] == [1, 2, 3]
    assert summary.declared["scenario"] == "c1-long"
    assert summary.observed["card"] == "Test CPU"
    assert summary.speed is not None
    assert summary.speed.requests.ok == 18
    assert summary.speed.output_speed.low is not None
    assert [flag.id for flag in summary.flags] == ["usage_unverified", "preliminary"]
    assert read_summary(run) == summary


def test_sealing_twice_writes_the_same_bytes(clone: Clone) -> None:
    run = clone.run("plain", "c16-long", starts=2)
    seal(run, clone.catalog)
    before = {p.name: p.read_bytes() for p in run.folder.glob("*.json")}
    seal(run, clone.catalog)
    assert {p.name: p.read_bytes() for p in run.folder.glob("*.json")} == before
    assert set(before) == {"manifest.json", "summary.json"}


def test_the_log_chains_the_starts(clone: Clone) -> None:
    run = clone.run(starts=2)
    summary = seal(run, clone.catalog)
    manifest = RunManifest.model_validate_json((run.folder / "manifest.json").read_bytes())
    assert manifest.log == summary.starts[-1].log
    assert len({start.log for start in summary.starts}) == 2


def test_a_missing_start_is_named(clone: Clone) -> None:
    run = clone.run(starts=3)
    (run.folder / "start-2" / "manifest.json").unlink()
    with pytest.raises(CheckFailed, match=r"2 of 3 starts are there; missing: start-2"):
        seal(run, clone.catalog)


def test_a_run_without_starts_says_so(clone: Clone) -> None:
    run = clone.run()
    (run.folder / "start-1" / "manifest.json").unlink()
    with pytest.raises(CheckFailed, match="no finished start"):
        seal(run, clone.catalog)


def _edit(path: Path, change: dict[str, object]) -> None:
    data = json.loads(path.read_text())
    for key, value in change.items():
        part, _, name = key.partition(".")
        if name:
            data[part][name] = value
        else:
            data[part] = value
    path.write_text(json.dumps(data))


def test_starts_that_declare_different_things_are_no_run(clone: Clone) -> None:
    run = clone.run(starts=2)
    _edit(run.folder / "start-2" / "manifest.json", {"declared.cap": 7})
    with pytest.raises(CheckFailed, match="cap"):
        seal(run, clone.catalog)


def test_starts_on_different_cards_are_no_run(clone: Clone) -> None:
    run = clone.run(starts=2)
    _edit(run.folder / "start-2" / "manifest.json", {"observed.card": "Another CPU"})
    with pytest.raises(CheckFailed, match="two runs"):
        seal(run, clone.catalog)


def test_what_may_vary_is_listed_or_the_worst_of_it(clone: Clone) -> None:
    run = clone.run(starts=2)
    _edit(
        run.folder / "start-2" / "manifest.json",
        {"observed.driver": "2", "observed.admitted": 12, "observed.note": "x", "previous": None},
    )
    _edit(run.folder / "start-1" / "manifest.json", {"observed.driver": "1", "observed.admitted": 14})
    observed = seal(run, clone.catalog).observed
    assert observed["driver"] == ["1", "2"]
    assert observed["admitted"] == 12
    assert "note" not in observed


def test_a_start_made_after_another_first_start_is_refused(clone: Clone) -> None:
    run = clone.run(starts=2)
    _edit(run.folder / "start-1" / "manifest.json", {"contributor": "somebody else"})
    with pytest.raises(CheckFailed, match="another start 1"):
        seal(run, clone.catalog)


def test_a_start_from_another_run_is_refused(clone: Clone) -> None:
    run = clone.run()
    _edit(run.folder / "start-1" / "manifest.json", {"path": "cpu/m-test/elsewhere/start-1"})
    with pytest.raises(CheckFailed, match="belongs to"):
        seal(run, clone.catalog)


def test_runs_are_found_by_folder_path_and_id(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    run = clone.run(scale="demo")
    assert find_runs(clone.root / "build" / "demo-results") == [run]
    inside_start = run.folder / "start-1" / "manifest.json"
    for text in (str(run.folder), str(inside_start), str(run.path), f"{run.path}/start-1", run.run_id):
        assert locate(clone.root, text) == run
    assert run.demo
    monkeypatch.chdir(run.folder)
    assert locate(clone.root, ".").path == run.path


def test_a_candidate_of_a_race_is_a_race_run(clone: Clone) -> None:
    assert seal(clone.run("plain", "race-c1-long"), clone.catalog).kind == "race"


def test_the_summary_reads_back_as_written(clone: Clone) -> None:
    run = clone.run("plain", "c16-short")
    summary = seal(run, clone.catalog)
    assert RunSummary.model_validate_json((run.folder / "summary.json").read_bytes()) == summary
