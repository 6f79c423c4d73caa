"""Verdicts of the lossless gate reach the database, and one that its answers don't make is refused."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from synthetic_runs import STACK, Clone

from paribus.conditions import CheckFailed
from paribus.quality.lossless import Compared, LosslessVerdict, judge
from paribus.results.build import DATABASE, build
from paribus.results.check import check
from paribus.results.gate import gate_rows

SYSTEM = f"{STACK}--ngram-simple-n4-m4"


def write(root: Path, *, differing: int = 0, system: str = SYSTEM, answer_class: str = "0" * 12) -> Path:
    rows = [Compared(prompt=f"p{n}", plain="a", control="a", subject="b" if n < differing else "a") for n in range(14)]
    differ, control, p, standing = judge(rows)
    verdict = LosslessVerdict(
        schema_version=1,
        system=system,
        plain=f"{STACK}--plain",
        max_tokens=64,
        at_once=4,
        engine="llamacpp",
        hashes={"answer_class": answer_class},
        prompts=rows,
        differ=differ,
        control_differ=control,
        p=p,
        standing=standing,
        measured_at="2026-12-01T10:00:00Z",
    )
    path = root / "results" / "cpu" / "m-test" / SYSTEM / "lossless" / "0123456789ab.1" / "lossless.json"
    path.parent.mkdir(parents=True)
    path.write_text(verdict.model_dump_json(by_alias=True))
    return path


def test_a_verdict_is_in_the_database(clone: Clone) -> None:
    write(clone.root)
    build(clone.root)
    with duckdb.connect(str(clone.root / DATABASE), read_only=True) as database:
        found = database.execute("SELECT system, standing, sentence, demo FROM lossless").fetchall()
    assert found == [(SYSTEM, "passed", "lossless: passed at T=0 on 14 prompts", False)]


def test_a_verdict_that_its_answers_do_not_make_is_refused(clone: Clone) -> None:
    path = write(clone.root, differing=7)
    assert gate_rows(clone.root)[0]["standing"] == "failed"
    path.write_text(json.dumps({**json.loads(path.read_text()), "standing": "passed"}))
    with pytest.raises(CheckFailed, match="its answers make another verdict"):
        gate_rows(clone.root)


def test_the_check_judges_a_verdict_again(clone: Clone) -> None:
    path = write(clone.root, differing=7)
    where = str(clone.root / "results" / "cpu")
    assert [(f.subject, f.verdict) for f in check(clone.root, [where]).findings] == [("lossless", "holds")]
    path.write_text(json.dumps({**json.loads(path.read_text()), "differ": 0}))
    for place in (where, str(path.parent)):
        (finding,) = check(clone.root, [place]).findings
        assert finding.verdict == "fails"
        assert "its answers make another verdict" in finding.text


def test_a_verdict_about_another_system_is_refused(clone: Clone) -> None:
    write(clone.root, system=f"{STACK}--ngram-map-k-n4-m4")
    with pytest.raises(CheckFailed, match="about another system"):
        gate_rows(clone.root)


def test_a_verdict_must_hold_what_its_form_says(clone: Clone) -> None:
    path = write(clone.root)
    right = json.loads(path.read_text())
    scored = {"tokens": 9, "gaps": []}
    forced = [{**one, "subject_scored": scored, "control_scored": scored} for one in right["prompts"]]
    whole = {**right, "form": "teacher-forced", "margin": 0.5, "prompts": forced}
    path.write_text(json.dumps(whole))
    assert gate_rows(clone.root)[0]["sentence"].startswith("lossless: passed at T=0 on 14 prompts (0 of 126 tokens")
    wrong = [
        ({**right, "form": "teacher-forced", "margin": 0.5}, "another form"),
        ({**right, "prompts": forced}, "another form"),
        ({**whole, "margin": 50.0}, "by a margin of 50.0"),
        ({**whole, "prompts": [{**forced[0], "control_scored": None}, *forced[1:]]}, "another form"),
        ({**whole, "prompts": [{**forced[0], "subject_scored": {"tokens": 9, "gaps": [3.0]}}, *forced[1:]]}, "another"),
    ]
    for content, words in wrong:
        path.write_text(json.dumps(content))
        with pytest.raises(CheckFailed, match=words):
            gate_rows(clone.root)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temperature": 0.7}, "temperature"),
        ({"plain": SYSTEM}, "not plain decoding of its stack"),
        ({"plain": "smollm2-135m--q8-0--llamacpp--plain"}, "not plain decoding of its stack"),
        ({"plain": f"{STACK}--ngram-map-k-n4-m4"}, "not plain decoding of its stack"),
    ],
)
def test_a_verdict_of_something_else_is_refused(clone: Clone, change: dict[str, object], words: str) -> None:
    path = write(clone.root)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckFailed, match=words):
        gate_rows(clone.root)


def test_a_prompt_counts_once(clone: Clone) -> None:
    """Fourteen times the same prompt would pass."""
    path = write(clone.root)
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "prompts": [whole["prompts"][0]] * 14}))
    with pytest.raises(CheckFailed, match="counts 13 of its prompts more than once"):
        gate_rows(clone.root)
