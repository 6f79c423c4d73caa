"""Stopping: on Ctrl-C, on SIGTERM, and when the workflow that started this job is gone.

A job that lost its Snakemake would keep the card busy for nobody. The workflow puts its mark into
`PARIBUS_WORKFLOW_PID`: `<pid>`, or `workflow_mark()`, which also tells a reused pid and another node apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from paribus.conditions import UsageError
from paribus.machine import guard
from paribus.machine.holding import SIGNALS

VARIABLE = "PARIBUS_WORKFLOW_PID"
LAST_RESORT_S = 4.0
"""A job that can't clean up in this time takes its processes down and ends."""
_POLL_S = 0.5


class Stopped(SystemExit):
    """The job was told to stop (exit code 130 or 143). A `SystemExit`, which event loops let through."""


def start_time(pid: int) -> str | None:
    """When a process started, as the system counts it; None when it isn't there (or is a zombie)."""
    fields = guard.process_fields(pid)
    if fields is None:
        return None if Path("/proc/self").exists() else _alive_elsewhere(pid)
    return None if fields[0] in "ZX" else fields[19]


def _alive_elsewhere(pid: int) -> str | None:
    """Without /proc: only whether the process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"


def _place() -> str:
    """A name for this boot and process namespace: a pid means something only there."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = str(Path("/proc/self/ns/pid").stat().st_ino)
        return hashlib.sha256((boot + namespace).encode()).hexdigest()[:12]
    return "unknown"


def workflow_mark() -> str:
    """What a workflow puts into `PARIBUS_WORKFLOW_PID`: its pid, start time and place."""
    return f"{os.getpid()}:{start_time(os.getpid())}:{_place()}"


class _Workflow:
    """The workflow as the variable names it."""

    def __init__(self, mark: str) -> None:
        parts = mark.split(":")
        if not parts[0].isdecimal() or len(parts) not in {1, 3}:
            raise UsageError(f"{VARIABLE} is {mark!r}: it is set by the Snakefile, don't set it by hand")
        self.pid = int(parts[0])
        self.here = len(parts) == 1 or parts[2] == _place()
        self.started = parts[1] if len(parts) == 3 else start_time(self.pid)

    def gone(self) -> bool:
        """Whether it ended. A workflow on another node (a cluster) can't be seen, and is never gone."""
        return self.here and (self.started is None or start_time(self.pid) != self.started)


def _end_hard(code: int) -> None:
    """End now, with everything below us."""
    own = os.getpid()
    guard.take_down(lambda: guard.descendants(own), 0, lambda: None)
    os._exit(code)


def arm_last_resort(code: int) -> None:
    """End hard, with this exit code, unless the job has ended by itself within `LAST_RESORT_S`."""

    def wait() -> None:
        time.sleep(LAST_RESORT_S)
        print("paribus: cleaning up took too long: ending now", file=sys.stderr, flush=True)
        _end_hard(code)

    threading.Thread(target=wait, name="last-resort", daemon=True).start()


def _install(number: int, told: list[int]) -> object:
    """Let a signal stop the job; its exit code is added to `told`. Returns the handler there was."""

    def stop(received: int, _frame: FrameType | None) -> None:
        # Cleaning up must not be interrupted; the last resort bounds it.
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        code = 130 if received == signal.SIGINT else 143
        arm_last_resort(code)
        told.append(code)
        raise Stopped(code)

    return signal.signal(number, stop)


@contextmanager
def watch_parent() -> Iterator[None]:
    """Within: SIGINT, SIGTERM and SIGHUP end the job through its `finally` blocks (exit 130 or 143).

    The end of the workflow named by `PARIBUS_WORKFLOW_PID` counts as SIGTERM. Call it from the main thread.
    """
    mark = os.environ.get(VARIABLE, "").strip()
    workflow = _Workflow(mark) if mark else None
    if workflow is not None and workflow.gone():
        print("paribus: the workflow that started this job is gone: stopping", file=sys.stderr, flush=True)
        raise Stopped(143)
    ended = threading.Event()
    told: list[int] = []
    before = {number: _install(number, told) for number in SIGNALS}

    def watch(watched: _Workflow) -> None:
        while not ended.wait(_POLL_S):
            if watched.gone():
                print("paribus: the workflow that started this job is gone: stopping", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGTERM)
                return

    if workflow is not None and workflow.here:
        threading.Thread(target=watch, args=(workflow,), name="workflow-watch", daemon=True).start()
    try:
        yield
    except Stopped:
        raise
    except BaseException as error:
        # An event loop that is stopped while it starts raises errors of its own: the job was stopped all the same.
        if told:
            raise Stopped(told[0]) from error
        raise
    finally:
        ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
