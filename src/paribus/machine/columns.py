"""Arrow tables from rows, made without `pandas`.

pyarrow's own conversion from Python imports pandas wherever it is installed (with the extra `quality`): 57 MB and most
of a second of CPU time in every process that writes a file. Columns are made from buffers here instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

_NUMBERS = {pa.int64(): np.int64, pa.int32(): np.int32, pa.float64(): np.float64}
_TEXTS = (pa.string(), pa.binary())


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of rows (missing and None are null). Takes whole numbers of 32 and 64 bits, floats of 64, truth values,
    text, bytes, and lists without nulls of these numbers. `ValueError` for a null where the schema has none,
    `TypeError` for a type that isn't known."""
    return table_by(lambda name: [row.get(name) for row in rows], schema)


def table_by(values: Callable[[str], list[Any]], schema: pa.Schema) -> pa.Table:
    """The same from a function that gives a column's values: for rows that are no mappings."""
    return pa.Table.from_arrays([_column(values(field.name), field) for field in schema], schema=schema)


def _column(values: list[Any], field: pa.Field[Any]) -> pa.Array[Any]:
    there = np.array([value is not None for value in values], dtype=bool)
    if not field.nullable and not there.all():
        raise ValueError(f"the column {field.name} has no nulls")
    validity = None if there.all() else _bits(there)
    kind = field.type
    if kind in _NUMBERS:
        numbers = np.array([0 if value is None else value for value in values], dtype=_NUMBERS[kind])
        return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(numbers.tobytes())])
    if kind == pa.bool_():
        return pa.Array.from_buffers(
            kind, len(values), [validity, _bits(np.array([v is True for v in values], dtype=bool))]
        )
    if kind in _TEXTS:
        return _texts(values, kind, validity)
    if pa.types.is_list(kind):
        return _lists(values, kind, validity)
    raise TypeError(f"the column {field.name} is of the type {kind}, which is not known here")


def _bits(flags: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())


def _offsets(lengths: list[int]) -> pa.Buffer:
    return pa.py_buffer(np.array([0, *accumulate(lengths)], dtype=np.int32).tobytes())


def _texts(values: list[Any], kind: Any, validity: pa.Buffer | None) -> pa.Array[Any]:
    parts = [b"" if v is None else v.encode() if isinstance(v, str) else bytes(v) for v in values]
    buffers = [validity, _offsets([len(part) for part in parts]), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _lists(values: list[Any], kind: Any, validity: pa.Buffer | None) -> pa.Array[Any]:
    lists = [() if value is None else value for value in values]
    if kind.value_type in _NUMBERS:  # by far the longest: no object for each number
        dtype = _NUMBERS[kind.value_type]
        numbers = np.concatenate([np.zeros(0, dtype), *(np.asarray(each, dtype) for each in lists)])
        inner: pa.Array[Any] = pa.Array.from_buffers(
            kind.value_type, len(numbers), [None, pa.py_buffer(numbers.tobytes())]
        )
    else:
        inner = _column(list(chain.from_iterable(lists)), kind.value_field)
    buffers = [validity, _offsets([len(each) for each in lists])]
    return pa.Array.from_buffers(kind, len(values), buffers, children=[inner])
