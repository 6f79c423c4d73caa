"""What this machine is: read, not asserted. Never host names, serial numbers or addresses."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import Any

from paribus.machine.apple import observe_chip
from paribus.machine.cpu import read_cpu_model, usable_cores
from paribus.machine.nvml import open_nvml

_CONTROL_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def observe_machine() -> dict[str, Any]:
    """Observed conditions of this machine (keys of `paribus.conditions.CONDITIONS`, and a few facts beside them).

    On a machine without an accelerator the card is the CPU. What can't be read is left out.
    """
    cores = usable_cores()
    cpu = read_cpu_model()
    found: dict[str, Any] = {
        "card": f"{cpu}, {cores} {'core' if cores == 1 else 'cores'}",
        "card_count": 1,
        "clock_state": _governor(),
        "cpu": cpu,
        "cpu_count": cores,
        "cpu_flags": _vector_flags(),
        "memory_gb": memory_gb(),
        "os": _system(),
        "kernel": platform.release(),
        "container": _container(),
        "python": platform.python_version(),
    }
    nvml = open_nvml()
    if nvml is not None:
        found |= nvml.facts()
    else:
        found |= observe_chip()
    return {key: value for key, value in found.items() if value is not None}


def memory_gb() -> float:
    """Memory of the machine in GB (10^9 bytes), lowered by a container's limit; one decimal."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return round(min(total, *_memory_limits(_CONTROL_GROUPS, _OWN_GROUPS)) / 1e9, 1)


def _memory_limits(root: Path, own: Path) -> list[int]:
    """The limits of this process's control groups in bytes, v1 and v2, from its own up to the root; infinite: none.

    A container sees its own group as the root, or at the path that its machine knows: each folder may be missing.
    Names of the files: the kernel's `cgroup-v1/memory.rst` and `cgroup-v2.rst`.
    """
    found = [1 << 63]
    lines = own.read_text().splitlines() if own.is_file() else []
    groups = [line.split(":", 2)[1:] for line in lines if line.count(":") >= 2]
    paths = {controllers: path.lstrip("/") for controllers, path in groups}
    version_1 = next((path for names, path in paths.items() if "memory" in names.split(",")), "")
    for top, path, name in (
        (root, paths.get("", ""), "memory.max"),
        (root / "unified", paths.get("", ""), "memory.max"),
        (root / "memory", version_1, "memory.limit_in_bytes"),
    ):
        inside = Path(path)
        for folder in (top / inside, *(top / parent for parent in inside.parents)):
            # "max" is no number, and none is a limit.
            with contextlib.suppress(OSError, ValueError):
                found.append(int((folder / name).read_text()))
    return found


def _governor() -> str | None:
    with contextlib.suppress(OSError):
        return Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    return None


def _vector_flags() -> list[str] | None:
    """The instruction sets that decide how fast a CPU multiplies matrices."""
    wanted = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "neon", "asimd",
              "asimddp", "i8mm", "sve", "sve2")  # fmt: skip
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith(("flags", "Features")):
                there = set(line.partition(":")[2].split())
                return [flag for flag in wanted if flag in there]
    return None


def _system() -> str:
    with contextlib.suppress(OSError):
        release = platform.freedesktop_os_release()
        return release.get("PRETTY_NAME") or release["NAME"]
    return f"{platform.system()} {platform.mac_ver()[0] or platform.release()}".strip()


def _container() -> str | None:
    """Whether this runs in a container, and which kind; None outside."""
    if Path("/.dockerenv").exists():
        return "docker"
    if os.environ.get("APPTAINER_CONTAINER") or os.environ.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    if Path("/run/.containerenv").exists():
        return "podman"
    with contextlib.suppress(OSError):
        kind = Path("/run/systemd/container").read_text().strip()
        return kind or None
    return None
