"""Real engines from locked environments: run by `make test-engines`. One server at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_runs import Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository in a temporary folder, with this one's catalog and a private one beside it."""
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PARIBUS_MACHINE", "m-test")
    for name in ("PARIBUS_WORKFLOW_PID", "PARIBUS_PORT"):
        monkeypatch.delenv(name, raising=False)
    return Repository.make(tmp_path / "repository")
