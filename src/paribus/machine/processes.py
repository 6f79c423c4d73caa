"""Process trees: what a job starts ends with it, all of it, on every way out."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from paribus.machine import guard
from paribus.machine.scrubbing import SECRET_NAME

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL: short enough that a job that must stop is gone within 5 s."""


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without anything that looks like a secret, and `extra` on top."""
    kept = {name: value for name, value in os.environ.items() if not SECRET_NAME.search(name)}
    return kept | dict(extra or {})


def peak_memory_gb(pids: list[int]) -> float | None:
    """The most memory that processes have held, added up, in GB; None where the system doesn't tell."""
    peaks = []
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = Path(f"/proc/{pid}/status").read_text(errors="replace")
            peaks.append(int(status.split("VmHWM:")[1].split()[0]))
    return round(sum(peaks) * 1024 / 1e9, 3) if peaks else None


class ProcessTree:
    """A program in its own session with everything it starts, daemons included.

    Start it from a thread that lives as long as the tree: Linux delivers a parent's death per thread. `keep` are file
    descriptors that stay open until the whole tree is gone, even after the job was killed (a lock is held that long).
    """

    def __init__(self, process: subprocess.Popen[bytes], grace_s: float) -> None:
        self._process = process
        self._grace_s = grace_s

    @classmethod
    def start(
        cls,
        command: list[str],
        *,
        log: IO[bytes] | int | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        grace_s: float = GRACE_S,
        keep: tuple[int, ...] = (),
    ) -> Self:
        """Start a command; its output goes to `log` (nowhere without one). A command that isn't there ends with 127."""
        guard.adopt_orphans()
        script = str(Path(guard.__file__).resolve())
        output = subprocess.DEVNULL if log is None else log
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", script, str(os.getpid()), str(grace_s), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment) if environment is not None else clean_environment(),
            cwd=folder,
            start_new_session=True,
            pass_fds=keep,
        )
        return cls(process, grace_s)

    @property
    def pid(self) -> int:
        """Process id of the tree's root."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether the program is still there."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code once it ended (128 + n when signal n ended it), None before."""
        return self._process.poll()

    def members(self) -> list[int]:
        """Living processes of the tree, its root first."""
        return [self.pid, *guard.descendants(self.pid)] if self.alive() else []

    def stop(self) -> int:
        """SIGTERM, then SIGKILL, to the whole tree; returns the exit code once all of it is gone and reaped."""
        if self.alive():
            # What is below the root now would come to us, unnamed, if the root itself were killed.
            known = guard.descendants(self.pid)
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(self._grace_s + 11)
            except subprocess.TimeoutExpired:
                known += guard.descendants(self.pid)
                self._process.kill()
                self._process.wait()
                self._end(known)
        return self._process.wait()

    @staticmethod
    def _end(known: list[int]) -> None:
        def reap() -> None:
            for pid in known:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    continue

        mine = set(known)
        guard.take_down(lambda: [pid for pid in guard.descendants(os.getpid()) if pid in mine], 0, reap)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the program to end by itself; whether it did."""
        end = time.monotonic() + timeout_s
        while self.alive() and time.monotonic() < end:
            time.sleep(0.02)
        return not self.alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
