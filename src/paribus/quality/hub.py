"""Rows of a task from the hub, at the revision that the task pins. Nothing else in Paribus downloads items."""

from __future__ import annotations

from typing import Any

from paribus.catalog import QualityTask
from paribus.conditions import EnvironmentFault, UsageError


def hub_rows(task: QualityTask, split: str | None = None) -> list[dict[str, Any]]:
    """All rows of one split (the task's `split` setting, else `test`) as plain JSON values.

    Raises `UsageError` when the task pins no revision, `EnvironmentFault` when the hub can't be reached and the rows
    are not in the local cache.
    """
    repository, revision = task.data.hub, task.data.revision
    if repository is None or revision is None:
        raise UsageError(f"{task.task}: its items can't come from the hub, the task's file pins no revision")
    split = split or str(task.settings.get("split", "test"))
    try:
        # Imported here: it takes a second, and most commands never need it.
        from datasets import load_dataset
    except ImportError as error:
        raise EnvironmentFault(
            f"{task.task}: reading the hub needs the `quality` extra: uv sync --extra quality"
        ) from error
    try:
        config = task.settings.get("hub_config")
        rows = load_dataset(repository, config, revision=revision, split=split)
        return [_plain(dict(row)) for row in rows]
    except Exception as error:  # the library raises many kinds for one cause: no network, no such split, no space
        reason = " ".join(str(error).split())[:200]
        raise EnvironmentFault(
            f"{task.task}: can't read {repository} at {revision[:12]} ({split}) from the hub: {reason}. "
            "Set PARIBUS_DATA to a folder that holds the items, or connect to the hub"
        ) from error


def _plain(value: Any) -> Any:
    """JSON values only: dates as ISO text, arrays as lists."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
