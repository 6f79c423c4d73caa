"""System calls that the sandbox refuses, as a filter for bubblewrap (classic BPF, `man 2 seccomp`).

Programs follow each other in one sandbox, and a namespace outlives the processes in it. Refused (EPERM) is what could
leave something behind where `sandbox_inner.sweep` can't remove it: shared memory and queues of the kernel, keys, ports,
limits and priorities of the process that runs the programs, marks on folders. Attributes of files are refused for a
second reason: started by root, the sandbox's user owns the machine's own `/dev/null` to the kernel.

A filter sees numbers only, so numbers differ by machine: x86-64 and aarch64 are known, from the kernel's
`arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`. Calls in another of the machine's
numberings (32 bits, x32) are all refused.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from paribus.conditions import EnvironmentFault

Argument = tuple[int, int]
"""An argument's place, and a value of its lower 32 bits: the kernel reads no more of those that are named here."""


@dataclass(frozen=True)
class Call:
    """A system call: its number on x86-64 and on aarch64 (null: there is none), and when it is let through.

    It must have all arguments of `only`, or none of `never`; without either it is refused always.
    """

    name: str
    x86_64: int
    aarch64: int | None
    only: tuple[Argument, ...] = ()
    never: tuple[Argument, ...] = ()


_UNIX: Argument = (0, 1)  # the family of sockets that has no ports
_ITSELF: Argument = (0, 0)  # no process but the caller
_SET_FLAGS: tuple[Argument, ...] = ((1, 0x40086602), (1, 0x401C5820))  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR

CALLS = (
    Call("shmget", 29, 194),
    Call("semget", 64, 190),
    Call("msgget", 68, 186),
    Call("mq_open", 240, 180),
    Call("add_key", 248, 217),
    Call("request_key", 249, 218),
    Call("keyctl", 250, 219),
    Call("io_uring_setup", 425, 425),  # makes sockets unseen by a filter
    Call("socket", 41, 198, only=(_UNIX,)),
    Call("prlimit64", 302, 261, only=(_ITSELF,)),
    Call("setpriority", 141, 140, only=(_ITSELF, (1, 0))),
    Call("ioprio_set", 251, 30),
    Call("sched_setparam", 142, 118, only=(_ITSELF,)),
    Call("sched_setscheduler", 144, 119, only=(_ITSELF,)),
    Call("sched_setaffinity", 203, 122, only=(_ITSELF,)),
    Call("sched_setattr", 314, 274, only=(_ITSELF,)),
    Call("chmod", 90, None),
    Call("fchmod", 91, 52),
    Call("fchmodat", 268, 53),
    Call("fchmodat2", 452, 452),
    Call("utime", 132, None),
    Call("utimes", 235, None),
    Call("futimesat", 261, None),
    Call("utimensat", 280, 88),
    Call("setxattr", 188, 5),
    Call("lsetxattr", 189, 6),
    Call("fsetxattr", 190, 7),
    Call("setxattrat", 463, 463),
    Call("file_setattr", 469, 469),
    Call("ioctl", 16, 29, never=_SET_FLAGS),
)

_NUMBERINGS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of `linux/audit.h`, by what `uname` says."""

_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ALLOW; SECCOMP_RET_ERRNO with EPERM

Instruction = tuple[int, int, int, int]
"""Code, how many instructions to skip when a comparison holds and when it doesn't, value."""


def instructions(machine: str) -> list[Instruction]:
    """The filter for a machine (`uname`'s word for it). Raises `EnvironmentFault` for one that isn't known."""
    if machine not in _NUMBERINGS:
        raise EnvironmentFault(f"the sandbox has no filter of system calls for {machine}, only for x86-64 and aarch64")
    refuse, allow = (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)
    words = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _NUMBERINGS[machine]), refuse, (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        words += [(_AT_LEAST, 0, 1, _X32), refuse]
    for call in CALLS:
        number = call.x86_64 if machine == "x86_64" else call.aarch64
        if number is not None:
            body = [*_checks(call), allow] if call.only or call.never else [refuse]
            words += [(_EQUAL, 0, len(body), number), *body]
    return [*words, allow]


def _checks(call: Call) -> Iterator[Instruction]:
    """Refuse by a call's arguments, else go on behind these instructions."""
    for wanted, arguments in ((True, call.only), (False, call.never)):
        for place, value in arguments:
            yield (_LOAD, 0, 0, 16 + 8 * place)
            yield (_EQUAL, int(wanted), int(not wanted), value)
            yield (_RETURN, 0, 0, _REFUSE)


@contextmanager
def opened() -> Iterator[int]:
    """A descriptor from which bubblewrap reads this machine's filter (`--seccomp`)."""
    data = b"".join(struct.pack("=HBBI", *one) for one in instructions(os.uname().machine))
    descriptor = os.memfd_create("filter")
    try:
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
