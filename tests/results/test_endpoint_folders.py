"""A measurement of anybody's endpoint is checked too: no manifest, the same sums."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_runs import Clone

from paribus.catalog import PromptLine
from paribus.results.check import check
from paribus.results.findings import Report
from paribus.speed.adhoc import Asked, measure_endpoint
from paribus.wire import Outcome
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


def test_one_that_was_interrupted_holds_and_its_flag_stays(clone: Clone, scripted: Scripted, tmp_path: Path) -> None:
    out, ended = tmp_path / "out", []
    prompts = [PromptLine(id="own", prompt="Say it.")]
    asked = Asked(scripted.endpoint("f5-n40-i5000"), prompts, [], requests=50, concurrency=2, warm_up=0)

    def stop_after_three(outcome: Outcome) -> None:
        ended.append(outcome)
        if len(ended) == 3:
            signal.raise_signal(signal.SIGINT)

    summary, interrupted = measure_endpoint(asked, out, stop_after_three)
    assert interrupted
    assert "interrupted" in {flag.id for flag in summary.flags}
    assert verdicts(check(clone.root, [str(out)]), "fails") == []

    data = json.loads((out / "summary.json").read_text())
    data["flags"] = [flag for flag in data["flags"] if flag["id"] != "interrupted"]
    (out / "summary.json").write_text(json.dumps(data))
    (fault,) = verdicts(check(clone.root, [str(out)]), "fails")
    assert fault.startswith("the flag interrupted is missing")


def test_one_of_forced_lengths_holds_and_its_flag_stays(clone: Clone, scripted: Scripted, tmp_path: Path) -> None:
    endpoint = replace(scripted.endpoint("tokens"), extra_body={"ignore_eos": True})
    asked = Asked(endpoint, [PromptLine(id="own", prompt="Say it.")], [], requests=3, warm_up=0)
    summary, _ = measure_endpoint(asked, tmp_path / "out")
    assert "synthetic" in {flag.id for flag in summary.flags}
    assert verdicts(check(clone.root, [str(tmp_path / "out")]), "fails") == []

    said = tmp_path / "out" / "conditions.json"
    said.write_text(json.dumps({**json.loads(said.read_text()), "extra_body": {}}))
    (fault,) = verdicts(check(clone.root, [str(tmp_path / "out")]), "fails")
    assert fault.startswith("the flag synthetic is there without a reason")


def test_an_altered_number_is_found(clone: Clone, folder: Path) -> None:
    data = json.loads((folder / "summary.json").read_text())
    data["output_speed"]["value"] += 1
    (folder / "summary.json").write_text(json.dumps(data))
    report = check(clone.root, [str(folder)])
    assert any(text.startswith("output_speed.value is") for text in verdicts(report, "fails"))
