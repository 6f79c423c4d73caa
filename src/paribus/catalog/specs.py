"""The base of every catalog type, and the small types that several files share."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SlugName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*$", max_length=64)]
Scalar = bool | int | float | str
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(min_length=1)]


def _real(day: str) -> str:
    date.fromisoformat(day if day.count("-") == 2 else f"{day}-01")
    return day


Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}(-\d{2})?$"), AfterValidator(_real)]
"""A month or a day that the calendar has: `2025-04`, `2025-04-29`."""
UNPINNED = "unpinned"
"""Stands for a hash that nobody has seen yet."""


class Spec(BaseModel):
    """Base of every catalog type: frozen, unknown keys refused, numbers finite, and `true` or `"1"` no number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True, allow_inf_nan=False)


def stays_inside(name: str) -> str:
    """A name that is used as a path, as it was given; a `ValueError` where it would lead out of its folder."""
    if not name or name.startswith(("/", "~")) or "\\" in name or ".." in name.split("/"):
        raise ValueError(f"{name} lies outside: give a name without `..`, `\\` or a leading `/`")
    return name
