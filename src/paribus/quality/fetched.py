"""Items that were fetched from the hub: JSON lines below `build/items/`, and a marker that says what they are.

The marker carries the items' hash and each file's sha256, so that who reads them need not make them canonical again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.catalog import QualityTask
from paribus.catalog.envs import items_marker
from paribus.conditions import EnvironmentFault, sha256_file
from paribus.machine import write_json
from paribus.quality.rows import Item, read_rows

ITEMS, EXAMPLES = "items.jsonl", "examples.jsonl"


@dataclass(frozen=True)
class Fetched:
    """Items as they were fetched. `origin` names data sets and commits."""

    items: list[Item]
    examples: list[Item]
    hash: str
    origin: str


def marker_path(root: Path, task: QualityTask) -> Path:
    """The marker of a task's fetched items."""
    return root / items_marker(task)


def folder_of(marker: Path) -> Path:
    """The folder that a marker speaks of."""
    return marker.with_suffix("")


def how_to_fetch(task: QualityTask) -> str:
    """The command that fetches a task's items, in words."""
    return f"`paribus fetch items {task.task}` fetches them (Snakemake does it by itself)"


def write_lines(path: Path, rows: Iterable[Item]) -> None:
    """One JSON object a line, on disk for good."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n")
        file.flush()
        os.fsync(file.fileno())


def write_marker(marker: Path, about: Mapping[str, Any]) -> None:
    """Say that the folder beside the marker is whole. `about`: what is known of its items, beside its files."""
    files = {name: sha256_file(folder_of(marker) / name) for name in (ITEMS, EXAMPLES)}
    write_json(marker, {"schema": 1, **about, "files": files})


def read_fetched(root: Path, task: QualityTask) -> Fetched | None:
    """A task's fetched items; None where there are none. An `EnvironmentFault` says how to mend damaged ones."""
    marker = marker_path(root, task)
    if task.data.file is not None or not marker.is_file():
        return None
    again = f"delete {marker}, then {how_to_fetch(task)}"
    try:
        about = json.loads(marker.read_bytes())
        whole = all(sha256_file(folder_of(marker) / name) == about["files"][name] for name in (ITEMS, EXAMPLES))
        digest, origin = str(about["hash"]), str(about["origin"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvironmentFault(f"the fetched items of {task.task} can't be read: {again}") from error
    if not whole:
        raise EnvironmentFault(f"the fetched items of {task.task} changed since they were fetched: {again}")
    items, examples = (list(read_rows(folder_of(marker) / name)) for name in (ITEMS, EXAMPLES))
    return Fetched(items, examples, digest, origin)
