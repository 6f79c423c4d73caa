"""The sandbox for model code: bubblewrap, limits, and a conversation in which inputs go in and outputs come out.

What a program inside can reach: a read-only Python, an empty temporary folder of limited size, its own standard
input and output. No network, no other process, no file of the host's user, no variable of its environment. What it
should have printed never enters: outputs are compared outside.

`paribus.quality.sandbox_inner` runs inside it, forks a process for each input and reports its output; the time limit is
kept outside, by this module's clock, as well as inside. A sandbox may run one program after the other (starting one
costs twenty times as much as a test): what a program leaves behind is removed, and where anything stays, or a program
took the runner down, the sandbox is not used again.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from paribus.conditions import EnvironmentFault
from paribus.machine import guard
from paribus.quality import cgroup, sandbox_filter

Status = Literal["ok", "error", "timeout", "memory", "output", "lost"]
"""How one run ended: exit code 0, another one, too long, killed, too much output, or the sandbox itself went down."""

_INNER = Path(__file__).with_name("sandbox_inner.py")
_HEAD = struct.Struct(">I")
_GRACE_S = 2.0
"""What forking, reading back and a busy machine may add to a time limit before the sandbox is torn down."""

_RUNNER_MEMORY = 128 << 20
"""What the runner inside may hold beside the program: one process alone meets its own limit before the group's."""


_ENVIRONMENT = {
    **{"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TMPDIR": "/tmp"},  # noqa: S108
    # On a machine of many cores numpy would start a thread for each, and meet the limits with its import alone.
    **{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
}


@dataclass(frozen=True)
class Limits:
    """What a program may use. Seconds, bytes, processes."""

    time_s: float = 6.0
    start_s: float = 30.0
    """Until the sandbox itself is up."""
    memory: int = 1 << 30
    processes: int = 64
    files: int = 64 << 20
    """Size of the temporary folder, and of any one file."""
    output: int = 16 << 20
    patience: float = 1.0
    """How many times its limit a run may take on the wall while its core is too busy to give it that much CPU."""


@dataclass(frozen=True)
class Ran:
    """One run of a program on one input. `code`: its exit code (null when it was stopped).

    `starved`: its core was busy with something else, and it got more than its limit on the wall.
    """

    status: Status
    output: bytes
    code: int | None
    seconds: float
    note: str = ""
    starved: bool = False


@cache
def available() -> str | None:
    """Why model code can't be contained on this machine, or null when it can. Starts one sandbox, once."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap (bwrap) is not installed: apt-get install bubblewrap"
    try:
        with sandboxed("print(input()[::-1])", Limits(time_s=10)) as box:
            ran = box.run(b"paribus\n")
    except EnvironmentFault as fault:
        return str(fault)
    if ran.status != "ok" or ran.output != b"subirap\n":
        return f"a sandbox starts but does not answer: {ran.status} {ran.note}".strip()
    return None


def require() -> None:
    """Raise `EnvironmentFault` where model code can't be contained."""
    reason = available()
    if reason is not None:
        raise EnvironmentFault(f"model code can't run here: {reason}")


def command(limits: Limits, extra: Iterable[str] = ()) -> list[str]:
    """The bubblewrap command line up to and with Python; `extra` options come last before the program."""
    python = Path(getattr(sys, "_base_executable", sys.executable) or sys.executable).resolve()
    words = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534"]
    words += ["--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv"]
    words += ["--hostname", "sandbox"]
    for name, value in _ENVIRONMENT.items():
        words += ["--setenv", name, value]
    for folder in ("/usr", "/lib", "/lib64", "/bin"):
        words += ["--ro-bind-try", folder, folder]
    inside, binds = _bind_python(python)
    words += [*binds, *_bind_numpy()]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--ro-bind", str(_INNER), "/box/inner.py"]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(limits.files), "--tmpfs", "/tmp"]  # noqa: S108
    words += ["--size", str(1 << 20), "--tmpfs", "/dev/shm", "--chdir", "/tmp"]  # noqa: S108
    # Started by root, the sandbox's user is root to the kernel's settings: a read-only /proc is what protects them.
    words += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*words, *extra, "--", inside, "-I", "-S", "-B"]


