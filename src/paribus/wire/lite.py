"""`requests-lite.parquet`: what git keeps of a start's requests. No bodies; what was derived from them, row by row."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from paribus.wire.answer import Answer
from paribus.wire.exchange import Outcome
from paribus.wire.openai import read_answer
from paribus.wire.records import differences, in_order, read_table, write_table
from paribus.wire.tokens import standard_token_ends, utf8_bytes

MILESTONES = (1, 32, 100, 300, 800)
"""The k of `time_to_k`: the arrival of each k-th standard token is kept for every request."""
ARRIVALS_KEPT = 60_000
"""Arrival times go along while a start has no more of them than this (about 120 KB)."""


@dataclass(frozen=True)
class LiteRow:
    """One request without its body. Times are nanoseconds: `due`, `sent`, `ended` since the load's epoch, `connect`
    a duration, the rest since the request was sent; null where undefined.
    """

    index: int
    prompt_id: str
    phase: str
    worker: int
    due_ns: int
    sent_ns: int
    connect_ns: int
    ended_ns: int
    status: int
    error: str | None
    """Null: a whole answer (the answer's error, not only the exchange's)."""
    finish_reason: str | None
    done: bool
    revised: bool
    tokens: int | None
    """`usage.completion_tokens`; null without usage."""
    prompt_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    """As the server counts them."""
    standard_tokens: int
    bytes: int
    """UTF-8 bytes delivered."""
    pieces: int
    ttft_ns: int | None
    ttfa_ns: int | None
    e2e_ns: int | None
    time_to_k_ns: tuple[int | None, ...]
    """Arrival of the piece that holds the k-th standard token, for each k of `MILESTONES`; null where not reached."""
    arrivals_us: tuple[int, ...] | None
    """Arrival of each piece, microseconds since sent; null when the start has too many of them."""


def _field(name: str, annotation: str) -> pa.Field[Any]:
    kind = annotation.removesuffix(" | None")
    types = {"int": pa.int64(), "str": pa.string(), "bool": pa.bool_()}
    if kind in types:
        return pa.field(name, types[kind], nullable=annotation != kind)
    return pa.field(name, pa.list_(pa.int64()))


LITE_SCHEMA = pa.schema(
    [_field(field.name, str(field.type)) for field in fields(LiteRow)], metadata={"paribus.schema": "requests-lite.1"}
)


def lite_row(outcome: Outcome, answer: Answer) -> LiteRow:
    """The derived row of one request; `answer` is `read_answer(outcome)`."""
    usage = answer.usage
    delivered = answer.delivered
    ends = standard_token_ends(delivered)
    return LiteRow(
        index=outcome.index,
        prompt_id=outcome.prompt_id,
        phase=outcome.phase,
        worker=outcome.worker,
        due_ns=outcome.due_ns,
        sent_ns=outcome.sent_ns,
        connect_ns=outcome.connect_ns,
        ended_ns=outcome.ended_ns,
        status=outcome.status,
        error=answer.error,
        finish_reason=answer.finish_reason,
        done=answer.done,
        revised=answer.revised,
        tokens=usage.completion_tokens if usage else None,
        prompt_tokens=usage.prompt_tokens if usage else None,
        cached_tokens=usage.cached_tokens if usage else None,
        reasoning_tokens=usage.reasoning_tokens if usage else None,
        standard_tokens=len(ends),
        bytes=utf8_bytes(delivered),
        pieces=len(answer.pieces),
        ttft_ns=answer.ttft_ns,
        ttfa_ns=answer.ttfa_ns,
        e2e_ns=answer.e2e_ns,
        time_to_k_ns=_times_to_k(answer, ends),
        arrivals_us=tuple(piece.t_ns // 1000 for piece in answer.pieces),
    )


def write_lite(path: Path, rows: Iterable[Outcome]) -> None:
    """Write the derived rows of a start; a spool is read twice rather than held in memory."""
    source = rows if hasattr(rows, "__len__") else list(rows)
    kept = sum(len(read_answer(outcome).pieces) for outcome in source) <= ARRIVALS_KEPT
    lite = (lite_row(outcome, read_answer(outcome)) for outcome in in_order(source))
    write_table(path, LITE_SCHEMA, (_stored(row, kept) for row in lite), differences=("arrivals_us", "time_to_k_ns"))


def read_lite(path: Path) -> list[LiteRow]:
    """Every row of a file written by `write_lite`. `CheckFailed` when the file is not one, or damaged."""
    return list(_rows(path))


def _times_to_k(answer: Answer, ends: list[int]) -> tuple[int | None, ...]:
    arrived = list(accumulate(len(piece.delivered) for piece in answer.pieces))
    return tuple(answer.pieces[bisect_left(arrived, ends[k - 1])].t_ns if k <= len(ends) else None for k in MILESTONES)


def _stored(row: LiteRow, kept: bool) -> dict[str, object]:
    values = {field.name: getattr(row, field.name) for field in fields(LiteRow)}
    values["arrivals_us"] = differences(row.arrivals_us) if kept and row.arrivals_us is not None else None
    return values


def _rows(path: Path) -> Iterator[LiteRow]:
    for row in read_table(path, LITE_SCHEMA):
        arrivals = row.pop("arrivals_us")
        yield LiteRow(
            **row | {"time_to_k_ns": tuple(row["time_to_k_ns"])},
            arrivals_us=None if arrivals is None else tuple(accumulate(arrivals)),
        )
