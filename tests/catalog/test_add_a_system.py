"""docs/add-a-system.md, followed to the letter in a folder of one's own: what it says works."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from paribus.catalog import Catalog, Surroundings, resolve
from paribus.cli import app
from paribus.cli.check import command as check
from paribus.engines.launching import check_launch, planned_launch
from paribus.engines.opening import way_of
from paribus.engines.registry import engine

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/add-a-system.md").read_text(encoding="utf-8")
NAME = "qwen3-0.6b"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A private catalog made as the guide says."""
    [example] = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert yaml.safe_load(example)["model"] == NAME
    (tmp_path / "systems").mkdir()
    (tmp_path / f"systems/{NAME}.yaml").write_text(example, encoding="utf-8")
    return tmp_path


def test_the_example_holds_and_warns_of_its_revision_only(mine: Path) -> None:
    result = CliRunner().invoke(check, [str(mine / f"systems/{NAME}.yaml")])
    assert result.exit_code == 0, result.output
    assert result.output.count("WARNING") == 1
    assert "is not pinned to a revision" in result.output


def test_the_example_makes_four_systems_that_their_engine_accepts(mine: Path) -> None:
    catalog = Catalog(ROOT, mine)
    systems = {n: s for n, s in catalog.systems.items() if n.startswith(NAME)}
    decoders = ("plain", "ngram-simple-n12-m48")
    assert set(systems) == {f"{NAME}--q8-0--llamacpp--{d}{t}" for d in decoders for t in ("", "--think")}
    for system in systems.values():
        adapter = engine(system.name.engine)
        check_launch(adapter, planned_launch(ROOT, system, way_of(system, adapter), system.launch_on("cpu")))


def test_the_example_plans_and_no_other_file_was_touched(mine: Path) -> None:
    catalog = Catalog(ROOT, mine)
    around = replace(Surroundings.observe(catalog, "m-test"), memory_gb=16.0, data=None, hub=False)
    asked = {"catalog": str(mine), "systems": f"{NAME}--*", "scale": "quick"}
    plan = resolve(ROOT, "cpu", asked, around)
    assert {job.system for job in plan.jobs if job.kind == "speed"} == {
        f"{NAME}--q8-0--llamacpp--plain",
        f"{NAME}--q8-0--llamacpp--ngram-simple-n12-m48",
    }
    small = resolve(ROOT, "cpu", asked, replace(around, memory_gb=8.0))
    assert small.jobs == []
    assert {e.reason for e in small.excluded if e.name.startswith(NAME)} == {
        "it needs 9 GB and a CPU, as found has 8 GB"
    }


def test_every_command_of_the_guide_is_one() -> None:
    lines = [line for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()]
    ours = [shlex.split(line)[1:] for line in lines if line.startswith("paribus ")]
    assert len(ours) == 4
    for words in ours:
        known = [w for w in words if w.startswith("--")]
        said = CliRunner().invoke(app, [w for w in words[:2] if w in {"check", "show", "systems", "plan"}] + ["--help"])
        assert said.exit_code == 0
        assert all(option in said.output for option in known), words


def test_every_file_that_the_guide_names_is_there() -> None:
    for name in re.findall(r"`((?:src|schemas|tests)/[\w./-]+)`", GUIDE):
        assert name.endswith(f"{NAME}.txt") or (ROOT / name).is_file(), name
