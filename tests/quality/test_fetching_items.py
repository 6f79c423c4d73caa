"""Items from the hub are fetched ahead: checked, written once, found by whoever measures and scores.

The hub is a stand-in with the signatures of the installed client: no test here reaches the network.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import create_autospec

import huggingface_hub
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from paribus.catalog import Catalog, HubSource, QualityTask
from paribus.catalog.envs import items_marker
from paribus.cli.fetch import command
from paribus.conditions import EnvironmentFault, UsageError
from paribus.quality.data import available, items_hash, load_asked, load_items, load_planned
from paribus.quality.fetch import fetch_items
from paribus.quality.hub import completed

COMMIT, NEWEST = "a" * 40, "b" * 40
OLD = [{"id": n, "problem": f"Old {n}?", "solution": f"\\boxed{{0{n}}}", "url": "x"} for n in range(3)]
NEW = [{"id": str(n), "problem": f"New {n}?", "answer": str(10 + n)} for n in range(2)]


class Hub:
    """Data sets as files in a folder, behind the client's two functions that are used."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.asked = folder, []
        self.down: Exception | None = None
        download = create_autospec(huggingface_hub.hf_hub_download, side_effect=self._download)
        info = create_autospec(huggingface_hub.HfApi.dataset_info, side_effect=self._info)
        patch.setattr(huggingface_hub, "hf_hub_download", download)
        patch.setattr(huggingface_hub.HfApi, "dataset_info", info)
        patch.delenv("PARIBUS_DATA", raising=False)
        patch.delenv("PARIBUS_OFFLINE", raising=False)

    def _download(self, repo_id: str, filename: str, *, revision: str, repo_type: str) -> str:
        self.asked.append((repo_id, filename, revision, repo_type))
        if self.down:
            raise self.down
        return str(self.folder / repo_id / filename)

    def _info(self, _api: object, repo_id: str) -> SimpleNamespace:
        if self.down:
            raise self.down
        return SimpleNamespace(id=repo_id, sha=NEWEST)

    def put(self, repository: str, name: str, rows: list[dict]) -> str:
        path = self.folder / repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            parquet.write_table(pa.Table.from_pylist(rows), path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(tmp_path / "hub", monkeypatch)
    made.put("some/old", "test.parquet", OLD)
    made.put("some/new", "test.jsonl", NEW)
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "clone").mkdir()
    return tmp_path / "clone"


def task_of(count: int = 5, **more: object) -> QualityTask:
    old = {
        "repository": "some/old",
        "revision": COMMIT,
        "files": {"test.parquet": None},
        "id_prefix": "old-",
        "add": {"year": 2024},
        "integers": {"answer": "solution"},
    }
    new = {
        "repository": "some/new",
        "files": {"test.jsonl": None},
        "id_prefix": "new-",
        "add": {"year": 2025},
        "integers": {"answer": "answer"},
    }
    data = {"hub": [old, new], "local": ["mine.jsonl"], "fields": ["id", "year", "problem", "answer"], "count": count}
    return QualityTask.model_validate(
        {
            "task": "exam",
            "title": "Exam",
            "family": "aime",
            "version": "1",
            "repeats": 1,
            "scorer": "s",
            "settings": {"group": "year"},
            "data": {**data, **more},
        }
    )


def told(_text: str) -> None:
    pass


def test_several_data_sets_become_one_task_with_plain_answers_and_ids_of_its_own(hub: Hub, root: Path) -> None:
    said: list[str] = []
    marker = fetch_items(root, task_of(), said.append)
    items = load_items(task_of(), root)
    assert [(i["id"], i["year"], i["answer"]) for i in items.items] == [
        ("new-0", 2025, 10), ("new-1", 2025, 11), ("old-0", 2024, 0), ("old-1", 2024, 1), ("old-2", 2024, 2),
    ]  # fmt: skip
    assert (items.source, items.partial, items.part) == ("hub", None, False)
    assert items.hash == items_hash(task_of(), items.items)
    assert hub.asked == [("some/old", "test.parquet", COMMIT, "dataset"), ("some/new", "test.jsonl", NEWEST, "dataset")]
    about = json.loads(marker.read_bytes())
    assert (about["count"], about["hash"]) == (5, items.hash)
    assert [(s["revision"], s["pinned"]) for s in about["sources"]] == [(COMMIT, True), (NEWEST, False)]
    assert items.origin == f"some/old@{COMMIT}, some/new@{NEWEST}"
    assert any("size not known, not pinned" in line for line in said)


def test_fetching_twice_asks_the_hub_once_and_another_revision_is_fetched_anew(hub: Hub, root: Path) -> None:
    first = fetch_items(root, task_of(), told)
    asked = len(hub.asked)
    assert fetch_items(root, task_of(), told) == first
    assert len(hub.asked) == asked
    sources = [source.model_copy(update={"revision": "c" * 40}) for source in task_of().data.hub]
    moved = task_of(hub=[source.model_dump() for source in sources])
    assert items_marker(moved) != items_marker(task_of())
    assert fetch_items(root, moved, told) != first
    sized = [source.model_copy(update={"bytes": 5, "bytes_source": "here"}) for source in task_of().data.hub]
    assert items_marker(task_of(hub=[source.model_dump() for source in sized])) == items_marker(task_of())


def test_before_they_are_fetched_the_command_is_named_and_nothing_is_downloaded(hub: Hub, root: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"some/old, some/new.*`paribus fetch items exam`"):
        load_items(task_of(), root)
    assert "paribus fetch items exam" in (available(task_of(), root) or "")
    assert hub.asked == []
    fetch_items(root, task_of(), told)
    assert available(task_of(), root) is None


