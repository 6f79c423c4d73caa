"""The base of every catalog type, and the small types that several files share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

SlugName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*$", max_length=64)]
Scalar = bool | int | float | str
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(min_length=1)]
UNPINNED = "unpinned"
"""Stands for a hash that nobody has seen yet."""


class Spec(BaseModel):
    """Base of every catalog type: frozen, unknown keys refused, numbers finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)


def stays_inside(name: str) -> str:
    """A name that is used as a path, as it was given; a `ValueError` where it would lead out of its folder."""
    if not name or name.startswith(("/", "~")) or "\\" in name or ".." in name.split("/"):
        raise ValueError(f"{name} lies outside: give a name without `..`, `\\` or a leading `/`")
    return name
