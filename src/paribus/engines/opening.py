"""Opening a session: a job's engine from the catalog, started, ready and read back; or somebody else's server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from paribus.catalog import Catalog, Job, System, split_launch
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.base import Engine, How, Launch, Running
from paribus.engines.endpoints import endpoint_of
from paribus.engines.launching import Prepared, prepare
from paribus.engines.local import NoAnswer
from paribus.engines.logs import log_end
from paribus.engines.numbers import UNREAD
from paribus.engines.readback import read_back
from paribus.engines.registry import engine as find_engine
from paribus.engines.session import Session
from paribus.engines.starting import Starting, local_variables, real_answer, start_server
from paribus.engines.thinking import switch_seen
from paribus.machine import observe_machine, scrub
from paribus.wire import Endpoint, shown_words

ENDPOINT_WAIT_S = 120.0
"""The longest that somebody else's server may take for the first short answer."""


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


def way_of(system: System, adapter: Engine) -> How:
    """How this system's server is had: as its file says, else the adapter's first way."""
    how: How = "endpoint" if system.use.hosted else system.use.how or adapter.ways[0]
    if how not in adapter.ways:
        raise UsageError(f"{system.name}: {adapter.name} can't be had as {how!r}; it can as {', '.join(adapter.ways)}")
    return how


def engine_log(root: Path, job: Job) -> Path:
    """Where the output of a job's engine goes."""
    return root / "build" / "logs" / f"{job.job}.engine.log"


@contextmanager
def open_session(
    root: Path, job: Job, catalog: Catalog, *, log: Path | None = None, keep: tuple[int, ...] = ()
) -> Iterator[Session]:
    """Start the job's engine and wait until it answers a real request; stop the whole process tree at the end.

    `log` is where the engine's output goes (`build/logs/<job>.engine.log`); `keep` are descriptors that stay open
    until the engine is gone, however this process ends. Raises `EngineDied` with the end of the engine's log when it
    dies while loading or never answers, and `EnvironmentFault` for missing weights, a missing environment, image or
    program, a missing address or key, or a port in use.
    """
    system = catalog.system(job.system)
    adapter = find_engine(system.name.engine, catalog.extra)
    how = way_of(system, adapter)
    output = log or engine_log(root, job)
    settings, variables = split_launch(job.launch)
    launch = Launch(
        root=root,
        python=Path(),
        system=system,
        weights=Path(),
        settings=settings,
        slots=slots_of(job, catalog),
        port=0,
        how=how,
        variables=variables,
        card=job.hardware,
    )
    if how == "endpoint":
        yield _hosted(adapter, launch, output)
        return
    prepared = prepare(adapter, launch, root / "build" / "run" / job.job)
    with start_server(adapter, prepared, output, keep) as started:
        yield _started(started, adapter, prepared, output)


def _started(started: Starting, adapter: Engine, prepared: Prepared, log: Path) -> Session:
    launch = replace(prepared.launch, port=started.port)
    system, text = launch.system, log.read_text(encoding="utf-8", errors="replace")
    try:
        running = Running(started.base, text, launch)
        read = adapter.observe(running)
    except (NoAnswer, LookupError, TypeError, ValueError) as error:
        raise EnvironmentFault(f"{adapter.name} doesn't say what it runs ({error}); {log_end(log)}") from error
    observed = observe_machine() | _read(adapter, launch, read) | switch_seen(adapter, running, read)
    observed |= prepared.observed
    if prepared.container is None and (given := local_variables(adapter)):
        observed["local_variables"] = given
    observed["load_s"] = round(started.seconds, 2)
    compiled = [each.seconds for each in adapter.compilations(text) if each.seconds is not None]
    if compiled:
        observed["compile_s"] = round(sum(compiled), 2)
    return Session(
        endpoint=Endpoint(
            base_url=f"{started.base}/v1",
            model=adapter.request_model(launch),
            extra_body={**system.thinking_settings, **adapter.request_fields(launch)},
        ),
        system=system,
        engine=adapter,
        observed=observed,
        log=log,
        timings={"engine_start": started.seconds},
        tree=started.tree,
        versions=prepared.versions,
        own_processes=prepared.own_processes,
    )


def _read(adapter: Engine, launch: Launch, read: dict[str, Any]) -> dict[str, Any]:
    """What was read back, its settings held against the declared ones, and how it streams."""
    use, apart = launch.system.use, ("settings", "research_implementation")
    observed = {name: value for name, value in read.items() if name not in apart}
    observed |= read_back(adapter, launch, read) | {"streaming_interval": _interval(adapter, launch, read)}
    if use.research_implementation or read.get("research_implementation"):
        observed["research_implementation"] = True
    return observed


def _interval(adapter: Engine, launch: Launch, read: dict[str, Any]) -> int | str:
    """Tokens to a streamed piece: as the server tells; 1 where it knows no other; else not stated.

    Raises `EnvironmentFault` where the server streams otherwise than its file says: no hash would tell the two apart.
    """
    if not adapter.streaming_intervals:
        return UNREAD if launch.how == "endpoint" else 1
    wanted, told = launch.system.use.streaming_interval, read.get("streaming_interval", UNREAD)
    if told not in (wanted, UNREAD):
        raise EnvironmentFault(
            f"{launch.system.name}: declared is streaming_interval {wanted}, but {adapter.name} runs with {told}: "
            "correct the system's file, or the engine's version is not the one it was written for"
        )
    return UNREAD if told == UNREAD else wanted


def _hosted(adapter: Engine, launch: Launch, log: Path) -> Session:
    """A session with somebody else's server: nothing is started, and nothing is known of its machine."""
    system = launch.system
    if system.use.hosted is None:
        raise UsageError(f"{system.name}: its file says nowhere at which address it is served (hosted)")
    fields = {**system.thinking_settings, **adapter.request_fields(launch)}
    endpoint = replace(endpoint_of(system.use.hosted), extra_body=fields)
    base, began = endpoint.base_url.removesuffix("/v1"), time.monotonic()
    try:
        real_answer(endpoint, ENDPOINT_WAIT_S)
        read = adapter.observe(Running(base, "", launch, endpoint.api_key))
    except NoAnswer as error:
        said = scrub(shown_words(str(error), endpoint.api_key))
        raise EnvironmentFault(f"{system.request_model} at {_host(endpoint)} doesn't answer: {said}") from None
    seconds = time.monotonic() - began
    place = f"not disclosed, served at {_host(endpoint)}" if system.use.hosted.url else "not disclosed"
    return Session(
        endpoint=endpoint,
        system=system,
        engine=adapter,
        observed={"card": place, **_read(adapter, launch, read)},
        log=log if log.exists() else Path(os.devnull),
        timings={"engine_start": seconds},
        tree=None,
    )


def _host(endpoint: Endpoint) -> str:
    return urlsplit(endpoint.base_url).hostname or "its address"
