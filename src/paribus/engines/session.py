"""A session: one engine, started from the catalog, ready, observed, and stopped with everything it started."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paribus.catalog import Catalog, Job, System
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.base import Engine, Launch, Running, StartRecord
from paribus.engines.counters import grown
from paribus.engines.envs import environment_python, environment_versions
from paribus.engines.local import NoAnswer, ask
from paribus.engines.logs import log_end
from paribus.engines.readback import read_back
from paribus.engines.registry import engine as find_engine
from paribus.engines.starting import Starting, start_server
from paribus.engines.weights import weights_path
from paribus.machine import Load, ProcessTree, Telemetry, observe_machine
from paribus.machine.load import load_of
from paribus.machine.processes import peak_memory_gb
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
    tree: ProcessTree
    versions: dict[str, str] = field(default_factory=dict)
    telemetry: Telemetry | None = None
    record: StartRecord = field(default_factory=StartRecord)

    @property
    def base(self) -> str:
        """The server's address without `/v1`."""
        return self.endpoint.base_url.removesuffix("/v1")

    @property
    def accepted(self) -> frozenset[str]:
        """Sampling fields that the engine accepts for this system."""
        return self.engine.sampling_fields(self.system)

    def sampling(self) -> dict[str, float | int]:
        """The model card's sampling fields that this engine accepts: what each request sends."""
        fields = self.system.sampling.fields()
        return {name: value for name, value in fields.items() if name in self.accepted}

    @property
    def sampling_left_out(self) -> list[str]:
        """The card's sampling fields that this engine doesn't accept."""
        return sorted(set(self.system.sampling.fields()) - self.accepted)

    def read_metrics(self, text: str) -> tuple[dict[str, float], dict[str, float]]:
        """Counters and gauges, under our names, out of a metrics page fetched by the caller."""
        return self.engine.counters(text), self.engine.gauges(text)

    def _metrics(self) -> str:
        try:
            # An engine answers between two steps of its own, which can take seconds under load.
            return ask(f"{self.base}/metrics", timeout_s=30).decode(errors="replace")
        except NoAnswer as error:
            if self.dead():
                raise EnvironmentFault(self.death()) from error
            return ""

    def counters(self) -> dict[str, float]:
        """Engine counters now, under our names; empty when the engine has none."""
        return self.engine.counters(self._metrics())

    def gauges(self) -> dict[str, float]:
        """Engine gauges now: `running`, `waiting`."""
        return self.engine.gauges(self._metrics())

    def alive(self) -> bool:
        """Whether the engine's process is still there."""
        return self.tree.alive()

    def dead(self) -> bool:
        """Whether it is gone, asked after something failed: its connections close a moment before its process ends."""
        return self.tree.wait(1.0)

    def death(self) -> str:
        """What to say when the engine died while it was measured."""
        return f"{self.system.name.engine} ended while it was measured ({self.tree.exit_code}): {log_end(self.log)}"

    @contextmanager
    def warming_up(self) -> Iterator[None]:
        """Time the warm-up; several warm-ups of a start add up."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.record.warm_up += time.monotonic() - began

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Time the measured part, count what the engine did in it, and mark it in the telemetry.

        Several measured parts of a start add up; the window in the telemetry goes from the first to the last.
        """
        before, began = self.counters(), time.monotonic_ns()
        read = self._log_size()
        try:
            yield
        finally:
            ended = time.monotonic_ns()
            first = self.record.window_ns[0] if self.record.window_ns else began
            self.record.window_ns = (first, ended)
            self.record.measuring += (ended - began) / 1e9
        self._note_compilations(read)
        try:
            counted = grown(before, self.counters())
        except ValueError as error:
            raise EnvironmentFault(f"{self.system.name}: {error}") from error
        for name, value in counted.items():
            self.record.counters[name] = self.record.counters.get(name, 0.0) + value

    def _log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _note_compilations(self, offset: int) -> None:
        """Record what the engine's log says it compiled since `offset`: it invalidates the start (PROTOCOL rule 8)."""
        if self._log_size() <= offset:
            return
        with self.log.open("rb") as log:
            log.seek(offset)
            text = log.read().decode(errors="replace")
        compiled = [each.what for each in self.engine.compilations(text)]
        if compiled:
            before = self.record.observed.get("compiled_in_window", [])
            self.record.observed["compiled_in_window"] = [*before, *compiled]

    def load(self) -> Load:
        """What the telemetry says about the measured part so far (nothing where there is no telemetry)."""
        if self.telemetry is None or self.record.window_ns is None:
            return load_of([], 0, 0)
        return self.telemetry.load(*self.record.window_ns)

    def peak_memory_gb(self) -> float | None:
        """The most memory the engine's processes have held, added up, in GB."""
        return peak_memory_gb(self.tree.members()[1:])


