"""Ports on this machine's own address; engines never listen anywhere else."""

from __future__ import annotations

import errno
import os
import socket

from paribus.conditions import EnvironmentFault, UsageError

LOCALHOST = "127.0.0.1"
VARIABLE = "PARIBUS_PORT"


def port_in_use(port: int) -> bool:
    """Whether someone listens on the port (or it can't be bound for another reason)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, port))
        except OSError as error:
            return error.errno in {errno.EADDRINUSE, errno.EACCES}
        return False


def free_port() -> int:
    """A port that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOCALHOST, 0))
        return int(probe.getsockname()[1])


def choose_port() -> int:
    """`PARIBUS_PORT` when it is set (an `EnvironmentFault` if it is in use), else a free port."""
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return free_port()
    if not given.isdecimal() or not 1024 <= int(given) <= 65535:
        raise UsageError(f"{VARIABLE} is {given!r}: a port is a number from 1024 to 65535")
    if port_in_use(int(given)):
        raise EnvironmentFault(
            f"the port {given} ({VARIABLE}) is in use on {LOCALHOST}: stop what listens there, choose another, "
            f"or unset {VARIABLE}"
        )
    return int(given)
