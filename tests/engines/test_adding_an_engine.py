"""What docs/add-an-engine.md says, done: one file an engine, one a system, in a private catalog; planned and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from private_catalog import write_private

from paribus.catalog import Catalog, Weights
from paribus.catalog.envs import weights_name
from paribus.cli import app
from paribus.conditions import Manifest, UsageError
from paribus.engines import engine, engines

ROOT = Path(__file__).parents[2]
WEIGHTS = weights_name("my-model--q4", Weights(source="hub", repository="me/my-model-gguf", file="my-model.q4.gguf"))
"""Where the page's model lies once it is fetched."""
PAGE = (ROOT / "docs" / "add-an-engine.md").read_text()


def block(language: str, holding: str) -> str:
    """The page's block of code in a language that holds some text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(text for text in blocks if holding in text)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The private catalog of the page."""
    folder = tmp_path / "mine"
    for name, text in {
        "engines/myserver.py": block("python", "class MyServer"),
        "systems/my-model.yaml": block("yaml", "model: my-model"),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with our tasks and the profiles `cpu` and `hosted`; `my-server` on the path and its weights fetched."""
    root = tmp_path / "clone"
    for name in ("tasks", "hardware/cpu", "hardware/hosted", "envs/llamacpp"):
        shutil.copytree(ROOT / name, root / name)
    (root / "pairs.yaml").write_text('{edition: "2026.1", protocol: 1, pairs: []}')
    (root / "Snakefile").touch()
    program = tmp_path / "programs" / "my-server"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n" + Path(__file__).with_name("my_server.py").read_text())
    program.chmod(0o755)
    weights = root / "build" / "weights" / WEIGHTS
    weights.mkdir(parents=True)
    (weights / "my-model.q4.gguf").write_text("weights")
    (root / "build" / "weights" / f"{WEIGHTS}.json").write_text(
        json.dumps({"path": "my-model.q4.gguf", "bytes": 7, "resolved": "c" * 40})
    )
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PARIBUS_MACHINE", "m-test")
    monkeypatch.delenv("PARIBUS_WORKFLOW_PID", raising=False)
    monkeypatch.delenv("PARIBUS_DATA", raising=False)
    return root


def run(*words: str):
    result = CliRunner().invoke(app, [*words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def plan_of(clone: Path, private: Path, profile: str, systems: str) -> dict:
    settings = {"catalog": private, "systems": systems, "scale": "tiny", "measures": "c1-short", "quality": "false"}
    words = [word for key, value in settings.items() for word in ("--config", f"{key}={value}")]
    run("plan", "--profile", profile, *words)
    return json.loads((clone / "build" / "plan.json").read_text())


def manifest(clone: Path, plan: dict) -> Manifest:
    measure = plan["jobs"][0]["measures"][0]
    return Manifest.model_validate_json(
        (clone / plan["results"] / measure["run"] / "start-1/manifest.json").read_text()
    )


def test_one_file_is_an_engine_and_one_more_a_system_that_runs_on_it(clone, mine):
    run("check", "--catalog", str(mine), str(mine / "systems" / "my-model.yaml"))
    plan = plan_of(clone, mine, "cpu", "my-model--*")
    (job,) = plan["jobs"]
    assert job["system"] == "my-model--q4--myserver--plain"
    assert job["needs"] == [f"build/weights/{WEIGHTS}.json"], "a program on the path is neither built nor fetched"
    run("speed", "--job", job["job"], "--plan", str(clone / "build" / "plan.json"))
    found = manifest(clone, plan)
    assert found.origin == "catalog"
    assert found.observed["engine_version"] == "my-server 1.2"
    assert found.observed["effective_settings"] == {"context_per_slot": 4096}
    assert found.observed["weights_revision"] == "c" * 40, "the file pins none, so what was fetched is recorded"
    assert found.observed["sampling_accepted"] == ["temperature"], "top_k is not among its fields"
    assert found.counters["generated_tokens"] > 0


def test_a_setting_that_the_new_engine_does_not_know_is_told_by_the_plan(clone, mine):
    path = mine / "systems" / "my-model.yaml"
    path.write_text(path.read_text().replace("{context_per_slot: 4096}", "{context_per_slot: 4096, turbo: 1}"))
    words = ["plan", "--profile", "cpu", "--config", f"catalog={mine}", "--config", "systems=my-model--*"]
    result = CliRunner().invoke(app, [*words, "--config", "scale=tiny", "--config", "quality=false"])
    assert isinstance(result.exception, UsageError)
    assert "myserver knows no launch setting turbo" in str(result.exception)
    assert str(path) in str(result.exception), "with the file to correct"


def changed(mine: Path, name: str, old: str, new: str) -> list[str]:
    """What a check of the page's model says after a change in one of its two files."""
    path = mine / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return CliRunner().invoke(app, ["check", "--quiet", str(mine / "systems" / "my-model.yaml")]).output.splitlines()


def test_a_check_shows_the_adapter_the_slots_that_each_launch_brings(clone, mine):
    told = changed(mine, "engines/myserver.py", '"slots", ', "")
    assert any("myserver knows no launch setting slots" in line for line in told), told


def test_a_setting_that_the_adapter_needs_and_the_file_lacks_is_told(clone, mine):
    told = changed(mine, "systems/my-model.yaml", "{context_per_slot: 4096}", "{threads: 2}")
    assert any("myserver needs the launch setting 'context_per_slot'" in line for line in told), told


def test_a_server_that_runs_already_needs_one_file_only(clone, scripted, tmp_path, monkeypatch):
    private = tmp_path / "theirs"
    (private / "systems").mkdir(parents=True)
    model = yaml.safe_load(block("yaml", "model: my-model"))
    model |= yaml.safe_load(block("yaml", "url_env"))
    model["precisions"] = {"undisclosed": {"weights": {"source": "hosted", "repository": "theirs"}}}
    model["engines"]["endpoint"]["hosted"]["model"] = "f5-n20-i500"
    (private / "systems" / "my-model.yaml").write_text(yaml.safe_dump(model))
    monkeypatch.setenv("MY_SERVER_URL", scripted.base_url)
    plan = plan_of(clone, private, "hosted", "my-model--*")
    run("speed", "--job", plan["jobs"][0]["job"], "--plan", str(clone / "build" / "plan.json"))
    assert manifest(clone, plan).origin == "endpoint", "and so it is never ranked"


def test_a_private_engine_comes_beside_ours(tmp_path):
    folder = write_private(tmp_path / "mine")
    assert engines(folder).keys() - engines().keys() == {"played"}
    assert engine("played", folder).ways == ("env", "image", "binary")
    assert Catalog(ROOT, folder).system("own--q4--played--plain")
    with pytest.raises(UsageError, match="no adapter for the engine 'played'"):
        engine("played")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "it holds no ENGINE"),
        ("ENGINE = object()\n", "it holds no ENGINE"),
        ("import nothing_of_that_name\n", "can't be loaded: ModuleNotFoundError"),
        ("def broken(:\n", "can't be loaded: SyntaxError"),
        ("from paribus.engines.adapters.llamacpp import ENGINE\n", "there is an engine 'llamacpp' already"),
    ],
)
def test_a_private_engine_that_is_none_is_told_with_its_file(tmp_path, text, said):
    path = tmp_path / "engines" / "odd.py"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        engine("odd", tmp_path)
    assert str(path) in str(caught.value)


def test_the_page_names_every_engine():
    named = {"llamacpp": "llama.cpp", "vllm": "vLLM", "transformers": "Transformers", "sglang": "SGLang", "mlx": "MLX"}
    for name in engines():
        base = name.removesuffix("-cpu")
        assert named.get(base, base) in PAGE
