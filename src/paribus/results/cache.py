"""Rows that are kept from one build to the next, each set named by a hash of all that it is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import orjson

import paribus
from paribus.conditions import sha256_file
from paribus.machine.files import write_atomic
from paribus.results.data import RunData
from paribus.results.lossless import NOT_LOSSLESS
from paribus.results.rows import Rows
from paribus.results.tables import SCHEMA

CACHE = "build/rows"
SHOWING = ("site", "cli")
"""The packages that make no row."""


@dataclass
class RowCache:
    """The cache of one build, below the repository's root. A run's files are read once, however often it is asked for.

    `reused`: how many sets of rows were known already.
    """

    root: Path
    reused: int = 0
    _files: dict[Path, str] = field(default_factory=dict)

    def key_of(self, data: RunData) -> str:
        """Hash of all that a run's rows are made from: its files, and what a lossless gate says of its decoder."""
        place = data.place
        if place.folder not in self._files:
            self._files[place.folder] = _files_hash(place.folder)
        said = [one.text for one in data.summary.flags if one.id == NOT_LOSSLESS]
        return _short(f"{self._code} {place.path} {place.demo} {said} {self._files[place.folder]}")

    def rows(self, parts: list[str], make: Callable[[], Rows], *, counted: bool = True) -> Rows:
        """Rows that are made from `parts` (keys of runs, and whatever else decides them): known, or made and kept."""
        path = self.root / CACHE / f"{_short(' '.join(parts))}.json"
        if path.is_file():
            try:
                rows: Rows = orjson.loads(path.read_bytes())
                self.reused += counted
                return rows
            except orjson.JSONDecodeError:
                path.unlink()
        made: Rows = make()
        data = orjson.dumps(made)
        write_atomic(path, data)
        # Read back, so that a first build and a repeated one see the very same values.
        again: Rows = orjson.loads(data)
        return again

    @cached_property
    def _code(self) -> str:
        """Hash of the code that makes rows: a changed rule makes every row again."""
        here = Path(paribus.__file__).parent
        # All that results may import: answers are read in `wire`, kinds of numbers in `engines`.
        files = sorted(path for path in here.rglob("*.py") if path.relative_to(here).parts[0] not in SHOWING)
        digest = hashlib.sha256(f"{SCHEMA} {paribus.__version__}".encode())
        for path in files:
            digest.update(path.read_bytes())
        return digest.hexdigest()


def _files_hash(folder: Path) -> str:
    """Hash of a run's files. Raw bodies and telemetry give no rows; the manifests carry their hashes."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in ("telemetry.parquet", "journal.jsonl"):
            size = path.name == "requests.parquet"
            content = str(path.stat().st_size) if size else sha256_file(path)
            digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
