"""A session: one running server, as measuring functions see it. `paribus.engines.opening` opens one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.catalog import System
from paribus.conditions import EnvironmentFault
from paribus.engines.base import Engine, StartRecord
from paribus.engines.counters import grown
from paribus.engines.deaths import death, how
from paribus.engines.local import NoAnswer, ask, ask_json
from paribus.machine import Hold, Load, ProcessTree, Telemetry
from paribus.machine.load import load_of
from paribus.machine.processes import peak_memory_gb
from paribus.wire import Endpoint


@dataclass
class Session:
    """One running server; `tree` is None where somebody else runs it.

    `timings` in seconds: `engine_start`, from the command to the first real answer.

    A measuring function wraps its parts in `warming_up()` and `measuring()`; what else it found goes into `record`.
    """

    endpoint: Endpoint
    system: System
    engine: Engine
    observed: dict[str, Any]
    log: Path
    timings: dict[str, float]
    tree: ProcessTree | None
    versions: dict[str, str] = field(default_factory=dict)
    own_processes: bool = True
    """Whether the engine's processes are below ours (those in a docker container aren't)."""
    telemetry: Telemetry | None = None
    record: StartRecord = field(default_factory=StartRecord)
    hold: Hold = field(default_factory=lambda: Hold(""))
    """A measuring function begins it once what it measured can't be had again but by measuring anew."""

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

    def token_counter(self) -> Callable[[str], int | None]:
        """Counts tokens of texts by the server's own tokenizer; None for all after the first that it doesn't answer."""
        silent = False

        def count(text: str) -> int | None:
            nonlocal silent
            call = None if silent else self.engine.token_count(self.endpoint.model, text)
            if call is None:
                return None
            try:
                reply = ask_json(f"{self.base}{call.path}", call.body, timeout_s=60, key=self.endpoint.api_key)
                return call.read(reply)
            except (NoAnswer, LookupError, TypeError, ValueError):
                silent = True
                return None

        return count

    def read_metrics(self, text: str) -> tuple[dict[str, float], dict[str, float]]:
        """Counters and gauges, under our names, out of a metrics page fetched by the caller."""
        return self.engine.counters(text), self.engine.gauges(text)

    def _metrics(self) -> str:
        if self.engine.metrics_path is None:
            return ""
        try:
            # An engine answers between two steps of its own, which can take seconds under load.
            page = ask(f"{self.base}{self.engine.metrics_path}", timeout_s=30, key=self.endpoint.api_key)
        except NoAnswer as error:
            if self.dead():
                raise self.death() from error
            return ""
        return page.decode(errors="replace")

    def counters(self) -> dict[str, float]:
        """Engine counters now, under our names; empty when the engine has none."""
        return self.engine.counters(self._metrics())

    def gauges(self) -> dict[str, float]:
        """Engine gauges now: `running`, `waiting`."""
        return self.engine.gauges(self._metrics())

    @property
    def hosted(self) -> bool:
        """Whether somebody else runs the server: never ranked with owned hardware."""
        return self.tree is None

    def alive(self) -> bool:
        """Whether the engine's process is still there (of somebody else's server, that is taken for granted)."""
        return self.tree is None or self.tree.alive()

    def dead(self) -> bool:
        """Whether it is gone, asked after something failed: its connections close a moment before its process ends."""
        return self.tree is not None and self.tree.wait(1.0)

    def death(self) -> EnvironmentFault:
        """What to raise when the engine died while it was measured: `EngineDied`, where it is the reason itself."""
        code = (None if self.tree is None else self.tree.exit_code) or 0
        said = f"{self.system.name.engine} ended while it was measured ({how(code)})"
        return death(said, code, self.log, measuring=True)

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
        """The most memory the engine's processes have held, added up, in GB; None where they are not ours to see."""
        if self.tree is None or not self.own_processes:
            return None
        return peak_memory_gb(self.tree.members()[1:])
