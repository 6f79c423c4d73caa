"""A measurement of anybody's endpoint is checked too: no manifest, the same sums."""

import json
from pathlib import Path

import pytest
from synthetic_runs import Clone

from paribus.catalog import PromptLine
from paribus.results.check import check
from paribus.results.findings import Report
from paribus.speed.adhoc import Asked, measure_endpoint
from scripted import Scripted


def verdicts(report: Report, verdict: str) -> list[str]:
    return [f.text for f in report.findings if f.verdict == verdict]


@pytest.fixture
def folder(scripted: Scripted, tmp_path: Path) -> Path:
    """A short measurement of the scripted endpoint with prompts of one's own."""
    prompts = [PromptLine(id=f"own-{n}", prompt=f"Say {n}.") for n in range(3)]
    asked = Asked(scripted.endpoint("tokens"), prompts, prompts, requests=6, concurrency=2, max_tokens=32, warm_up=1)
    measure_endpoint(asked, tmp_path / "out")
    return tmp_path / "out"


def test_an_honest_measurement_holds(clone: Clone, folder: Path) -> None:
    report = check(clone.root, [str(folder)])
    assert verdicts(report, "fails") == []
    assert any("your own prompts are not here" in text for text in verdicts(report, "not checked"))


def test_an_altered_number_is_found(clone: Clone, folder: Path) -> None:
    data = json.loads((folder / "summary.json").read_text())
    data["output_speed"]["value"] += 1
    (folder / "summary.json").write_text(json.dumps(data))
    report = check(clone.root, [str(folder)])
    assert any(text.startswith("output_speed.value is") for text in verdicts(report, "fails"))
