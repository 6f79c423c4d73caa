"""A session: one engine, started from the catalog, ready, observed, and stopped with everything it started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.catalog import Catalog, Job, System
from paribus.engines.base import Engine, StartRecord

if TYPE_CHECKING:
    from paribus.wire import Endpoint


@dataclass
class Session:
    """One running server. `timings` in seconds: `engine_start`, from the command to the first real answer.

    A measuring function wraps its parts in `warming_up()` and `measuring()`; what else it found goes into `record`.
    """

    endpoint: Endpoint
    system: System
    engine: Engine
    observed: dict[str, Any]
    log: Path
    timings: dict[str, float]
    record: StartRecord = field(default_factory=StartRecord)

    def counters(self) -> dict[str, float]:
        """Engine counters now, under our names; empty when the engine has none."""
        raise NotImplementedError

    def gauges(self) -> dict[str, float]:
        """Engine gauges now: `running`, `waiting`."""
        raise NotImplementedError

    def alive(self) -> bool:
        """Whether the engine's process is still there."""
        raise NotImplementedError

    @contextmanager
    def warming_up(self) -> Iterator[None]:
        """Time the warm-up."""
        yield

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Time the measured part, count what the engine did in it, and mark it in the telemetry."""
        yield


@contextmanager
def open_session(root: Path, job: Job, catalog: Catalog) -> Iterator[Session]:
    """Start the job's engine and wait until it answers a real request; stop the whole process tree at the end."""
    raise NotImplementedError
    yield
