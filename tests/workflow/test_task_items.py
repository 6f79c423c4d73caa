"""What a plan knows of a task's items: what is fetched ahead, and the name of a part of a task."""

import dataclasses
import json

import pytest
import yaml

from paribus.catalog import Catalog, Part, resolve
from paribus.catalog.envs import items_marker
from paribus.cli._items import LocalItems
from paribus.cli._planning import announcement
from paribus.conditions import RunPath
from paribus.quality.data import items_hash

HASH = "0123456789abcdef" * 4
SOURCES = [
    {"repository": "some/large", "files": {"a.jsonl": None}, "bytes": 3_000_000_000, "bytes_source": "its page"},
    {"repository": "some/unknown", "files": {"b.jsonl": None}},
]


@pytest.fixture
def hub(small, around):
    """The small catalog's task `exam`, on the hub."""
    path = small / "tasks/quality/exam.yaml"
    task = yaml.safe_load(path.read_text())
    task["data"]["hub"] = SOURCES
    path.write_text(yaml.safe_dump(task))
    return dataclasses.replace(around, hub=True)


def quality(plan):
    return [job for job in plan.jobs if job.kind == "quality"]


def test_items_of_the_hub_are_among_a_jobs_needs_and_in_the_costs(small, hub):
    plan = resolve(small, "small", {"scale": "full"}, hub)
    marker = items_marker(Catalog(small).task("exam"))
    (job,) = quality(plan)
    assert job.needs[-1] == marker
    assert not any(marker in other.needs for other in plan.jobs if other.kind != "quality")
    assert plan.totals.download_gb == 4.0  # 1 GB of weights
    assert plan.totals.unknown_sizes == ["the items of exam (some/unknown)"]
    assert "size not known, not counted: the items of exam (some/unknown)" in announcement(plan)
    (small / marker).parent.mkdir(parents=True)
    (small / marker).write_text("{}")
    there = resolve(small, "small", {"scale": "full"}, hub)
    assert (there.totals.download_gb, there.totals.unknown_sizes) == (1.0, [])
    assert quality(there)[0].measures == job.measures


def test_own_items_are_not_fetched_and_neither_are_stand_ins(small, hub, tmp_path):
    (tmp_path / "real.jsonl").write_text("{}\n")
    for around, scale in ((dataclasses.replace(hub, data=tmp_path), "full"), (hub, "demo")):
        jobs = quality(resolve(small, "small", {"scale": scale}, around))
        assert jobs
        assert not any(need.startswith("build/items/") for job in jobs for need in job.needs)


def test_without_the_hub_only_what_was_fetched_before_is_planned(small, hub):
    off = dataclasses.replace(hub, hub=False)
    plan = resolve(small, "small", {"scale": "full"}, off)
    assert quality(plan) == []
    (reason,) = [e.reason for e in plan.excluded if e.name == "exam"]
    assert "not fetched yet, and the hub is off" in reason
    marker = small / items_marker(Catalog(small).task("exam"))
    marker.parent.mkdir(parents=True)
    marker.write_text("{}")
    assert [m.id for job in quality(resolve(small, "small", {"scale": "full"}, off)) for m in job.measures] == ["exam"]


def test_a_done_job_fetches_nothing(small, hub, finish):
    plan = resolve(small, "small", {"scale": "full"}, hub)
    for job in quality(plan):
        finish(plan, job.sentinel)
    assert [job.needs for job in quality(resolve(small, "small", {"scale": "full"}, hub))] == [[]]


def planned(small, around, part, **settings):
    own = dataclasses.replace(around, data=small, part_of=lambda task: part if task.task == "exam" else None)
    (small / "real.jsonl").write_text("{}\n")
    return resolve(small, "small", {"scale": "full", **settings}, own)


def test_a_part_of_a_task_has_the_hash_of_its_items_in_its_name(small, around):
    (whole,) = [m for job in quality(planned(small, around, None)) for m in job.measures]
    (part,) = [m for job in quality(planned(small, around, Part(HASH, 3))) for m in job.measures]
    assert (whole.measure, part.measure) == ("exam", "exam.partial-01234567")
    assert (part.id, part.declared["task"], part.declared["items_hash"]) == ("exam", "exam", HASH)
    assert part.declared["requests_at_once"] == 6  # three items, asked twice
    assert whole.hashes["conditions"] != part.hashes["conditions"]
    (job,) = quality(planned(small, around, Part(HASH, 3)))
    assert RunPath.parse(job.measures[0].run).measure == part.measure
    assert job.seconds < quality(planned(small, around, None))[0].seconds
    said = "only a part of its items is here, so that it meets no whole: exam.partial-01234567"
    assert said in announcement(planned(small, around, Part(HASH, 3)))
    assert "only a part" not in announcement(planned(small, around, None))


def test_a_scales_limit_is_the_scales_and_stands_after_the_part(small, around):
    names = [m.measure for job in quality(planned(small, around, None, scale="demo")) for m in job.measures]
    assert names == ["exam.demo"]
    plan = planned(small, around, Part(HASH, 3), scale="demo", sampling="greedy")
    assert [m.measure for job in quality(plan) for m in job.measures] == ["exam.partial-01234567.greedy.demo"]


def test_what_lies_below_the_data_folder_decides_whether_it_is_a_part(small, tmp_path, monkeypatch):
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path))
    catalog, rows = Catalog(small), [{"id": f"q{n}"} for n in range(9)]
    task = catalog.task("exam")
    vouched = task.model_copy(update={"data": task.data.model_copy(update={"items_hash": items_hash(task, rows[:8])})})

    def found(count, task=vouched):
        (tmp_path / "real.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:count]))
        return LocalItems(catalog).part_of(task)

    assert found(5) == Part(items_hash(task, rows[:5]), 5)
    assert found(8) is None
    assert found(8, task) == Part(items_hash(task, rows[:8]), 8)  # all of them, and no hash that says so
    assert found(9) is None  # refused by the check, which names both hashes
    (tmp_path / "real.jsonl").unlink()
    assert LocalItems(catalog).part_of(task) is None
