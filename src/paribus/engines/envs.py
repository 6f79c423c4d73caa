"""Locked environments of engines: `envs/<engine>/requirements.txt` with hashes, built below `build/envs/`."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from paribus.catalog import envs as places
from paribus.conditions import EnvironmentFault, slug
from paribus.engines.install import Tell, install, make_venv
from paribus.machine import disk_faults, write_json
from paribus.machine.locks import file_lock


def lock_file(root: Path, engine: str) -> Path:
    """The engine's lock: requirements with exact versions and hashes."""
    return root / "envs" / slug(engine, "engine") / "requirements.txt"


def environment_build(root: Path, engine: str) -> str:
    """The environment's build: the first 12 hex digits of the sha256 of its lock file's bytes."""
    build = places.lock_hash(root, engine)
    if build is None:
        raise EnvironmentFault(f"the engine {engine} has no lock file envs/{engine}/requirements.txt")
    return build


def environment_folder(root: Path, engine: str) -> Path:
    """Where the engine's environment is built: `build/envs/<engine>-<lock hash12>`."""
    return root / "build" / "envs" / f"{engine}-{environment_build(root, engine)}"


def environment_marker(root: Path, engine: str) -> Path:
    """The marker file beside the environment, written when it is whole."""
    return root / places.environment_marker(engine, environment_build(root, engine))


def environment_python(root: Path, engine: str) -> Path:
    """The environment's Python. An `EnvironmentFault` says how to build the environment when it isn't there."""
    python = environment_folder(root, engine) / "bin" / "python"
    if not environment_marker(root, engine).is_file() or not python.exists():
        raise EnvironmentFault(
            f"the environment of {engine} isn't built: run `paribus fetch env {engine}` (Snakemake does it by itself)"
        )
    return python


def build_environment(root: Path, engine: str, tell: Tell) -> Path:
    """Build the engine's environment unless it is there; returns its marker.

    Built in place (scripts of an environment name its folder), the marker last: what has no marker is rebuilt.
    """
    folder, marker = environment_folder(root, engine), environment_marker(root, engine)
    with file_lock(folder.with_name(f".{folder.name}.lock"), f"the environment of {engine}", timeout_s=3600):
        if marker.is_file() and (folder / "bin" / "python").exists():
            return marker
        began = time.monotonic()
        what, log = f"the environment of {engine}", folder.with_name(folder.name + ".log")
        tell(f"building {what} from envs/{engine}/requirements.txt")
        with disk_faults(folder):
            marker.unlink(missing_ok=True)
            if folder.exists():
                shutil.rmtree(folder)
        make_venv(folder, log, tell)
        install(folder / "bin" / "python", lock_file(root, engine), what, log, tell)
        write_json(
            marker,
            {
                "schema": 1,
                "engine": engine,
                "build": environment_build(root, engine),
                "python": ".".join(map(str, sys.version_info[:3])),
                "packages": packages(folder),
                "seconds": round(time.monotonic() - began, 1),
            },
        )
        tell(f"{what} is built ({time.monotonic() - began:.0f} s)")
    return marker


def packages(folder: Path) -> dict[str, str]:
    """Names and versions of what an environment holds, from its `*.dist-info` folders."""
    found = {}
    for info in folder.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        found[name.replace("_", "-").lower()] = version
    return dict(sorted(found.items()))


def environment_versions(root: Path, engine: str) -> dict[str, str]:
    """What the marker says about the environment: its packages and Python."""
    known = json.loads(environment_marker(root, engine).read_text(encoding="utf-8"))
    return {f"env:{name}": str(version) for name, version in known["packages"].items()} | {
        "env:python": str(known["python"])
    }
