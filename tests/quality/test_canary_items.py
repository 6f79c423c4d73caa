"""The canary: which questions it asks, of whom, and that a plan leaves it out unless it is named."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest
from quality_journals import ROOT

from paribus.catalog import Catalog, Plan, QualityTask, resolve
from paribus.catalog.surroundings import Surroundings
from paribus.quality.data import item_id, load_items
from paribus.quality.known import read_known
from paribus.quality.score import scorer_id

LIST = ROOT / "tasks" / "quality" / "data" / "canary-mmlu-pro.known.txt"


def test_the_list_is_pinned_and_a_part_of_the_class_runs_own(catalog: Catalog) -> None:
    digest = hashlib.sha256(LIST.read_bytes()).hexdigest()
    assert digest == "6daa2e006426ef667a68318c45c688792157c90d8c3ae31da3edc864c701e1f3"
    own, whole = (read_known(catalog.task(name), ROOT).hashes for name in ("canary-mmlu-pro", "mmlu-pro"))
    assert len(own) == 200
    assert own.items() <= whole.items()


@pytest.mark.parametrize(("canary", "of"), [("canary-mmlu-pro", "mmlu-pro"), ("smoke-canary", "smoke-mmlu-pro")])
def test_a_canary_is_graded_as_the_task_that_it_is_held_against(catalog: Catalog, canary: str, of: str) -> None:
    one, other = catalog.task(canary), catalog.task(of)
    assert one.canary is not None
    assert one.canary.of == of
    assert scorer_id(one) == scorer_id(other)
    assert (one.data.fields, one.cap, one.family) == (other.data.fields, other.cap, other.family)


@pytest.mark.usefixtures("local_data")
def test_the_questions_are_those_that_a_limit_takes_of_the_class_runs(catalog: Catalog) -> None:
    """Nobody chose them: one of each category in turn, in the order of a hash; a smaller limit takes the same first."""
    canary, whole = catalog.task("canary-mmlu-pro"), catalog.task("mmlu-pro")
    asked = load_items(canary, ROOT)
    assert asked.partial is None
    assert sorted(Counter(item["category"] for item in asked.items).values()) == [14] * 10 + [15] * 4
    for limit in (200, 42):
        ids = [{item_id(whole, item) for item in load_items(task, ROOT, limit).items} for task in (canary, whole)]
        assert ids[0] == ids[1]


def plan(tmp_path: Path, measures: str, systems: str = "smollm2-135m--*", **around: object) -> Plan:
    seen = Surroundings(machine="m-test", builds={"llamacpp": "0" * 12}, data=None, hub=False, sandbox=True, **around)
    for name in ("systems", "tasks", "hardware", "pairs.yaml", "claims", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)
    return resolve(tmp_path, "cpu", {"measures": measures, "systems": systems, "scale": "demo"}, seen)


def test_a_canary_is_asked_of_speculating_decoders_and_the_scores_of_plain(tmp_path: Path) -> None:
    found = {
        (m.id, job.system.split("--")[3])
        for job in plan(tmp_path, "smoke-canary,smoke-mmlu-pro").jobs
        for m in job.measures
    }
    assert ("smoke-mmlu-pro", "plain") in found
    assert {decoder for task, decoder in found if task == "smoke-mmlu-pro"} == {"plain"}
    asked = {decoder for task, decoder in found if task == "smoke-canary"}
    assert "ngram-simple-n4-m4" in asked
    assert all(decoder.startswith("ngram") for decoder in asked)


def test_one_decoder_is_named_by_its_system(tmp_path: Path) -> None:
    jobs = plan(tmp_path, "smoke-canary", "*--ngram-map-k-n4-m4").jobs
    assert [(job.kind, job.system.split("--")[3]) for job in jobs] == [("quality", "ngram-map-k-n4-m4")]


def test_nothing_asks_a_canary_that_was_not_named(tmp_path: Path) -> None:
    assert not [m for job in plan(tmp_path, "*").jobs for m in job.measures if "canary" in m.id]


def test_a_canary_that_is_planned_unasked_is_refused(catalog: Catalog) -> None:
    file = catalog.task("smoke-canary").model_dump() | {"on_request": False}
    with pytest.raises(ValueError, match="planned only when it is named"):
        QualityTask.model_validate(file)
