"""Rows of items out of files: JSON lines (`.gz` too), a `.json` list, Parquet. Errors name the file and the row."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paribus.conditions import UsageError

Item = dict[str, Any]


def read_rows(path: Path) -> Iterator[Item]:
    """Rows of a JSON lines file (`.gz` too) or of a `.json` file that holds a list."""
    try:
        opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline="\n") as file:
            if path.suffix == ".json":
                rows = json.load(file)
                if not isinstance(rows, list):
                    raise UsageError(f"{path} must hold a list of items")
                yield from (_row(path, number, row) for number, row in enumerate(rows, 1))
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _row(path, number, json.loads(line))
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}") from error
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise UsageError(f"can't read the items of {path}: {error}") from error


def read_object(path: Path) -> Item:
    """The one object that a `.json` file holds."""
    try:
        return _row(path, 1, json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"can't read {path}: {error}") from error


def parquet_rows(path: Path) -> Iterator[Item]:
    """Rows of a Parquet file as plain JSON values, some at a time."""
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=64):
                yield from (plain(row) for row in batch.to_pylist())
    except (OSError, ValueError, ArrowException) as error:
        raise UsageError(f"can't read the items of {path}: {' '.join(str(error).split())[:200]}") from error


def plain(value: Any) -> Any:
    """JSON values only: dates as ISO text, arrays as lists."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _row(path: Path, number: int, row: Any) -> Item:
    if not isinstance(row, dict):
        raise UsageError(f"{path}, item {number}: an item must be an object")
    return row
