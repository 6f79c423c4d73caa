"""Engines in container images, with stand-ins for docker and apptainer (not run with either); programs on the path."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from private_catalog import DIGEST, write_private

from paribus.catalog import Catalog
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines import fetch_image, open_session, weights_marker
from paribus.engines.containers import Container, Runner, find_runner, image_name
from paribus.engines.local import ask_json
from paribus.machine.parent import start_time

IMAGE = f"image: {{reference: 'example.org/engines/played:v1', digest: '{DIGEST}', source: a test}}"
NAMED = f"example.org/engines/played@{DIGEST}"
OWN = "sha256:" + "cd34" * 16
ONE_CARDS = f"""{IMAGE}
    overrides:
      - cards: [{{card}}]
        image: {{reference: 'example.org/engines/own:v1', digest: '{OWN}', source: a test}}
        source: a test"""
"""An image, and another one on a card."""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path for stand-ins."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("PARIBUS_CONTAINERS", raising=False)
    return folder


def stand_in(folder: Path, name: str) -> Path:
    program = folder / name
    program.write_text(f"#!{sys.executable}\n" + Path(__file__).with_name("stand_in_docker.py").read_text())
    program.chmod(0o755)
    return program


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line)[1:] for line in (folder / "calls.jsonl").read_text().splitlines()]


def a_job(workplace, private: Path):
    """The workplace's catalog with the private one beside it, and a job of the private system."""
    catalog = Catalog(workplace.root, private)
    weights = own_weights(workplace, catalog)
    weights.parent.mkdir(parents=True, exist_ok=True)
    weights.write_text("well".ljust(64))
    weights.parent.with_name(f"{weights.parent.name}.json").write_text(json.dumps({"path": "own.gguf", "bytes": 64}))
    job = workplace.plan().jobs[0].model_copy(update={"system": "own--q4--played--plain", "engine": "played"})
    return catalog, job


def own_weights(workplace, catalog: Catalog) -> Path:
    marker = weights_marker(workplace.root, catalog.system("own--q4--played--plain"))
    return marker.with_suffix("") / "own.gguf"


