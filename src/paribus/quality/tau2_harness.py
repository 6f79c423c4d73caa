"""The Tau2 harness as a process of its own: the benchmark's code in its locked environment, `envs/tau2/play.py`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

from paribus.catalog import QualityTask
from paribus.engines.envs import environment_python
from paribus.machine import ProcessTree, clean_environment
from paribus.quality.tau2_package import environment_of

_SETTINGS = {
    # The benchmark asks its proxy and nobody else: no price list from the network, no cache of answers.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LLM_CACHE_ENABLED": "False",
    "LITELLM_LOG": "ERROR",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
    "HF_HUB_OFFLINE": "1",
    # Where the benchmark's tools list a set, its order must be the same when a dialogue is played again.
    "PYTHONHASHSEED": "0",
}


@asynccontextmanager
async def harness(root: Path, task: QualityTask, address: str, token: str) -> AsyncIterator[Awaitable[str]]:
    """Run the harness against a proxy; it and all it started are gone at the end.

    Yields what can be awaited for its end: its last words. Raises `EnvironmentFault` when it isn't built.
    """
    name = environment_of(task)
    command = [str(environment_python(root, name)), "-u", str(root / "envs" / name / "play.py")]
    environment = clean_environment({**_SETTINGS, "PARIBUS_PROXY": address, "PARIBUS_PROXY_TOKEN": token})
    with tempfile.TemporaryDirectory(prefix="paribus-tau2-") as place:
        log = Path(place) / "harness.log"
        with log.open("wb") as output:
            tree = ProcessTree.start(command, log=output, environment=environment, folder=Path(place))
        try:
            yield _ended(tree, log)
        finally:
            await asyncio.to_thread(tree.stop)


async def _ended(tree: ProcessTree, log: Path) -> str:
    while tree.alive():
        await asyncio.sleep(0.1)
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"exit code {tree.exit_code}; {lines[-1][:300] if lines else 'it said nothing'}"
