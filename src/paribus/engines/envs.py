"""Locked environments of engines: `envs/<engine>/requirements.txt` with hashes, built below `build/envs/`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from paribus.conditions import EnvironmentFault, slug


def lock_file(root: Path, engine: str) -> Path:
    """The engine's lock: requirements with exact versions and hashes."""
    return root / "envs" / slug(engine, "engine") / "requirements.txt"


def engine_build_id(root: Path, engine: str) -> str:
    """The engine's build: the first 12 hex digits of the sha256 of its lock file's bytes."""
    path = lock_file(root, engine)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except FileNotFoundError as error:
        raise EnvironmentFault(f"the engine {engine} has no lock file envs/{engine}/requirements.txt") from error


def environment_folder(root: Path, engine: str) -> Path:
    """Where the engine's environment is built: `build/envs/<engine>-<lock hash12>`."""
    return root / "build" / "envs" / f"{engine}-{engine_build_id(root, engine)}"


def environment_marker(root: Path, engine: str) -> Path:
    """The marker file beside the environment, written when it is whole."""
    folder = environment_folder(root, engine)
    return folder.with_name(folder.name + ".json")
