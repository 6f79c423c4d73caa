"""What a check says of a dialogue task: whether its dialogues can be played again here, and who played the user."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from paribus.catalog import Catalog
from paribus.conditions import Manifest
from paribus.engines.envs import environment_marker
from paribus.quality.journal import Header
from paribus.results.check_quality import _lacks_harness, _strange

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Catalog:
    """Our tasks and locks in a clone where nothing is built."""
    for name in ("tasks", "envs", "systems", "hardware"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pairs.yaml", tmp_path)
    return Catalog(tmp_path)


def test_dialogues_are_not_checked_where_their_harness_is_not_built(elsewhere: Catalog) -> None:
    assert "paribus fetch env tau2" in str(_lacks_harness("tau2", elsewhere))
    assert _lacks_harness("smoke-tau2", elsewhere) is None
    assert _lacks_harness("no-such-task", elsewhere) is None
    marker = environment_marker(elsewhere.root, "tau2")
    marker.parent.mkdir(parents=True)
    marker.write_text("{}")
    assert _lacks_harness("tau2", elsewhere) is None


def test_a_journal_with_another_user_than_declared_is_found() -> None:
    header = Header(
        task="tau2", family="tau2", version="1", items_hash="0" * 64, partial=None, items=["a"], repeats=1, cap=9,
        scale=None, limit=None, sampling={}, left_out=[], model="m", released=None, thinking=False, concurrency=1,
        harness={"user_simulator": "scripted"},
    )  # fmt: skip

    def strange(declared: dict[str, str]) -> list[str]:
        said = SimpleNamespace(declared=declared, observed={}, origin="endpoint")
        return list(_strange(header, cast(Manifest, said), Catalog(ROOT)))

    assert strange({"user_simulator": "scripted", "task": "tau2"}) == []
    [said] = strange({"user_simulator": "org/user@1, temperature 0.0"})
    assert "user_simulator is declared 'org/user@1, temperature 0.0' and the journal was made for 'scripted'" in said
