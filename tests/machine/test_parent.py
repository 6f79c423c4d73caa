"""A job stops within seconds when its workflow is gone, and cleanly on Ctrl-C and SIGTERM."""

import os
import signal
import subprocess
import sys
import time

import pytest

from paribus.conditions import UsageError
from paribus.machine import Stopped, watch_parent, workflow_mark
from paribus.machine.parent import VARIABLE, start_time

JOB = """
import asyncio, sys, time
import uvloop
from paribus.machine import ProcessTree, watch_parent

async def work():
    await asyncio.sleep(120)

def failing():
    try:
        time.sleep(120)
    finally:
        raise RuntimeError("this event loop is already running")

def stuck():
    while True:
        try:
            time.sleep(120)
        except BaseException:
            pass

with watch_parent(), ProcessTree.start([sys.executable, "-c", "import time; time.sleep(120)"], grace_s=0.3) as tree:
    try:
        print(tree.pid, flush=True)
        {body}
    finally:
        print("cleaned up", flush=True)
"""
BODIES = {
    "plain": "time.sleep(120)",
    "asyncio": "asyncio.run(work())",
    "uvloop": "uvloop.run(work())",
    "a loop that fails when it is stopped": "failing()",
}


def start_job(body: str, mark: str | None = None) -> tuple[subprocess.Popen, int]:
    environment = {k: v for k, v in os.environ.items() if k != VARIABLE} | ({VARIABLE: mark} if mark else {})
    process = subprocess.Popen(
        [sys.executable, "-c", JOB.format(body=body)], stdout=subprocess.PIPE, text=True, env=environment
    )
    return process, int(process.stdout.readline())


@pytest.fixture
def workflow():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_job_through_its_finally_blocks(body, number, code):
    job, tree = start_job(body)
    job.send_signal(number)
    output, _ = job.communicate(timeout=30)
    assert output == "cleaned up\n"
    assert job.returncode == code
    assert start_time(tree) is None


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_job_that_lost_its_workflow_cleans_up_and_ends(workflow, body):
    job, tree = start_job(body, str(workflow.pid))
    workflow.kill()
    workflow.wait()
    output, _ = job.communicate(timeout=30)
    assert output == "cleaned up\n"
    assert job.returncode == 143
    assert start_time(tree) is None


def test_a_job_that_cannot_clean_up_is_ended_with_all_it_started(workflow):
    job, tree = start_job("stuck()", str(workflow.pid))
    workflow.kill()
    workflow.wait()
    assert job.wait(timeout=40) == 143
    assert start_time(tree) is None


def test_a_workflow_that_is_gone_already_starts_nothing(workflow, monkeypatch):
    workflow.kill()
    workflow.wait()
    monkeypatch.setenv(VARIABLE, str(workflow.pid))
    with pytest.raises(Stopped) as caught, watch_parent():
        pytest.fail("it went on")
    assert caught.value.code == 143


def test_a_reused_pid_is_not_the_workflow(monkeypatch):
    pid, _, place = workflow_mark().split(":")
    monkeypatch.setenv(VARIABLE, f"{pid}:12345:{place}")
    with pytest.raises(Stopped), watch_parent():
        pytest.fail("it went on")


def test_a_workflow_on_another_node_is_not_watched(monkeypatch):
    monkeypatch.setenv(VARIABLE, "4194303:12345:0123456789ab")
    with watch_parent():
        pass


def test_a_living_workflow_lets_the_job_run(monkeypatch):
    monkeypatch.setenv(VARIABLE, workflow_mark())
    before = signal.getsignal(signal.SIGTERM)
    with watch_parent():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("mark", ["abc", "12:34", "-5", "1:2:3:4"])
def test_a_mark_that_is_none_is_refused_in_words(monkeypatch, mark):
    monkeypatch.setenv(VARIABLE, mark)
    with pytest.raises(UsageError, match="it is set by the Snakefile"), watch_parent():
        pass


def test_a_zombie_counts_as_gone():
    process = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 20
    while start_time(process.pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.wait()
