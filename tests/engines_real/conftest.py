"""Real engines from locked environments: run by `make test-engines`. One server at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from real_runs import ROOT, Repository, strangers

from paribus.catalog import Catalog


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository in a temporary folder, with this one's catalog and a private one beside it.

    After each test nothing of the private catalog may lie among this repository's results.
    """
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PARIBUS_MACHINE", "m-test")
    for name in ("PARIBUS_WORKFLOW_PID", "PARIBUS_PORT"):
        monkeypatch.delenv(name, raising=False)
    made = Repository.make(tmp_path / "repository")
    yield made
    mine = made.catalog.models.keys() - Catalog(ROOT).models.keys()
    assert strangers(ROOT, mine) == [], "what a test measured lies among results"
