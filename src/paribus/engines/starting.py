"""From a command line to a server that has answered a real request, or one clear sentence why it hasn't."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from paribus.conditions import EnvironmentFault
from paribus.engines.base import LOADING_S, Engine, Launch
from paribus.engines.containers import Container
from paribus.engines.deaths import EngineDied, death, how
from paribus.engines.launching import Prepared
from paribus.engines.local import NoAnswer, ask, ask_json
from paribus.engines.logs import last_words, log_end
from paribus.machine import ProcessTree, choose_port, clean_environment, disk_faults
from paribus.machine.ports import LOCALHOST
from paribus.machine.ports import VARIABLE as PORT_VARIABLE
from paribus.wire import Endpoint

_TRIES = 3
_BIND = re.compile(r"(?i)couldn't bind|address already in use|errno 98|EADDRINUSE")

MEASURING_IS_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

LIBRARIES_READ = frozenset(
    {
        "CUDA_LAUNCH_BLOCKING",
        "NVIDIA_TF32_OVERRIDE",
        "TORCHDYNAMO_DISABLE",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "TRITON_INTERPRET",
    }
)
"""Variables by which CUDA, torch and Triton, below every engine, change numbers or speed: as what an engine itself
reads (`Engine.reads`), those of our own surroundings don't reach it, since no condition would tell of them."""


@dataclass(frozen=True)
class Starting:
    """A server that answers: its address without `/v1`, its port, its processes, how long it took in seconds."""

    base: str
    port: int
    tree: ProcessTree
    seconds: float


class _PortTaken(Exception):
    """Someone else took the port between our looking and the engine's binding."""


@contextmanager
def start_server(
    engine: Engine, prepared: Prepared, log: Path, keep: tuple[int, ...], loading_s: float = LOADING_S
) -> Iterator[Starting]:
    """Start the engine on a free port and wait for its first real answer; stop everything at the end.

    `EngineDied` when the engine itself is the reason that there is no server.
    """
    for attempt in range(1, _TRIES + 1):
        port = choose_port()
        launched = replace(prepared.launch, port=port)
        tree = _spawn(engine, launched, prepared.container, log, keep)
        try:
            began = time.monotonic()
            try:
                _wait_ready(engine, launched, tree, log, loading_s)
            except _PortTaken:
                if attempt < _TRIES and not os.environ.get(PORT_VARIABLE):
                    continue
                raise EnvironmentFault(
                    f"the port {port} was taken while {engine.name} started: stop what listens there or set "
                    f"{PORT_VARIABLE} to a free one"
                ) from None
            except EngineDied as error:
                error.versions, error.observed = prepared.versions, prepared.observed
                raise
            yield Starting(_base(launched), port, tree, time.monotonic() - began)
            return
        finally:
            if prepared.container is not None:
                prepared.container.remove()
            tree.stop()


def _spawn(
    engine: Engine, launch: Launch, container: Container | None, log: Path, keep: tuple[int, ...]
) -> ProcessTree:
    command = engine.command(launch)
    variables = engine.environment(launch) | launch.variables | MEASURING_IS_OFFLINE
    environment = _around(engine) | (variables if container is None else {})
    if container is not None:
        command = container.command(command, variables, launch.port)
    with disk_faults(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            folder = None if container is not None else engine.working_folder(launch)
            return ProcessTree.start(command, log=output, environment=environment, folder=folder, keep=keep)


def local_variables(engine: Engine) -> list[str]:
    """Names of the variables of this machine that an engine outside of containers is given (`Engine.local`)."""
    return sorted(engine.local & clean_environment().keys())


def _around(engine: Engine) -> dict[str, str]:
    """Our surroundings without what the engine, or a library below it, would take settings from."""
    return {
        name: value
        for name, value in clean_environment().items()
        if name in engine.local or (name not in LIBRARIES_READ and not name.startswith(engine.reads))
    }


def _base(launch: Launch) -> str:
    return f"http://{LOCALHOST}:{launch.port}"


def _wait_ready(engine: Engine, launch: Launch, tree: ProcessTree, log: Path, loading_s: float) -> None:
    base, name, until = _base(launch), launch.system.name.engine, time.monotonic() + loading_s
    while time.monotonic() < until:
        if not tree.alive():
            raise _died(name, tree, log)
        if _loaded(engine, base):
            break
        time.sleep(0.1)
    else:
        raise _failed(f"{name} is not ready after {loading_s:.0f} s", log)
    try:
        real_answer(Endpoint(f"{base}/v1", engine.request_model(launch)), max(30.0, until - time.monotonic()))
    except NoAnswer as error:
        if tree.wait(1.0):
            raise _died(name, tree, log) from error
        raise _failed(f"{name} started but doesn't answer ({error})", log) from error


def _loaded(engine: Engine, base: str) -> bool:
    """Whether the engine says that loading is over; where it has no page for that, whether it lists its models."""
    try:
        ask(f"{base}{engine.ready_path or '/v1/models'}", timeout_s=5)
    except NoAnswer:
        return False
    return True


def real_answer(endpoint: Endpoint, timeout_s: float) -> None:
    """One chat request whose answer has at least a token: only then is a server ready. Raises `NoAnswer` otherwise."""
    body = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": "Name one colour."}],
        "max_tokens": 16,
    }
    url = f"{endpoint.base_url}/chat/completions"
    answer = ask_json(url, body, timeout_s=timeout_s, key=endpoint.api_key)
    try:
        message = answer["choices"][0]["message"]
        said = message.get("content") or message.get("reasoning_content") or message.get("reasoning")
        tokens = (answer.get("usage") or {}).get("completion_tokens") or 0
    except (LookupError, TypeError, AttributeError) as error:
        raise NoAnswer("its answer isn't a chat completion") from error
    if not said and tokens < 1:
        raise NoAnswer("its first answer is empty")


def _died(name: str, tree: ProcessTree, log: Path) -> Exception:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if _BIND.search(text):
        return _PortTaken()
    code = tree.exit_code or 0
    return death(f"{name} died while loading ({how(code)})", code, log)


def _failed(said: str, log: Path) -> EngineDied:
    return EngineDied(f"{said}; {log_end(log)}", f"{said}: {last_words(log)}")
