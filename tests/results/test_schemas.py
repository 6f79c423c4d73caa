"""The schemas in `schemas/` are what the types say, and real files fit them."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from paribus.results.schemas import SCHEMAS, drifted, schema_path, schema_text

ROOT = Path(__file__).parents[2]


def test_the_committed_schemas_are_up_to_date() -> None:
    assert drifted(ROOT / "schemas") == [], "run `paribus schemas` and commit"


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text(name)))


def test_a_changed_missing_or_left_over_schema_is_named(tmp_path: Path) -> None:
    for name in SCHEMAS:
        schema_path(tmp_path, name).write_text(schema_text(name))
    assert drifted(tmp_path) == []
    schema_path(tmp_path, "plan").unlink()
    schema_path(tmp_path, "race").write_text("{}")
    (tmp_path / "gone.schema.json").write_text("{}")
    assert drifted(tmp_path) == [
        "gone.schema.json describes nothing",
        "plan.schema.json is missing",
        "race.schema.json is out of date",
    ]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("model", "systems/*.yaml"),
        ("scenario", "tasks/speed/*.yaml"),
        ("scale", "tasks/scales/*.yaml"),
        ("quality-task", "tasks/quality/*.yaml"),
        ("hardware", "hardware/*/hardware.yaml"),
        ("pairs", "pairs.yaml"),
    ],
)
def test_every_file_of_the_catalog_fits_its_schema(name: str, pattern: str) -> None:
    files = sorted(ROOT.glob(pattern))
    assert files
    validator = jsonschema.Draft202012Validator(json.loads(schema_text(name)))
    for file in files:
        faults = [error.message for error in validator.iter_errors(yaml.safe_load(file.read_text()))]
        assert faults == [], file.name
