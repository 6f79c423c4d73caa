"""A spool: finished exchanges go to disk as they come, so that a long measurement needs little memory."""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import orjson

from paribus.conditions import EnvironmentFault
from paribus.wire.exchange import Outcome, Reads

_SCALARS = tuple(field.name for field in fields(Outcome) if field.name not in ("body", "reads"))
_WORD = 8


@dataclass(frozen=True, order=True)
class _Place:
    """Where a record lies in the file; ordered as rows are (see `row_order`)."""

    order: tuple[int, str, int]
    position: int
    head: int
    reads: int
    body: int


def row_order(outcome: Outcome) -> tuple[int, str, int]:
    """The order of rows in every file of requests: index, then phase, then time."""
    return outcome.index, outcome.phase, outcome.sent_ns


class Spool:
    """Outcomes in an unnamed temporary file that vanishes with the process. Iterating gives them in row order.

    `folder`: where the file is made (the system's folder for temporary files by default). A full disk is an
    `EnvironmentFault`. Adding while somebody iterates is allowed; the iteration gives what was there at its start.
    """

    def __init__(self, folder: Path | None = None) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (closed with the spool)
        except OSError as error:
            raise EnvironmentFault(f"can't make a temporary file for finished requests: {error}") from error
        self._places: list[_Place] = []
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, outcome: Outcome) -> None:
        """Append one finished exchange."""
        head = orjson.dumps({name: getattr(outcome, name) for name in _SCALARS})
        reads = Reads.of(outcome.reads)
        data = memoryview(b"".join((head, reads.times, reads.ends, outcome.body)))
        place = _Place(row_order(outcome), self._end, len(head), len(reads), len(outcome.body))
        try:
            while data:
                data = data[os.pwrite(self._file.fileno(), data, self._end) :]
                self._end = place.position + len(head) + 2 * _WORD * place.reads + place.body - len(data)
        except OSError as error:
            raise EnvironmentFault(f"can't store a finished request: {error.strerror}") from error
        self._places.append(place)

    def __iter__(self) -> Iterator[Outcome]:
        for place in sorted(self._places):
            yield self._read(place)

    def _read(self, place: _Place) -> Outcome:
        size = place.head + 2 * _WORD * place.reads + place.body
        data = memoryview(os.pread(self._file.fileno(), size, place.position))
        times, ends = array("q"), array("q")
        middle = place.head + _WORD * place.reads
        times.frombytes(data[place.head : middle])
        ends.frombytes(data[middle : middle + _WORD * place.reads])
        return Outcome(
            **orjson.loads(data[: place.head]),
            body=bytes(data[middle + _WORD * place.reads :]),
            reads=Reads(times, ends),
        )
