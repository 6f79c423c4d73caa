"""The telemetry's own process: reads the machine ten times a second and appends a line a reading.

`python -m paribus.machine.sampler <parent pid> <interval s>`, lines on stdout. The card's driver is asked in a thread
of its own: when a call blocks, the CPU's readings go on, and the card's are missing rather than old.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from paribus.machine.apple import AppleChip, open_apple
from paribus.machine.cpu import cpu_times, tree_seconds
from paribus.machine.guard import dies_with
from paribus.machine.nvml import Nvml, open_nvml
from paribus.machine.rapl import Rapl

STUCK_NS = 2_000_000_000
"""A reading that the driver took this long for is of no known moment."""


class CardReader:
    """Reads the cards in a thread; `take` hands over a reading once, and only a fresh one."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._latest: dict[str, float | int] = {}
        threading.Thread(target=self._run, name="card", daemon=True).start()

    def _run(self) -> None:
        nvml: Nvml | None = open_nvml()
        while nvml is not None:
            asked = time.monotonic_ns()
            reading = nvml.sample()
            if time.monotonic_ns() - asked < STUCK_NS:
                with self._lock:
                    self._latest = reading | {"card_ns": asked} if reading else {}
            time.sleep(self._interval_s)

    def take(self) -> dict[str, float | int]:
        """The reading since the last take with its own time (`card_ns`), empty when there is none."""
        with self._lock:
            latest, self._latest = self._latest, {}
        return latest


def reading(root: int, cards: CardReader, rapl: Rapl, apple: AppleChip | None = None) -> dict[str, float | int]:
    """One row: monotonic time, cumulative CPU seconds (all, idle, stolen, own tree), and what the cards say."""
    times = cpu_times()
    row: dict[str, float | int] = {
        "t_ns": time.monotonic_ns(),
        "cpu_total_s": times.total,
        "cpu_idle_s": times.idle,
        "cpu_stolen_s": times.stolen,
        "cpu_own_s": tree_seconds(root),
        **cards.take(),
    }
    energies = {"package_j": rapl.joules(), "soc_j": apple.joules() if apple is not None else None}
    return row | {name: joules for name, joules in energies.items() if joules is not None}


def main(arguments: list[str]) -> None:
    """Sample until the parent is gone or the reader of our lines is."""
    root, interval_s = int(arguments[0]), float(arguments[1])
    dies_with(root, signal.SIGKILL)()
    cards, rapl, apple = CardReader(interval_s), Rapl(), open_apple()
    due = time.monotonic()
    try:
        while os.getppid() == root:
            sys.stdout.write(json.dumps(reading(root, cards, rapl, apple)) + "\n")
            sys.stdout.flush()
            due = max(due + interval_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
    except OSError:
        return  # a full disk: what was read so far stays, and its absence shows


if __name__ == "__main__":
    main(sys.argv[1:])
