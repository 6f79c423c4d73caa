"""A journal that was changed after it was made, with every hash, score and seal made again: the check finds it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import Clone, make_catalog
from test_checking import failures
from test_quality_runs import quality_run

from paribus.conditions import ParibusError
from paribus.quality.run import score_start
from paribus.results.check import check
from paribus.results.findings import Report
from paribus.results.run import RunFolder
from paribus.results.seal import seal

Change = Callable[[dict[str, Any], list[dict[str, Any]]], object]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("tampered")
    return Clone(root, make_catalog(root))


@pytest.fixture(scope="module")
def honest(clone: Clone) -> RunFolder:
    made = quality_run(clone, right=7)
    seal(made, clone.catalog)
    return made


@pytest.fixture
def run(honest: RunFolder) -> Iterator[RunFolder]:
    files = [path for path in honest.folder.rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    yield honest
    for path in honest.folder.rglob("*"):
        if path.is_file() and path not in before:
            path.unlink()
    for path, data in before.items():
        path.write_bytes(data)


def tamper(clone: Clone, run: RunFolder, change: Change) -> None:
    """Change the journal, then make again whatever follows from it, as far as that can be done."""
    folder = run.folder / "start-1"
    journal = folder / "journal.jsonl"
    header, *entries = [json.loads(line) for line in journal.read_text().splitlines()]
    change(header, entries)
    journal.write_text("".join(json.dumps(line) + "\n" for line in (header, *entries)))
    hide(folder, "journal.jsonl")
    try:
        score_start(folder, clone.catalog)
        seal(run, clone.catalog)
    except ParibusError:
        pass  # what can't be scored keeps its old score


def hide(folder: Path, name: str) -> None:
    """Put a changed file's size and hash into the manifest."""
    data, path = (folder / name).read_bytes(), folder / "manifest.json"
    manifest = json.loads(path.read_text())
    (entry,) = (each for each in manifest["files"] if each["name"] == name)
    entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    path.write_text(json.dumps(manifest))


