"""Races and seals of systems and cards that only a private catalog has, and verdicts about systems that are gone."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from synthetic_runs import STACK, Clone

from paribus.catalog import Catalog, Plan, PlannedRun, Race, Totals
from paribus.cli import seal as seal_command
from paribus.cli.tune import judge
from paribus.results.check import check
from paribus.results.run import RunFolder
from paribus.results.seal import seal

FAST = "ngram-simple-n4-m4"


@pytest.fixture
def candidates(clone: Clone) -> list[RunFolder]:
    return [clone.run(decoder, "race-c1-long", words=40) for decoder in ("plain", FAST)]


def decided(clone: Clone, runs: list[RunFolder], private: Path | None = None) -> str:
    """The race's verdict by `paribus tune`, written where the plan has it; its folder."""
    paths, first = [str(run.path) for run in runs], runs[0].path
    place = f"{first.hardware}/{first.machine}/{STACK}--race/{first.measure}/0123456789ab.1"
    race = Race(
        verdict=f"results/{place}/race.json", stack=STACK, scenario="race-c1-long", measure=first.measure, runs=paths,
        candidates=["plain", FAST], not_tried={}, decided=False,
    )  # fmt: skip
    starts = [
        PlannedRun(run=path, kind="race", system="", measure=race.measure, starts=1, sentinels=[]) for path in paths
    ]
    plan = Plan(
        edition="test", protocol=1, hardware="cpu", machine="m-test", scale="small", results="results", races=[race],
        jobs=[], excluded=[], waiting=[], totals=Totals(jobs=0, jobs_done=0, hours=0, download_gb=0, disk_gb=0),
        catalog=str(private) if private else None, runs=starts,
    )  # fmt: skip
    verdict = judge(clone.root, plan, race, "2026-12-01T12:00:00Z")
    assert verdict.winner == FAST
    folder = clone.root / "results" / place
    folder.mkdir(parents=True)
    (folder / "race.json").write_text(verdict.model_dump_json())
    return str(folder)


def moved(clone: Clone, part: str, folder: Path) -> Path:
    """A private catalog that now holds a part of the clone's."""
    (folder / part).parent.mkdir(parents=True)
    shutil.move(clone.root / part, folder / part)
    return folder


@pytest.mark.parametrize("part", ["systems/smollm2-135m.yaml", "hardware/cpu"])
def test_a_race_of_a_private_catalog_is_decided(clone: Clone, candidates: list[RunFolder], tmp_path: Path, part: str):
    decided(clone, candidates, moved(clone, part, tmp_path / "mine"))


def test_a_verdict_holds_when_its_systems_have_left_the_catalog(clone: Clone, candidates: list[RunFolder]):
    folder = decided(clone, candidates)
    (clone.root / "systems" / "smollm2-135m.yaml").unlink()
    assert not check(clone.root, [folder]).failed


def test_a_run_on_a_private_card_is_sealed_by_that_cards_kind(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = clone.run(words=20)
    private = moved(clone, "hardware/cpu", tmp_path / "mine")
    profile = private / "hardware/cpu/hardware.yaml"
    profile.write_text(profile.read_text().replace("kind: cpu", "kind: any"))
    seen: list[str] = []
    monkeypatch.setattr(seal_command, "seal", lambda found, catalog: seen.append(kind(catalog)) or seal(found, catalog))
    monkeypatch.chdir(clone.root)
    done = CliRunner().invoke(seal_command.command, [str(run.path), "--catalog", str(private)], catch_exceptions=False)
    assert done.exit_code == 0
    assert seen == ["any"]


def kind(catalog: Catalog) -> str:
    return catalog.hardware("cpu").card.kind
