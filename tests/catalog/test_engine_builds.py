"""An engine's build: its lock, and the programs of ours that start it or are the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.catalog import Catalog, Surroundings
from paribus.catalog.envs import engine_build, environment_marker, lock_hash

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for name, text in {
        "envs/llamacpp/requirements.txt": "xllamacpp==1\n",
        "envs/llamacpp/serve.py": "temperature = 1.0\n",
        "envs/vllm/requirements.txt": "vllm==1\n",
        "envs/served/requirements.txt": "torch==1\n",
        "envs/served/server.py": "import serving\n",
        "envs/served/serving/loop.py": "steps = 32\n",
        "envs/served-cpu/requirements.txt": "torch==1+cpu\n",
        "envs/served-4/requirements.txt": "torch==0\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_lock_alone_is_the_build_of_an_engine_whose_server_is_somebody_elses(clone: Path) -> None:
    assert engine_build(clone, "vllm") == lock_hash(clone, "vllm")
    assert engine_build(clone, "unknown") is None


@pytest.mark.parametrize(
    ("engine", "program"),
    [
        ("llamacpp", "envs/llamacpp/serve.py"),
        ("served", "envs/served/serving/loop.py"),
        ("served-cpu", "envs/served/server.py"),
        ("served-4", "envs/served/serving/loop.py"),
    ],
)
def test_a_changed_launcher_or_server_of_ours_is_another_build_in_the_same_environment(
    clone: Path, engine: str, program: str
) -> None:
    before = engine_build(clone, engine)
    (clone / program).write_text("temperature = 0.8\n", encoding="utf-8")
    after = engine_build(clone, engine)
    assert before is not None
    assert after is not None
    assert after != before
    assert after.partition(".")[0] == lock_hash(clone, engine)
    assert environment_marker(engine, before) == environment_marker(engine, after), "nothing is built again"
    (clone / "envs" / engine / "README.md").write_text("words\n", encoding="utf-8")
    assert engine_build(clone, engine) == after


def test_another_launcher_has_another_answer_class_and_other_runs() -> None:
    catalog = Catalog(ROOT)
    system = catalog.system("smollm2-135m--q4-1--llamacpp--plain")
    builds = Surroundings.observe(catalog, "m-test").builds
    build = system.build_of(builds, "cpu")
    assert build == engine_build(ROOT, "llamacpp")
    assert build is not None
    assert "." in build
    other = f"{build.partition('.')[0]}.00000000"
    launch = system.launch_on("cpu")
    assert system.answer_class_hash(build, launch) != system.answer_class_hash(other, launch)
    assert system.declared(build, launch) != system.declared(other, launch)
