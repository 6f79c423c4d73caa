"""Process trees: whatever is started goes, on every way out, daemons included."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paribus.machine import ProcessTree, clean_environment
from paribus.machine.guard import descendants
from paribus.machine.parent import start_time
from paribus.machine.processes import peak_memory_gb

# Writes its pid, starts a child that turns itself into a daemon (own session, parent gone), which writes its pid too.
DAEMON = """
import os, signal, sys, time
folder = sys.argv[1]
{deaf}
open(f"{{folder}}/child", "w").write(str(os.getpid()))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(f"{{folder}}/daemon.part", "w").write(str(os.getpid()))
        os.rename(f"{{folder}}/daemon.part", f"{{folder}}/daemon")
        time.sleep(120)
    os._exit(0)
{end}
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"

JOB = """
import sys, time
from paribus.machine import ProcessTree
tree = ProcessTree.start([sys.executable, *sys.argv[1:]], grace_s=0.3)
print(tree.pid, flush=True)
time.sleep(120)
"""


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
    return value


def pids(folder: Path) -> list[int]:
    wait_for((folder / "daemon").exists)
    return [int((folder / name).read_text()) for name in ("child", "daemon")]


def gone(pid: int) -> bool:
    return start_time(pid) is None


@pytest.fixture
def program(tmp_path):
    def write(deaf: str = "", end: str = "time.sleep(120)") -> list[str]:
        path = tmp_path / "program.py"
        path.write_text(DAEMON.format(deaf=deaf, end=end))
        return [sys.executable, str(path), str(tmp_path)]

    return write


@pytest.mark.parametrize("deaf", ["", DEAF], ids=["polite", "deaf to SIGTERM"])
def test_stop_takes_down_children_and_daemons(program, tmp_path, deaf):
    tree = ProcessTree.start(program(deaf), grace_s=0.3)
    child, daemon = pids(tmp_path)
    assert {child, daemon} <= set(tree.members())
    tree.stop()
    assert gone(child)
    assert gone(daemon)
    assert not tree.alive()


def test_a_program_that_ends_takes_its_daemons_along(program, tmp_path):
    tree = ProcessTree.start(program(end="sys.exit(7)"), grace_s=0.3)
    _, daemon = pids(tmp_path)
    assert tree.wait(10)
    assert tree.exit_code == 7
    assert gone(daemon)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_outlives_a_job_that_is_killed(program, tmp_path, number):
    job = subprocess.Popen([sys.executable, "-c", JOB, *program(DEAF)[1:]], stdout=subprocess.PIPE, text=True)
    root = int(job.stdout.readline())
    child, daemon = pids(tmp_path)
    job.send_signal(number)
    job.wait()
    wait_for(lambda: gone(child) and gone(daemon) and gone(root))


def test_killing_the_guard_itself_kills_the_program(tmp_path):
    tree = ProcessTree.start([sys.executable, "-c", "import time; time.sleep(120)"])
    (child,) = wait_for(lambda: descendants(tree.pid))
    os.kill(tree.pid, signal.SIGKILL)
    wait_for(lambda: gone(child))
    assert tree.stop() == -signal.SIGKILL


def test_exit_codes_and_signals_are_told(tmp_path):
    with ProcessTree.start([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) as tree:
        assert tree.wait(10)
    assert tree.exit_code == 137


def test_a_command_that_is_not_there_ends_with_127_and_a_sentence(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as output, ProcessTree.start([str(tmp_path / "nothing")], log=output) as tree:
        assert tree.wait(10)
    assert tree.exit_code == 127
    assert log.read_text() == f"can't start {tmp_path / 'nothing'}: No such file or directory\n"


def test_leaving_the_block_by_an_error_stops_the_tree():
    with (
        pytest.raises(RuntimeError, match="on purpose"),
        ProcessTree.start([sys.executable, "-c", "import time; time.sleep(120)"]) as tree,
    ):
        raise RuntimeError("on purpose")
    assert not tree.alive()


def test_the_tree_has_its_own_session_so_that_ctrl_c_reaches_only_the_job():
    with ProcessTree.start([sys.executable, "-c", "import time; time.sleep(120)"]) as tree:
        assert os.getsid(tree.pid) == tree.pid != os.getsid(0)


def test_secrets_are_not_handed_down(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", "hush")
    monkeypatch.setenv("PLAIN", "seen")
    log = tmp_path / "log"
    script = "import os; print(os.environ.get('SOME_API_KEY'), os.environ.get('PLAIN'), os.environ.get('EXTRA'))"
    with (
        log.open("wb") as output,
        ProcessTree.start(
            [sys.executable, "-c", script], log=output, environment=clean_environment({"EXTRA": "given"})
        ) as tree,
    ):
        assert tree.wait(10)
    assert log.read_text() == "None seen given\n"


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_peak_memory_counts_what_was_held():
    script = "x = bytearray(50_000_000); x[::4096] = b'1' * len(x[::4096]); print('held', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    peak = peak_memory_gb([process.pid])
    process.communicate("\n")
    assert 0.05 <= peak < 0.2
    assert peak_memory_gb([process.pid]) is None
