"""Rows of a task from the hub: files of a data set at a commit. Nothing else in Paribus downloads items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paribus.catalog import HubSource
from paribus.catalog.offline import OFFLINE, offline
from paribus.conditions import EnvironmentFault, UsageError, sha256_file
from paribus.quality.rows import parquet_rows, read_rows

Item = dict[str, Any]
_INTEGER = re.compile(r"(?:\\boxed\{)?\s*(\d{1,9})\s*\}?")
_WITHOUT = "or set PARIBUS_DATA to a folder that holds the items"


def resolve(source: HubSource, task: str) -> str:
    """The commit that a source's rows are read at: the pinned one, else the one the hub has now.

    Raises `EnvironmentFault` where the hub can't be asked.
    """
    if source.pinned:
        return source.revision
    said = _asked(source, task, lambda hub: hub.HfApi().dataset_info(source.repository).sha)
    if not re.fullmatch("[0-9a-f]{40}", str(said)):
        raise EnvironmentFault(f"{task}: the hub names no commit of {source.repository}")
    return str(said)


def rows_at(
    source: HubSource, commit: str, files: Mapping[str, str | None], id_field: str, task: str
) -> Iterator[Item]:
    """Rows of some of a source's files at a commit, with what the source says they lack.

    Each file is checked against its sha256 where that is known. Raises `EnvironmentFault` where the hub can't be
    reached or a file is another one, `UsageError` for rows of another form.
    """
    for name, expected in files.items():
        path = Path(
            _asked(
                source,
                task,
                lambda hub, name=name: hub.hf_hub_download(
                    source.repository, name, revision=commit, repo_type="dataset"
                ),
            )
        )
        if expected is not None and (found := sha256_file(path)) != expected:
            raise EnvironmentFault(
                f"{task}: {source.repository}/{name} at {commit[:12]} is not the file that the task names: "
                f"sha256 expected {expected}, found {found}"
            )
        rows = parquet_rows(path) if name.endswith(".parquet") else read_rows(path)
        for number, row in enumerate(rows, 1):
            yield completed(source, row, id_field, f"{task}: {source.repository}/{name}, row {number}")


def completed(source: HubSource, row: Item, id_field: str, where: str) -> Item:
    """A row of the hub as an item: ids that don't clash, fields that the source adds, whole numbers as such."""
    item = {**row, **source.add}
    if id_field not in row:
        raise UsageError(f"{where}: it has no field {id_field!r}")
    if source.id_prefix:
        item[id_field] = f"{source.id_prefix}{row[id_field]}"
    for ours, theirs in source.integers.items():
        value = row.get(theirs)
        match = _INTEGER.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
        if match is None:
            raise UsageError(f"{where}: its field {theirs!r} holds no whole number: {str(value)[:40]!r}")
        item[ours] = int(match[1])
    return item


def _asked(source: HubSource, task: str, ask: Any) -> Any:
    """What the hub's client answers; its many kinds of error (network, licence, no such file) as one sentence."""
    if offline():
        raise EnvironmentFault(
            f"{task}: its items come from the hub ({source.repository}), and {OFFLINE} is set: take it away, {_WITHOUT}"
        )
    try:
        # Imported here: most commands never need it.
        import huggingface_hub as hub
    except ImportError as error:
        raise EnvironmentFault(f"{task}: reading the hub needs the `quality` extra: uv sync --extra quality") from error
    try:
        return ask(hub)
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        at = source.revision[:12] if source.pinned else "its newest commit"
        raise EnvironmentFault(
            f"{task}: can't read {source.repository} at {at} from the hub: {reason}. Connect to the hub, {_WITHOUT}"
        ) from error
