"""Locked environments of engines: which build of an engine a plan would use."""

from __future__ import annotations

import hashlib
from pathlib import Path

from paribus.conditions import slug


def lock_hash(root: Path, engine: str) -> str | None:
    """First 12 hex digits of the sha256 of `envs/<engine>/requirements.txt`; None when the engine has no lock."""
    path = root / "envs" / slug(engine, "engine") / "requirements.txt"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else None


def environment_marker(engine: str, build: str) -> str:
    """The file, below the repository's root, that says that an engine's environment is whole."""
    return f"build/envs/{engine}-{build}.json"


def weights_marker(model: str, precision: str) -> str:
    """The file, below the repository's root, that says that a model's weights are there."""
    return f"build/weights/{model}--{precision}.json"
