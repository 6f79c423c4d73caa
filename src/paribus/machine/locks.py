"""One lock a card, machine-wide: two jobs never measure on one card at the same time, whoever starts them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from paribus.conditions import EnvironmentFault, slug

VARIABLE = "PARIBUS_LOCKS"
_POLL_S = 0.2
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""What file systems say that know no locks."""


@dataclass(frozen=True)
class Lock:
    """A held lock. `handle` may be kept open by a process tree: the lock is held until the last copy is closed."""

    path: Path
    handle: int


def lock_folder() -> Path:
    """Where locks live: `PARIBUS_LOCKS`, else the system's folder for locks, else the temporary folder."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    # Not the temporary folder first: schedulers give each job its own, and then nobody would meet.
    system = Path("/run/lock")
    base = system if os.access(system, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    return base / "paribus"


@contextmanager
def card_lock(card: str, *, timeout_s: float = 0.0, purpose: str = "") -> Iterator[Lock]:
    """Hold the lock of one card (a slug: `cpu`, `gpu-0a1b2c3d`).

    Waits up to `timeout_s`; then an `EnvironmentFault` says which process holds it and since when.
    """
    path = lock_folder() / f"{slug(card, 'card')}.lock"
    with file_lock(path, f"the card {card}", timeout_s=timeout_s, purpose=purpose) as lock:
        yield lock


@contextmanager
def file_lock(path: Path, subject: str, *, timeout_s: float = 0.0, purpose: str = "") -> Iterator[Lock]:
    """Hold a lock file, with whoever holds it written inside; `subject` is what the lock stands for, in words."""
    handle = _open(path, subject)
    try:
        _acquire(handle, subject, path, timeout_s)
        _write_holder(handle, purpose)
        yield Lock(path, handle)
        _clear(handle)
    finally:
        # No explicit unlock: a process tree that is still being taken down keeps it with its own copy.
        os.close(handle)


def lock_alone(handle: int) -> bool:
    """Lock an open file until its handle is closed; false where another handle holds it.

    No file beside it, and nobody to clear up after a killed process. A file system that knows no locks locks nothing.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _open(path: Path, subject: str) -> int:
    """Open the lock file for every user of the machine; read-only is enough for a lock on another user's file."""
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent == lock_folder():
                path.parent.chmod(0o1777)
        for _ in range(10):
            with contextlib.suppress(FileExistsError):
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
                os.fchmod(handle, 0o666)
                return handle
            with contextlib.suppress(FileNotFoundError):
                handle = _open_existing(path)
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    os.close(handle)
                    raise EnvironmentFault(f"{path} is not a plain file: remove it")
                return handle
    except OSError as error:
        raise EnvironmentFault(
            f"can't open the lock of {subject}, {path}: {error.strerror}; {VARIABLE} can name another folder"
        ) from error
    raise EnvironmentFault(f"can't open the lock of {subject}, {path}: it comes and goes")


def _open_existing(path: Path) -> int:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, os.O_RDWR | flags)
    except PermissionError:
        return os.open(path, os.O_RDONLY | flags)


def _acquire(handle: int, subject: str, path: Path, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise EnvironmentFault(
                    f"{subject} is in use by {_holder(path)}: wait for it, or stop it, then start again"
                ) from None
        time.sleep(_POLL_S)


def _write_holder(handle: int, purpose: str) -> None:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps({"pid": os.getpid(), "since": since, "purpose": purpose})
    # On another user's file that we may only read, the lock holds all the same; only its label is old.
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)


def _clear(handle: int) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)


def _holder(path: Path) -> str:
    """Who holds it, from what the holder wrote; anyone may write there, so only plain values are believed."""
    try:
        known = json.loads(path.read_text(encoding="utf-8")[:1000])
        pid, since = int(known["pid"]), datetime.fromisoformat(str(known["since"])).isoformat(timespec="seconds")
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    purpose = str(known.get("purpose", ""))
    shown = f" ({purpose})" if purpose.isascii() and purpose.isprintable() and 0 < len(purpose) < 80 else ""
    gone = "" if Path(f"/proc/{pid}").exists() or not Path("/proc").is_dir() else ", which is being taken down"
    return f"process {pid}{shown} since {since}{gone}"
