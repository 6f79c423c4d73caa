"""A start's folder: prepared, filled by a measuring function, sealed with its manifest written last."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from paribus import __version__
from paribus.catalog import Job, Plan, PlannedMeasure
from paribus.conditions import EnvironmentFault, FileEntry, Manifest, Timings, inside, sha256_file
from paribus.engines.base import StartRecord
from paribus.machine import disk_faults, scrub_value, write_atomic
from paribus.machine.files import sync_folder

MANIFEST = "manifest.json"
CONTRIBUTOR = "PARIBUS_CONTRIBUTOR"

_SMALL = frozenset({"summary.json", "requests-lite.parquet", "score.json", "samples-lite.parquet"})
"""Files that go into git; all others are raw."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True)
class StartFolder:
    """Where one start of one measure goes."""

    root: Path
    path: Path
    relative: str
    kind: str
    number: int

    @classmethod
    def of(cls, root: Path, plan: Plan, job: Job, planned: PlannedMeasure) -> StartFolder:
        """The folder of a job's start of one of its measures; refuses a path that leaves the results folder."""
        relative = f"{planned.run}/start-{job.start}"
        results = inside(root, plan.results)
        return cls(root, inside(results, relative), relative, job.kind, job.start)

    @property
    def done(self) -> bool:
        """Whether the start is whole: its manifest is there."""
        return (self.path / MANIFEST).is_file()

    def prepare(self) -> None:
        """An empty folder; for quality, what an interrupted start left is kept, so that it continues."""
        with disk_faults(self.path):
            if self.path.exists() and self.kind != "quality":
                shutil.rmtree(self.path)
            self.path.mkdir(parents=True, exist_ok=True)

    def files(self) -> list[FileEntry]:
        """Every file of the start with size and hash, on disk for good. Leftovers of interrupted writes are removed."""
        entries = []
        for path in sorted(self.path.iterdir()):
            if path.name == MANIFEST:
                continue
            if path.name.startswith("."):
                path.unlink() if path.is_file() else shutil.rmtree(path)
                continue
            if not path.is_file() or path.is_symlink() or _NAME.fullmatch(path.name) is None:
                raise EnvironmentFault(
                    f"{self.relative} holds {path.name!r}, which can't be part of a start: remove it"
                )
            _sync(path)
            entries.append(
                FileEntry(
                    name=path.name,
                    bytes=path.stat().st_size,
                    sha256=sha256_file(path),
                    raw=path.name not in _SMALL,
                )
            )
        sync_folder(self.path)
        return entries

    def previous(self) -> str | None:
        """sha256 of the previous start's manifest, where there is one: the chained log."""
        before = self.path.with_name(f"start-{self.number - 1}") / MANIFEST
        return sha256_file(before) if before.is_file() else None

    def seal(self, manifest: Manifest) -> None:
        """Write the manifest; from then on the start is done."""
        text = manifest.model_dump_json(by_alias=True, indent=1) + "\n"
        write_atomic(self.path / MANIFEST, text.encode())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def now() -> str:
    """This moment in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Measured:
    """What one measure left for its manifest, beside its files. `elapsed` in seconds, the engine's start left out."""

    planned: PlannedMeasure
    record: StartRecord
    observed: dict[str, Any]
    versions: dict[str, str]
    started_at: str
    ended_at: str
    engine_start: float
    elapsed: float
    hosted: bool = False
    """Whether somebody else ran the server: never ranked with owned hardware."""


def manifest_of(folder: StartFolder, measured: Measured) -> Manifest:
    """The manifest of a measured start: its folder must hold all its files."""
    record = measured.record
    spent = record.warm_up + record.measuring
    # What a measure could not find out doesn't erase what the engine said when it started.
    found = {name: value for name, value in record.observed.items() if value is not None}
    return Manifest(
        kind="quality" if folder.kind == "quality" else "speed",
        path=folder.relative,
        start=folder.number,
        started_at=measured.started_at,
        ended_at=measured.ended_at,
        origin="endpoint" if measured.hosted else "catalog",
        declared=measured.planned.declared,
        observed=scrub_value({**measured.observed, **found}, root=folder.root),
        hashes=measured.planned.hashes,
        versions=scrub_value({**own_versions(folder.root), **measured.versions, **record.versions}),
        timings=Timings(
            engine_start=round(measured.engine_start, 3),
            warm_up=round(record.warm_up, 3),
            measuring=round(record.measuring, 3),
            rest=round(max(0.0, measured.elapsed - spent), 3),
        ),
        counters=record.counters,
        files=folder.files(),
        contributor=contributor(),
        previous=folder.previous(),
    )


def contributor() -> str:
    """Who measured: `PARIBUS_CONTRIBUTOR` (a name that they want to be known by), else anonymous."""
    given = " ".join(os.environ.get(CONTRIBUTOR, "").split())
    return given[:80] or "anonymous"


def own_versions(root: Path) -> dict[str, str]:
    """Our own version, the commit of the catalog's repository (with `+` when files differ from it), and Python's."""
    versions = {"paribus": __version__, "python": platform.python_version()}
    try:
        shown = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        versions["commit"] = shown.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        versions["commit"] = "unknown"
    return versions
