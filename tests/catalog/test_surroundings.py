"""What a plan sees around it: whether the hub may be asked."""

from pathlib import Path

import pytest

from paribus.catalog import Catalog, Surroundings
from paribus.catalog.offline import hub_forbidden_by

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("variables", "by"),
    [
        ({}, None),
        ({"PARIBUS_OFFLINE": "0", "HF_HUB_OFFLINE": "0"}, None),
        ({"PARIBUS_OFFLINE": "1"}, "PARIBUS_OFFLINE"),
        ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE"),
        ({"HF_HUB_OFFLINE": "true"}, "HF_HUB_OFFLINE"),
        ({"PARIBUS_OFFLINE": "1", "HF_HUB_OFFLINE": "0"}, "PARIBUS_OFFLINE"),
    ],
)
def test_either_variable_forbids_the_hub(monkeypatch: pytest.MonkeyPatch, variables: dict, by: str | None) -> None:
    for name in ("PARIBUS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert hub_forbidden_by() == by
    assert Surroundings.observe(Catalog(ROOT), "m-test").hub is (by is None)
