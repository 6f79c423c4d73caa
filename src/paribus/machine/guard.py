"""The guard: a small process between a job and what it starts, so that nothing outlives the job.

Run as a script with the standard library only: `python guard.py <parent pid> <grace seconds> <command> ...`.
It adopts every orphan below it (`PR_SET_CHILD_SUBREAPER`), so a program that turns itself into a daemon stays in
the tree. It takes the tree down and reaps it when it is told to (SIGTERM), when the program ends, and when the job
is gone, however the job died. The program itself dies with the guard (`PR_SET_PDEATHSIG`).
See prctl(2), <https://man7.org/linux/man-pages/man2/prctl.2.html>.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
_POLL_S = 0.05


def prctl(option: int, value: int) -> None:
    """One prctl call on Linux; nothing elsewhere."""
    if _LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of every orphan below it (Linux only)."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def dies_with(parent: int, number: int) -> Callable[[], None]:
    """A function for a forked child: get signal `number` when the thread that started us ends, or at once if it has."""

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return arrange


def process_fields(pid: int) -> list[str] | None:
    """A process's facts in /proc from its state on (zombies have them too); None where it isn't there."""
    try:
        # The name in brackets may hold anything, brackets and blanks included: read after the last one.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split() or None
    except OSError:
        return None


def _parents() -> dict[int, int]:
    """Parent of every process that isn't a zombie."""
    parents: dict[int, int] = {}
    if _LINUX:
        for entry in os.scandir("/proc"):
            fields = process_fields(int(entry.name)) if entry.name.isdigit() else None
            if fields is not None and fields[0] not in "ZX":
                parents[int(entry.name)] = int(fields[1])
        return parents
    listing = subprocess.run(["ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        pid, parent, state = line.split()[:3]
        if not state.startswith("Z"):
            parents[int(pid)] = int(parent)
    return parents


def children_of(pid: int) -> dict[int, str]:
    """The processes that a process started and that are its own, each with its start time (Linux)."""
    with contextlib.suppress(OSError):
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {int(child): fields[19] for child in listed if (fields := process_fields(int(child))) is not None}
    return {}


def reap_orphans(orphans: Mapping[int, str], patience_s: float = 2.0) -> None:
    """Wait for processes whose parent was killed, as far as they came to us; nobody else's exit code is touched.

    `orphans`: as `children_of` told them of the parent while it was there. What isn't dead after the patience is left.
    A process that adopts orphans has to do this for each, or they stay as zombies.
    """
    end = time.monotonic() + patience_s
    for pid, began in orphans.items():
        while (fields := process_fields(pid)) is not None and (fields[1], fields[19]) == (str(os.getpid()), began):
            if time.monotonic() > end:
                break
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            time.sleep(0.002)


def descendants(root: int) -> list[int]:
    """Living processes below `root` (not itself), parents before children."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def take_down(living: Callable[[], list[int]], grace_s: float, reap: Callable[[], None]) -> bool:
    """SIGTERM to all that `living` lists, SIGKILL to those left after the grace, again until none is left.

    Returns whether all are gone (a process stuck in the kernel may outlast the 10 s that killing is tried).
    """
    end = time.monotonic() + grace_s
    told: set[int] = set()
    while pids := living():
        if time.monotonic() >= end:
            break
        _signal([pid for pid in pids if pid not in told], signal.SIGTERM)
        told.update(pids)
        time.sleep(_POLL_S)
        reap()
    end = time.monotonic() + 10
    while (pids := living()) and time.monotonic() < end:
        _signal(pids, signal.SIGKILL)
        time.sleep(_POLL_S)
        reap()
    reap()
    return not living()


class _Told(Exception):
    """A signal asked the guard to stop."""


def _reap_all() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _wait(child: int, parent: int) -> int:
    """Until the child ends (its exit status) or the job is gone (`_Told`)."""
    while True:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == child:
                    return os.waitstatus_to_exitcode(status)
        if os.getppid() != parent:
            raise _Told
        time.sleep(_POLL_S)


def main(arguments: list[str]) -> int:
    """Start the command, guard it, take down all that is left, return its exit code (128 + n for signal n)."""
    parent, grace_s, command = int(arguments[0]), float(arguments[1]), arguments[2:]

    def told(_number: int, _frame: object) -> None:
        # Once is enough; a second signal must not interrupt the taking down.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Told

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    adopt_orphans()
    code = 128 + signal.SIGTERM
    try:
        signal.signal(signal.SIGTERM, told)
        dies_with(parent, signal.SIGTERM)()
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            preexec_fn=dies_with(os.getpid(), signal.SIGKILL),  # noqa: PLW1509 (this process has one thread)
            restore_signals=True,
        )
        code = _wait(child.pid, parent)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except _Told:
        pass
    except OSError as error:
        print(f"can't start {command[0]}: {error.strerror}", file=sys.stderr)
        code = 127
    gone = take_down(lambda: descendants(os.getpid()), grace_s, _reap_all)
    if not gone:
        print("some processes of the engine can't be stopped", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
