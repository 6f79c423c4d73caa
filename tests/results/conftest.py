"""A clone in a temporary folder, with a catalog and no runs."""

from pathlib import Path

import pytest
from synthetic_runs import Clone, make_catalog


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    root = tmp_path / "clone"
    root.mkdir()
    return Clone(root, make_catalog(root))
