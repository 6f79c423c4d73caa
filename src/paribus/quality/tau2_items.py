"""Tau2's items: that the harness carries the same tasks, and a part of them without some domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from paribus.catalog import QualityTask
from paribus.conditions import EnvironmentFault, UsageError
from paribus.quality.canonical import item_hash, item_id, items_hash
from paribus.quality.data import Items, load_planned
from paribus.quality.known import read_known
from paribus.quality.tau2_package import environment_of, package_rows


def check_same(task: QualityTask, root: Path) -> None:
    """The package's tasks must be the task's items: each has the hash on the list of known items.

    Raises `EnvironmentFault` when the environment isn't built, `UsageError` when it carries other tasks.
    """
    rows = package_rows(task, root)
    if rows is None:
        name = environment_of(task)
        raise EnvironmentFault(f"the environment of {name} isn't built: run `paribus fetch env {name}`")
    known = read_known(task, root)
    for row in rows:
        expected, found = known.hashes.get(item_id(task, row)), item_hash(task, row)
        if expected != found:
            raise UsageError(
                f"{task.task}: the harness's package carries another {item_id(task, row)!r}: expected hash {expected}, "
                f"found {found}"
            )


def without(task: QualityTask, root: Path, whole: str, excluded: Mapping[str, str], limit: int | None) -> Items:
    """The items with this hash, without some domains; the limit takes an even share of those that are left."""
    items = load_planned(task, root, None, whole)
    left = tuple(item for item in items.items if str(item["domain"]) not in excluded)
    if len(left) < len(items.items):
        found = items_hash(task, left, items.examples)
        items = replace(items, items=left, hash=found, partial=f"partial-{found[:8]}")
    return items.limited(task, limit)
