"""Quality runs: sealed from their scores, scored again by the check, compared question by question."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace

import duckdb
import pytest
from synthetic_runs import BUILD, STACK, Clone, make_catalog
from test_checking import edit, failures

from paribus.catalog.declare import Place, declare_task
from paribus.cli._items import LocalItems
from paribus.conditions import CheckFailed, RunPath
from paribus.engines.base import StartRecord
from paribus.engines.starts import Measured, StartFolder, manifest_of
from paribus.quality.asking import Question, body_of, seed_of
from paribus.quality.believed import asking_of
from paribus.quality.data import Item, item_id, load_items
from paribus.quality.journal import Entry, Header, Journal, Key
from paribus.quality.run import score_start
from paribus.quality.tasks import family_of
from paribus.results.build import DATABASE, build
from paribus.results.compare import compare
from paribus.results.data import RunData
from paribus.results.gates import parse_subjects
from paribus.results.run import RunFolder
from paribus.results.seal import seal

pytest.importorskip("lm_eval", reason="lm-eval is not installed (uv sync --extra quality)")


def quality_run(
    clone: Clone,
    right: int,
    *,
    decoder: str = "plain",
    scored: bool = True,
    name: str = "smoke-aime",
    scale: str = "small",
    sampling: str = "served",
    build: str = BUILD,
    told: Callable[[Item], str] = lambda item: f"So the answer is \\boxed{{{item['answer']}}}.",
) -> RunFolder:
    """A run of the integer-maths stand-in (or another task) whose first `right` answers are right: those that `told`
    gives for an item."""
    task = clone.catalog.task(name)
    config = clone.configuration(scale, 1).model_copy(update={"sampling": sampling})
    system = clone.catalog.system(f"{STACK}--{decoder}")
    planned = declare_task(clone.catalog, config, task, LocalItems(clone.catalog).part_of(task)).planned(
        system, build, system.use.launch, Place("cpu", "m-test", 1)
    )
    relative = f"{planned.run}/start-1"
    folder = StartFolder(clone.root, clone.root / "results" / relative, relative, "quality", 1)
    folder.prepare()
    effort = task.effort(clone.catalog.scale(scale), system.model.quality_cap)
    items = load_items(task, clone.root, effort.items)
    ids = [item_id(task, item) for item in items.items]
    header = Header(
        task=task.task,
        family=task.family,
        version=task.version,
        items_hash=items.hash,
        partial=items.partial,
        items=ids,
        repeats=planned.declared["repeats"],
        cap=planned.declared["cap"],
        scale=scale,
        limit=effort.items,
        profile=planned.declared["sampling_profile"],
        sampling=planned.declared["sampling"],
        left_out=[],
        model=system.model.model,
        released=system.model.released,
        thinking=False,
        concurrency=planned.declared["requests_at_once"],
        served_as=system.model.model,
    )
    with Journal(folder.path / "journal.jsonl", header) as journal:
        for place, item in enumerate(items.items):
            text = family_of(task).prompt(item, items, task)
            asked = Question(Key(task.task, ids[place], 0), ({"role": "user", "content": text},))
            journal.append(_entry(header, asked, told(item) if place < right else "So the answer is \\boxed{999}."))
    accepted = sorted(["seed", *header.sampling])
    seen = {"card": "Test CPU", "engine_version": "1.0", "items_hash": items.hash, "sampling_accepted": accepted}
    stamp = "2026-12-01T10:00:00Z"
    measured = Measured(planned, StartRecord(), seen, {}, stamp, stamp, 1.0, 2.0)
    folder.seal(manifest_of(folder, measured))
    run = RunFolder(clone.root / "results", RunPath.parse(planned.run))
    if scored:
        score_start(folder.path, clone.catalog)
    return run


def _entry(header: Header, asked: Question, text: str) -> Entry:
    return Entry(
        **asked.key._asdict(),
        seed=seed_of(asked.key),
        body_sha256=hashlib.sha256(body_of(asking_of(header), asked)).hexdigest(),
        attempts=1,
        status=200,
        error=None,
        text=text,
        reasoning="",
        finish_reason="stop",
        prompt_tokens=10,
        completion_tokens=20,
        reasoning_tokens=0,
        ttft_ns=5_000_000,
        e2e_ns=25_000_000,
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("quality")
    return Clone(root, make_catalog(root))


@pytest.fixture(scope="module")
def run(clone: Clone) -> RunFolder:
    made = quality_run(clone, right=7)
    seal(made, clone.catalog)
    return made


def test_a_quality_run_is_sealed_and_holds(clone: Clone, run: RunFolder) -> None:
    summary = RunData.read(run).summary
    assert summary.kind == "quality"
    assert summary.quality is not None
    assert next(score.value for score in summary.quality.scores if score.headline) == pytest.approx(0.7)
    assert {"stand_in", "preliminary"} <= {flag.id for flag in summary.flags}
    assert failures(clone, run) == ""


def test_a_run_that_is_not_scored_says_what_to_run(clone: Clone) -> None:
    made = quality_run(clone, right=3, decoder="ngram-map-k-n4-m4", scored=False)
    with pytest.raises(CheckFailed, match="paribus score"):
        seal(made, clone.catalog)


def test_a_score_can_not_be_changed(clone: Clone, run: RunFolder) -> None:
    path = run.folder / "start-1" / "score.json"
    honest = path.read_bytes()
    edit(path, lambda score: score["scores"][0].update(value=0.8, high=0.99))
    try:
        seal(run, clone.catalog)
        assert "scores[0].value is 0.8 and should be 0.7" in failures(clone, run)
    finally:
        path.write_bytes(honest)
        seal(run, clone.catalog)


def test_an_answer_can_not_be_changed(clone: Clone, run: RunFolder) -> None:
    path = run.folder / "start-1" / "journal.jsonl"
    honest = path.read_bytes()
    path.write_bytes(honest.replace(b"999", b"998"))
    try:
        assert "journal.jsonl is not the file that the manifest lists" in failures(clone, run)
    finally:
        path.write_bytes(honest)


def test_a_journal_made_for_something_else_is_found(clone: Clone, run: RunFolder) -> None:
    path = run.folder / "start-1" / "journal.jsonl"
    honest = path.read_bytes()
    head, _, rest = honest.partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(head), "cap": 77}).encode() + b"\n" + rest)
    try:
        assert "cap is declared" in failures(clone, run)
    finally:
        path.write_bytes(honest)


def test_two_runs_are_compared_question_by_question(clone: Clone, run: RunFolder) -> None:
    other = quality_run(clone, right=2, decoder="ngram-simple-n4-m4")
    seal(other, clone.catalog)
    made = compare(RunData.read(run), RunData.read(other), parse_subjects("decoder"))
    difference = made.ratios[0]
    # Five of ten questions were right on one side only: the spread of ten paired gaps.
    assert difference.value == pytest.approx(50)
    assert difference.low == pytest.approx(50 - 2.262 * 52.70 / 10**0.5, abs=0.1)
    assert "differences under" in made.sentences()[0]
    assert any("10 questions are few" in note for note in made.notes)


def test_a_difference_without_any_spread_says_that_nothing_can_be_said_of_it(clone: Clone, run: RunFolder) -> None:
    other = quality_run(clone, right=7, decoder="ngram-cache")
    seal(other, clone.catalog)
    [said] = compare(RunData.read(run), RunData.read(other), parse_subjects("decoder")).sentences()
    assert "not one question differs, so that there is no interval and no smallest difference" in said
    assert "points could not be seen" not in said


def test_no_loss_without_any_spread_is_bounded_by_the_rule_of_three(clone: Clone, run: RunFolder) -> None:
    """Of ten questions that all agree, up to 30 in a hundred others may not: 0.05 ** (1 / 10) is near 1 - 0.3."""
    other = quality_run(clone, right=7, decoder="ngram-mod-n24")
    seal(other, clone.catalog)
    sides = RunData.read(run), RunData.read(other)

    def said(margin: float) -> str:
        (text,) = compare(*sides, parse_subjects("decoder"), margin=margin).sentences()
        return text

    assert "no loss" not in said(0.07)
    assert "no loss" not in said(0.299)
    assert "no loss within 30.0 points (rule of three, 5%)" in said(0.3)


def test_no_loss_needs_a_margin_that_was_laid_down_and_the_whole_task(clone: Clone, run: RunFolder) -> None:
    other = quality_run(clone, right=6, decoder="ngram-map-k4v-n4-m4")
    seal(other, clone.catalog)
    left, right = RunData.read(run), RunData.read(other)

    def said(one: RunData, margin: float | None) -> str:
        (text,) = compare(one, right, parse_subjects("decoder"), margin=margin).sentences()
        return text

    # One of ten gaps is 1: 10 points with a standard error of 10; plus 1.833 of them (t of 9, 95%) that is 28.3.
    assert "no loss within 30.0 points (equivalence test, 5%)" in said(left, 0.3)
    assert "no loss" not in said(left, 0.28)
    assert "no loss" not in said(left, None)
    assert all("differences under 28.0 points could not be seen" in said(left, margin) for margin in (0.3, 0.28, None))
    assert left.summary.quality is not None
    part = left.summary.model_copy(update={"quality": left.summary.quality.model_copy(update={"partial": True})})
    made = compare(replace(left, summary=part), right, parse_subjects("decoder"), margin=0.3)
    assert "no loss" not in made.sentences()[0]
    assert any("a part of the task only" in note for note in made.notes)


def test_scores_and_answers_are_in_the_database(clone: Clone, run: RunFolder) -> None:
    for path in (clone.root / "results").rglob("start-1"):
        if not (path / "score.json").exists():
            score_start(path, clone.catalog)
    build(clone.root)
    connection = duckdb.connect(str(clone.root / DATABASE), read_only=True)
    try:
        items = connection.execute("SELECT sum(correct), count(*) FROM items WHERE run_id = ?", [run.run_id]).fetchall()
        scores = connection.execute("SELECT value FROM scores WHERE run_id = ? AND headline", [run.run_id]).fetchall()
        figures = connection.execute(
            "SELECT value, basis FROM figures WHERE run_id = ? AND headline AND other_run_id IS NULL", [run.run_id]
        ).fetchall()
    finally:
        connection.close()
    assert items == [(7.0, 10)]
    assert scores == [(pytest.approx(0.7),)]
    assert figures == [(pytest.approx(0.7), "questions")]
