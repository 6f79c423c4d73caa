"""Control groups of both versions: what is written where, and how a command gets into its group.

The folders are ordinary ones that stand in for the kernel's; whether the kernel keeps the limits is what the attacks of
`paribus sandbox test` show, on a machine of either version.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from paribus.quality import cgroup
from paribus.quality.cgroup import Support


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary folder isn't emptied by its removal: don't wait for it."""
    monkeypatch.setattr(cgroup, "_remove", lambda place: None)


@pytest.mark.usefixtures("quick")
def test_version_2_takes_both_limits_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "support", lambda: Support(2, tmp_path, tmp_path))
    with cgroup.limited(1 << 30, 64) as group:
        (place,) = tmp_path.iterdir()
        found = {path.name: path.read_text() for path in place.iterdir()}
        assert found == {"memory.max": str(1 << 30), "memory.swap.max": "0", "pids.max": "64"}
        assert (group.memory, group.processes) == (True, True)
        done = subprocess.run([*group.prefix, "/bin/echo", "inside"], capture_output=True, text=True, check=True)
        assert done.stdout == "inside\n"
        assert (place / "cgroup.procs").read_text().strip().isdigit()


@pytest.mark.usefixtures("quick")
def test_version_1_has_a_folder_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, pids = tmp_path / "memory", tmp_path / "pids"
    memory.mkdir()
    pids.mkdir()
    monkeypatch.setattr(cgroup, "support", lambda: Support(1, memory, pids))
    with cgroup.limited(1 << 20, 8) as group:
        (one,), (other,) = memory.iterdir(), pids.iterdir()
        assert (one / "memory.limit_in_bytes").read_text() == str(1 << 20)
        assert (other / "pids.max").read_text() == "8"
        subprocess.run([*group.prefix, "/bin/true"], check=True)
        assert (one / "cgroup.procs").exists()
        assert (other / "cgroup.procs").exists()


def test_without_any_a_command_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "support", lambda: Support(0, None, None))
    with cgroup.limited(1 << 20, 8) as group:
        assert (group.prefix, group.memory, group.processes) == ([], False, False)


@pytest.mark.parametrize(("given", "found"), [("cpu memory pids", True), ("cpu", False), ("memory", False)])
def test_version_2_is_used_where_children_get_both_controllers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, found: bool
) -> None:
    monkeypatch.setattr(cgroup, "_ROOT", tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    (tmp_path / "cgroup.subtree_control").write_text(given)
    support = cgroup.support.__wrapped__()
    assert support.version == 2
    assert (support.memory is not None) is found
    assert (support.processes is not None) is found
