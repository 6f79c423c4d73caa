"""What is made or fetched before anything is measured: locked environments, weights, items; and where they lie."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from paribus.catalog.models import System
from paribus.catalog.tasks import QualityTask
from paribus.catalog.weights import Weights
from paribus.conditions import hash12, sha256_file, slug

SELECTING = ("group", "window", "sample_per_category", "sample_seed")
"""Settings of a task that decide which rows of a larger set are its items."""


def lock_hash(root: Path, engine: str) -> str | None:
    """First 12 hex digits of the sha256 of `envs/<engine>/requirements.txt`; None when the engine has no lock."""
    path = root / "envs" / slug(engine, "engine") / "requirements.txt"
    return sha256_file(path)[:12] if path.is_file() else None


def engine_build(root: Path, engine: str) -> str | None:
    """The build of an engine from a locked environment: its lock's hash, and after a dot that of the programs of ours
    beside it (`envs/llamacpp/serve.py`), which start or are the server; None when the engine has no lock.

    An engine in another environment (`transformers-cpu`, `transformers-4`) is served by its sibling's programs too.
    """
    lock = lock_hash(root, engine)
    folders = [root / "envs" / name for name in dict.fromkeys((engine, engine.partition("-")[0]))]
    programs = {path.relative_to(root).as_posix(): path for folder in folders for path in folder.rglob("*.py")}
    if lock is None or not programs:
        return lock
    return f"{lock}.{hash12({name: sha256_file(path) for name, path in programs.items()})[:8]}"


def program_hash(name: str) -> str | None:
    """First 12 hex digits of the sha256 of a program on the path; None where there is none.

    Libraries beside it aren't in it: the version that the running server tells is observed, and gates comparisons.
    """
    found = shutil.which(name)
    return sha256_file(Path(found))[:12] if found else None


def environment_marker(engine: str, build: str) -> str:
    """The file, below the repository's root, that says that an engine's environment is whole: its lock's affair."""
    return f"build/envs/{engine}-{build.partition('.')[0]}.json"


def image_marker(engine: str, build: str) -> str:
    """The file, below the repository's root, that says that an engine's container image is there."""
    return f"build/images/{engine}-{build}.json"


def drafter_name(drafter: Weights) -> str:
    """`drafter--<repository>-<hash8>`: how a drafter's weights are fetched and where they lie."""
    words = re.sub(r"[^a-z0-9.]+", "-", drafter.repository.lower().rpartition("/")[2]).strip("-.")
    return f"drafter--{words[:48].strip('-.')}-{hash12(drafter.identity)[:8]}"


def drafter_marker(drafter: Weights) -> str:
    """The file, below the repository's root, that says that a drafter's weights are there."""
    return f"build/weights/{drafter_name(drafter)}.json"


def weights_name(name: str, weights: Weights) -> str:
    """`<model>--<precision>-<hash8>` of `<model>--<precision>`: where a model's weights lie.

    Others under the same name lie elsewhere: they are fetched anew.
    """
    return f"{name}-{hash12(weights.identity)[:8]}"


def weights_marker(system: System) -> str:
    """The file, below the repository's root, that says that a system's weights are there."""
    name = weights_name(f"{system.name.model}--{system.name.precision}", system.precision.weights)
    return f"build/weights/{name}.json"


def items_marker(task: QualityTask) -> str:
    """The file, below the repository's root, that says that a task's items were fetched from the hub.

    Its name carries a hash of everything that decides the items: another pinned revision is fetched anew.
    """
    data = task.data.model_dump(mode="json", exclude={"local": True, "hub": {"__all__": {"bytes", "bytes_source"}}})
    asked = {"data": data, "select": {name: task.settings.get(name) for name in SELECTING}}
    return f"build/items/{task.task}-{hash12(asked)}.json"
