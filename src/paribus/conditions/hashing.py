"""Hashes and short ids: sha256 over RFC 8785 canonical JSON (<https://www.rfc-editor.org/rfc/rfc8785>)."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import rfc8785


def canonical(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value. Raises `ValueError` for what JSON can't hold (NaN, huge integers)."""
    return rfc8785.dumps(value)


def hash12(value: Any) -> str:
    """First 12 hex digits of the sha256 of the canonical JSON: `answer_class`, `system_hash`, `measure_hash`, ..."""
    return hashlib.sha256(canonical(value)).hexdigest()[:12]


def conditions_hash(system_hash: str, measure_hash: str) -> str:
    """`conditions`: the hash over the system's and the measure's hash that names a run's folder."""
    return hash12({"measure": measure_hash, "system": system_hash})


def short_id(prefix: str, text: str) -> str:
    """A permanent id: the prefix and 10 lower-case base32 characters of the text's sha256."""
    return prefix + base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()[:10]


def run_id(path: str) -> str:
    """Id of a run: `r` + short hash of its path below `results/` (forward slashes, no trailing slash)."""
    return short_id("r", path.strip("/"))


def figure_id(run_ids: list[str], metric: str) -> str:
    """Id of a figure: `f` + short hash of the run ids (in the figure's order) and the metric."""
    return short_id("f", canonical([run_ids, metric]).decode())


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file's bytes, read in blocks of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