def test_an_engine_runs_in_an_image_by_digest_and_its_container_goes_with_it(workplace, programs, tmp_path):
    stand_in(programs, "docker")
    catalog, job = a_job(workplace, write_private(tmp_path / "mine", how="image", more=IMAGE))
    told: list[str] = []
    marker = fetch_image(workplace.root, catalog, "played", "ab12ab12ab12", told.append)
    assert json.loads(marker.read_text())["image"] == NAMED
    with open_session(workplace.root, job, catalog) as session:
        assert ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})["choices"]
        assert session.versions == {"image": NAMED}
        assert session.observed["weights_format"] == "well", "an adapter reads what lies here, not the container's path"
        assert session.observed["sampling_defaults"] == ["server.py"]
        assert session.peak_memory_gb() is None, "a container's processes aren't below ours"
        pids = session.tree.members()
    assert all(start_time(pid) is None for pid in pids)
    pull, run, remove = calls(programs)
    assert pull == ["pull", NAMED]
    assert remove == ["rm", "--force", run[run.index("--name") + 1]]
    port = session.base.rsplit(":", 1)[1]
    assert run[run.index("--publish") + 1] == f"127.0.0.1:{port}:{port}"
    assert run[run.index("--dns") + 1] == "127.0.0.1"
    assert run[run.index("--pull") + 1] == "never"
    assert {"--rm", "--interactive", "--init", NAMED} <= set(run)
    mounts = [run[i + 1] for i, word in enumerate(run) if word == "--volume"]
    assert [mount.split(":", 1)[1] for mount in mounts] == ["/paribus/weights/own.gguf:ro", "/paribus/files:ro"]
    wanted = json.loads(run[-1])
    assert (wanted["model"], wanted["host"]) == ("/paribus/weights/own.gguf", "0.0.0.0")
    variables = json.loads((programs / "variables.json").read_text())
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert set(variables) == {"PATH", "PLAYED", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"}


@pytest.mark.parametrize(
    ("card", "name", "build"),
    [("cpu", f"example.org/engines/own@{OWN}", "cd34cd34cd34"), ("another", NAMED, "ab12ab12ab12")],
)
def test_on_a_card_with_an_image_of_its_own_that_one_is_pulled_and_run_and_recorded(
    workplace, programs, tmp_path, card, name, build
):
    """The job is for the profile `cpu`."""
    stand_in(programs, "docker")
    more = ONE_CARDS.replace("{card}", card)
    catalog, job = a_job(workplace, write_private(tmp_path / "mine", how="image", more=more))
    assert catalog.system(job.system).build_of({}, job.hardware) == build
    fetch_image(workplace.root, catalog, "played", build, lambda _: None)
    with open_session(workplace.root, job, catalog) as session:
        assert session.versions == {"image": name}
    pull, run, _ = calls(programs)
    assert pull == ["pull", name]
    assert name in run


def test_apptainer_binds_and_listens_on_this_machines_own_address(workplace, programs, tmp_path, monkeypatch):
    stand_in(programs, "apptainer")
    monkeypatch.setenv("PARIBUS_CONTAINERS", "apptainer")
    catalog, job = a_job(workplace, write_private(tmp_path / "mine", how="image", more=IMAGE))
    fetch_image(workplace.root, catalog, "played", "ab12ab12ab12", lambda _: None)
    with open_session(workplace.root, job, catalog) as session:
        assert session.observed["engine_version"] == "played 1"
    pull, run = calls(programs)
    assert pull[-1] == f"docker://{NAMED}"
    assert {"exec", "--containall", "--no-home"} <= set(run)
    assert "--nv" not in run, "there is no card here"
    assert json.loads(run[-1])["host"] == "127.0.0.1"


def test_what_is_missing_for_an_image_is_one_sentence(workplace, programs, tmp_path):
    catalog, job = a_job(workplace, write_private(tmp_path / "mine", how="image", more=IMAGE))
    docker = stand_in(programs, "docker")
    with (
        pytest.raises(EnvironmentFault, match="run `paribus fetch image played ab12ab12ab12`"),
        open_session(workplace.root, job, catalog),
    ):
        pass
    with pytest.raises(UsageError, match="no file of the catalog names an image of played"):
        fetch_image(workplace.root, catalog, "played", "0" * 12, lambda _: None)
    marker = fetch_image(workplace.root, catalog, "played", "ab12ab12ab12", lambda _: None)
    marker.write_text(marker.read_text().replace("docker", "apptainer"))
    with (
        pytest.raises(EnvironmentFault, match="was pulled with apptainer, and this is docker"),
        open_session(workplace.root, job, catalog),
    ):
        pass
    docker.unlink()
    if shutil.which("docker") is None and shutil.which("apptainer") is None:
        with pytest.raises(EnvironmentFault, match="container images need docker or apptainer"):
            find_runner()


def test_an_image_that_its_registry_does_not_have_is_told_with_the_reason(workplace, programs, tmp_path):
    stand_in(programs, "docker")
    refused = IMAGE.replace("engines/played", "engines/refused")
    catalog, _ = a_job(workplace, write_private(tmp_path / "mine", how="image", more=refused))
    with pytest.raises(EnvironmentFault, match=r"the image of played can't be made.*manifest for the image not found"):
        fetch_image(workplace.root, catalog, "played", "ab12ab12ab12", lambda _: None)


def test_a_container_ends_when_its_client_is_killed(programs, tmp_path):
    docker = stand_in(programs, "docker")
    note = tmp_path / "engine.pid"
    container = Container(Runner("docker", str(docker)), "c", "image", ())
    inner = ["sh", "-c", f"echo $$ > {note}; exec sleep 60"]
    client = subprocess.Popen(container.command(inner, {}, 1), start_new_session=True)
    try:
        _until(note.exists)
        engine = int(_until(note.read_text))
        assert start_time(engine) is not None
        client.send_signal(signal.SIGKILL)
        client.wait()
        _until(lambda: start_time(engine) is None)
    finally:
        client.kill()
        client.wait()


def test_cards_are_handed_to_the_container():
    container = Container(Runner("docker", "docker"), "c", "image", (), cards="all")
    words = container.command(["serve"], {}, 8000)
    assert words[words.index("--gpus") + 1] == "all"
    some = Container(Runner("docker", "docker"), "c", "image", (), cards="0,1").command(["serve"], {}, 8000)
    assert some[some.index("--gpus") + 1] == '"device=0,1"'
    apptainer = Container(Runner("apptainer", "a"), "c", "x.sif", (), cards="1").command(["serve"], {}, 8000)
    assert {"--nv", "CUDA_VISIBLE_DEVICES=1"} <= set(apptainer)


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("vllm/vllm-openai:v0.28.0", "vllm/vllm-openai@sha256:x"),
        ("example.org:5000/a/b", "example.org:5000/a/b@sha256:x"),
        ("alpine:3", "alpine@sha256:x"),
    ],
)
def test_a_digest_takes_the_place_of_a_tag(reference, name):
    assert image_name(reference, "sha256:x") == name


def test_a_program_on_the_path_is_an_engine_too(workplace, programs, tmp_path):
    catalog, job = a_job(workplace, write_private(tmp_path / "mine", how="binary", more="program: played-server"))
    with (
        pytest.raises(EnvironmentFault, match="the program played-server is not on the path"),
        open_session(workplace.root, job, catalog),
    ):
        pass
    program = programs / "played-server"
    program.write_text(f"#!{sys.executable}\n" + Path(__file__).with_name("played_server.py").read_text())
    program.chmod(0o755)
    with open_session(workplace.root, job, catalog) as session:
        assert session.observed["engine_version"] == "played 1"
        assert session.peak_memory_gb() > 0
        assert session.tree.alive()


def test_what_an_engine_compiles_while_it_is_measured_is_recorded(workplace, programs, tmp_path):
    catalog, job = a_job(workplace, write_private(tmp_path / "mine", how="binary", more="program: played-server"))
    own_weights(workplace, catalog).write_text("compiles".ljust(64))
    program = programs / "played-server"
    program.write_text(f"#!{sys.executable}\n" + Path(__file__).with_name("played_server.py").read_text())
    program.chmod(0o755)
    with open_session(workplace.root, job, catalog) as session:
        assert session.observed["compile_s"] == 2.5, "what it compiled for the question that made it ready"
        url = f"{session.endpoint.base_url}/chat/completions"
        with session.warming_up():
            ask_json(url, {"messages": []})
        with session.measuring():
            pass
        assert "compiled_in_window" not in session.record.observed
        with session.measuring():
            ask_json(url, {"messages": []})
        assert session.record.observed["compiled_in_window"] == ["compiled a graph for question 3"]


def _until(there, timeout_s: float = 20):
    """Wait until something is there, and return it."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            if found := there():
                return found
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError("it never came")
