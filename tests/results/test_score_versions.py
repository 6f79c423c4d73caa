"""Scores of two versions never meet, and a summary's scores are those of the graded answers beside it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from synthetic_runs import Clone
from test_lossless_join import NGRAM, canary, table
from test_quality_runs import quality_run

from paribus.cli import score as score_command
from paribus.conditions import CheckFailed
from paribus.quality.run import score_start
from paribus.quality.score import scorer_id
from paribus.quality.tasks import aime, mmlu_pro
from paribus.results.build import build
from paribus.results.compare import compare
from paribus.results.data import RunData
from paribus.results.gates import parse_subjects, refusals
from paribus.results.run import RunFolder
from paribus.results.seal import seal

pytest.importorskip("lm_eval", reason="lm-eval is not installed (uv sync --extra quality)")


def sealed(clone: Clone, right: int, decoder: str = "plain") -> RunFolder:
    run = quality_run(clone, right, decoder=decoder)
    seal(run, clone.catalog)
    return run


def another_aime(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of the scorer that reads another answer from everything."""
    monkeypatch.setattr(aime.AimeFamily, "version", "99")
    monkeypatch.setattr(aime, "as_integer", lambda _text: 1)


def test_two_versions_of_a_scorer_are_not_compared(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    old = sealed(clone, 7)
    same = sealed(clone, 2, "ngram-map-k-n4-m4")
    monkeypatch.setattr(aime.AimeFamily, "version", "99")
    new = sealed(clone, 2, NGRAM)
    left, right = RunData.read(old), RunData.read(new)
    ids = [data.summary.quality.scorer for data in (left, right) if data.summary.quality]
    assert ids[0] != ids[1]
    with pytest.raises(CheckFailed, match=f"version of the scores: {ids[0]} and {ids[1]} .score both again: .paribus"):
        compare(left, right, parse_subjects("decoder"))
    assert compare(left, RunData.read(same), parse_subjects("decoder")).ratios


def test_a_run_that_was_scored_again_gives_no_number_until_it_is_sealed(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, other = sealed(clone, 7), sealed(clone, 7, NGRAM)
    another_aime(monkeypatch)
    score_start(run.folder / "start-1", clone.catalog)
    with pytest.raises(CheckFailed, match=f"was scored again since it was sealed.*`paribus seal {run.path}`"):
        RunData.read(run)
    built = build(clone.root)
    assert list(built.unreadable) == [str(run.path)]
    assert table(clone, "SELECT run_id FROM runs") == [(other.run_id,)]


def test_scoring_a_sealed_run_again_seals_it(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sealed(clone, 7)
    another_aime(monkeypatch)
    monkeypatch.chdir(clone.root)
    done = CliRunner().invoke(score_command.command, [str(run.folder)], catch_exceptions=False)
    assert done.output.rstrip().endswith(f"sealed {run.run_id} {run.path} again")
    build(clone.root)
    assert table(clone, "SELECT value FROM scores WHERE headline") == [(0.0,)]
    assert table(clone, "SELECT sum(correct) FROM items") == [(0.0,)]


def test_scoring_what_was_never_sealed_seals_nothing(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    run = quality_run(clone, 7)
    monkeypatch.chdir(clone.root)
    done = CliRunner().invoke(score_command.command, [str(run.folder / "start-1")], catch_exceptions=False)
    assert "sealed" not in done.output
    assert not (run.folder / "summary.json").exists()


def test_the_canary_is_held_against_answers_of_its_own_score_version(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    monkeypatch.setattr(mmlu_pro.MmluProFamily, "version", "99")
    canary(clone, 10)
    build(clone.root)
    ((standing, told),) = table(clone, "SELECT standing, sentence FROM lossless")
    assert standing == "undecided"
    assert told.endswith("plain decoding hasn't answered them here (smoke-mmlu-pro)")


def test_a_canarys_scores_are_of_the_version_of_the_task_that_it_is_held_against(clone: Clone) -> None:
    canaries = [task for task in clone.catalog.tasks.values() if task.canary is not None]
    assert canaries
    for task in canaries:
        assert task.canary is not None
        assert scorer_id(task) == scorer_id(clone.catalog.task(task.canary.of))


def test_runs_whose_declared_scorers_differ_are_not_compared(clone: Clone) -> None:
    summary = RunData.read(sealed(clone, 7)).summary
    other = summary.model_copy(update={"declared": {**summary.declared, "scorer": "another"}})
    assert [one.name for one in refusals(summary, other)] == ["scorer"]
