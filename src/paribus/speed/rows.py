"""One row a request: everything that summaries, comparisons and intervals need, and no bodies.

`requests-lite.parquet` holds these rows. It goes to git; the raw bodies in `requests.parquet` need not, and
`paribus check` makes the rows again from them. Nanoseconds; counts of tokens; null where undefined.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from paribus.conditions import UsageError
from paribus.machine import write_atomic

if TYPE_CHECKING:
    import pyarrow as pa

KS = (1, 32, 100, 300, 800)
"""The k of `time_to_k`, in standard tokens."""
READERS = (8, 30)
"""The readers of `reader_wait`, in standard tokens a second."""


@dataclass(frozen=True, slots=True)
class Row:
    """One request of a start. Times are nanoseconds since the request's first byte (`sent_ns`), unless said otherwise.

    `ok`: answered (no error, something delivered). `cut`: broken off in mid-answer. `capped`: stopped by the token
    cap. `unanswered`: no visible answer (empty, or reasoning only). `counted`: one of the measured requests; the
    others (soak, and what we cancelled ourselves) only load the engine. `check_passed` is null where the prompt has no
    check.
    """

    index: int
    prompt_id: str
    kind: str
    length: str
    counted: bool
    worker: int
    due_ns: int
    """Since the load's start, as `sent_ns` and `ended_ns`."""
    sent_ns: int
    connect_ns: int
    ended_ns: int
    status: int
    error: str | None
    finish_reason: str | None
    ok: bool
    cut: bool
    capped: bool
    unanswered: bool
    degenerate: bool
    check_passed: bool | None
    tokens: float
    """Delivered tokens of the model (text, reasoning, tool arguments)."""
    tokens_method: str
    reasoning_tokens: float
    standard_tokens: int
    bytes: int
    prompt_tokens: int | None
    cached_tokens: int | None
    ttft_ns: int | None
    ttfa_ns: int | None
    e2e_ns: int | None
    arrivals: int
    """Distinct arrivals: pieces less than 1 ms apart are one."""
    decode_tokens: float | None
    """Tokens after the first arrival; null with fewer than two arrivals."""
    decode_ns: int | None
    """From the first arrival to the last."""
    t1_ns: int | None
    t32_ns: int | None
    t100_ns: int | None
    t300_ns: int | None
    t800_ns: int | None
    wait_8_s: float | None
    wait_30_s: float | None
    stall_max_ns: int | None
    text_tokens: int | None = None
    """What was delivered, counted by the model's own tokenizer; null where none was at hand."""
    hidden_tokens: float = 0.0
    """Reasoning that usage counts and nobody was shown; no part of `tokens`."""

    def time_to(self, k: int) -> int | None:
        """Nanoseconds until the k-th standard token had arrived; None where the answer is shorter or failed."""
        value: int | None = getattr(self, f"t{k}_ns")
        return value

    def reader_wait(self, speed: int) -> float | None:
        """Seconds that a reader at `speed` standard tokens a second stood still."""
        value: float | None = getattr(self, f"wait_{speed}_s")
        return value


@cache
def schema() -> pa.Schema:
    """Arrow schema of `requests-lite.parquet`: the fields of `Row` in order."""
    import pyarrow as pa  # here and below: 40 MB that a load generator must not hold while it measures

    types: dict[type, pa.DataType] = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    hints = get_type_hints(Row)
    fields = []
    for field in dataclasses.fields(Row):
        options = [t for t in getattr(hints[field.name], "__args__", (hints[field.name],)) if t is not type(None)]
        fields.append(pa.field(field.name, types[options[0]], nullable=options != [hints[field.name]]))
    return pa.schema(fields)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write `requests-lite.parquet` (zstd), whole or not at all. `EnvironmentFault` when the disk is full."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from paribus.machine.columns import table_by

    sink = pa.BufferOutputStream()
    held = list(rows)
    made = table_by(lambda name: [getattr(row, name) for row in held], schema())
    pq.write_table(made, sink, compression="zstd", compression_level=9)
    write_atomic(path, sink.getvalue().to_pybytes())


def read_rows(path: Path) -> list[Row]:
    """Read `requests-lite.parquet`. A `UsageError` says when the file isn't one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"can't read the requests in {path}: {error}") from error
    wanted = schema()
    optional = {field.name for field in dataclasses.fields(Row) if field.default is not dataclasses.MISSING}
    missing = sorted(set(wanted.names) - set(table.column_names) - optional)
    if missing:
        raise UsageError(f"{path} lacks the columns {', '.join(missing)}: it was not written by this version")
    try:
        held = pa.schema([field for field in wanted if field.name in table.column_names])
        return [Row(**row) for row in table.select(held.names).cast(held).to_pylist()]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"{path} holds values that don't fit its columns: {error}") from error