def test_an_honest_journal_holds(clone: Clone, run: RunFolder) -> None:
    tamper(clone, run, lambda header, entries: None)
    assert failures(clone, run) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h, e: h.update(partial="partial-00000000"), "header is wrong about its partial"),
        (lambda h, e: h.update(items=[]), "header is wrong about its items"),
        (lambda h, e: h.update(items=h["items"][:4], repeats=1), "header is wrong about its items"),
        (lambda h, e: h.update(family="mmlu-pro"), "header is wrong about its family"),
        (lambda h, e: h.update(version="9"), "header is wrong about its version"),
        (lambda h, e: h.update(released="2030-01"), "the journal says '2030-01'"),
        (lambda h, e: h.update(released=None), "the journal says None"),
        (lambda h, e: h.update(left_out=["top_k"]), "the journal says ['top_k']"),
        (lambda h, e: h.update(sampling={}), "the journal was made with {}"),
        (lambda h, e: h.update(concurrency=1024), "requests_at_once is declared"),
        (lambda h, e: h.update(profile="greedy"), "sampling_profile is declared"),
        (lambda h, e: h.update(thinking=True), "thinking is declared"),
        (lambda h, e: h.update(endpoint="0" * 12), "somebody else's server"),
        (lambda h, e: h.update(extra_body={"temperature": 0}), "to another request than their question makes"),
        (lambda h, e: h.update(served_as="other"), "to another request than their question makes"),
        (lambda h, e: e[3].update(body_sha256="0" * 64), "1 answers are to another request"),
        (lambda h, e: e[3].update(seed=1), "1 answers have another seed"),
        (lambda h, e: e[3].update(seed=None), "1 answers have another seed"),
        (lambda h, e: e[3].update(seed=2**70), "line 5: not a line of a journal (seed"),
        (lambda h, e: e[3].update(seed=-1), "line 5: not a line of a journal (seed"),
        (lambda h, e: e.append(e[3]), "line 12: a second answer to"),
        (lambda h, e: e[3].update(repeat=7), "an answer that was not asked for"),
        (lambda h, e: e[3].update(turn=2), "an answer that was not asked for"),
        (lambda h, e: e[3].update(item="nobody"), "an answer that was not asked for"),
        (lambda h, e: e[3].update(task="nobody"), "an answer that was not asked for"),
        (lambda h, e: e[3].update(completion_tokens=10**12), "line 5: not a line of a journal (completion_tokens"),
        (lambda h, e: e[3].update(prompt_tokens=-1), "line 5: not a line of a journal (prompt_tokens"),
        (lambda h, e: e[3].update(e2e_ns=2**80), "line 5: not a line of a journal (e2e_ns"),
        (lambda h, e: e[3].update(ttft_ns=float("nan")), "line 5: not a line of a journal"),
        (lambda h, e: e[3].update(text=None), "line 5: not a line of a journal (text"),
        (lambda h, e: h.update(repeats=0), "line 1: not a line of a journal (repeats"),
        (lambda h, e: h.update(repeats=10_000_000), "line 1: not a line of a journal (repeats"),
        (lambda h, e: h.update(items=["x"] * 2_000, repeats=10_000), "are more than 1000000 answers"),
        (lambda h, e: h.update(cap=-5), "line 1: not a line of a journal (cap"),
        (lambda h, e: h.update(limit=0), "line 1: not a line of a journal (limit"),
        (lambda h, e: h.update(concurrency=0), "line 1: not a line of a journal (concurrency"),
        (lambda h, e: h.update(sampling={"temperature": float("inf")}), "line 1: not a line of a journal"),
        (lambda h, e: h.update(schema_version=1), "is a journal of form '1', and this Paribus reads form 2"),
        (lambda h, e: h.update(task="no-such-task"), "no-such-task"),
    ],
)  # fmt: skip
def test_a_change_of_the_journal_is_found(clone: Clone, run: RunFolder, change: Change, words: str) -> None:
    tamper(clone, run, change)
    assert words in failures(clone, run)


def test_a_part_that_says_it_is_the_whole_is_found(clone: Clone) -> None:
    """The four items of a smaller scale, said to be all of the task."""
    made = quality_run(clone, right=3, scale="demo")
    seal(made, clone.catalog)
    assert failures(clone, made) == ""
    tamper(clone, made, lambda header, entries: header.update(partial=None))
    assert "header is wrong about its partial: None" in failures(clone, made)


def test_an_honest_request_of_another_question_is_found(clone: Clone, run: RunFolder) -> None:
    """Two answers exchanged with all that belongs to them, but for their places."""

    def exchange(_header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        one, other = dict(entries[0]), dict(entries[1])
        for name in ("text", "body_sha256"):
            entries[0][name], entries[1][name] = other[name], one[name]

    tamper(clone, run, exchange)
    assert "2 answers are to another request than their question makes" in failures(clone, run)


def test_one_broken_run_does_not_hide_the_others(clone: Clone, run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reading a stranger's file may raise is a finding, and the next run is still looked at."""
    other = quality_run(clone, right=2, decoder="ngram-simple-n4-m4")
    seal(other, clone.catalog)

    def broken(*_: object, **__: object) -> None:
        raise OverflowError("Python int too large to convert to C long")

    monkeypatch.setattr("paribus.results.check.check_quality", broken)
    report = check(clone.root, [str(clone.root / "results")])
    said = [finding.text for finding in report.findings if finding.verdict == "fails"]
    assert len([text for text in said if "OverflowError: Python int too large" in text]) >= 2


def test_looking_keeps_interruptions(clone: Clone) -> None:
    report = Report()
    with pytest.raises(KeyboardInterrupt), report.looking("files", "x"):
        raise KeyboardInterrupt
    assert report.findings == []
