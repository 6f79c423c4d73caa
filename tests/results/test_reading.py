"""Files from strangers: nothing is believed before its size, kind, depth and shape have been looked at."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.conditions import CheckFailed, Manifest
from paribus.results import reading
from paribus.results.reading import open_parquet, parse_json, parse_model, plain_file, read_rows


def test_links_folders_and_strange_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    (tmp_path / "folder.json").mkdir()
    for name in ("link.json", "folder.json", "absent.json", "../real.json", "UPPER.json", ".hidden", ""):
        with pytest.raises(CheckFailed):
            plain_file(tmp_path, name, 100)
    assert plain_file(tmp_path, "real.json", 100)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_text("x" * 101)
    with pytest.raises(CheckFailed, match="101 bytes"):
        plain_file(tmp_path, "large.json", 100)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": 1, "a": 2}',
        "[" * 100 + "]" * 100,
        "[" * 100_000,
        '{"a": ',
        "\ufeff{}",
        "",
    ],
)
def test_json_that_readers_would_read_differently_is_refused(text: str) -> None:
    with pytest.raises(CheckFailed):
        parse_json(text.encode(), "a file")


def test_brackets_inside_strings_are_no_depth() -> None:
    assert parse_json(b'{"a": "' + b"[" * 500 + b'\\"]"}', "a file")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_clear_error(data: bytes) -> None:
    told = ""
    try:
        parse_json(data, "a file")
    except CheckFailed as error:
        told = str(error)
    assert told == "" or "a file" in told
    with pytest.raises(CheckFailed):
        parse_model(data, Manifest, "a manifest")


def test_parquet_is_opened_only_when_its_footer_is_sane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"a": list(range(1000))}), tmp_path / "rows.parquet")
    assert len(read_rows(tmp_path, "rows.parquet")) == 1000
    (tmp_path / "none.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(CheckFailed, match="not a Parquet file"):
        open_parquet(tmp_path, "none.parquet")
    monkeypatch.setattr(reading, "PARQUET_ROWS", 999)
    with pytest.raises(CheckFailed, match="too many"):
        open_parquet(tmp_path, "rows.parquet")


def test_damaged_parquet_is_one_sentence(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [str(n) for n in range(5000)]}), tmp_path / "rows.parquet")
    data = bytearray((tmp_path / "rows.parquet").read_bytes())
    for place in range(50, len(data) - 600, 7):
        data[place] ^= 0xFF
    (tmp_path / "rows.parquet").write_bytes(bytes(data))
    with pytest.raises(CheckFailed):
        read_rows(tmp_path, "rows.parquet")