@pytest.mark.parametrize("count", [4, 6])
def test_another_number_of_items_than_the_task_says_is_refused_and_leaves_nothing(
    hub: Hub, root: Path, count: int
) -> None:
    with pytest.raises(UsageError, match=f"expected {count} items, found 5 with hash"):
        fetch_items(root, task_of(count), told)
    assert not [path for path in (root / "build/items").rglob("*") if not path.name.endswith(".lock")]


def test_a_file_with_another_hash_is_refused(hub: Hub, root: Path) -> None:
    sources = [source.model_dump() for source in task_of().data.hub]
    sources[1]["files"] = {"test.jsonl": hub.put("some/new", "test.jsonl", NEW)}
    fetch_items(root, task_of(hub=sources), told)
    sources[1]["files"] = {"test.jsonl": "0" * 64}
    with pytest.raises(EnvironmentFault, match=f"not the file that the task names: sha256 expected {'0' * 64}, found"):
        fetch_items(root, task_of(hub=sources), told)


@pytest.mark.parametrize("value", ["", "12.5", "x 3", True, None, "-4", "\\boxed{a}"])
def test_an_answer_that_is_no_whole_number_is_refused_with_its_row(value: object) -> None:
    source = HubSource.model_validate({"repository": "a/b", "files": {"f": None}, "integers": {"answer": "answer"}})
    with pytest.raises(UsageError, match="row 7: its field 'answer' holds no whole number"):
        completed(source, {"id": 1, "answer": value}, "id", "row 7")


def test_a_hub_that_cannot_be_reached_is_one_sentence(hub: Hub, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.down = ConnectionError("no route\nto host")
    with pytest.raises(EnvironmentFault, match=r"can't read some/new at its newest commit.*no route to host.*PARIBUS"):
        fetch_items(root, task_of(), told)
    monkeypatch.setenv("PARIBUS_OFFLINE", "1")
    with pytest.raises(EnvironmentFault, match="PARIBUS_OFFLINE is set"):
        fetch_items(root, task_of(), told)


def test_a_damaged_file_of_items_is_found_before_it_is_used(hub: Hub, root: Path) -> None:
    marker = fetch_items(root, task_of(), told)
    path = marker.with_suffix("") / "items.jsonl"
    path.write_text(path.read_text().replace("Old 1", "Odd 1"))
    with pytest.raises(EnvironmentFault, match=r"changed since they were fetched: delete .*paribus fetch items exam"):
        load_items(task_of(), root)
    marker.write_text("{")
    with pytest.raises(EnvironmentFault, match="can't be read: delete"):
        load_items(task_of(), root)


def test_own_data_come_first_but_what_was_asked_is_found_wherever_it_is(
    hub: Hub, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_items(root, task_of(), told)
    fetched, some = load_items(task_of(), root), load_items(task_of(), root, 2)
    (tmp_path / "data").mkdir()
    mine = {"id": "mine-1", "year": 2024, "problem": "Mine?", "answer": 3}
    (tmp_path / "data" / "mine.jsonl").write_text(json.dumps(mine) + "\n")
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path / "data"))
    local = load_items(task_of(), root)
    assert (local.source, local.origin, local.part) == ("local", "PARIBUS_DATA", True)
    assert load_asked(task_of(), root, 2, some.hash).items == some.items
    assert load_planned(task_of(), root, 2, fetched.hash).hash == some.hash
    assert load_asked(task_of(), root, None, local.hash).source == "local"
    with pytest.raises(UsageError, match=f"that were asked: expected hash {'0' * 64}, found {local.hash}"):
        load_asked(task_of(), root, None, "0" * 64)


def test_a_window_and_worked_examples_are_taken_from_the_hub_too(hub: Hub, root: Path) -> None:
    rows = [{"id": f"c{n}", "contest_date": f"2025-0{n}-01T00:00:00"} for n in range(1, 6)]
    hub.put("some/code", "test-0.parquet", rows[:3])
    hub.put("some/code", "test-1.parquet", rows[3:])
    hub.put("some/code", "dev.jsonl", [{"id": "shown"}])
    source = {"repository": "some/code", "revision": COMMIT, "files": {"test-0.parquet": None, "test-1.parquet": None}}
    task = task_of(3, hub=[{**source, "examples": {"dev.jsonl": None}}], fields=["id"])
    task = task.model_copy(update={"settings": {"window": ["2025-02-01", "2025-04-01"]}})
    fetch_items(root, task, told)
    items = load_items(task, root)
    assert [item["id"] for item in items.items] == ["c2", "c3", "c4"]
    assert items.examples == ({"id": "shown"},)
    assert items.hash == items_hash(task, items.items, items.examples)


def test_the_command_prints_the_marker_and_refuses_what_is_not_on_the_hub(hub: Hub, catalog: Catalog) -> None:
    shown = CliRunner().invoke(command, ["items", "smoke-aime", "--root", str(catalog.root)])
    assert isinstance(shown.exception, UsageError)
    assert "smoke-aime: its items don't come from the hub" in str(shown.exception)
    shown = CliRunner().invoke(command, ["items", "nothing", "--root", str(catalog.root)])
    assert "there is no quality task 'nothing'; known: aime-2024-2026" in str(shown.exception)


def test_our_tasks_pin_what_they_fetch(catalog: Catalog) -> None:
    sources = {source.repository: source for task in catalog.tasks.values() for source in task.data.hub}
    assert set(sources) >= {"TIGER-Lab/MMLU-Pro", "lighteval/code_generation_lite", "math-ai/aime24", "math-ai/aime25"}
    assert all(source.pinned for source in sources.values())
    years = [source.add["year"] for source in catalog.task("aime-2024-2026").data.hub]
    assert years == [2024, 2025, 2026]
