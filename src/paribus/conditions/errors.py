"""Errors that a person may meet: one clear sentence each, and the exit code that goes with it.

Exit codes (the same for every command): 0 done; 1 nothing succeeded, or a check failed; 2 usage; 3 environment;
130 interrupted. A `ParibusError` never reaches the user as a traceback: the CLI prints its text and exits.
"""

from __future__ import annotations


class ParibusError(Exception):
    """What happened, where, and what to do, in words for the user."""

    exit_code = 1


class CheckFailed(ParibusError):
    """Something was measured or checked, and it does not hold."""

    exit_code = 1


class UsageError(ParibusError):
    """The command, a file or a setting given by the user is wrong."""

    exit_code = 2


class EnvironmentFault(ParibusError):
    """The machine lacks something: a program, disk, a free port, a model, a working engine."""

    exit_code = 3
