"""Whatever is killed at whatever moment: nothing is left behind, and the next run continues."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator

import psutil
import pytest
from real_clone import RealClone

pytestmark = [pytest.mark.system, pytest.mark.timeout(2400)]

NARROW = ("systems=smollm2-135m--q4-1--llamacpp--plain", "measures=c1-short,c16-short,smoke-aime", "starts=2")
GONE_WITHIN_S = 20.0
"""A job looks for its workflow every few seconds and then takes its engine down; the margin is for busy machines."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Iterator[RealClone]:
    """A clone whose engine and weights are there, so that interruptions meet measuring, not fetching."""
    made = RealClone(tmp_path_factory.mktemp("interrupted") / "clone")
    fetched = made.call("snakemake", "--profile", "hardware/cpu", "fetch", "--config", "scale=tiny", *NARROW)
    assert fetched.returncode == 0, fetched.stdout
    yield made
    for process in made.processes():  # only where a test failed
        process.kill()


def everything_is_gone(clone: RealClone) -> bool:
    deadline = time.monotonic() + GONE_WITHIN_S
    while clone.processes() and time.monotonic() < deadline:
        time.sleep(0.2)
    return clone.processes() == []


def half_written(clone: RealClone) -> list[str]:
    """Sentinels and summaries that aren't whole JSON."""
    bad = []
    for path in clone.root.glob("build/demo-results/**/*.json"):
        try:
            json.loads(path.read_text())
        except ValueError:
            bad.append(str(path))
    return bad


def wait_for_a_job(clone: RealClone, word: str) -> psutil.Process | None:
    """A process of the clone with this word in its command."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        for process in clone.processes():
            try:
                if word in " ".join(process.cmdline()[1:4]):
                    return process
            except psutil.Error:
                continue
        time.sleep(0.05)
    return None


def test_kills_at_random_moments_then_a_run_that_completes(clone):
    moments = random.Random(20261201)
    finished: dict = {}
    for what in ("workflow -9", "job -9", "engine -9", "workflow ctrl-c", "workflow term", "workflow -9"):
        workflow = clone.start(*NARROW)
        word = "serve.py" if what.startswith("engine") else "--job"
        job = wait_for_a_job(clone, word)
        if job is None and workflow.poll() == 0:
            break  # a kill came late enough for the work to be done
        assert job is not None, (clone.root / "workflow.log").read_text()[-3000:]
        time.sleep(moments.uniform(0, 8))
        if what == "workflow -9":
            os.kill(workflow.pid, signal.SIGKILL)
        elif what == "workflow ctrl-c":
            os.killpg(workflow.pid, signal.SIGINT)
        elif what == "workflow term":
            os.killpg(workflow.pid, signal.SIGTERM)  # as a service manager does: the workflow and its jobs
        elif job.is_running():
            job.kill()
        workflow.wait(timeout=240)
        assert everything_is_gone(clone), (what, [p.cmdline() for p in clone.processes()])
        assert half_written(clone) == [], what
        for path, content in finished.items():
            assert path.read_bytes() == content, (what, "a finished start was measured again")
        finished = clone.manifests()
    last = clone.run(*NARROW)
    assert last.returncode == 0, last.stdout
    for path, content in finished.items():
        assert path.read_bytes() == content
    plan = json.loads((clone.root / "build/plan.json").read_text())
    assert len(clone.manifests()) == sum(len(job["measures"]) for job in plan["jobs"])
    again = clone.run(*NARROW)
    assert "Nothing to be done" in again.stdout
    assert everything_is_gone(clone)


def test_an_engine_that_dies_while_loading_is_told_with_the_end_of_its_log(clone):
    weights = next(clone.root.glob("build/weights/*/*.gguf"), None) or next(clone.root.glob("build/weights/**/*.gguf"))
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100_000])
    try:
        run = clone.run("systems=smollm2-135m--q4-1--llamacpp--plain", "measures=c1-long")
    finally:
        weights.write_bytes(whole)
    assert run.returncode == 1
    assert "Traceback" not in run.stdout
    assert "paribus: " in run.stdout
    assert everything_is_gone(clone)
