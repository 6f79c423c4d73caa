"""Fetching a task's items from the hub, before anything is measured: measuring and scoring are offline."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from paribus.catalog import HubSource, QualityTask
from paribus.conditions import UsageError
from paribus.machine import disk_faults
from paribus.machine.locks import file_lock
from paribus.quality import hub
from paribus.quality.canonical import Item, check_examples, check_values, items_hash
from paribus.quality.data import in_window, select, unique
from paribus.quality.fetched import EXAMPLES, ITEMS, folder_of, marker_path, write_lines, write_marker
from paribus.quality.known import read_known

Tell = Callable[[str], None]


def fetch_items(root: Path, task: QualityTask, tell: Tell) -> Path:
    """Fetch all items of a task from the hub unless they are there; returns their marker, written last.

    Raises `UsageError` for a task that doesn't come from the hub or when the hub has other items than the task says,
    `EnvironmentFault` when the hub can't be read.
    """
    if not task.data.hub:
        raise UsageError(f"{task.task}: its items don't come from the hub, there is nothing to fetch")
    marker = marker_path(root, task)
    folder = folder_of(marker)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(f".{folder.name}.lock"), f"the items of {task.task}", timeout_s=3600):
        if marker.is_file():
            tell(f"the items of {task.task} are there already")
            return marker
        began = time.monotonic()
        commits = [hub.resolve(source, task.task) for source in task.data.hub]
        for source, commit in zip(task.data.hub, commits, strict=True):
            size = "size not known" if source.bytes is None else f"{source.bytes / 1e6:,.2f} MB"
            pin = "" if source.pinned else ", not pinned: another day may bring other items"
            tell(f"fetching items of {task.task}: {source.repository} at {commit[:12]} ({size}{pin})")
        items, examples = _rows(root, task, commits)
        digest = items_hash(task, items, examples)
        with disk_faults(folder), tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
            fresh = Path(place) / "items"
            fresh.mkdir()
            write_lines(fresh / ITEMS, items)
            write_lines(fresh / EXAMPLES, examples)
            if folder.exists():
                shutil.rmtree(folder)
            fresh.rename(folder)
        write_marker(marker, _about(task, commits, items, examples, digest))
        tell(f"{len(items):,} items of {task.task}, hash {digest[:12]} ({time.monotonic() - began:.0f} s)")
    return marker


def _rows(root: Path, task: QualityTask, commits: list[str]) -> tuple[list[Item], list[Item]]:
    sources = list(zip(task.data.hub, commits, strict=True))
    # What lies outside the task's window is let go row by row: the tests of all contests are gigabytes.
    found = [row for source, commit in sources for row in _read(task, source, commit) if in_window(task, row)]
    items = select(task, read_known(task, root), unique(task, found))
    examples = [row for source, commit in sources for row in _read(task, source, commit, examples=True)]
    check_values(task, items, examples)
    check_examples(task, items, examples, local=False)
    expected, count = task.data.items_hash, task.data.count
    if len(items) != count or (expected is not None and items_hash(task, items, examples) != expected):
        what = f"{count:,} items" + (f" with hash {expected}" if expected else "")
        raise UsageError(
            f"{task.task}: the hub has other items than the task: expected {what}, found {len(items):,} "
            f"with hash {items_hash(task, items, examples)}"
        )
    return items, examples


def _read(task: QualityTask, source: HubSource, commit: str, *, examples: bool = False) -> Iterator[Item]:
    files = source.examples if examples else source.files
    return hub.rows_at(source, commit, files, task.data.id_field, task.task)


def _about(
    task: QualityTask, commits: list[str], items: list[Item], examples: list[Item], digest: str
) -> dict[str, object]:
    sources = [
        {"repository": source.repository, "revision": commit, "pinned": source.pinned, "files": sorted(source.files)}
        for source, commit in zip(task.data.hub, commits, strict=True)
    ]
    return {
        "task": task.task,
        "source": "hub",
        "origin": ", ".join(f"{one['repository']}@{one['revision']}" for one in sources),
        "sources": sources,
        "count": len(items),
        "examples": len(examples),
        "hash": digest,
    }
