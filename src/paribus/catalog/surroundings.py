"""What a plan needs to know about its surroundings: the machine's label, engine builds, data, a sandbox."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

from paribus.catalog.envs import lock_hash
from paribus.catalog.load import Catalog
from paribus.catalog.tasks import QualityTask
from paribus.conditions import UsageError


@dataclass(frozen=True)
class Surroundings:
    """Facts from outside the catalog. `builds`: engine name to build id, for the engines that have one.

    `data`: the folder of `PARIBUS_DATA`; `hub`: whether items may come from the hub; `memory_gb`: this machine's.
    """

    machine: str
    builds: dict[str, str]
    data: Path | None = None
    hub: bool = False
    sandbox: bool = False
    memory_gb: float | None = None

    @classmethod
    def observe(cls, catalog: Catalog, machine: str) -> Surroundings:
        """Look around: lock files of the catalog's engines, `PARIBUS_DATA`, the sandbox, the memory."""
        engines = {engine for model in catalog.models.values() for engine in model.engines}
        builds = {engine: lock_hash(catalog.root, engine) for engine in engines}
        data = os.environ.get("PARIBUS_DATA", "").strip()
        if data and not Path(data).is_dir():
            raise UsageError(f"PARIBUS_DATA names {data}, and there is no such folder")
        return cls(
            machine=machine,
            builds={engine: build for engine, build in builds.items() if build},
            data=Path(data) if data else None,
            hub=os.environ.get("HF_HUB_OFFLINE", "0") not in {"1", "true", "TRUE", "yes"},
            sandbox=sandbox_works(),
            memory_gb=psutil.virtual_memory().total / 2**30,
        )

    def has_data(self, task: QualityTask) -> bool:
        """Whether items of the task lie below `PARIBUS_DATA` (any of the files that it names)."""
        return self.data is not None and any((self.data / name).exists() for name in task.data.local)


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
