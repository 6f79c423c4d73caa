"""Running the installers (uv, else pip): their output in a log, their failure in one sentence."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from paribus.catalog.offline import OFFLINE, offline
from paribus.conditions import EnvironmentFault
from paribus.machine import ProcessTree, disk_faults, scrub

Tell = Callable[[str], None]
"""Told what happens, in words, now and then."""


def uv_program() -> str | None:
    """The uv beside this Python, else the one on the path."""
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.is_file() else shutil.which("uv")


def have_pip() -> bool:
    """Whether this Python has pip."""
    return importlib.util.find_spec("pip") is not None


def make_venv(folder: Path, log: Path, tell: Tell) -> None:
    """An empty environment with this very Python."""
    uv = uv_program()
    if uv:
        command = [uv, "venv", "--no-project", "--no-config", "--python", sys.executable, str(folder)]
    else:
        command = [sys.executable, "-m", "venv", str(folder)]
    run_installer(command, f"the environment {folder.name}", log, tell)


def install(python: Path, requirements: Path, what: str, log: Path, tell: Tell) -> None:
    """Install exactly what a lock names, every file checked against its hash, into a Python's environment."""
    uv = uv_program()
    if uv:
        command = [uv, "pip", "sync", "--require-hashes", "--python", str(python), *_links(), str(requirements)]
        command += ["--offline"] if offline() else []
    else:
        command = [str(python), "-m", "pip", "install", "--no-deps", "--require-hashes", "-r", str(requirements)]
        command += ["--no-index"] if offline() else []
    run_installer(command, what, log, tell)


def _links() -> list[str]:
    """pip's find-links setting for uv, which has a variable of its own: torch's wheels for CPUs aren't on PyPI."""
    if os.environ.get("UV_FIND_LINKS"):
        return []
    places = os.environ.get("PIP_FIND_LINKS", "")
    if not places and have_pip():
        asked = [sys.executable, "-m", "pip", "config", "get", "global.find-links"]
        places = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60).stdout
    return [word for place in places.split() for word in ("--find-links", place)]


def unpack(requirement: str, sha256: str, folder: Path, *, what: str, log: Path, tell: Tell) -> None:
    """Put one wheel's files below `folder`, without its dependencies, its hash checked; no code of it runs."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "requirements.txt"
    lock.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="ascii")
    shared = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(folder), "-r", str(lock)]
    uv = uv_program()
    if uv:
        command = [uv, "pip", "install", "--python", sys.executable, *shared, *(["--offline"] if offline() else [])]
    elif have_pip():
        command = [sys.executable, "-m", "pip", "install", *shared, *(["--no-index"] if offline() else [])]
    else:
        raise EnvironmentFault("neither uv nor pip is there to fetch packages: run `make setup`")
    run_installer(command, what, log, tell)


def run_installer(command: list[str], what: str, log: Path, tell: Tell) -> None:
    """Run an installer to its end. An `EnvironmentFault` says which package failed and why, and names the log."""
    with disk_faults(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output, ProcessTree.start(command, log=output, environment=os.environ) as tree:
            began, told = time.monotonic(), 0.0
            while not tree.wait(0.5):
                passed = time.monotonic() - began
                if passed - told >= 10:
                    told = passed
                    tell(f"{what}: {passed:.0f} s so far")
    if tree.exit_code:
        raise EnvironmentFault(failure(what, log.read_text(encoding="utf-8", errors="replace"), log))


_PACKAGE = re.compile(r"[`'\"]?\b([A-Za-z0-9][A-Za-z0-9._-]*?)[ ]?==[ ]?(\d[\w.+!-]*)")
_REASON = re.compile(r"(?i)\b(error|failed|mismatch|no space|not found|no solution|no matching|could ?n[o']t|unable)\b")
_SEEN = re.compile(r"^[\s×╰─▶├│>*-]+")


def failure(what: str, output: str, log: Path) -> str:
    """One sentence out of an installer's output: which package, why, where the whole log is."""
    lines = [" ".join(_SEEN.sub("", line).split()) for line in output.splitlines() if line.strip()]
    reasons = [line for line in lines if _REASON.search(line)] or lines[-1:] or ["it said nothing"]
    package = next((f"{m[1]} {m[2]}" for line in reasons if (m := _PACKAGE.search(line))), None)
    if package is None:
        package = next((f"{m[1]} {m[2]}" for line in lines if (m := _PACKAGE.search(line))), None)
    # The last reason is the root: installers print the chain from the outside in.
    why = reasons[0] if len(reasons) == 1 else f"{reasons[0]} ({reasons[-1]})"
    hint = f"; {OFFLINE} is set, so only the installer's cache was looked at" if offline() else ""
    if package and package.endswith("+cpu"):
        hint += "; torch's wheels for CPUs are not on PyPI: name the folder or page that has them in PIP_FIND_LINKS"
    named = f" at the package {package}" if package else ""
    return scrub(f"{what} can't be made: it failed{named}: {why[:400]}{hint}; the whole log: ") + str(log)
