"""`requests.parquet`: one row a request, with the raw body and the time of each read.

Rows are sorted, reads are coded as differences, pages compressed with zstd: the same rows give the same bytes.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.wire.exchange import Outcome, Reads
from paribus.wire.spool import Spool, row_order

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_ROWS_A_GROUP = 16
_DIFFERENCES = "DELTA_BINARY_PACKED"

_PLAIN = tuple(field.name for field in fields(Outcome) if field.name not in ("body", "reads"))


@cache
def schema() -> pa.Schema:
    """The columns of `requests.parquet`."""
    import pyarrow as pa  # here and below: 40 MB that a load generator must not hold while it measures

    whole, text, small = pa.int64(), pa.string(), pa.int32()
    numbers = pa.list_(pa.field("element", whole, nullable=False))
    columns: list[pa.Field[Any]] = [
        pa.field("index", whole, nullable=False),
        pa.field("prompt_id", text, nullable=False),
        pa.field("phase", text, nullable=False),
        pa.field("worker", small, nullable=False),
        pa.field("api", text, nullable=False),
        pa.field("due_ns", whole, nullable=False),
        pa.field("sent_ns", whole, nullable=False),
        pa.field("connect_ns", whole, nullable=False),
        pa.field("ended_ns", whole, nullable=False),
        pa.field("status", small, nullable=False),
        pa.field("error", text),
        pa.field("retry_after_s", pa.float64()),
        pa.field("content_type", text, nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        # Differences: the first value counts from 0, each other from the one before it.
        pa.field("read_ns", numbers, nullable=False),
        pa.field("read_bytes", numbers, nullable=False),
    ]
    return pa.schema(columns, metadata={"paribus.schema": "requests.1"})


def write_outcomes(path: Path, rows: Iterable[Outcome]) -> None:
    """Write a start's requests. A `Spool` is written without ever holding more than one group of rows."""
    write_table(path, schema(), map(_row, in_order(rows)), differences=("read_ns", "read_bytes"))
    _let_go()


def _let_go() -> None:
    """What compressing took, 20 MB, would stand beside all that reading the answers takes."""
    import pyarrow as pa

    from paribus.machine.heap import give_back

    pa.default_memory_pool().release_unused()
    give_back()


def read_outcomes(path: Path) -> list[Outcome]:
    """Every request of a file written by `write_outcomes`. `CheckFailed` when the file is not one, or damaged."""
    return list(iter_outcomes(path))


def iter_outcomes(path: Path) -> Iterator[Outcome]:
    """The same, one group of rows at a time."""
    for number, row in enumerate(read_table(path, schema())):
        yield _outcome(path, number, row)


def in_order(rows: Iterable[Outcome]) -> Iterable[Outcome]:
    """Rows in the order in which they are stored; a spool keeps it by itself."""
    return rows if isinstance(rows, Spool) else sorted(rows, key=row_order)


def differences(values: array[int]) -> npt.NDArray[np.int64]:
    """Each value minus the one before it (the first minus 0)."""
    import numpy as np

    coded: npt.NDArray[np.int64] = np.frombuffer(values, dtype=np.int64).copy()
    coded[1:] -= np.frombuffer(values, dtype=np.int64)[:-1]
    return coded


def write_table(path: Path, schema: pa.Schema, rows: Iterable[dict[str, Any]], differences: Sequence[str] = ()) -> None:
    """Write rows under a schema: group by group, then renamed into place. `differences`: columns coded as such."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from paribus.machine.columns import table_of

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
    import pyarrow as pa
    import pyarrow.parquet as pq

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
    reads = Reads.of(outcome.reads)
    row |= {"body": outcome.body, "read_ns": differences(reads.times), "read_bytes": differences(reads.ends)}
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
    return Outcome(**row, reads=Reads(array("q", accumulate(times)), array("q", accumulate(sizes))))
