"""A control group for one sandbox: a limit on memory and on processes, where this user may make one (v1 and v2)."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_counter = itertools.count(1)


@dataclass(frozen=True)
class Group:
    """`prefix`: words before a command that put it into the group; empty where there is none."""

    prefix: list[str]
    memory: bool
    processes: bool


@dataclass(frozen=True)
class Support:
    """Folders under which a group can be made, by controller, and the version (0: none)."""

    version: int
    memory: Path | None
    processes: Path | None


@cache
def support() -> Support:
    """What this user can limit by control groups."""
    if (_ROOT / "cgroup.controllers").exists():
        base = _writable_v2()
        return Support(2, base, base)
    memory = next((p for p in (_ROOT / "memory",) if _can_make(p)), None)
    processes = next((p for p in (_ROOT / "pids",) if _can_make(p)), None)
    return Support(1 if memory or processes else 0, memory, processes)


def _can_make(folder: Path) -> bool:
    probe = folder / f"paribus-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def _writable_v2() -> Path | None:
    """The nearest folder, from our own group up, whose children get the memory and pids controllers."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    own = next((line.split("::", 1)[1] for line in lines if line.startswith("0::")), "/")
    folder = _ROOT / own.lstrip("/")
    for place in [folder, *folder.parents]:
        if not place.is_relative_to(_ROOT):
            break
        with suppress(OSError):
            given = (place / "cgroup.subtree_control").read_text().split()
            if {"memory", "pids"} <= set(given) and _can_make(place):
                return place
    return None


def describe() -> str:
    """In words, which limits come from control groups here."""
    found = support()
    kinds = [name for name, place in (("memory", found.memory), ("processes", found.processes)) if place]
    if not kinds:
        return "no control group (limits of each process only)"
    return f"control group v{found.version} for {' and '.join(kinds)}"


@contextmanager
def limited(memory: int, processes: int) -> Iterator[Group]:
    """A group with these limits for the block; removed after it, with whatever is still in it killed."""
    found = support()
    name = f"paribus-{os.getpid()}-{next(_counter)}"
    made: list[Path] = []
    try:
        limits = _plan(found, memory, processes)
        for folder, values in limits.items():
            place = folder / name
            with suppress(OSError):
                place.mkdir()
                made.append(place)
                for file, value in values.items():
                    # Swap accounting is missing on some machines; memory itself never is.
                    with suppress(OSError):
                        (place / file).write_text(str(value))
        yield Group(_enter(made), _has(made, found.memory), _has(made, found.processes))
    finally:
        for place in made:
            _remove(place)


def _plan(found: Support, memory: int, processes: int) -> dict[Path, dict[str, int]]:
    if found.version == 2 and found.memory is not None:
        return {found.memory: {"memory.max": memory, "memory.swap.max": 0, "pids.max": processes}}
    plan: dict[Path, dict[str, int]] = {}
    if found.memory is not None:
        plan[found.memory] = {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory}
    if found.processes is not None:
        plan[found.processes] = {"pids.max": processes}
    return plan


def _has(made: list[Path], folder: Path | None) -> bool:
    return any(place.parent == folder for place in made)


def _enter(made: list[Path]) -> list[str]:
    """A shell that joins the groups and then becomes the command (no code runs between fork and exec)."""
    if not made:
        return []
    joins = "".join(f'echo $$ > "${index}"; ' for index in range(1, len(made) + 1))
    files = [str(place / "cgroup.procs") for place in made]
    return ["/bin/sh", "-c", f'{joins}shift {len(made)}; exec "$@"', "sandbox", *files]


def _remove(place: Path) -> None:
    for _ in range(50):
        with suppress(OSError):
            for pid in (place / "cgroup.procs").read_text().split():
                with suppress(OSError, ValueError):
                    os.kill(int(pid), 9)
        try:
            place.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return
