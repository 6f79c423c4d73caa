"""What was measured is safe once the load has ended: signals wait until it is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from paribus.machine.holding import PRESS_S
from paribus.speed.summary import SpeedSummary
from scripted import Scripted

SLOW = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever ran the tests
import paribus.speed.files as files
write = files.write_outcomes
def slowly(path, spool):
    print("writing", flush=True)
    sys.stdin.readline()
    write(path, spool)
files.write_outcomes = slowly
from paribus.cli import main
main(sys.argv[1:])
"""
"""The command, which waits for a line before it writes the first file."""

Process = subprocess.Popen[str]


def begin(scripted: Scripted, out: Path, *more: str) -> tuple[Process, str]:
    prompts = out.with_name("prompts.jsonl")
    prompts.write_text(json.dumps({"id": "a", "prompt": "tell"}) + "\n")
    endpoint = scripted.endpoint("f5-n40-i5000")
    about = ("--base-url", endpoint.base_url, "--model", endpoint.model, "--out", str(out), "--prompts", str(prompts))
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "speed", *about, "--warmup", "0", *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    giving_up = threading.Timer(90, process.kill)
    giving_up.daemon = True
    giving_up.start()
    return process, endpoint.model


def under_way(scripted: Scripted, model: str) -> None:
    deadline = time.monotonic() + 60
    while len(scripted.log(model)) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)


def told(process: Process) -> str:
    """The next line of ours on stderr."""
    assert process.stderr is not None
    return next((line for line in process.stderr if line.startswith("paribus: ")), "nothing")


def line_of(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_waits_until_what_was_measured_is_written(
    scripted: Scripted, tmp_path: Path, first: int, second: int
) -> None:
    process, model = begin(scripted, tmp_path / "out", "--requests", "5000")
    under_way(scripted, model)
    process.send_signal(first)
    assert line_of(process) == "writing\n"
    process.send_signal(second)
    assert "writing what was measured" in told(process)
    process.send_signal(second)  # of the same press
    _, rest = process.communicate("\n", timeout=60)
    assert process.returncode == 130, rest
    summary = SpeedSummary.model_validate_json((tmp_path / "out" / "summary.json").read_bytes())
    assert summary.requests.ok >= 2
    assert (tmp_path / "out" / "requests.parquet").is_file()
    assert "Traceback" not in rest


def test_after_a_whole_load_the_first_signal_waits_too(scripted: Scripted, tmp_path: Path) -> None:
    process, _ = begin(scripted, tmp_path / "out", "--requests", "2")
    assert line_of(process) == "writing\n"
    process.send_signal(signal.SIGINT)
    assert "writing what was measured" in told(process)
    process.communicate("\n", timeout=60)
    assert process.returncode == 130
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["requests"]["ok"] == 2


def test_a_third_one_ends_it(scripted: Scripted, tmp_path: Path) -> None:
    process, model = begin(scripted, tmp_path / "out", "--requests", "5000")
    under_way(scripted, model)
    process.send_signal(signal.SIGINT)
    assert line_of(process) == "writing\n"
    process.send_signal(signal.SIGINT)
    assert "writing what was measured" in told(process)
    time.sleep(2 * PRESS_S)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert not (tmp_path / "out" / "summary.json").exists()