def slots_of(job: Job, catalog: Catalog) -> int:
    """Requests to admit at once: the launch's `slots`, else the most that a measure of the job keeps open."""
    given = job.launch.get("slots")
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise UsageError(f"job {job.job}: slots must be a whole number of at least 1, not {given!r}")
        return given
    asked = [int(m.declared.get("requests_at_once") or _concurrency(m.id, catalog)) for m in job.measures]
    return max(asked)


def _concurrency(task: str, catalog: Catalog) -> int:
    return catalog.task(task).concurrency if task in catalog.tasks else 16


@contextmanager
def open_session(
    root: Path, job: Job, catalog: Catalog, *, log: Path | None = None, keep: tuple[int, ...] = ()
) -> Iterator[Session]:
    """Start the job's engine and wait until it answers a real request; stop the whole process tree at the end.

    `log` is where the engine's output goes (`build/logs/<job>.engine.log`); `keep` are descriptors that stay open
    until the engine is gone, however this process ends. Raises `EnvironmentFault` with the end of the engine's log
    when it dies while loading, and for missing weights, a missing environment or a port in use.
    """
    system = catalog.system(job.system)
    adapter = find_engine(system.name.engine)
    if "env" not in adapter.ways:
        raise UsageError(f"{system.name}: engines of the kind {adapter.ways[0]!r} can't be started yet")
    launch = Launch(
        root=root,
        python=environment_python(root, adapter.name),
        system=system,
        weights=weights_path(root, system.name.model, system.name.precision),
        settings=dict(job.launch),
        slots=slots_of(job, catalog),
        port=0,
    )
    output = log or root / "build" / "logs" / f"{job.job}.engine.log"
    with start_server(adapter, launch, output, keep) as started:
        yield _session(root, started, adapter, replace(launch, port=started.port), output)


def _session(root: Path, started: Starting, adapter: Engine, launch: Launch, log: Path) -> Session:
    system = launch.system
    text = log.read_text(encoding="utf-8", errors="replace")
    observed = observe_machine()
    try:
        read = adapter.observe(Running(started.base, text, launch))
    except (NoAnswer, LookupError, TypeError, ValueError) as error:
        raise EnvironmentFault(f"{adapter.name} doesn't say what it runs ({error}); {log_end(log)}") from error
    observed |= {name: value for name, value in read.items() if name != "settings"} | read_back(adapter, launch, read)
    observed |= {"streaming_interval": system.use.streaming_interval, "load_s": round(started.seconds, 2)}
    compiled = [each.seconds for each in adapter.compilations(text) if each.seconds is not None]
    if compiled:
        observed["compile_s"] = round(sum(compiled), 2)
    return Session(
        endpoint=Endpoint(base_url=f"{started.base}/v1", model=system.name.model, extra_body=system.thinking_settings),
        system=system,
        engine=adapter,
        observed=observed,
        log=log,
        timings={"engine_start": started.seconds},
        tree=started.tree,
        versions=environment_versions(root, adapter.name),
    )
