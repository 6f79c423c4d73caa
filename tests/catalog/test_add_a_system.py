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
from paribus.catalog.fit import fit
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


def test_the_example_holds_and_warns_of_its_revision_and_that_nobody_shows_it(mine: Path) -> None:
    result = CliRunner().invoke(check, [str(mine / f"systems/{NAME}.yaml")])
    assert result.exit_code == 0, result.output
    assert result.output.count("WARNING") == 2
    assert "is not pinned to a revision" in result.output
    assert "a source that shows it running on a card is missing under `shown`" in " ".join(result.output.split())


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


def test_what_nobody_shows_is_unverified_until_a_run_of_it_is_named(mine: Path) -> None:
    card, plain = Catalog(ROOT).hardware("cpu"), f"{NAME}--q8-0--llamacpp--plain"
    found = fit(Catalog(ROOT, mine).systems[plain], card, 16)
    assert (found.verdict, found.reason) == ("unverified", "no source is named that shows this engine running it")
    path = mine / f"systems/{NAME}.yaml"
    entry = "    shown:\n      - cards: [cpu]\n        decoders: [plain]\n        source: {}\n"
    told = path.read_text(encoding="utf-8")
    run = "results/cpu/m-one/qwen3-0.6b--q8-0--llamacpp--plain/c1-short/0123456789ab.1"
    for source, exit_code in ((run, 1), ("https://example.org/log (one start)", 0)):
        path.write_text(told.replace("    decoders:\n", entry.format(source) + "    decoders:\n", 1), encoding="utf-8")
        systems = Catalog(ROOT, mine).systems
        assert fit(systems[plain], card, 16).verdict == "runs"
        assert fit(systems[plain.replace("plain", "ngram-simple-n12-m48")], card, 16).verdict == "unverified"
        result = CliRunner().invoke(check, [str(path)])
        assert result.exit_code == exit_code, result.output
        assert ("is no folder of runs in this repository" in " ".join(result.output.split())) == (exit_code == 1)


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
