"""Verdicts of the lossless gate on disk: `lossless.json` beside a system's runs, judged again when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paribus.conditions import CheckFailed, RunPath
from paribus.quality.lossless import MARGIN, LosslessVerdict, judge
from paribus.results.findings import Report
from paribus.results.reading import read_model
from paribus.results.run import RESULTS_ROOTS, find_named

FILE = "lossless.json"


def read_gate(folder: Path, path: RunPath) -> LosslessVerdict:
    """The verdict in a folder. Raises `CheckFailed` when it isn't the one that its answers make, or lies elsewhere."""
    verdict = read_model(folder, FILE, LosslessVerdict)
    made = judge(verdict.prompts)
    if made[:2] != (verdict.differ, verdict.control_differ) or made[3] != verdict.standing:
        raise CheckFailed(f"{path}/{FILE} says {verdict.sentence!r}, and its answers make another verdict")
    scored = verdict.form == "teacher-forced"
    if any(
        (one.subject_scored is not None, one.control_scored is not None) != (scored, scored) for one in verdict.prompts
    ):
        raise CheckFailed(f"{path}/{FILE} is {verdict.form}, and its prompts hold another form of the gate")
    if verdict.margin != (MARGIN if scored else None):
        raise CheckFailed(f"{path}/{FILE} was judged by a margin of {verdict.margin}, and the gate's is {MARGIN}")
    if verdict.system != path.system:
        raise CheckFailed(f"{path}/{FILE} is about another system: {verdict.system}")
    return verdict


def check_gate(results: Path, path: RunPath, report: Report) -> None:
    """Judge a verdict again from the answers' hashes that it keeps."""
    with report.looking("lossless", str(path)):
        read_gate(results / str(path), path)
        report.say("lossless", str(path), "holds")


def gate_rows(root: Path) -> list[dict[str, Any]]:
    """Every verdict of every results folder, as rows of the table `lossless`."""
    rows = []
    for results in RESULTS_ROOTS:
        for file in find_named(root / results, FILE):
            path = RunPath.parse("/".join(file.parent.relative_to(root / results).parts))
            verdict = read_gate(file.parent, path)
            rows.append(
                {
                    "gate": "greedy",
                    "path": f"{path}/{FILE}",
                    "demo": results.endswith("demo-results"),
                    "hardware": path.hardware,
                    "machine": path.machine,
                    "system": verdict.system,
                    "plain": verdict.plain,
                    "answer_class": verdict.hashes.get("answer_class"),
                    "prompts": len(verdict.prompts),
                    "differ": verdict.differ,
                    "control_differ": verdict.control_differ,
                    "standing": verdict.standing,
                    "sentence": verdict.sentence,
                    "measured_at": verdict.measured_at,
                }
            )
    return rows
