"""The manifest of a start: what was declared and observed, which versions, which files with which hashes.

`start-<k>/manifest.json` is written last (temporary name, fsync, rename): where it is, the start is whole.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LICENCE_STATEMENT = "Results under CC-BY-4.0; the contributor states that they may publish them."


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class FileEntry(_Frozen):
    """One file beside the manifest: its size in bytes and sha256; `raw` files are too large for git."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    raw: bool = False


class Timings(_Frozen):
    """Seconds of a start by phase: where the time went."""

    engine_start: float = 0.0
    warm_up: float = 0.0
    measuring: float = 0.0
    rest: float = 0.0


class Manifest(_Frozen):
    """One start of one measure. Times are UTC, ISO 8601."""

    schema_version: Literal[1] = Field(1, alias="schema")
    kind: Literal["speed", "quality"]
    path: str
    """Path of the start below `results/`."""
    start: int = Field(ge=1)
    started_at: str
    ended_at: str
    origin: Literal["catalog", "endpoint"]
    """`catalog`: a server that Paribus started from the catalog; only those are ranked with cards."""
    declared: dict[str, Any]
    observed: dict[str, Any]
    hashes: dict[str, str]
    """answer_class, system_hash, measure_hash, conditions: 12 hex digits each."""
    versions: dict[str, str]
    timings: Timings
    counters: dict[str, float] = {}
    """Engine counters: after minus before the measured part, under our names (`accepted_tokens`, ...)."""
    files: list[FileEntry]
    contributor: str
    licence: str = LICENCE_STATEMENT
    previous: str | None = None
    """sha256 of the previous start's manifest of the same run: the chained log (null for the first)."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)
