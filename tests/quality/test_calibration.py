"""Time limits follow the grading machine's speed, within bounds, and a busy core costs no right answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from quality_journals import ROOT

from paribus.catalog import Catalog
from paribus.quality import calibration
from paribus.quality.calibration import EXPECTED, MOST, REFERENCE_S, WORKLOAD, Speed, factor_of
from paribus.quality.sandbox import Limits, sandboxed
from paribus.quality.tasks.livecodebench import limits_of


@pytest.mark.parametrize(
    ("seconds", "factor"),
    [(REFERENCE_S, 1.0), (REFERENCE_S / 3, 1.0), (2 * REFERENCE_S, 2.0), (100 * REFERENCE_S, MOST), (0.0, 1.0)],
)
def test_a_slower_machine_gives_more_time_a_faster_one_no_less(seconds: float, factor: float) -> None:
    assert factor_of(seconds) == factor


def test_a_machine_beyond_the_bound_says_so() -> None:
    assert Speed(MOST * REFERENCE_S * 1.01, 2).too_slow
    assert not Speed(MOST * REFERENCE_S, 2).too_slow


def test_the_workload_computes_what_it_should() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", WORKLOAD], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == EXPECTED


@pytest.mark.usefixtures("box")
def test_a_measured_factor_scales_the_limit_of_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calibration.workload_seconds(1) > 0
    monkeypatch.setattr("paribus.quality.tasks.livecodebench.measured", lambda: Speed(1.5 * REFERENCE_S, 2))
    assert limits_of(Catalog(ROOT).task("livecodebench-v6")).time_s == pytest.approx(9.0)


SPIN = "import time\nwhile time.process_time() < 0.5: pass\nprint('done')"


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(("patience", "status"), [(1.0, "timeout"), (60.0, "ok")])
def test_a_program_kept_from_its_core_gets_its_cpu_time(tmp_path: Path, patience: float, status: str) -> None:
    """Five processes on one core: half a second of CPU takes over two on the wall; the limit is one."""
    everywhere = os.sched_getaffinity(0)
    core = min(everywhere)
    os.sched_setaffinity(0, {core})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        with sandboxed(SPIN, Limits(time_s=1.0, patience=patience)) as box:
            ran = box.run(b"")
    finally:
        for process in busy:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, everywhere)
    assert ran.status == status
    assert ran.starved is (status == "ok")


@pytest.mark.usefixtures("box")
def test_patience_is_for_the_starved_only() -> None:
    with sandboxed("import time\ntime.sleep(60)", Limits(time_s=0.3, patience=100.0)) as box:
        ran = box.run(b"")
    assert (ran.status, ran.starved) == ("timeout", False)
