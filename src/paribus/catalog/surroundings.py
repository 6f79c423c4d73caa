"""What a plan needs to know about its surroundings: the machine's label, engine builds, data, a sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from paribus.catalog.envs import engine_build, environment_marker, items_marker, lock_hash, program_hash
from paribus.catalog.hardware import FoundCard
from paribus.catalog.load import Catalog
from paribus.catalog.offline import hub_forbidden_by
from paribus.catalog.simulator import simulator_url
from paribus.catalog.tasks import QualityTask
from paribus.conditions import UsageError


@dataclass(frozen=True)
class Part:
    """What is known of items that are only a part of a task: their hash (64 hex digits) and how many there are."""

    hash: str
    count: int


def _whole(_task: QualityTask) -> Part | None:
    return None


@dataclass(frozen=True)
class Surroundings:
    """Facts from outside the catalog. `builds`: engine name (or `program:<name>`, `harness:<name>`) to build id.

    `data`: the folder of `PARIBUS_DATA`; `hub`: whether items may come from the hub; `memory_gb`: this machine's (10^9
    bytes); `card`: the card that is in it, where that is the profile's;
    `part_of`: the part of a task that lies below `PARIBUS_DATA`, None where it is whole (reading items is not the
    catalog's business).
    """

    machine: str
    builds: dict[str, str]
    data: Path | None = None
    hub: bool = False
    sandbox: bool = False
    memory_gb: float | None = None
    card: FoundCard | None = None
    part_of: Callable[[QualityTask], Part | None] = _whole
    user_simulator: str | None = None
    """Where a dialogue task's user simulator is served (`PARIBUS_USER_SIM_URL`)."""

    @classmethod
    def observe(
        cls,
        catalog: Catalog,
        machine: str,
        part_of: Callable[[QualityTask], Part | None] = _whole,
        memory_gb: float | None = None,
    ) -> Surroundings:
        """Look around: lock files of the catalog's engines, `PARIBUS_DATA`, the sandbox, the memory.

        `memory_gb`: what a container may use of its machine's, where it was looked for.
        """
        engines = {engine for model in catalog.models.values() for engine in model.engines}
        builds = {engine: engine_build(catalog.root, engine) for engine in engines}
        programs = {use.program for model in catalog.models.values() for use in model.engines.values() if use.program}
        builds |= {f"program:{name}": program_hash(name) for name in programs}
        harnesses = {name for task in catalog.tasks.values() if (name := task.settings.get("environment"))}
        builds |= {f"harness:{name}": lock_hash(catalog.root, name) for name in harnesses}
        data = os.environ.get("PARIBUS_DATA", "").strip()
        if data and not Path(data).is_dir():
            raise UsageError(f"PARIBUS_DATA names {data}, and there is no such folder")
        return cls(
            machine=machine,
            builds={engine: build for engine, build in builds.items() if build},
            data=Path(data) if data else None,
            hub=hub_forbidden_by() is None,
            sandbox=sandbox_works(),
            memory_gb=psutil.virtual_memory().total / 1e9 if memory_gb is None else memory_gb,
            part_of=part_of,
            user_simulator=simulator_url(),
        )

    def has_data(self, task: QualityTask) -> bool:
        """Whether items of the task lie below `PARIBUS_DATA` (any of the files that it names)."""
        return self.data is not None and any((self.data / name).exists() for name in task.data.local)

    def fetched_marker(self, task: QualityTask) -> str | None:
        """The marker of a task's items where they come from the hub; None where they are shipped or lie below data."""
        return None if not task.data.hub or self.has_data(task) else items_marker(task)

    def harness_marker(self, task: QualityTask) -> str | None:
        """The marker of the locked environment that plays a task's dialogues; None for a task without one."""
        name = task.settings.get("environment")
        return environment_marker(name, self.builds[f"harness:{name}"]) if name else None

    def carries_items(self, task: QualityTask) -> bool:
        """Whether a locked environment brings a task's items along."""
        return f"harness:{task.settings.get('environment')}" in self.builds


@cache
def sandbox_works() -> bool:
    """Whether bubblewrap is installed and may make a sandbox here (some kernels forbid it)."""
    program = shutil.which("bwrap")
    if program is None:
        return False
    command = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
