"""Runs inside the sandbox: takes programs and inputs on its standard input, forks a process for each input.

It knows no expected output, and nothing that it or a program says is believed beyond the output itself. Frames: four
bytes of length (big-endian), then as many bytes. In: settings; then pairs of a JSON order and its content, `program`
with a source, or `run` with an input. Out: `ready`; then for each run a JSON report and the program's output. Imports
the standard library only, and nothing of Paribus, which isn't there.

Programs follow each other here, so this process never looks into one: a source is compiled in the forked process. No
process can read this one's memory or files (it isn't dumpable); one that kills or stops it loses its own run, and the
other side starts a fresh sandbox.
"""

from __future__ import annotations

import atexit
import builtins
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import site
import struct
import sys
import time
import types
from typing import Any

_OFFICIAL_NAMES = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
)
"""Modules whose names the benchmark's own grader imports for every program (`import_string` of its testing_util.py).

Functions rely on them, because the site that their problems come from has them ready.
"""

_SOURCE = "/tmp/program.py"
"""Where a program lies while it runs: it may read itself."""

_STACK = 256 << 20
"""Bytes of stack of a program's first thread; deep recursion needs it."""

_IDLE_READINGS = 3
_PR_SET_DUMPABLE = 4
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def read_exact(descriptor: int, length: int) -> bytes:
    """`length` bytes, or the end of this process when the other side is gone."""
    parts = bytearray()
    while len(parts) < length:
        block = os.read(descriptor, min(length - len(parts), 1 << 20))
        if not block:
            os._exit(0)
        parts += block
    return bytes(parts)


def receive(descriptor: int) -> bytes:
    """One frame."""
    (length,) = struct.unpack(">I", read_exact(descriptor, 4))
    return read_exact(descriptor, length)


