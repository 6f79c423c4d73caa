"""The data files that the site offers: the database itself and the Parquet and CSV files made beside it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from paribus.results.tables import EXPORTS


@dataclass(frozen=True)
class DataFile:
    """One file that can be downloaded: its name below `data/` of the site, size in bytes, and how to load it."""

    name: str
    source: Path
    bytes: int
    load: str
    language: str


def data_files(database: Path) -> list[DataFile]:
    """The files that exist: the database, each exported table as Parquet and CSV, what they mean, their licence."""
    candidates = [(database.name, database)]
    candidates += [
        (f"{table}.{kind}", database.parent / "data" / f"{table}.{kind}")
        for table in EXPORTS
        for kind in ("parquet", "csv")
    ]
    candidates += [(name, database.parent / "data" / name) for name in ("README.md", "LICENCE.txt")]
    return [DataFile(name, path, path.stat().st_size, *_load(name)) for name, path in candidates if path.is_file()]


def _load(name: str) -> tuple[str, str]:
    """One line that loads a file, and the language of that line."""
    if name.endswith(".parquet"):
        return f'pandas.read_parquet("{name}")', "Python"
    if name.endswith((".md", ".txt")):
        return "", ""
    if name.endswith(".csv"):
        return f"FROM '{name}';", "DuckDB"
    return f'duckdb.connect("{name}", read_only=True).sql("FROM runs")', "Python"


def copy_data(database: Path, out: Path) -> list[str]:
    """Copy the data files into the site, where they changed; returns their names below the site's folder."""
    names = []
    for file in data_files(database):
        target = out / "data" / file.name
        if not target.is_file() or not _same(file.source, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.source, target)
        names.append(f"data/{file.name}")
    return names


def _same(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes, read in blocks."""
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as a, other.open("rb") as b:
        while block := a.read(1 << 20):
            if block != b.read(1 << 20):
                return False
    return True
