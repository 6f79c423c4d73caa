"""A load that is interrupted keeps what was under way and says that it is none.

Once it has ended, what was measured is safe: signals wait until it is written.
"""

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
from paribus.speed.rows import read_rows
from paribus.speed.summary import SpeedSummary
from paribus.wire import read_outcomes
from scripted import DONE, Script, Scripted, Step, content, finish, steps, usage, words

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


def begin(scripted: Scripted, out: Path, *more: str, model: str = "f5-n40-i5000") -> tuple[Process, str]:
    prompts = out.with_name("prompts.jsonl")
    prompts.write_text(json.dumps({"id": "a", "prompt": "tell"}) + "\n")
    endpoint = scripted.endpoint(model)
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


def under_way(scripted: Scripted, model: str, asked: int = 4) -> None:
    deadline = time.monotonic() + 60
    while len(scripted.log(model)) < asked and time.monotonic() < deadline:
        time.sleep(0.05)


def told(process: Process) -> str:
    """The next line of ours on stderr."""
    assert process.stderr is not None
    return next((line for line in process.stderr if line.startswith("paribus: ")), "nothing")


def line_of(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def long_and_short(scripted: Scripted) -> str:
    """A server whose first answer takes a minute, and all others 40 ms."""
    text = [content(word) for word in words(3000)]
    end = finish() + usage(3000) + DONE
    longest = Script((*steps(text, first_ms=5, gap_ms=20), Step(60_100, end)))
    short = Script((*steps(text[:5], first_ms=20, gap_ms=5), Step(41, finish() + usage(5) + DONE)))
    return scripted.register("long-and-short", longest, short)


@pytest.mark.parametrize(("number", "form"), [(signal.SIGINT, ()), (signal.SIGTERM, ("--json",))])
def test_what_was_under_way_is_kept_and_counts_as_neither_answer_nor_failure(
    scripted: Scripted, tmp_path: Path, number: int, form: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    load = ("--requests", "5000", "--concurrency", "2", *form)
    process, model = begin(scripted, out, *load, model=long_and_short(scripted))
    under_way(scripted, model, asked=12)
    process.send_signal(number)
    shown, told = process.communicate("\n", timeout=60)
    assert process.returncode == 130, told
    assert f"interrupted: {out} holds what had come by then" in told
    summary = SpeedSummary.model_validate_json((out / "summary.json").read_bytes())
    rows = read_rows(out / "requests-lite.parquet")
    whole, broken = [row for row in rows if row.counted], [row for row in rows if not row.counted]

    assert 0 in {row.index for row in broken}, "the longest answer was under way"
    assert 1 <= len(broken) <= 2
    assert {row.error for row in broken} == {"cancelled"}
    assert next(row for row in broken if row.index == 0).standard_tokens > 0
    assert sorted(row.index for row in rows) == list(range(len(rows)))
    assert {o.index for o in read_outcomes(out / "requests.parquet") if o.error} == {row.index for row in broken}
    assert (summary.requests.ok, summary.requests.failed, summary.requests.cut) == (len(whole), 0, 0)
    assert summary.e2e_ms.mean is not None
    assert summary.e2e_ms.mean < max(row.e2e_ns or 0 for row in broken) / 1e6
    assert summary.concurrency_seen == 2
    assert summary.client.lag_ms_p99 is not None
    assert summary.client.cpu_share is not None

    (flag,) = [flag for flag in summary.flags if flag.id == "interrupted"]
    assert flag.severity == "invalid"
    assert f"{len(whole)} of 5,000 requests had ended" in flag.text
    assert not {"failures", "fewer_at_once"} & {flag.id for flag in summary.flags}
    if form:
        _, _, printed = shown.partition("writing\n")
        assert flag.model_dump() in json.loads(printed)["flags"]
    else:
        assert f"invalid: {flag.text} [interrupted]" in " ".join(shown.split())


def test_a_load_that_is_interrupted_while_it_warms_up_has_measured_nothing(scripted: Scripted, tmp_path: Path) -> None:
    model = long_and_short(scripted)
    process, _ = begin(scripted, tmp_path / "out", "--warmup", "4", "--requests", "3", model=model)
    under_way(scripted, model, asked=1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate("\n", timeout=60)
    assert process.returncode == 130, told
    summary = SpeedSummary.model_validate_json((tmp_path / "out" / "summary.json").read_bytes())
    assert (summary.requests.ok, summary.requests.failed, summary.client.lag_ms_p99) == (0, 0, None)
    assert ["0 of 3" in flag.text for flag in summary.flags if flag.id == "interrupted"] == [True]


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
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["requests"]["ok"] == 2
    assert "interrupted" not in {flag["id"] for flag in summary["flags"]}, "everything was asked"


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
