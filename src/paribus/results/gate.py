"""Verdicts of the lossless gate on disk: `lossless.json` beside a system's runs, judged again when it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.conditions import CheckFailed, RunPath, SystemName, decoder_method
from paribus.quality.lossless import MARGIN, LosslessVerdict, judge
from paribus.results.findings import Report
from paribus.results.reading import read_model
from paribus.results.run import RESULTS_ROOTS, RunFolder, find_named

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
    if (twice := len(verdict.prompts) - len({one.prompt for one in verdict.prompts})) > 0:
        raise CheckFailed(f"{path}/{FILE} counts {twice} of its prompts more than once")
    _check_plain(verdict, path)
    return verdict


def _check_plain(verdict: LosslessVerdict, path: RunPath) -> None:
    about, plain = SystemName.parse(path.system), SystemName.parse(verdict.plain)
    same = (plain.stack, plain.think) == (about.stack, about.think)
    if not same or decoder_method(plain.decoder) != "plain" or plain == about:
        raise CheckFailed(f"{path}/{FILE} was held against {verdict.plain}, not plain decoding of its stack")


def check_gate(results: Path, path: RunPath, report: Report) -> None:
    """Judge a verdict again from the answers' hashes that it keeps."""
    with report.looking("lossless", str(path)):
        read_gate(results / str(path), path)
        report.say("lossless", str(path), "holds")


def gates(root: Path) -> list[RunFolder]:
    """Where verdicts lie, in every results folder."""
    return [
        RunFolder(root / results, RunPath.parse("/".join(file.parent.relative_to(root / results).parts)))
        for results in RESULTS_ROOTS
        for file in find_named(root / results, FILE)
    ]


def gate_rows(root: Path, wanted: Callable[[RunPath], bool] = lambda _: True) -> list[dict[str, Any]]:
    """The verdicts of every results folder whose paths are wanted, as rows of the table `lossless`."""
    return [gate_row(place) for place in gates(root) if wanted(place.path)]


def gate_row(place: RunFolder) -> dict[str, Any]:
    """One verdict's row. Raises `CheckFailed` as `read_gate` does."""
    path, verdict = place.path, read_gate(place.folder, place.path)
    return {
        "gate": "greedy",
        "path": f"{path}/{FILE}",
        "demo": place.demo,
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
