"""`paribus claim` and `paribus show claims`: what a reader in a terminal gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from paribus.cli.claim import command
from paribus.cli.show import command as show
from paribus.conditions import UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone with our claims and nothing built."""
    for name in ("claims", "systems", "hardware", "tasks", "pairs.yaml", "Snakefile", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def test_a_claim_tells_what_was_said_what_was_left_out_and_how_to_run_it():
    told = CliRunner().invoke(command, ["c008"])
    assert told.exit_code == 0, told.output
    for part in ("1,008 tokens/s", "1,024 random tokens", "synthetic acceptance", "not measured", "claim-random-1024"):
        assert part in told.output


def test_a_claim_without_conditions_has_no_command():
    told = CliRunner().invoke(command, ["C004"])
    assert "too little was disclosed" in told.output
    assert "requests at once" in told.output


def test_as_json_it_is_the_file_and_its_standing():
    told = json.loads(CliRunner().invoke(command, ["c010", "--json"]).output)
    assert told["numbers"] == [{"said": "1,003.79", "unit": "tokens/s", "low": 1003.79, "high": 1003.79}]
    assert told["standing"].startswith("not measured")


def test_an_unknown_claim_is_one_sentence():
    refused = CliRunner().invoke(command, ["c999"])
    assert isinstance(refused.exception, UsageError)
    assert "paribus show claims" in str(refused.exception)


def test_the_list_names_every_claim():
    told = CliRunner().invoke(show, ["claims"])
    assert told.exit_code == 0, told.output
    assert all(f"c{number:03d}" in told.output for number in range(1, 71))
