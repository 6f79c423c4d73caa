"""Public prompt sets that are not ours: named, pinned, never stored here, never planned unasked."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from paribus.catalog import Catalog, PromptSource, Surroundings, resolve
from paribus.conditions import UsageError

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
EXTERNAL = [s for s in CATALOG.scenarios.values() if s.external and not s.synthetic]
PUBLIC = {name: source for name, source in CATALOG.prompt_sources.items() if source.host != "random"}
AROUND = Surroundings("somewhere", {"llamacpp": "0" * 12}, memory_gb=64)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The catalog without anything that was fetched."""
    for name in ("hardware", "systems", "tasks"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pairs.yaml", tmp_path)
    return tmp_path


def put_spec_bench(clone: Path) -> None:
    """Three prompts of our own in the form of fetched ones."""
    path = CATALOG.prompt_sources["spec-bench"].fetched(clone)
    path.parent.mkdir(parents=True)
    kinds = ("qa", "qa", "rag")
    lines = [
        {"id": f"spec-bench-{n}", "kind": kind, "length": "long", "split": "measured", "prompt": f"How is day {n}?"}
        for n, kind in enumerate(kinds)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def measures(clone: Path, **config: str) -> set[str]:
    plan = resolve(clone, "cpu", {"systems": "smollm2*", **config}, AROUND)
    return {measure.id for job in plan.jobs for measure in job.measures}


def test_speed_bench_and_spec_bench_are_scenarios_of_their_own() -> None:
    assert {s.scenario for s in EXTERNAL} == {"spec-bench", "speed-bench-qualitative", "speed-bench-throughput-1k"}
    assert {s.prompts for s in EXTERNAL} == set(PUBLIC)
    assert not any(s.headline or s.race for s in EXTERNAL)
    assert all(s.prompts not in CATALOG.prompt_sources for s in CATALOG.scenarios.values() if not s.external)


def test_each_source_is_pinned_and_says_its_licence() -> None:
    for source in PUBLIC.values():
        assert source.pinned
        assert source.revision[:12] in source.origin
        assert source.licence
        assert source.local


def test_an_unpinned_source_says_so() -> None:
    source = CATALOG.prompt_sources["spec-bench"].model_copy(update={"revision": "unpinned"})
    assert not source.pinned
    assert "no pinned revision" in source.origin


def test_nothing_of_theirs_is_in_the_repository() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "tasks/speed/prompts", "build"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("this is no git repository")
    assert {Path(name).name for name in tracked.stdout.split() if name.endswith(".jsonl")} <= {"own-v1.jsonl"}


@pytest.mark.parametrize("asked", ["*", "**", "c1-*,c16-*", "* ,c1-long"])
def test_a_default_plan_has_none_of_them(clone: Path, asked: str) -> None:
    put_spec_bench(clone)
    found = measures(clone, measures=asked)
    assert "c1-long" in found
    assert not found & {s.scenario for s in EXTERNAL}


def test_a_named_one_is_planned_with_the_race_that_picks_its_decoder(clone: Path) -> None:
    put_spec_bench(clone)
    assert measures(clone, measures="spec-bench") == {"spec-bench", "race-c1-long"}
    assert "spec-bench" in measures(clone, measures="*,spec-*")


def test_prompts_that_were_not_fetched_are_asked_for_in_one_sentence(clone: Path) -> None:
    with pytest.raises(UsageError, match="paribus fetch prompts spec-bench") as caught:
        measures(clone, measures="spec-bench")
    assert "\n" not in str(caught.value)


def test_their_prompts_are_measured_and_our_tuning_prompts_warm_up(clone: Path) -> None:
    put_spec_bench(clone)
    catalog = Catalog(clone)
    scenario, prompts = catalog.scenario("spec-bench"), catalog.prompt_set("spec-bench")
    full = catalog.scenario_prompts(scenario, catalog.scale("full"))
    assert [p.id for p in full] == ["spec-bench-0", "spec-bench-1", "spec-bench-2"]
    assert [p.kind for p in catalog.scenario_prompts(scenario, catalog.scale("tiny"))] == ["qa", "rag"]
    ours = {p.id for p in catalog.prompt_set("own-v1") if p.split == "tuning"}
    assert {p.id for p in prompts if p.split == "tuning"} == ours


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"revision": "main"}, "pattern"),
        ({"repository": "../elsewhere"}, "pattern"),
        ({"repository": "a/b/c"}, "pattern"),
        ({"file": "../../etc/passwd"}, "pattern"),
        ({"file": None}, "needs a file"),
        ({"host": "hub"}, "has none"),
        ({"rows": 0}, "greater than or equal to 1"),
    ],
)
def test_a_wrong_source_is_refused(change: dict[str, object], says: str) -> None:
    good = CATALOG.prompt_sources["spec-bench"].model_dump()
    with pytest.raises(ValueError, match=says):
        PromptSource.model_validate({**good, **change})