def _bind_python(python: Path) -> tuple[str, list[str]]:
    """Python's path inside, and the binds it needs. One outside the system's folders shows under a neutral name."""
    prefix = Path(sys.base_prefix).resolve()
    if python.is_relative_to("/usr") and prefix.is_relative_to("/usr"):
        return str(python), []
    if not python.is_relative_to(prefix):
        raise EnvironmentFault(f"the sandbox can't use this Python: {python} is not below its prefix {prefix}")
    words = ["--ro-bind", str(prefix), "/box/python", "--setenv", "LD_LIBRARY_PATH", "/box/python/lib"]
    return f"/box/python/{python.relative_to(prefix)}", words


def _bind_numpy() -> list[str]:
    """numpy, which solutions may import as they may in the benchmark's own grader; read-only, alone."""
    numpy = find_spec("numpy")
    if numpy is None or numpy.origin is None:
        return []
    package = Path(numpy.origin).parent
    words = ["--ro-bind", str(package), "/box/site/numpy"]
    return [*words, "--ro-bind-try", str(package.parent / "numpy.libs"), "/box/site/numpy.libs"]


@cache
def runs_on() -> str:
    """What runs programs here, as far as it decides which ones run at all: minor versions of Python and numpy."""
    words = [f"Python {sysconfig.get_python_version()}"]
    if _bind_numpy():
        words.append("numpy " + ".".join(version("numpy").split(".")[:2]))
    return ", ".join(words)


