"""Files that are whole or not there: temporary sibling, fsync, rename, fsync of the folder."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paribus.conditions import EnvironmentFault, UsageError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR}


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk, or a share of one, is full."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def disk_faults(path: Path) -> Iterator[None]:
    """Turn a full, read-only or closed disk into one `EnvironmentFault` that names the place.

    `UsageError` where a file stands in the place of a folder, or a folder in the place of the file.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise EnvironmentFault(
                f"the disk that holds {path} is full: free some space and start again, finished work is kept"
            ) from error
        if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise EnvironmentFault(f"can't write {path}: {os.strerror(error.errno or 0).lower()}") from error
        if error.errno in _IN_THE_WAY:
            refuse_file(path.parent)
            if error.errno == errno.EISDIR:
                raise UsageError(f"{path} is a folder, and a file is to be written there: move it away") from error
            refuse_file(path)
        raise


def refuse_file(folder: Path) -> None:
    """Raise `UsageError` where a folder can't be, since it or what it would be in is a file."""
    for place in (*reversed(folder.parents), folder):
        if os.path.lexists(place) and not place.is_dir():
            raise UsageError(f"{place} is {'a file' if place.exists() else 'a link to nothing'}: name a folder")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable (a rename is not, until its folder is synced)."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader, a crash or a full disk never meets half of it.

    Missing folders are made. Raises `EnvironmentFault` when the disk is full or can't be written.
    """
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """`write_atomic` of indented JSON with a final newline."""
    write_atomic(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
