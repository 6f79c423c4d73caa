"""Reading a Linux machine's CPU: who it is, how busy it is, and how much of that is our own."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds since boot over all cores: all that passed, idle (waiting for disks included), stolen."""

    total: float
    idle: float
    stolen: float


def parse_cpu_times(stat: str) -> CpuTimes:
    """The first line of `/proc/stat`: user nice system idle iowait irq softirq steal (guest is inside user)."""
    fields = [int(text) * _TICK_S for text in stat.split("\n", 1)[0].split()[1:9]]
    fields += [0.0] * (8 - len(fields))
    return CpuTimes(total=sum(fields), idle=fields[3] + fields[4], stolen=fields[7])


def cpu_times(proc: Path = PROC) -> CpuTimes:
    """CPU time of the whole machine; through psutil where there is no /proc."""
    try:
        return parse_cpu_times((proc / "stat").read_text())
    except OSError:
        import psutil

        times = psutil.cpu_times()
        return CpuTimes(total=float(sum(times)), idle=float(times.idle), stolen=float(getattr(times, "steal", 0.0)))


def _children(pid: int, proc: Path) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.scandir(proc / str(pid) / "task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(task.path, "children").read_text().split())
    return found


def tree_seconds(root: int, proc: Path = PROC) -> float:
    """CPU seconds of a process and all below it, with those of the children it has already waited for.

    It may shrink for a moment (a child ended and isn't waited for yet): callers take differences and clip at 0.
    """
    if not proc.is_dir():
        return _tree_seconds_elsewhere(root)
    seconds, queue = 0.0, [root]
    while queue:
        pid = queue.pop()
        with contextlib.suppress(OSError):
            fields = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
            seconds += sum(map(int, fields[11:15])) * _TICK_S
            queue += _children(pid, proc)
    return seconds


def _tree_seconds_elsewhere(root: int) -> float:
    import psutil

    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(root)
        own = [parent, *parent.children(recursive=True)]
        total = 0.0
        for process in own:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += float(times.user + times.system)
        return total
    return 0.0


def cpu_model(cpuinfo: str) -> str | None:
    """The CPU's name out of `/proc/cpuinfo` (several spellings: x86, Arm boards, others)."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"model name", "Model", "Hardware", "cpu model", "cpu"} and value.strip():
            return " ".join(value.split())
    return None


def read_cpu_model() -> str:
    """This machine's CPU, as it names itself."""
    with contextlib.suppress(OSError):
        found = cpu_model((PROC / "cpuinfo").read_text(errors="replace"))
        if found:
            return found
    if platform.system() == "Darwin":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            answer = subprocess.run(
                ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, timeout=5, check=True
            )
            return answer.stdout.strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Cores this process may use: its affinity, lowered by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    return cores
