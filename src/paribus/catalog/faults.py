"""Faults of a validation as a user reads them."""

from __future__ import annotations

from pydantic import ValidationError


def one_sentence(error: Exception) -> str:
    """The first fault of a validation in one sentence, and how many more there are."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    faults = error.errors()
    first = faults[0]
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}{more}"
