"""The CPU's default model for real: real questions end to end, and the lossless gate on its own decoders."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from quality_journals import ROOT

from paribus.catalog import Catalog
from paribus.cli import lossless
from paribus.engines import build_environment, fetch_weights
from paribus.quality.journal import read_journal
from paribus.quality.run import read_score

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def fetched() -> None:
    """The engines and the weights, fetched once into the repository's own build folder."""
    build_environment(ROOT, "llamacpp", lambda _: None)
    build_environment(ROOT, "tau2", lambda _: None)
    fetch_weights(ROOT, Catalog(ROOT), "smollm2-135m--q4-1", lambda _: None)


@pytest.mark.usefixtures("fetched", "box", "local_data")
def test_real_questions_are_asked_scored_and_not_asked_again(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "scripts" / "quality-sample"), "--short", "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    asked = {"aime-2024-2026": (3, 2), "mmlu-pro": (2, 1), "livecodebench-v6": (2, 2), "tau2": (2, 1)}
    before = {}
    for task, (items, repeats) in asked.items():
        score = read_score(tmp_path / task)
        _, entries = before[task] = read_journal(tmp_path / task / "journal.jsonl")
        assert (score.items, score.repeats, score.failed, score.partial) == (items, repeats, 0, True)
        assert len({entry.seed for entry in entries.values()}) == len(entries) >= items * repeats
        assert len({key[:3] for key in entries}) == items * repeats
        assert all(0 < (entry.completion_tokens or 0) <= 48 for entry in entries.values())
        assert score.account.prompt_tokens is not None
        assert score.account.ttft_ms is not None
        assert sum(score.finish_reasons.values()) == items * repeats
        assert "partial" in {flag.id for flag in score.flags}
    dialogues = read_score(tmp_path / "tau2")
    said = {flag.id: flag.text for flag in dialogues.flags}
    assert "telecom: its policy and tools take about" in said["left_out"]
    assert "8,192" in said["left_out"]
    assert "scripted_user" in said
    assert {name.split("-")[0] for name in before["tau2"][0].items} == {"airline", "retail"}
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert {task: read_journal(tmp_path / task / "journal.jsonl") for task in asked} == before


@pytest.mark.usefixtures("fetched")
def test_the_gate_asks_real_servers_and_writes_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "build").mkdir()
    for name in ("systems", "tasks", "hardware", "envs", "pairs.yaml", "claims", "build/envs", "build/weights"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.chdir(tmp_path)
    system = "smollm2-135m--q4-1--llamacpp--ngram-map-k-n4-m4"
    words = [system, "--prompts", "3", "--max-tokens", "12", "--at-once", "2"]
    done = CliRunner().invoke(lossless.command, words, catch_exceptions=False)
    assert done.output.startswith(f"{system}: lossless: ")
    (path,) = (tmp_path / "build" / "demo-results").rglob("lossless.json")
    found = json.loads(path.read_text())
    assert (found["system"], found["temperature"], len(found["prompts"])) == (system, 0.0, 3)
    assert found["hashes"]["subject"] != found["hashes"]["plain"]
