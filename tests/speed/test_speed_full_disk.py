"""A disk that fills up: one sentence and exit 3, nothing half-written, and what was answered until then is kept."""

import errno
import json
import os
from pathlib import Path

import pytest

from paribus.cli import main
from paribus.conditions import EnvironmentFault
from paribus.speed.rows import write_rows
from paribus.speed.summary import SpeedSummary
from paribus.wire import spool


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_table_that_finds_no_room_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentFault, match="full"):
        write_rows(tmp_path / "requests-lite.parquet", [])
    assert list(tmp_path.iterdir()) == []


def test_where_finished_requests_find_no_room_those_before_are_written(scripted, tmp_path, monkeypatch, capsys) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"id": f"p{i}", "prompt": f"say {i}"}) + "\n" for i in range(6)))
    true, stored = os.pwrite, []

    def two_fit(file: int, data: bytes, offset: int) -> int:
        stored.append(offset)
        return true(file, data, offset) if len(stored) <= 2 else full()

    monkeypatch.setattr(spool.os, "pwrite", two_fit)
    endpoint, out = scripted.endpoint("f5-n8-i5"), tmp_path / "out"
    few = ("--warmup", "0", "--prompts", str(prompts), "--concurrency", "1")
    with pytest.raises(SystemExit) as end:
        main(["speed", "--base-url", endpoint.base_url, "--model", endpoint.model, "--out", str(out), *few])
    assert end.value.code == 3
    told = capsys.readouterr().err
    assert "can't store a finished request" in told
    assert "Traceback" not in told
    summary = SpeedSummary.model_validate_json((out / "summary.json").read_bytes())
    assert summary.requests.ok == 2
    assert ["2 of 6 requests had ended" in flag.text for flag in summary.flags if flag.id == "interrupted"] == [True]
    assert summary.client.cpu_share is not None
    assert (out / "requests.parquet").exists()
