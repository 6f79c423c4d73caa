"""Engines in container images, by digest: the command line for docker or apptainer, and taking the container down.

What docker's options mean: <https://docs.docker.com/reference/cli/docker/container/run/>; apptainer's:
<https://apptainer.org/docs/user/main/cli/apptainer_exec.html>. Both were tried here with stand-ins only.

A container gets weights and files read-only, a port of this machine's own address, no variable of this machine but
those the adapter names, and no way to resolve a name: docker has no network that publishes a port and reaches nothing
else, so that names are taken away instead. Under apptainer a container shares the machine's network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines import container_client
from paribus.machine.ports import LOCALHOST

VARIABLE = "PARIBUS_CONTAINERS"
Kind = Literal["docker", "apptainer"]
KINDS: tuple[Kind, ...] = ("docker", "apptainer")

ENDS_WITH_ITS_INPUT = (
    'exec 3<&0; "$@" </dev/null & engine=$!; { cat <&3 >/dev/null; kill -9 "$engine"; } & wait "$engine"'
)
"""A shell script: run the arguments until they end, or until the container's standard input does."""


@dataclass(frozen=True)
class Runner:
    """The container program of this machine."""

    kind: Kind
    program: str

    @property
    def host(self) -> str:
        """Where a server in a container has to listen to be reached at this machine's own address."""
        return "0.0.0.0" if self.kind == "docker" else LOCALHOST  # noqa: S104 (inside the container only)


def find_runner() -> Runner:
    """docker, else apptainer, as far as they are on the path; `PARIBUS_CONTAINERS` chooses one of them."""
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted and wanted not in KINDS:
        raise UsageError(f"{VARIABLE} is {wanted!r}: it is docker or apptainer")
    for kind in KINDS:
        program = shutil.which(kind)
        if program and wanted in ("", kind):
            return Runner(kind, program)
    raise EnvironmentFault(f"container images need {wanted or 'docker or apptainer'}, which is not on the path")


@dataclass(frozen=True)
class Container:
    """One container: its image, what is mounted where (read-only), how many cards it sees.

    `image` is `reference@sha256:...` for docker, the file below `build/images/` for apptainer. `cards`: `all`, a list
    as in `CUDA_VISIBLE_DEVICES`, or none.
    """

    runner: Runner
    name: str
    image: str
    mounts: tuple[tuple[Path, Path], ...]
    cards: str | None = None

    def command(self, inner: list[str], variables: Mapping[str, str], port: int) -> list[str]:
        """The command line that runs `inner` in the container."""
        script = str(Path(container_client.__file__).resolve())
        head = [sys.executable, "-I", "-S", script, self.runner.program]
        options = self._docker(variables, port) if self.runner.kind == "docker" else self._apptainer(variables)
        return [*head, *options, self.image, "sh", "-c", ENDS_WITH_ITS_INPUT, "paribus", *inner]

    def _docker(self, variables: Mapping[str, str], port: int) -> list[str]:
        words = ["run", "--rm", "--interactive", "--init", "--pull", "never", "--name", self.name]
        words += ["--entrypoint", "", "--publish", f"{LOCALHOST}:{port}:{port}", "--dns", LOCALHOST, "--ipc", "host"]
        if self.cards:
            words += ["--gpus", "all" if self.cards == "all" else f'"device={self.cards}"']
        for here, there in self.mounts:
            words += ["--volume", f"{here}:{there}:ro"]
        for name, value in sorted(variables.items()):
            words += ["--env", f"{name}={value}"]
        return words

    def _apptainer(self, variables: Mapping[str, str]) -> list[str]:
        words = ["exec", "--containall", "--no-home", "--writable-tmpfs"] + (["--nv"] if self.cards else [])
        for here, there in self.mounts:
            words += ["--bind", f"{here}:{there}:ro"]
        devices = {"CUDA_VISIBLE_DEVICES": self.cards} if self.cards not in (None, "all") else {}
        for name, value in sorted({**variables, **devices}.items()):
            words += ["--env", f"{name}={value}"]
        return words

    def remove(self) -> None:
        """Take the container down at once. (Apptainer's is a child of ours, and ends with its process tree.)"""
        if self.runner.kind == "docker":
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [self.runner.program, "rm", "--force", self.name], capture_output=True, timeout=30, check=False
                )


def image_name(reference: str, digest: str) -> str:
    """`repository@digest`: the image that a digest names, whatever its tag points to now."""
    head, _, last = reference.rpartition("/")
    repository = f"{head}/{last.partition(':')[0]}" if head else last.partition(":")[0]
    return f"{repository}@{digest}"