class Box:
    """One running sandbox with one program in it. Use `sandboxed(...)`."""

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._down: str | None = None
        self.inner: Mapping[int, str] = {}
        """Bubblewrap's own child, the first process inside: where orphans come to us, it does when that is killed."""

    @property
    def fresh(self) -> bool:
        """Whether another program may run here: the runner is up, and nothing was left behind."""
        return self._down is None

    def load(self, program: str, call: str | None = None, *, official: bool = False) -> None:
        """Take a program for the next runs; see `sandboxed`."""
        order = json.dumps({"what": "program", "call": call, "official": official}).encode()
        deadline = time.monotonic() + self._limits.start_s
        try:
            self._send(order, deadline)
            self._send(program.encode("utf-8", "surrogatepass"), deadline)
        except OSError as error:  # a timeout is one
            self._lose("lost", time.monotonic(), f"the sandbox went down ({type(error).__name__})")

    def run(self, stdin: bytes, time_s: float | None = None) -> Ran:
        """Run the program on one input, in a fresh process. Never raises for what the program does."""
        limit = time_s if time_s is not None else self._limits.time_s
        if self._down is not None:
            return Ran("lost", b"", None, 0.0, self._down)
        began = time.monotonic()
        most = limit * max(1.0, self._limits.patience) + _GRACE_S
        try:
            head = json.dumps({"what": "run", "time_s": limit, "patience": self._limits.patience}).encode()
            self._send(head, began + most)
            self._send(stdin, began + most)
            report = json.loads(self._receive(began + most, 4_096))
            output = self._receive(began + most + _GRACE_S, self._limits.output)
            status, code = report["status"], report.get("code")
        except TimeoutError:
            return self._lose("timeout", began, "the time was up")
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            return self._lose("lost", began, f"the sandbox went down ({type(error).__name__})")
        seconds = time.monotonic() - began
        if status not in ("ok", "error", "timeout", "memory", "output"):
            return self._lose("lost", began, "the sandbox made no sense")
        if status in ("ok", "error") and seconds > most:
            status = "timeout"
        known = code if isinstance(code, int) else None
        if report.get("clean") is not True:
            self._down = "something of an earlier program is left"
        return Ran(
            status, output, known, seconds, str(report.get("note", ""))[:500], starved=report.get("starved") is True
        )

    def _lose(self, status: Status, began: float, note: str) -> Ran:
        self._down = note
        self.kill()
        return Ran(status, b"", None, time.monotonic() - began, note)

    def kill(self) -> None:
        """Kill bubblewrap; its process namespace dies with it. Nothing of either is left as a zombie."""
        inner = self.inner
        if self._process.poll() is None:
            inner = {**inner, **guard.children_of(self._process.pid)}
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        guard.reap_orphans(inner)

    def _send(self, data: bytes, deadline: float) -> None:
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        view = memoryview(_HEAD.pack(len(data)) + data)
        while view:
            self._wait([], [descriptor], deadline)
            view = view[os.write(descriptor, view[:65_536]) :]

    def _receive(self, deadline: float, most: int) -> bytes:
        (length,) = _HEAD.unpack(self._read(_HEAD.size, deadline))
        if length > most:
            raise ValueError("too long")
        return self._read(length, deadline)

    def _read(self, length: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        parts = bytearray()
        while len(parts) < length:
            self._wait([descriptor], [], deadline)
            block = os.read(descriptor, min(length - len(parts), 1 << 20))
            if not block:
                raise EOFError
            parts += block
        return bytes(parts)

    @staticmethod
    def _wait(reading: list[int], writing: list[int], deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not any(select.select(reading, writing, [], left)[:2]):
            raise TimeoutError


@contextmanager
def sandboxed(
    program: str, limits: Limits, call: str | None = None, *, extra: Iterable[str] = (), official: bool = False
) -> Iterator[Box]:
    """A sandbox with a program in it. `call`: the function of `class Solution` to call with JSON arguments.

    `official`: what the benchmark's own grader imports for a program is there already. Raises `EnvironmentFault` when
    no sandbox can be started; a program that doesn't even compile is a result.
    """
    with opened(limits, extra=extra) as box:
        box.load(program, call, official=official)
        yield box


@contextmanager
def opened(limits: Limits, *, extra: Iterable[str] = ()) -> Iterator[Box]:
    """A running sandbox without a program yet. Raises `EnvironmentFault` when none can be started."""
    with cgroup.limited(limits.memory + _RUNNER_MEMORY, limits.processes) as group, sandbox_filter.opened() as calls:
        words = [*group.prefix, *command(limits, ["--seccomp", str(calls), *extra]), "/box/inner.py"]
        # The environment is empty already here, so that nothing is left to read in the sandbox's first process.
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"},
            pass_fds=(calls,),
            start_new_session=True,
            bufsize=0,
        )
        box = Box(process, limits)
        try:
            os.set_blocking(process.stdin.fileno(), False)  # type: ignore[union-attr]
            _introduce(box, process, limits)
            yield box
        finally:
            box.kill()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def _introduce(box: Box, process: subprocess.Popen[bytes], limits: Limits) -> None:
    """Tell the inner runner its limits, and wait until it is up."""
    setting = {name: getattr(limits, name) for name in ("memory", "processes", "files", "output")}
    deadline = time.monotonic() + limits.start_s
    try:
        box._send(json.dumps(setting).encode(), deadline)
        if box._receive(deadline, 16) == b"ready":
            box.inner = guard.children_of(process.pid)
            return
        reason = "it did not come up"
    except TimeoutError:
        reason = f"it was not up after {limits.start_s:.0f} s"
    except (OSError, EOFError, ValueError):
        box.kill()
        words = process.stderr.read(2_000).decode(errors="replace") if process.stderr else ""
        reason = " ".join(words.split()) or "it ended at once"
    raise EnvironmentFault(f"a sandbox can't be started: {reason}")


def platform() -> str:
    """In words, what contains here: bubblewrap's version, user, cgroup version."""
    told = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    return f"{told or 'no bubblewrap'}, as {who}, {cgroup.describe()}, Python {sysconfig.get_python_version()}"
