"""Files are whole or not there; labels say nothing about a machine's owner."""

import errno
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paribus.conditions import EnvironmentFault, UsageError, is_slug
from paribus.machine import disk_faults, machine_label, write_atomic, write_json


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path):
    target = tmp_path / "deep" / "file.json"
    write_atomic(target, b"one")
    write_atomic(target, b"two")
    assert target.read_bytes() == b"two"
    assert [p.name for p in target.parent.iterdir()] == ["file.json"]
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_write_that_fails_keeps_the_old_file_and_says_what_to_do(tmp_path, monkeypatch):
    target = tmp_path / "file.json"
    write_atomic(target, b"old")

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentFault, match=r"the disk that holds .*file\.json is full: free some space"):
        write_atomic(target, b"new")
    monkeypatch.undo()
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_really_full_device_gives_one_sentence(tmp_path):
    with (
        pytest.raises(EnvironmentFault, match="is full"),
        disk_faults(tmp_path),
        Path("/dev/full").open("wb") as device,
    ):
        device.write(b"x" * 100_000)


def test_other_faults_are_not_disguised_as_a_full_disk(tmp_path):
    with pytest.raises(FileNotFoundError), disk_faults(tmp_path):
        (tmp_path / "none").read_bytes()


def test_json_refuses_what_json_cannot_hold(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "x.json", {"value": float("nan")})
    assert not (tmp_path / "x.json").exists()


def test_a_label_is_made_once_and_is_not_the_host_name(tmp_path, monkeypatch):
    monkeypatch.delenv("PARIBUS_MACHINE", raising=False)
    label = machine_label(tmp_path)
    assert is_slug(label)
    assert socket.gethostname() not in label
    assert machine_label(tmp_path) == label
    assert (tmp_path / "build" / "machine-label").read_text() == label + "\n"


def test_labels_made_at_the_same_time_are_one_label(tmp_path, monkeypatch):
    monkeypatch.delenv("PARIBUS_MACHINE", raising=False)
    with ThreadPoolExecutor(8) as pool:
        labels = set(pool.map(lambda _: machine_label(tmp_path), range(24)))
    assert len(labels) == 1
    assert [p.name for p in (tmp_path / "build").iterdir()] == ["machine-label"]


def test_a_given_label_wins_and_must_be_a_slug(tmp_path, monkeypatch):
    monkeypatch.setenv("PARIBUS_MACHINE", "lab-pool-2")
    assert machine_label(tmp_path) == "lab-pool-2"
    monkeypatch.setenv("PARIBUS_MACHINE", "Lab Pool")
    with pytest.raises(UsageError, match="the variable PARIBUS_MACHINE is 'Lab Pool'"):
        machine_label(tmp_path)
    monkeypatch.delenv("PARIBUS_MACHINE")
    (tmp_path / "build").mkdir(exist_ok=True)
    (tmp_path / "build" / "machine-label").write_text("../../etc\n")
    with pytest.raises(UsageError, match=r"machine-label is '\.\./\.\./etc'"):
        machine_label(tmp_path)
