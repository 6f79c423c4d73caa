"""`scripts/overlap` finds text that a prompt of ours shares with other data, and never passes for want of data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.catalog import Catalog

ROOT = Path(__file__).parents[2]
LONGEST = max(Catalog(ROOT).prompt_set("own-v1"), key=lambda p: len(str(p.messages)))
TEXT = str((LONGEST.messages or [])[-1]["content"])
OTHER = "Words that nobody would put into a prompt, thirteen of them and some more, all in a row."


def overlap(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "overlap"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def stolen(folder: Path, name: str) -> Path:
    """A file in which a prompt of ours hides among other text."""
    path = folder / name
    rows = [{"id": 1, "turns": [OTHER]}, {"id": 2, "turns": [OTHER, TEXT.upper()]}]
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith(".jsonl"):
        path.write_text("\n".join(map(json.dumps, rows)))
    elif name.endswith(".json"):
        path.write_text(json.dumps({"all": rows}))
    else:
        path.write_text(f"{OTHER}\n{TEXT}\n")
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.json", "a.txt"])
def test_shared_text_is_named_and_ends_with_one(tmp_path: Path, name: str) -> None:
    done = overlap(stolen(tmp_path, name))
    assert done.returncode == 1, done.stderr
    assert f"{LONGEST.id} shares with" in done.stdout


def test_other_text_passes(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"question": OTHER}))
    done = overlap(path)
    assert (done.returncode, done.stdout.split()[0]) == (0, "0"), done.stderr


def test_without_anything_to_compare_with_nothing_passes(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{")
    for path, says in ((empty, "nothing to compare with"), (broken, "can't read"), (tmp_path / "no.txt", "can't read")):
        done = overlap(path)
        assert done.returncode == 3
        assert says in done.stderr
        assert "Traceback" not in done.stderr
    assert overlap().returncode == 2
