"""Fixtures of the quality tests: the catalog, local data, a sandbox, and journals made from answer sheets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from quality_journals import ROOT, Sheet, entry

from paribus.catalog import Catalog
from paribus.quality.data import item_id, load_items
from paribus.quality.journal import Header, Journal


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return Catalog(ROOT)


@pytest.fixture
def local_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real items; without it the test is skipped."""
    folder = os.environ.get("PARIBUS_DATA")
    if not folder:
        pytest.skip("needs real items: set PARIBUS_DATA to their folder")
    return Path(folder)


@pytest.fixture
def no_local_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARIBUS_DATA", raising=False)


@pytest.fixture
def box() -> None:
    """A working sandbox; without one the test is skipped, or fails where PARIBUS_REQUIRE is set."""
    from paribus.quality import sandbox

    reason = sandbox.available()
    if reason is not None:
        (pytest.fail if os.environ.get("PARIBUS_REQUIRE") else pytest.skip)(f"no sandbox: {reason}")


@pytest.fixture
def sheet(catalog: Catalog, tmp_path: Path) -> Sheet:
    """Write a journal from an answer sheet: {(item, repeat) or (item, repeat, turn): text or fields of an entry}."""

    def write(
        name: str, answers: Mapping[tuple, object], *, repeats: int = 1, limit: int | None = None, **more
    ) -> Path:
        task = catalog.task(name)
        items = load_items(task, ROOT, limit)
        header = Header(
            task=name,
            family=task.family,
            version=task.version,
            items_hash=items.hash,
            partial=items.partial,
            items=[item_id(task, item) for item in items.items],
            repeats=repeats,
            limit=limit,
            **{
                "cap": 4096,
                "scale": None,
                "sampling": {},
                "left_out": [],
                "model": "m",
                "released": None,
                "thinking": False,
                "concurrency": 4,
                **more,
            },
        )
        folder = tmp_path / name
        with Journal(folder / "journal.jsonl", header) as journal:
            for key, answer in answers.items():
                fields = answer if isinstance(answer, dict) else {"text": answer}
                turn = key[2] if len(key) > 2 else 0
                journal.append(entry(name, key[0], key[1], turn=turn, **{"text": "", **fields}))
        return folder

    return write
