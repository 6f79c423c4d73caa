"""`paribus data verify` as a person types it: which items are here, and whether they are the tasks' own."""

import json
import shutil
from pathlib import Path

import pytest

from paribus.cli import main

ROOT = Path(__file__).resolve().parents[2]


def verify(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["data", "verify", *arguments])
    return int(end.value.code or 0)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with nothing but its catalog, on a machine without items of real tasks."""
    monkeypatch.delenv("PARIBUS_DATA", raising=False)
    for name in ("tasks", "systems", "hardware", "claims"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pairs.yaml", tmp_path / "pairs.yaml")
    return tmp_path


def test_shipped_items_are_whole_and_real_ones_missing_which_is_no_failure(clone: Path, capsys) -> None:
    assert verify("--root", str(clone)) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["smoke-aime"].split()[1:5] == ["whole", "10", "of", "10"]
    assert lines["aime-2024-2026"].split()[1] == "missing"
    assert "PARIBUS_DATA is not set" in lines["aime-2024-2026"]


def test_a_named_task_that_is_missing_fails(clone: Path, capsys) -> None:
    assert verify("aime-2024-2026", "--root", str(clone)) == 1
    assert "missing" in capsys.readouterr().out


def test_an_altered_item_is_wrong_with_both_hashes(clone: Path, capsys) -> None:
    path = clone / "tasks" / "quality" / "data" / "smoke-aime.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["answer"] = rows[0]["answer"] + 1 if isinstance(rows[0]["answer"], int) else "999"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert verify("smoke-aime", "smoke-tau2", "--root", str(clone)) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert "wrong" in first
    assert "expected hash" in first
    assert "whole" in second


def test_an_unknown_task_is_a_mistake_and_the_known_ones_are_named(clone: Path, capsys) -> None:
    assert verify("nope", "--root", str(clone)) == 2
    assert "known: aime-2024-2026" in capsys.readouterr().err
