"""Tau2 with a real model in the user's place: a test of the path, never a result.

The CPU's default model plays both sides, from two servers of llama.cpp: as the system under test, and under another
name as a user simulator that a copy of the task's file pins. It is killed in the middle, continued and scored again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from quality_journals import ROOT

from paribus.catalog import Catalog
from paribus.catalog.simulator import URL_VARIABLE
from paribus.engines import build_environment, fetch_weights, weights_path
from paribus.engines.envs import environment_python
from paribus.machine import ProcessTree
from paribus.machine.ports import free_port, port_in_use
from paribus.quality.journal import Entry, Key, read_journal

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]

USER, SYSTEM = "tests/smollm2-as-user", "smollm2-135m"
TURNS = 6


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository like ours whose Tau2 is short and pins the small model as its user."""
    build_environment(ROOT, "tau2", lambda _: None)
    build_environment(ROOT, "llamacpp", lambda _: None)
    fetch_weights(ROOT, Catalog(ROOT), "smollm2-135m--q4-1", lambda _: None)
    made = tmp_path_factory.mktemp("tau2")
    (made / "build").mkdir()
    for name in ("systems", "hardware", "envs", "pairs.yaml", "claims", "build/envs", "build/weights"):
        (made / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "tasks", made / "tasks")
    path = made / "tasks/quality/tau2.yaml"
    task = yaml.safe_load(path.read_text())
    task["settings"]["max_steps"] = 2 * TURNS
    sampling: dict[str, Any] = {"temperature": 0.7, "top_p": 0.9}
    task["settings"]["user_simulator"] = {
        "model": USER, "revision": "0" * 40, "sampling": sampling, "cap": 48, "source": "a test of the path",
    }  # fmt: skip
    path.write_text(yaml.safe_dump(task))
    return made


@contextmanager
def server(root: Path, alias: str, context: int, log: Path) -> Iterator[str]:
    """llama.cpp with the small model under a name; its address."""
    port, model = free_port(), weights_path(root, Catalog(root).system(f"{SYSTEM}--q4-1--llamacpp--plain"))
    wanted = {
        "alias": alias, "model": str(model), "host": "127.0.0.1", "port": port, "slots": 2, "threads": 1,
        "context_per_slot": context, "batch": 2048, "ubatch": 512, "poll": 0, "kv_unified": False, "cache_prompt": True,
        "options": {}, "sampling": {}, "speculative": {},
    }  # fmt: skip
    program = [str(environment_python(root, "llamacpp")), "-u", str(root / "envs/llamacpp/serve.py")]
    with log.open("wb") as output, ProcessTree.start([*program, json.dumps(wanted)], log=output) as tree:
        while "serving at" not in log.read_text(errors="replace"):
            assert tree.alive(), log.read_text(errors="replace")[-2000:]
            time.sleep(0.2)
        assert port_in_use(port)
        yield f"http://127.0.0.1:{port}/v1"


def ask(root: Path, system: str, user: str, out: Path, *, model: str = SYSTEM) -> subprocess.Popen[str]:
    words = ["--base-url", system, "--model", model, "--task", "tau2", "--out", str(out), "--limit", "2"]
    words += ["--repeats", "1", "--max-tokens", "48", "--concurrency", "2", "--temperature", "0.2"]
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("paribus")), "quality", *words],
        cwd=root,
        env=os.environ | {URL_VARIABLE: user},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def refused(running: subprocess.Popen[str]) -> str:
    """What it said when it refused to run."""
    _, said = running.communicate()
    assert running.returncode == 2, said
    return said


def answers(path: Path) -> dict[Key, Entry]:
    return read_journal(path)[1] if path.exists() and path.read_bytes().count(b"\n") else {}


def test_two_real_servers_play_are_killed_go_on_and_are_scored_again(root: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    log.mkdir()
    with server(root, SYSTEM, 8192, log / "s") as system, server(root, USER, 4096, log / "u") as user:
        assert "is the address of the system under test" in refused(ask(root, system, system, out))
        assert "can't be the system under test" in refused(ask(root, system, user, out, model=USER))
        assert "is not the task's user simulator: it serves smollm2-135m" in refused(ask(root, user, system, out))
        assert not out.exists()

        first = ask(root, system, user, out)
        while len(answers(out / "journal.jsonl")) < 2:
            assert first.poll() is None, first.communicate()
            time.sleep(0.1)
        first.send_signal(signal.SIGKILL)
        first.wait()
        kept = [(out / name).read_bytes() for name in ("journal.jsonl", "simulator.jsonl")]
        last = ask(root, system, user, out)
        report, said = last.communicate()
        assert last.returncode == 0, said

    for before, name in zip(kept, ("journal.jsonl", "simulator.jsonl"), strict=True):
        assert (out / name).read_bytes().startswith(before[: before.rfind(b"\n") + 1])
        entries = answers(out / name)
        assert len(entries) == (out / name).read_bytes().count(b"\n") - 1  # nothing was asked twice
        assert all(entry.prompt_tokens and entry.completion_tokens and entry.e2e_ns for entry in entries.values())
        assert {entry.error for entry in entries.values()} == {None}
        assert max(Counter(key[:3] for key in entries).values()) <= TURNS + 1
    header, spoken = read_journal(out / "simulator.jsonl")
    assert header.model == f"{USER}@{'0' * 40}"
    assert header.sampling == {"temperature": 0.7, "top_p": 0.9}
    assert len({entry.seed for entry in spoken.values()}) == len(spoken)
    assert "null-agent-airline" in report
    assert "scripted" not in report

    made = {name: (out / name).read_bytes() for name in ("score.json", "samples.parquet")}
    again = [str(Path(sys.executable).with_name("paribus")), "score", str(out)]
    subprocess.run(again, cwd=root, check=True, capture_output=True)  # both servers are gone
    assert {name: (out / name).read_bytes() for name in made} == made
