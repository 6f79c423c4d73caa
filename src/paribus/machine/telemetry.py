"""Telemetry: a process of its own reads the machine while a job measures; see `paribus.machine.sampler`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from paribus.machine.load import Load, Row, load_of, write_telemetry
from paribus.machine.processes import clean_environment

HERTZ = 10


class Telemetry:
    """Readings of this machine, ten a second, our own process tree (this process and all below) told apart.

    The readings go through a file that has no name: nothing is left behind, and a sampler that hangs in the driver
    or dies takes nothing along but the readings it can't make any more.
    """

    def __init__(self, hertz: float = HERTZ) -> None:
        self._interval_s = 1 / hertz
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `stop`)
        self._process: subprocess.Popen[bytes] | None = None
        self._rows: list[Row] = []
        self._read = 0

    def start(self) -> Self:
        """Start sampling."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "paribus.machine.sampler", str(os.getpid()), str(self._interval_s)],
            stdin=subprocess.DEVNULL,
            stdout=self._spool,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            start_new_session=True,
        )
        return self

    def stop(self) -> None:
        """End the sampler; never waits for one that hangs in the kernel."""
        if self._process is not None:
            self._collect()
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
            self._process = None
        self._spool.close()

    @property
    def pid(self) -> int | None:
        """Process id of the sampler while it runs."""
        return self._process.pid if self._process else None

    def rows(self) -> list[Row]:
        """Every reading so far, oldest first; `t_ns` is this machine's monotonic clock."""
        if not self._spool.closed:
            self._collect()
        return self._rows

    def wait_ready(self, timeout_s: float = 10.0) -> bool:
        """Wait for the first reading; whether it came (a job goes on without, and says nothing it didn't read)."""
        end = time.monotonic() + timeout_s
        while not self.rows() and time.monotonic() < end:
            time.sleep(0.02)
        return bool(self._rows)

    def _collect(self) -> None:
        # `pread`: the file's own position is shared with the sampler, who writes there.
        text = b""
        while block := os.pread(self._spool.fileno(), 1 << 20, self._read + len(text)):
            text += block
        whole = text.rfind(b"\n") + 1
        self._read += whole
        for line in text[:whole].splitlines():
            with contextlib.suppress(ValueError):
                self._rows.append(json.loads(line))

    def load(self, since_ns: int, until_ns: int, patience_s: float = 1.0) -> Load:
        """What the readings say about a window (monotonic nanoseconds). Waits for the first one after it, a second at
        most, so that the file tells the same as these."""
        end = time.monotonic() + patience_s
        while self._process is not None and time.monotonic() < end and not self._beyond(until_ns):
            time.sleep(0.02)
        return load_of(self.rows(), since_ns, until_ns)

    def _beyond(self, until_ns: int) -> bool:
        rows = self.rows()
        # Without a single reading there is nothing to wait for.
        return not rows or rows[-1]["t_ns"] >= until_ns

    def write(self, path: Path, since_ns: int, until_ns: int, zero_ns: int) -> None:
        """Write `telemetry.parquet` with the readings of a window, time counted from `zero_ns`."""
        write_telemetry(path, [row for row in self.rows() if since_ns <= row["t_ns"] <= until_ns], zero_ns)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
