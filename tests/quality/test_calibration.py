"""Time limits follow the grading machine's speed, within bounds, and a busy core costs no right answer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from quality_journals import ROOT, Sheet

from paribus.catalog import Catalog
from paribus.quality import calibration
from paribus.quality.calibration import EXPECTED, MOST, REFERENCE_S, WORKLOAD, Speed, factor_of
from paribus.quality.data import load_items
from paribus.quality.run import score_start
from paribus.quality.sandbox import Limits, sandboxed
from paribus.quality.score import grading_flags
from paribus.quality.summary import Grading
from paribus.quality.tasks.livecodebench import limits_of


@pytest.mark.parametrize(
    ("seconds", "factor"),
    [(REFERENCE_S, 1.0), (REFERENCE_S / 3, 1.0), (2 * REFERENCE_S, 2.0), (100 * REFERENCE_S, MOST), (0.0, 1.0)],
)
def test_a_slower_machine_gives_more_time_a_faster_one_no_less(seconds: float, factor: float) -> None:
    assert factor_of(seconds) == factor


def graded(seconds: float, starved: int = 0) -> Grading:
    return Grading(
        workload_s=seconds,
        reference_s=REFERENCE_S,
        factor=factor_of(seconds),
        test_seconds=6.0,
        cores=2,
        starved=starved,
    )


@pytest.mark.parametrize(
    ("grading", "flags"),
    [
        (None, {}),
        (graded(REFERENCE_S), {}),
        (graded(MOST * REFERENCE_S), {}),
        (graded(MOST * REFERENCE_S * 1.01), {"slow_grader": "invalid"}),
        (graded(REFERENCE_S, starved=1), {}),
        (graded(REFERENCE_S, starved=2), {"starved": "warning"}),
        (graded(9 * REFERENCE_S, starved=6), {"slow_grader": "invalid", "starved": "invalid"}),
    ],
)
def test_a_machine_that_may_have_failed_right_programs_says_so(grading: Grading | None, flags: dict[str, str]) -> None:
    assert {flag.id: flag.severity for flag in grading_flags(grading, 100)} == flags


@pytest.mark.usefixtures("box")
def test_a_score_from_too_slow_a_machine_is_flagged_in_its_summary(
    catalog: Catalog, sheet: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paribus.quality.tasks.livecodebench.measured", lambda: Speed(5 * REFERENCE_S, 2))
    item = load_items(catalog.task("smoke-livecodebench"), ROOT).items[0]
    answers = {(item["question_id"], 0): f"```python\n{item['reference_solution']}\n```"}
    summary = score_start(sheet("smoke-livecodebench", answers), catalog)
    (said,) = [flag for flag in summary.flags if flag.id == "slow_grader"]
    assert said.severity == "invalid"
    assert "5.0 times slower" in said.text


def test_the_workload_computes_what_it_should() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", WORKLOAD], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == EXPECTED


@pytest.mark.usefixtures("box")
def test_a_measured_factor_scales_the_limit_of_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calibration.workload_seconds(1) > 0
    monkeypatch.setattr("paribus.quality.tasks.livecodebench.measured", lambda: Speed(1.5 * REFERENCE_S, 2))
    assert limits_of(Catalog(ROOT).task("livecodebench-v6")).time_s == pytest.approx(9.0)


MAIN = "import time\ndef main():\n    while time.process_time() < 0.5: pass\n    print('done', flush=True)\n"
SPINS = {
    "main": f"{MAIN}main()",
    "thread": f"{MAIN}import threading\nthreading.stack_size(64 << 20)\nt = threading.Thread(target=main)\n"
    "t.start()\nt.join()",
    "process": f"{MAIN}import os\nif os.fork() == 0:\n    main()\n    os._exit(0)\nos.wait()",
    "process in a thread": f"{MAIN}import threading, os\ndef fork():\n    if os.fork() == 0:\n        main()\n"
    "        os._exit(0)\n    os.wait()\nt = threading.Thread(target=fork)\nt.start()\nt.join()",
}


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(("patience", "status"), [(1.0, "timeout"), (60.0, "ok")])
@pytest.mark.parametrize("where", SPINS)
def test_a_program_kept_from_its_core_gets_its_cpu_time(where: str, patience: float, status: str) -> None:
    """Five processes on one core: half a second of CPU takes over two on the wall; the limit is one."""
    everywhere = os.sched_getaffinity(0)
    core = min(everywhere)
    os.sched_setaffinity(0, {core})
    # Sessions of their own, as the sandbox has one: a kernel that shares out by session counts them as four, not one.
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin, start_new_session=True) for _ in range(4)]
    try:
        with sandboxed(SPINS[where], Limits(time_s=1.0, patience=patience)) as box:
            ran = box.run(b"")
    finally:
        for process in busy:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, everywhere)
    assert ran.status == status
    assert ran.starved is (status == "ok")


WAITS = {
    "main": "import time\ntime.sleep(60)",
    "threads": "import threading, time\nfor _ in range(8): threading.Thread(target=time.sleep, args=(60,)).start()",
    "process": "import os, time\nif os.fork() == 0: time.sleep(60)\nos.wait()",
}


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize("where", WAITS)
def test_patience_is_for_the_starved_only(where: str) -> None:
    with sandboxed(WAITS[where], Limits(time_s=0.3, patience=100.0)) as box:
        ran = box.run(b"")
    assert (ran.status, ran.starved) == ("timeout", False)


SPEND = """
import os, threading, time
def spend():
    told = 0.0
    while True:
        if time.thread_time() > told + 0.05:
            told += 0.05
            os.write(1, b"x")
"""
SPENDERS = {
    "threads": f"{SPEND}for _ in range(4): threading.Thread(target=spend).start()",
    "processes": f"{SPEND}for _ in range(4):\n    if os.fork() == 0: spend()\nos.wait()",
}


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize("where", SPENDERS)
def test_threads_and_processes_spend_the_time_of_one_program(where: str) -> None:
    """Four on one core have had the limit together, not each (CPU time is counted, told in twentieths of a second)."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(everywhere)})
    try:
        with sandboxed(SPENDERS[where], Limits(time_s=1.0, patience=60.0)) as box:
            ran = box.run(b"")
    finally:
        os.sched_setaffinity(0, everywhere)
    assert ran.status == "timeout"
    assert 0.5 < len(ran.output) / 20 < 2.0
