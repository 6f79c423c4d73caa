"""Reading files that strangers wrote: size, name, type, depth and shape are checked before anything is believed.

Every fault is a `CheckFailed` with one sentence that names the file.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from paribus.catalog.faults import one_sentence
from paribus.conditions import CheckFailed

JSON_BYTES = 8 << 20
JSON_DEPTH = 48
JSON_TEXT = 1 << 16
PARQUET_BYTES = 1 << 30
PARQUET_ROWS = 2_000_000
PARQUET_UNPACKED = 8 << 30
JOURNAL_BYTES = 4 << 30

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)

T = TypeVar("T", bound=BaseModel)


def shown(path: Path) -> str:
    """The last parts of a path: enough to find the file, nothing about the machine."""
    return "/".join(path.parts[-2:])


def plain_file(folder: Path, name: str, limit: int) -> Path:
    """The regular file `name` in `folder`; refuses links, other kinds, strange names and more than `limit` bytes."""
    if _NAME.fullmatch(name) is None:
        raise CheckFailed(f"{folder.name}/ holds a file named {name!r}: only lower-case letters, digits, '.', '_', '-'")
    path = folder / name
    if path.is_symlink():
        raise CheckFailed(f"{shown(path)} is a link: run folders hold plain files only")
    if not path.is_file():
        raise CheckFailed(f"{shown(path)} is missing")
    size = path.stat().st_size
    if size > limit:
        raise CheckFailed(f"{shown(path)} has {size:,} bytes: more than the {limit:,} that such a file may have")
    return path


def read_bytes(folder: Path, name: str, limit: int = JSON_BYTES) -> bytes:
    """The bytes of a plain file of a run folder."""
    path = plain_file(folder, name, limit)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckFailed(f"can't read {shown(path)}: {error.strerror}") from error


def parse_json(data: bytes, what: str) -> Any:
    """JSON in UTF-8, at most `JSON_DEPTH` deep, no text over `JSON_TEXT`, no duplicate key, NaN or Infinity."""
    try:
        text = data.decode("utf-8")
        if _depth(text) > JSON_DEPTH:
            raise CheckFailed(f"{what} is nested more than {JSON_DEPTH} deep")
        if any(len(each[0]) > JSON_TEXT for each in _STRING.finditer(text)):
            raise CheckFailed(f"{what} holds a text of more than {JSON_TEXT:,} characters")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CheckFailed(f"{what} is not the JSON it should be: {' '.join(str(error).split())[:200]}") from error


def parse_model(data: bytes, kind: type[T], what: str) -> T:
    """JSON as one of our types."""
    try:
        return kind.model_validate(parse_json(data, what))
    except ValidationError as error:
        raise CheckFailed(f"{what}: {one_sentence(error)[:400]}") from error


def read_model(folder: Path, name: str, kind: type[T]) -> T:
    """One JSON file of a run folder as one of our types."""
    return parse_model(read_bytes(folder, name), kind, shown(folder / name))


def read_json_file(folder: Path, name: str) -> Any:
    """One JSON file of a run folder, as it stands."""
    return parse_json(read_bytes(folder, name), shown(folder / name))


def open_parquet(folder: Path, name: str) -> Path:
    """A Parquet file of a run folder whose footer promises a sane amount of data."""
    path = plain_file(folder, name, PARQUET_BYTES)
    try:
        footer = pq.ParquetFile(path).metadata
        unpacked = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CheckFailed(f"{shown(path)} is not a Parquet file: {' '.join(str(error).split())[:200]}") from error
    if footer.num_rows > PARQUET_ROWS or unpacked > PARQUET_UNPACKED:
        raise CheckFailed(f"{shown(path)} unpacks to {footer.num_rows:,} rows and {unpacked:,} bytes: too many")
    return path


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """All rows of a Parquet file of a run folder, as dictionaries."""
    path = open_parquet(folder, name)
    try:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CheckFailed(f"{shown(path)} can't be read: {' '.join(str(error).split())[:200]}") from error
    return rows


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in _STRING.sub("", text):
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _constant(word)


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")
