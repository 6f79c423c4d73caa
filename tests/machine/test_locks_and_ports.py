"""One job a card, machine-wide; ports that say why they can't be had."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from paribus.conditions import EnvironmentFault, UsageError
from paribus.machine import ProcessTree, card_lock, choose_port, free_port, port_in_use

HOLD = """
import sys, time
from paribus.machine import card_lock
with card_lock("cpu", purpose="job r123-1"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def lock_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    return tmp_path / "locks"


@pytest.fixture
def holder():
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_job_is_told_who_holds_the_card_and_since_when(holder):
    with pytest.raises(EnvironmentFault) as caught, card_lock("cpu"):
        pass
    assert f"the card cpu is in use by process {holder.pid} (job r123-1) since 20" in str(caught.value)


def test_the_lock_ends_with_its_holder_even_when_it_is_killed(holder, lock_folder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with card_lock("cpu", timeout_s=5):
        assert json.loads((lock_folder / "cpu.lock").read_text())["pid"] == os.getpid()


def test_another_card_is_free(holder):
    with card_lock("gpu-0a1b2c3d"):
        pass


def test_a_job_waits_for_a_card_that_becomes_free(holder):
    script = "import os, signal, sys, time; time.sleep(0.5); os.kill(int(sys.argv[1]), signal.SIGKILL)"
    killer = subprocess.Popen([sys.executable, "-c", script, str(holder.pid)])
    with card_lock("cpu", timeout_s=30):
        pass
    assert killer.wait() == 0


def test_a_lock_is_held_until_the_process_tree_that_keeps_it_is_gone(tmp_path):
    with card_lock("cpu") as lock:
        tree = ProcessTree.start([sys.executable, "-c", "import time; time.sleep(60)"], keep=(lock.handle,))
    with pytest.raises(EnvironmentFault, match="the card cpu is in use"), card_lock("cpu"):
        pass
    tree.stop()
    with card_lock("cpu"):
        pass


def test_locks_are_for_every_user(lock_folder):
    with card_lock("cpu"):
        assert (lock_folder / "cpu.lock").stat().st_mode & 0o777 == 0o666
        assert lock_folder.stat().st_mode & 0o7777 == 0o1777


def test_what_strangers_write_into_a_lock_is_not_believed(holder, lock_folder):
    for text in ['{"pid": "x"}', "no JSON", '{"pid": 1, "since": "\\u001b[31m"}', "[1]", ""]:
        (lock_folder / "cpu.lock").write_text(text)
        with pytest.raises(EnvironmentFault, match="in use by another process: wait"), card_lock("cpu"):
            pass


def test_a_link_in_place_of_a_lock_is_not_followed(lock_folder, tmp_path):
    lock_folder.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (lock_folder / "cpu.lock").symlink_to(precious)
    with pytest.raises(EnvironmentFault, match="can't open the lock of the card cpu"), card_lock("cpu"):
        pass
    assert precious.read_text() == "keep"


def test_a_card_is_named_by_a_slug():
    with pytest.raises(UsageError, match=r"card '\.\./x'"), card_lock("../x"):
        pass


def test_a_port_in_use_is_said_with_what_to_do(monkeypatch):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert port_in_use(port)
        monkeypatch.setenv("PARIBUS_PORT", str(port))
        with pytest.raises(
            EnvironmentFault, match=rf"the port {port} \(PARIBUS_PORT\) is in use on 127\.0\.0\.1: stop"
        ):
            choose_port()
    monkeypatch.setenv("PARIBUS_PORT", "80")
    with pytest.raises(UsageError, match="from 1024 to 65535"):
        choose_port()


def test_a_free_port_can_be_bound(monkeypatch):
    monkeypatch.delenv("PARIBUS_PORT", raising=False)
    assert not port_in_use(choose_port())
    assert 1024 <= free_port() <= 65535
