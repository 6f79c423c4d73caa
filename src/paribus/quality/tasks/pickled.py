"""Test cases of LiveCodeBench, which come as JSON or as a compressed pickle: read without running anything."""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from paribus.conditions import UsageError

_MOST = 1 << 30
"""Largest test set, unpacked (bytes)."""

_KEPT = 4
"""Items whose tests stay unpacked: programs are graded item by item."""
_ONE = threading.Lock()


@dataclass(frozen=True)
class TestCase:
    """One test: what goes in, what should come out. `functional`: JSON arguments a line, a JSON result."""

    __test__ = False  # Not a test of ours, whatever a test runner thinks of the name.

    stdin: str
    expected: str
    kind: Literal["stdin", "functional"]


class _NoGlobals(pickle.Unpickler):
    """Unpickles plain values only: any class or function in the stream is refused before it is looked up."""

    def find_class(self, module: str, name: str) -> Any:
        raise UsageError(f"test cases hold a pickle that asks for {module}.{name}: refused")


def unpickle_plain(data: bytes) -> Any:
    """A pickle of strings, numbers, lists and dictionaries. Raises `UsageError` for anything else."""
    try:
        return _NoGlobals(io.BytesIO(data)).load()
    except UsageError:
        raise
    except Exception as error:  # unpickling hostile bytes raises nearly everything
        raise UsageError(f"test cases hold a broken pickle: {error}") from error


@dataclass(frozen=True)
class PackedCases:
    """All tests of an item as they come, unpacked when they are looked at; only those looked at last stay unpacked.

    Unpacked, the tests of a whole task take gigabytes, and of one item megabytes: many programs share one of these.
    """

    public: str
    private: str

    def unpacked(self) -> tuple[TestCase, ...]:
        """Public tests, then private ones. Raises `UsageError` for what can't be read."""
        with _ONE:  # of several threads that want the same tests
            return _unpacked(self)

    def __len__(self) -> int:
        return len(self.unpacked())

    def __iter__(self) -> Iterator[TestCase]:
        return iter(self.unpacked())


@lru_cache(maxsize=_KEPT)
def _unpacked(cases: PackedCases) -> tuple[TestCase, ...]:
    return tuple(case for text in (cases.public, cases.private) for case in read_cases(text))


def read_cases(text: str) -> list[TestCase]:
    """Test cases out of a `public_test_cases` or `private_test_cases` field."""
    try:
        rows = json.loads(text)
    except json.JSONDecodeError:
        rows = _unpack(text)
    if not isinstance(rows, list):
        raise UsageError("test cases must be a list")
    return [_case(row) for row in rows]


def _unpack(text: str) -> Any:
    try:
        packed = base64.b64decode(text.encode("ascii"), validate=False)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, _MOST)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise UsageError(f"test cases are neither JSON nor a compressed pickle: {error}") from error
    if unpacker.unconsumed_tail:
        raise UsageError(f"test cases unpack to more than {_MOST} bytes")
    value = unpickle_plain(data)
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        raise UsageError(f"test cases are broken: {error}") from error


def _case(row: Any) -> TestCase:
    if not isinstance(row, dict) or not {"input", "output"} <= set(row):
        raise UsageError("a test case needs input and output")
    kind = row.get("testtype", "stdin")
    if kind not in ("stdin", "functional"):
        raise UsageError(f"a test case of the unknown type {kind!r}")
    return TestCase(str(row["input"]), str(row["output"]), kind)
