"""The filter of system calls: what it refuses on either machine, and that attacks notice what it lets through."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from paribus.conditions import EnvironmentFault
from paribus.quality import sandbox_attacks, sandbox_filter
from paribus.quality.sandbox import Limits, opened, sandboxed
from paribus.quality.sandbox_filter import CALLS, Call, instructions
from paribus.quality.sandbox_programs import ATTACKS

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED, EPERM = 0x7FFF0000, 0x00050001
BY_NAME = {call.name: call for call in CALLS}


def answer(machine: str, number: int, *arguments: int, numbering: int | None = None) -> int:
    """What the kernel would make of a call: the filter run by an interpreter of the few instructions it has."""
    data = {0: number, 4: MACHINES[machine] if numbering is None else numbering}
    data |= {16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate(arguments)}
    words, at, held = instructions(machine), 0, 0
    while True:
        code, then, otherwise, value = words[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            held = data.get(value, 0)
        else:
            assert code in (0x15, 0x35)
            at += then if (held == value if code == 0x15 else held >= value) else otherwise


def number_of(call: Call, machine: str) -> int | None:
    return call.x86_64 if machine == "x86_64" else call.aarch64


@pytest.mark.parametrize("machine", MACHINES)
def test_what_leaves_something_behind_is_refused_and_nothing_else(machine: str) -> None:
    numbers = {number_of(call, machine): call for call in CALLS} | {None: None}
    for number in range(600):
        call = numbers.get(number)
        refused = call is not None and not call.never
        assert answer(machine, number, 77, 77, 77) == (EPERM if refused else ALLOWED)
    assert len(numbers) == 1 + sum(number_of(call, machine) is not None for call in CALLS)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "allowed"),
    [
        ("socket", (1, 1), True),
        ("socket", (2, 1), False),
        ("socket", (10, 1), False),
        ("socket", (16, 3), False),
        ("socket", (2 + (1 << 32), 1), False),
        ("prlimit64", (0, 5), True),
        ("prlimit64", (2, 5), False),
        ("setpriority", (0, 0, 5), True),
        ("setpriority", (0, 2, 5), False),
        ("setpriority", (1, 0, 5), False),
        ("setpriority", (2, 0, 5), False),
        ("sched_setaffinity", (0,), True),
        ("sched_setaffinity", (1,), False),
        ("ioctl", (0, 0x5401), True),
        ("ioctl", (0, 0x40086602), False),
        ("ioctl", (0, 0x401C5820), False),
        ("ioctl", (0, 0x40086602 + (7 << 32)), False),
    ],
)
def test_some_calls_depend_on_their_arguments(
    machine: str, name: str, arguments: tuple[int, ...], allowed: bool
) -> None:
    number = number_of(BY_NAME[name], machine)
    assert number is not None
    assert answer(machine, number, *arguments) == (ALLOWED if allowed else EPERM)


def test_another_numbering_is_refused_as_a_whole() -> None:
    i386, arm = 0x40000003, 0x40000028
    assert answer("x86_64", 1, numbering=i386) == EPERM
    assert answer("aarch64", 1, numbering=arm) == EPERM
    assert answer("x86_64", 0x40000000 + 1) == EPERM
    assert answer("x86_64", 0xFFFFFFFF) == EPERM


def test_a_machine_without_a_filter_runs_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_filter.os, "uname", lambda: SimpleNamespace(machine="riscv64"))
    with pytest.raises(EnvironmentFault, match="no filter of system calls for riscv64"), opened(Limits()):
        raise AssertionError("it started")


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernel(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("needs the kernel's headers (linux-libc-dev)")
    found = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[machine].read_text())
    known = {name: int(number) for name, number in found}
    checked = [call.name for call in CALLS if call.name in known and number_of(call, machine) is not None]
    assert [name for name in checked if known[name] != number_of(BY_NAME[name], machine)] == []
    assert len(checked) >= 20
    assert [call.name for call in CALLS if number_of(call, machine) is None and call.name in known] == []


HOLES = [
    ("leave-in-memory", {"shmget"}, "shared memory"),
    ("leave-in-memory", {"semget"}, "semaphore"),
    ("leave-in-memory", {"msgget"}, "message"),
    ("leave-in-memory", {"mq_open"}, "queue"),
    ("leave-keys", {"add_key", "keyctl"}, "key in"),
    ("leave-marks", {"setxattr"}, "mark on"),
    ("leave-marks", {"ioctl"}, "flag of"),
    ("leave-marks", {"utimensat"}, "time of"),
    ("leave-marks", {"chmod", "fchmodat"}, "mode of"),
    ("leave-limits", {"prlimit64"}, "limit of"),
    ("leave-limits", {"setpriority"}, "schedule of"),
    ("leave-limits", {"sched_setscheduler"}, "schedule of"),
    ("leave-ports", {"socket"}, "port"),
    ("devices", {"chmod", "fchmodat"}, "chmod null"),
]


def lacking_for(name: str, calls: set[str]) -> str | None:
    """Why a hole can't be opened here even without the filter."""
    if name == "devices" and os.geteuid() != 0:
        return "needs root: the machine's devices belong to the sandbox's user only then"
    if calls & {"setxattr", "ioctl"} and tuple(map(int, os.uname().release.split(".")[:2])) < (6, 6):
        return "needs Linux 6.6: before, temporary folders have neither marks nor flags"
    keyring = number_of(BY_NAME["keyctl"], os.uname().machine)
    if "keyctl" in calls and ctypes.CDLL(None).syscall(keyring, 0, ctypes.c_int(-4), 0) == -1:
        return "needs keys, which this kernel or container refuses"
    return None


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(("name", "calls", "detail"), HOLES)
def test_an_attack_notices_a_call_that_is_let_through(
    monkeypatch: pytest.MonkeyPatch, name: str, calls: set[str], detail: str
) -> None:
    if lacking := lacking_for(name, calls):
        pytest.skip(lacking)
    assert calls <= set(BY_NAME)
    monkeypatch.setattr(sandbox_filter, "CALLS", tuple(call for call in CALLS if call.name not in calls))
    (finding,) = sandbox_attacks.run_attacks([attack for attack in ATTACKS if attack.name == name])
    assert finding.result == "broke"
    assert finding.detail.startswith(detail)


