"""`requests.parquet`: one row a request, with the raw body and the time of each read.

Rows are sorted, reads are coded as differences, pages compressed with zstd: the same rows give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.machine.columns import table_of
from paribus.wire.exchange import Outcome
from paribus.wire.spool import Spool, row_order

_ROWS_A_GROUP = 16
_DIFFERENCES = "DELTA_BINARY_PACKED"

_FIELDS: list[pa.Field[Any]] = [
    pa.field("index", pa.int64(), nullable=False),
    pa.field("prompt_id", pa.string(), nullable=False),
    pa.field("phase", pa.string(), nullable=False),
    pa.field("worker", pa.int32(), nullable=False),
    pa.field("api", pa.string(), nullable=False),
    pa.field("due_ns", pa.int64(), nullable=False),
    pa.field("sent_ns", pa.int64(), nullable=False),
    pa.field("connect_ns", pa.int64(), nullable=False),
    pa.field("ended_ns", pa.int64(), nullable=False),
    pa.field("status", pa.int32(), nullable=False),
    pa.field("error", pa.string()),
    pa.field("retry_after_s", pa.float64()),
    pa.field("content_type", pa.string(), nullable=False),
    pa.field("body", pa.binary(), nullable=False),
    # Differences: the first value counts from 0, each other from the one before it.
    pa.field("read_ns", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
    pa.field("read_bytes", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
]
SCHEMA = pa.schema(_FIELDS, metadata={"paribus.schema": "requests.1"})
_PLAIN = tuple(name for name in SCHEMA.names if name not in ("read_ns", "read_bytes"))


def write_outcomes(path: Path, rows: Iterable[Outcome]) -> None:
    """Write a start's requests. A `Spool` is written without ever holding more than one group of rows."""
    write_table(path, SCHEMA, map(_row, in_order(rows)), differences=("read_ns", "read_bytes"))


def read_outcomes(path: Path) -> list[Outcome]:
    """Every request of a file written by `write_outcomes`. `CheckFailed` when the file is not one, or damaged."""
    return list(iter_outcomes(path))


def iter_outcomes(path: Path) -> Iterator[Outcome]:
    """The same, one group of rows at a time."""
    for number, row in enumerate(read_table(path, SCHEMA)):
        yield _outcome(path, number, row)


def in_order(rows: Iterable[Outcome]) -> Iterable[Outcome]:
    """Rows in the order in which they are stored; a spool keeps it by itself."""
    return rows if isinstance(rows, Spool) else sorted(rows, key=row_order)


def differences(values: Iterable[int]) -> list[int]:
    """Each value minus the one before it (the first minus 0)."""
    coded, before = [], 0
    for value in values:
        coded.append(value - before)
        before = value
    return coded


def write_table(path: Path, schema: pa.Schema, rows: Iterable[dict[str, Any]], differences: Sequence[str] = ()) -> None:
    """Write rows under a schema: group by group, then renamed into place. `differences`: columns coded as such."""
    coded = {f"{name}.list.element": _DIFFERENCES for name in differences}
    texts = [field.name for field in schema if field.type == pa.string()]
    partial = path.with_name(f".{path.name}.partial")
    source = iter(rows)
    try:
        with partial.open("wb") as file:
            with pq.ParquetWriter(
                file,
                schema,
                compression="zstd",
                compression_level=9,
                use_dictionary=texts,  # type: ignore[arg-type]
                column_encoding=coded or None,
                data_page_size=8 << 20,
                write_statistics=False,
            ) as writer:
                while group := list(islice(source, _ROWS_A_GROUP)):
                    writer.write_table(table_of(group, schema))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise EnvironmentFault(f"can't write {path}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def read_table(path: Path, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    """Rows of a file that must have this schema, one group of rows in memory at a time."""
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(schema):
                raise CheckFailed(f"{path} does not have the columns of this kind of file")
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise CheckFailed(f"can't read {path}: {str(error).splitlines()[0]}") from error


def _row(outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(outcome, name) for name in _PLAIN}
    row["read_ns"] = differences(t for t, _ in outcome.reads)
    row["read_bytes"] = differences(end for _, end in outcome.reads)
    return row


def _outcome(path: Path, number: int, row: dict[str, Any]) -> Outcome:
    """One row, checked: times and offsets never fall, and the last read ends with the body."""
    times, sizes = row.pop("read_ns"), row.pop("read_bytes")
    if len(times) != len(sizes) or any(t < 0 for t in times) or any(size <= 0 for size in sizes):
        raise CheckFailed(f"{path}, row {number}: its reads are not in order")
    if sum(sizes) != len(row["body"]):
        raise CheckFailed(f"{path}, row {number}: its reads do not add up to its body")
    if row["api"] not in ("chat", "completions"):
        raise CheckFailed(f"{path}, row {number}: unknown api {row['api']!r}")
    return Outcome(**row, reads=tuple(zip(accumulate(times), accumulate(sizes), strict=True)))
