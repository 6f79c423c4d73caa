"""Files that a stranger broke on purpose end neither the check nor the build: they are named, the rest goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from synthetic_runs import Clone, make_catalog

from paribus.cli import app
from paribus.results.build import build
from paribus.results.check import check
from paribus.results.run import RunFolder


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("hostile")
    return Clone(root, make_catalog(root))


@pytest.fixture(scope="module")
def runs(clone: Clone) -> tuple[RunFolder, RunFolder]:
    return clone.sealed_run("plain", words=20), clone.sealed_run("ngram-simple-n4-m4", words=20)


@pytest.fixture
def hostile(runs: tuple[RunFolder, RunFolder]) -> Iterator[RunFolder]:
    before = {path: path.read_bytes() for path in runs[0].folder.rglob("*") if path.is_file()}
    yield runs[0]
    for path, data in before.items():
        path.write_bytes(data)


def numbers(value: Any, to: Any) -> Any:
    """The same JSON with every number replaced."""
    if isinstance(value, dict):
        return {key: numbers(each, to) for key, each in value.items()}
    if isinstance(value, list):
        return [numbers(each, to) for each in value]
    return to if isinstance(value, int | float) and not isinstance(value, bool) else value


def every_number(name: str, to: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(numbers(json.loads(path.read_text()), to)))

    return change


def every_whole_number(name: str, to: int) -> Callable[[Path], None]:
    """Every whole number of a Parquet file, in 64 bits."""

    def change(folder: Path) -> None:
        path = folder / name
        table = pq.read_table(path)
        for place, one in enumerate(table.schema):
            if pa.types.is_integer(one.type):
                table = table.set_column(place, one.name, pa.array([to] * len(table), pa.int64()))
        pq.write_table(table, path)

    return change


def bytes_of(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(data) and None


CHANGES = {
    "huge numbers in the summary": every_number("summary.json", 10**30),
    "huge numbers in a start's summary": every_number("start-1/summary.json", 2**70),
    "negative numbers in a start's summary": every_number("start-1/summary.json", -(2**40)),
    "infinite numbers": every_number("start-1/summary.json", 1e999),
    "huge numbers in a start's manifest": every_number("start-1/manifest.json", 10**30),
    "huge numbers in the rows": every_whole_number("start-1/requests-lite.parquet", 2**62),
    "negative numbers in the rows": every_whole_number("start-1/requests-lite.parquet", -(2**62)),
    "huge numbers in the raw requests": every_whole_number("start-1/requests.parquet", 2**62),
    "rows that are none": bytes_of("start-1/requests-lite.parquet", b"PAR1 nonsense PAR1"),
    "raw requests that are none": bytes_of("start-1/requests.parquet", b""),
    "a summary that is none": bytes_of("summary.json", b"[" * 40 + b"]" * 40),
    "no JSON at all": bytes_of("start-1/summary.json", b"\xff\xfe"),
    "a number in place of an object": bytes_of("summary.json", b"7"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_broken_files_end_neither_check_nor_build(
    clone: Clone, runs: tuple[RunFolder, RunFolder], hostile: RunFolder, name: str
) -> None:
    CHANGES[name](hostile.folder)
    report = check(clone.root, [str(clone.root / "results")])
    wheres = {finding.where for finding in report.findings if finding.verdict == "fails"}
    assert any(where.startswith(str(hostile.path)) for where in wheres)
    assert not any(where.startswith(str(runs[1].path)) for where in wheres)
    assert any(finding.where.startswith(str(runs[1].path)) for finding in report.findings)
    built = build(clone.root)
    assert runs[1].run_id in {row["run_id"] for row in built.rows["runs"]}
    assert set(built.unreadable) <= {str(hostile.path)}


def test_what_a_build_leaves_out_is_named(clone: Clone, hostile: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    (hostile.folder / "summary.json").write_text("7")
    monkeypatch.chdir(clone.root)
    done = CliRunner().invoke(app, ["build"])
    assert done.exit_code == 0
    assert f"left out, can't be read: {hostile.path}: " in done.output
