"""Files of requests: nothing is lost, the same rows give the same bytes, damage is noticed, memory stays small."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.wire import Outcome, Spool, read_outcomes, write_outcomes
from paribus.wire.records import schema
from scripted import DONE, content, finish, usage, words

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NS = st.integers(0, 2**50)


@st.composite
def outcomes(draw: st.DrawFn, index: int = 0) -> Outcome:
    """Any outcome that a client can return."""
    body = draw(st.binary(max_size=60))
    cuts = sorted(draw(st.sets(st.integers(1, len(body)), max_size=8)) | {len(body)}) if body else []
    times = sorted(draw(st.lists(NS, min_size=len(cuts), max_size=len(cuts))))
    return Outcome(
        index=index if index else draw(st.integers(0, 5)),
        prompt_id=draw(TEXT),
        due_ns=draw(st.integers(-(2**40), 2**50)),
        sent_ns=draw(NS),
        connect_ns=draw(NS),
        ended_ns=draw(NS),
        status=draw(st.sampled_from([0, 200, 503])),
        error=draw(st.sampled_from([None, "cut", "http_503"])),
        body=body,
        reads=tuple(zip(times, cuts, strict=True)),
        content_type=draw(TEXT),
        phase=draw(st.sampled_from(["warm-up", "soak", "measured"])),
        api=draw(st.sampled_from(["chat", "completions"])),
        worker=draw(st.integers(0, 63)),
        retry_after_s=draw(st.none() | st.floats(0, 1e6)),
    )


def stream(index: int, n: int = 50, gap_ns: int = 3_000_000) -> Outcome:
    """A whole answer of n one-token pieces."""
    parts = [content(word) for word in words(n, index)] + [finish() + usage(n) + DONE]
    ends = accumulate(len(part) for part in parts)
    reads = tuple((50_000_000 + i * gap_ns + (i * 7919) % 1000, end) for i, end in enumerate(ends))
    return Outcome(
        index, f"p{index}", 0, index, 0, reads[-1][0], 200, None, b"".join(parts), reads, "text/event-stream",
        "measured", "chat", 0,
    )  # fmt: skip


@settings(max_examples=30)
@given(st.lists(outcomes(), max_size=5))
def test_what_is_written_is_read(rows: list[Outcome]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "requests.parquet"
        write_outcomes(path, rows)
        back = read_outcomes(path)
    assert sorted(back, key=repr) == sorted(rows, key=repr)
    assert [row.index for row in back] == sorted(row.index for row in rows)


@settings(max_examples=30)
@given(st.lists(outcomes(), max_size=5))
def test_a_spool_gives_back_what_went_in(rows: list[Outcome]) -> None:
    with Spool() as spool:
        for row in rows:
            spool.add(row)
        assert len(spool) == len(rows)
        assert sorted(spool, key=repr) == sorted(rows, key=repr)
        assert list(spool) == list(spool)


def test_the_same_rows_give_the_same_bytes_in_whatever_order(tmp_path: Path) -> None:
    rows = [stream(i) for i in range(100)]
    with Spool() as spool:
        for row in reversed(rows):
            spool.add(row)
        write_outcomes(tmp_path / "a", rows)
        write_outcomes(tmp_path / "b", iter(rows[60:] + rows[:60]))
        write_outcomes(tmp_path / "c", spool)
    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1


def test_it_is_zstd_with_small_differences(tmp_path: Path) -> None:
    rows = [stream(i, 400) for i in range(10)]
    write_outcomes(tmp_path / "r", rows)
    meta = pq.ParquetFile(tmp_path / "r").metadata
    columns = [meta.row_group(0).column(i) for i in range(meta.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    arrivals = next(column for column in columns if column.path_in_schema.startswith("read_ns"))
    assert "DELTA_BINARY_PACKED" in arrivals.encodings
    assert arrivals.total_compressed_size < 3 * sum(len(row.reads) for row in rows)
    assert (tmp_path / "r").stat().st_size < 0.1 * sum(len(row.body) for row in rows)


class BrokenSpool(Spool):
    """A spool whose reader is interrupted after the first row."""

    def __iter__(self) -> Iterator[Outcome]:
        yield stream(0)
        raise RuntimeError("the caller broke off")


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    write_outcomes(tmp_path / "r", [stream(0)])
    before = (tmp_path / "r").read_bytes()
    with BrokenSpool() as spool, pytest.raises(RuntimeError):
        write_outcomes(tmp_path / "r", spool)
    assert [path.name for path in tmp_path.iterdir()] == ["r"], "no partial file either"
    assert (tmp_path / "r").read_bytes() == before
    with pytest.raises(EnvironmentFault, match="can't write"):
        write_outcomes(tmp_path / "nowhere" / "r", [stream(0)])


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "r"
    write_outcomes(path, [stream(i, 5) for i in range(3)])
    table = pq.read_table(path)
    good = table.to_pylist()
    for column, value in (
        ("read_ns", [-1] * 6),
        ("read_ns", [1, 2]),
        ("read_bytes", [1] * 6),
        ("read_bytes", [0, len(good[1]["body"])]),
        ("body", b"shorter"),
        ("api", "telepathy"),
    ):
        bad = [good[0], good[1] | {column: value}, good[2]]
        pq.write_table(pa.Table.from_pylist(bad, schema=schema()), path)
        with pytest.raises(CheckFailed, match="row 1"):
            read_outcomes(path)
    for junk in (b"", b"PAR1 nonsense PAR1"):
        path.write_bytes(junk)
        with pytest.raises(CheckFailed, match="can't read"):
            read_outcomes(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(CheckFailed, match="columns"):
        read_outcomes(path)
    with pytest.raises(CheckFailed):
        read_outcomes(tmp_path / "missing")


def test_memory_does_not_grow_with_the_requests(tmp_path: Path) -> None:
    one = stream(0, 500)

    def peak(n: int) -> int:
        gc.collect()
        tracemalloc.start()
        with Spool() as spool:
            for index in range(n):
                spool.add(replace(one, index=index, body=bytes(one.body)))
            write_outcomes(tmp_path / "r", spool)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(300) < 1.2 * peak(100) + 1_000_000