def send(descriptor: int, data: bytes) -> None:
    """One frame."""
    view = memoryview(struct.pack(">I", len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


class Program:
    """What to run: its source, the function to call (none: the whole program), whether by the benchmark's own rule."""

    def __init__(self, source: str, call: str | None, official: bool) -> None:
        self.source, self.call, self.official = source, call, official
        self.has_names = official or call is not None  # those that the benchmark's own grader imports


def limit(settings: dict[str, Any], cpu_s: int) -> None:
    """Limits of the program's own process; a program can lower but not raise them.

    Its stack it may raise, as programs for such problems do: the stack is memory, and memory has its limit.
    """
    for what, value in (
        (resource.RLIMIT_AS, settings["memory"]),
        (resource.RLIMIT_FSIZE, settings["files"]),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
    ):
        try:
            resource.setrlimit(what, (value, value))
        except (ValueError, OSError):
            pass
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (_STACK if most == resource.RLIM_INFINITY else min(_STACK, most), most))


def stream(descriptor: int, mode: str, errors: str) -> Any:
    """A standard stream with the attributes that the interpreter gives its own."""
    file: Any = open(descriptor, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    file.buffer.raw.name = ("<stdin>", "<stdout>", "<stderr>")[descriptor]
    return file


def program_process(
    program: Program, stdin: int, stdout: int, stderr: int, settings: dict[str, Any], cpu_s: int
) -> int:
    """The forked child: standard streams of its own, a fresh `__main__`, the program to its end. Its exit status."""
    _prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    os.setsid()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as the interpreter has it
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.closerange(3, 256)
    limit(settings, cpu_s)
    sys.path.append("/box/site")
    sys.setrecursionlimit(100_000)
    sys.stdin, sys.stdout = stream(0, "r", "replace"), stream(1, "w", "strict")
    sys.stderr = stream(2, "w", "backslashreplace")
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    sys.argv = [_SOURCE]
    # A function's file is imported, as its judge imports it: what stands below the main guard isn't run.
    main = types.ModuleType("__main__" if program.call is None else "solution")
    main.__dict__.update(__builtins__=builtins, __file__=_SOURCE)
    sys.modules["__main__"] = sys.modules[main.__name__] = main
    status = status_of(program, main)
    return finish(main) or status


def status_of(program: Program, main: types.ModuleType) -> int:
    """Run a program; its exit status, 77 where memory ran out."""
    try:
        run_program(program, main)
    except SystemExit as end:
        if program.official and program.call is None:
            return 0  # The benchmark's grader looks at the output alone.
        return end.code if isinstance(end.code, int) else (0 if end.code is None else 1)
    except MemoryError:
        return 77
    except BaseException as error:
        try:
            print(f"{type(error).__name__}: {error}"[:400], file=sys.stderr)
        except BaseException:
            pass
        return 1
    return 0


def finish(main: types.ModuleType) -> int:
    """What the interpreter does when a program ends; 1 where its output can't be written.

    It waits for the program's threads, runs what was left for the end, and closes the files that the program's names
    hold. (Ending the interpreter itself would do, at three times the cost of a short test.)
    """
    threads: Any = sys.modules.get("threading")
    last: list[Any] = [threads._shutdown] if threads is not None else []
    for step in (*last, atexit._run_exitfuncs):
        try:
            step()
        except BaseException:
            pass
    written = flushed(sys.stdout)  # Before its names go: a stream of its own may need them.
    main.__dict__.clear()
    return 0 if flushed(sys.__stdout__) and written else 1


def flushed(file: Any) -> bool:
    """Write what a stream still holds; false where that fails."""
    try:
        if file is not None and not getattr(file, "closed", False):
            file.flush()
    except BaseException:
        return False
    return True


def run_program(program: Program, main: types.ModuleType) -> None:
    """Compile a program from its file's bytes, as the interpreter does, and run it."""
    source = program.source.encode()
    try:
        with open(_SOURCE, "wb") as file:
            file.write(source)
    except OSError:
        pass
    code = compile(source, _SOURCE, "exec", dont_inherit=True)
    if program.has_names:
        official_names(main)
    if program.official:
        sys.setrecursionlimit(50_000)
    if program.call is None:
        exec(code, main.__dict__)
    else:
        call_solution(code, program.call, main, lent=not program.official)


def official_names(main: types.ModuleType) -> None:
    """Everything that the benchmark's own grader has imported before a program begins."""
    for module in _OFFICIAL_NAMES.split():
        exec(f"from {module} import *\nimport {module}", main.__dict__)


def call_solution(code: types.CodeType, call: str, main: types.ModuleType, *, lent: bool) -> None:
    """Call `Solution().<call>` (or a plain function) with one JSON argument a line; print its result in two lines.

    The first is the result as JSON, the second says whether that JSON equals whatever the result itself equals. What
    the program prints goes to standard error, so that the output is the result alone. With `lent`, a name that was
    there before the program is no function of its own.
    """
    arguments = [json.loads(line) for line in sys.stdin.read().split("\n") if line.strip()]
    out = os.dup(1)
    os.dup2(2, 1)
    before = main.__dict__.get(call)
    exec(code, main.__dict__)
    holder = main.__dict__.get("Solution")
    function = getattr(holder(), call) if holder is not None else main.__dict__[call]
    if lent and before is not None and function is before:
        raise NameError(f"name {call!r} is not defined by the program")
    result = function(*arguments)
    exact = equals_json(list(result) if isinstance(result, tuple) else result)
    with open(out, "w", encoding="utf-8") as file:
        file.write(f"{json.dumps(result, default=plain)}\n{json.dumps(exact)}\n")


def plain(value: Any) -> Any:
    """JSON for what solutions return beside lists and numbers. A set has no order to compare, and is refused."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(type(value).__name__)


def equals_json(value: Any) -> bool:
    """Whether JSON has a value that equals this one: no set, no tuple within a list, no key that isn't text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return True
    if isinstance(value, list):
        return all(map(equals_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(equals_json, value.values()))
    return getattr(value, "ndim", None) == 0  # a number of numpy


def sweep() -> bool:
    """Remove what a program left behind: all other processes of this namespace, and its files. Whether all is gone."""
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    places = ("/tmp", "/dev/shm")
    for place in places:
        for entry in os.scandir(place):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
    return not any(os.listdir(place) for place in places)


def run(
    program: Program, stdin: bytes, settings: dict[str, Any], time_s: float, patience: float
) -> tuple[dict[str, Any], bytes]:
    """One run: the child's end and its output, at most `settings["output"]` bytes."""
    source = os.memfd_create("input")
    offset = 0
    while offset < len(stdin):
        offset += os.write(source, stdin[offset:])
    os.lseek(source, 0, os.SEEK_SET)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = program_process(program, source, out_write, err_write, settings, int(time_s) + 2)
        finally:
            os._exit(code & 255)
    for descriptor in (source, out_write, err_write):
        os.close(descriptor)
    clock = Clock(child, time_s, patience)
    output, notes, status = collect(clock, out_read, err_read, settings["output"])
    ended = None
    if status is None:
        ended = wait(child, time.monotonic() + 0.5)
        status = "timeout" if ended is None else None
    if ended is None and status is not None:
        try:
            os.kill(child, signal.SIGKILL)
        except OSError:
            pass
    clean = sweep()
    os.close(out_read)
    os.close(err_read)
    report: dict[str, Any] = {"status": status, "code": None, "note": notes[-300:].decode("utf-8", "replace")}
    report |= {"starved": clock.extended, "clean": clean}
    if status is None and ended is not None:
        report |= verdict(ended)
    return report, output


def verdict(ended: int) -> dict[str, Any]:
    """What a wait status says."""
    if os.WIFSIGNALED(ended):
        number = os.WTERMSIG(ended)
        name = {int(signal.SIGKILL): "memory", int(signal.SIGXCPU): "timeout"}.get(number, "error")
        return {"status": name, "code": -number}
    code = os.WEXITSTATUS(ended)
    return {"status": "ok" if code == 0 else "memory" if code == 77 else "error", "code": code}


def wait(child: int, deadline: float) -> int | None:
    """The child's wait status, or null when it is still there at the deadline."""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(0.001)


class Clock:
    """A run's time limit on the wall, put off while the program is kept from its CPU by whatever else runs here.

    A program that sleeps or waits is not kept from anything: only one with a thread (of any of its processes) that is
    ready to run, and has had less CPU time than its limit, gets more time; at most `patience` times its limit.
    """

    def __init__(self, child: int, time_s: float, patience: float) -> None:
        began = time.monotonic()
        self.child, self.time_s = child, time_s
        self.deadline, self.last = began + time_s, began + time_s * patience
        self.extended, self.idle = False, 0

    def left(self) -> float:
        """Seconds until the time is up; 0 when it is."""
        now = time.monotonic()
        if now >= self.deadline and now < self.last and self.starved():
            self.extended |= self.idle == 0
            self.deadline = min(self.last, now + 0.1)
        return max(0.0, self.deadline - now)

    def starved(self) -> bool:
        """Whether a thread of the program wants its CPU, and all of them together have had less of it than its limit.

        A moment's wait (for a page of a file, for a lock) is not yet idleness: three readings in a row are.
        """
        ticks, ready = 0, False
        for process in numbers("/proc"):
            if process in (os.getpid(), os.getppid()):  # All others here are the program's own.
                continue
            # State is the third field, user and system time the 14th and 15th, those of its ended children after them.
            ticks += sum(int(word) for word in fields(f"/proc/{process}/stat")[11:15])
            threads = (fields(f"/proc/{process}/task/{thread}/stat") for thread in numbers(f"/proc/{process}/task"))
            ready = ready or any(words[:1] in ([b"R"], [b"D"]) for words in threads)
        self.idle = 0 if ready else self.idle + 1
        return self.idle < _IDLE_READINGS and ticks / os.sysconf("SC_CLK_TCK") < 0.95 * self.time_s


def numbers(folder: str) -> list[int]:
    """Processes or threads that a folder of /proc lists; none when it is gone."""
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]
    except OSError:
        return []


def fields(path: str) -> list[bytes]:
    """Words of a `stat` of /proc from the third on (the second may hold blanks); none when it is gone."""
    try:
        with open(path, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def collect(clock: Clock, out: int, err: int, most: int) -> tuple[bytes, bytes, str | None]:
    """Read until the program closes its output, is too loud or too slow."""
    child = clock.child
    output, notes, open_ends = bytearray(), bytearray(), {out, err}
    while out in open_ends:
        left = clock.left()
        if left <= 0:
            return bytes(output[:most]), bytes(notes), "timeout"
        for descriptor in select.select(list(open_ends), [], [], min(left, 0.05))[0]:
            block = os.read(descriptor, 1 << 16)
            if not block:
                open_ends.discard(descriptor)
            elif descriptor == err:
                notes = (notes + block)[-2_000:]
            else:
                output += block
        if len(output) > most:
            return b"", bytes(notes), "output"
        if exited(child) and not select.select([out], [], [], 0)[0]:
            break  # A daemon of the program may hold the pipe open; its own end is what counts.
    return bytes(output), bytes(notes), None


def exited(child: int) -> bool:
    """Whether the child has ended (it is not reaped here)."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def serve() -> None:
    """Settings, then orders, one after the other, until the other side closes."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    settings = json.loads(receive(incoming))
    _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    send(outgoing, b"ready")
    # What the interpreter has without -S; a program may end in `exit()`.
    site.setquit()
    site.setcopyright()
    site.sethelper()
    program = Program("", None, False)
    while True:
        order = json.loads(receive(incoming))
        content = receive(incoming)
        if order["what"] == "program":
            program = Program(content.decode("utf-8", "replace"), order["call"], order["official"])
            if program.has_names:
                for module in _OFFICIAL_NAMES.split():
                    __import__(module)  # Once here: in a process for each test it would take as long as the test.
            continue
        report, output = run(program, content, settings, float(order["time_s"]), float(order["patience"]))
        send(outgoing, json.dumps(report).encode())
        send(outgoing, output)


if __name__ == "__main__":
    serve()