TABLE = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
number = libc.shmget(0x1234, 4096, 0o1666)
if number >= 0:
    table = ctypes.c_int.from_address(libc.shmat(number, None, 0))
    print(table.value); table.value += 1
try:
    print(len(os.listxattr("/tmp"))); os.setxattr("/tmp", "user.table", b"1")
except OSError:
    print("refused")
"""


@pytest.mark.usefixtures("box")
def test_a_test_finds_nothing_that_the_one_before_has_computed() -> None:
    with sandboxed(TABLE, Limits()) as box:
        assert [box.run(b"").output for _ in range(3)] == [b"0\nrefused\n"] * 3
        assert box.fresh


@pytest.mark.usefixtures("box")
def test_an_attack_over_two_programs_proves_nothing_unless_both_have_tried() -> None:
    tried, silent = "print('tried')", "pass"
    pairs = [(tried, tried), (tried, silent), (silent, tried), (tried, "print('BREACH found')\nprint('tried')")]
    attacks = [sandbox_attacks.Attack("pair", "two programs", first, then=then) for first, then in pairs]
    results = [finding.result for finding in sandbox_attacks.run_attacks(attacks)]
    assert results == ["held", "unclear", "unclear", "broke"]


USUAL = """
import asyncio, multiprocessing, os, resource, signal, socket, subprocess, tempfile
def double(v): return 2 * v
async def later():
    await asyncio.sleep(0)
    return 1
left, right = socket.socketpair()
left.send(b"x"); right.recv(1)
resource.setrlimit(resource.RLIMIT_DATA, resource.getrlimit(resource.RLIMIT_DATA))
os.nice(0)
os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
os.sched_setaffinity(0, os.sched_getaffinity(0))
with tempfile.TemporaryDirectory() as folder, open(folder + "/x", "w") as file:
    file.write("x")
with multiprocessing.Pool(2) as pool, multiprocessing.Manager() as manager:
    shared = manager.list(pool.map(double, [1, 2]))
    print(asyncio.run(later()), sum(shared), subprocess.run(["/bin/true"]).returncode)
"""


@pytest.mark.usefixtures("box")
def test_a_program_that_does_usual_things_notices_no_filter() -> None:
    with sandboxed(USUAL, Limits(time_s=20)) as box:
        ran = box.run(b"")
    assert (ran.status, ran.output, ran.note) == ("ok", b"1 6 0\n", "")
