"""A fresh clone, which has only the files that are kept in git, decides what the measuring machine decided."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from synthetic_runs import Clone, make_catalog
from test_lossless_join import NGRAM, OTHER, canary, table

from paribus.conditions import CheckFailed
from paribus.results.build import build
from paribus.results.check import check
from paribus.results.compare import compare
from paribus.results.data import RunData
from paribus.results.gates import parse_subjects
from paribus.results.run import RunFolder

pytest.importorskip("lm_eval", reason="lm-eval is not installed (uv sync --extra quality)")

ROOT = Path(__file__).parents[2]


def kept() -> set[str]:
    """The names that results/README.md says are in git, whatever the hardware."""
    lines = (ROOT / "results" / "README.md").read_text().splitlines()
    rows = [line.split("|")[1:4] for line in lines if line.startswith("| `")]
    names = {
        name.rpartition("/")[2] for row in rows if row[2].strip() == "yes" for name in re.findall("`(.*?)`", row[0])
    }
    assert {"manifest.json", "summary.json", "requests-lite.parquet"} <= names
    return names


@pytest.fixture
def fresh(clone: Clone, tmp_path: Path) -> Callable[[], Clone]:
    """Makes a fresh clone of a clone."""

    def make() -> Clone:
        root = tmp_path / "fresh"
        root.mkdir()
        catalog = make_catalog(root)
        for path in (clone.root / "results").rglob("*"):
            if path.is_file() and path.name in kept():
                target = root / path.relative_to(clone.root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
        return Clone(root, catalog)

    return make


def verdicts(clone: Clone) -> list[tuple[Any, ...]]:
    build(clone.root)
    about = table(clone, "SELECT gate, system, standing, sentence, prompts FROM lossless")
    return [*about, *table(clone, "SELECT run_id, flag FROM flags WHERE flag = 'not_lossless'")]


@pytest.mark.parametrize(("right", "standing"), [(0, "failed"), (10, "passed"), (9, "undecided")])
def test_a_canarys_verdict_is_the_same_in_a_fresh_clone(
    clone: Clone, fresh: Callable[[], Clone], right: int, standing: str
) -> None:
    canary(clone, right)
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    here, there = verdicts(clone), verdicts(fresh())
    assert here == there
    assert here[0][2] == standing


def test_two_scores_are_compared_in_a_fresh_clone_as_where_they_were_made(
    clone: Clone, fresh: Callable[[], Clone]
) -> None:
    runs = [canary(clone, 10, "plain", "smoke-mmlu-pro"), canary(clone, 4, OTHER, "smoke-mmlu-pro")]
    other = fresh()
    subjects = parse_subjects("decoder")
    made = [
        compare(*(RunData.read(RunFolder(where.root / "results", run.path)) for run in runs), subjects).ratios
        for where in (clone, other)
    ]
    assert made[0] == made[1] != []
    report = check(other.root, [str(other.root / "results")])
    assert [finding for finding in report.findings if finding.verdict == "fails"] == []


def test_without_its_grades_a_canary_says_that_they_are_missing(clone: Clone) -> None:
    run = canary(clone, 0)
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    for name in ("samples.parquet", "samples-lite.parquet"):
        (run.folder / "start-1" / name).unlink()
    ((_, _, standing, told, _),) = verdicts(clone)
    assert standing == "undecided"
    assert told.endswith(f"without the answers of {run.run_id}, whose grades are not here")


def test_grades_that_are_not_the_scores_are_found(clone: Clone) -> None:
    run = canary(clone, 4)
    lite = run.folder / "start-1" / "samples-lite.parquet"
    table = pq.read_table(lite)
    better = table.set_column(2, "correct", [[1.0] * len(table)])
    pq.write_table(better, lite)
    assert found(clone, run) >= {"samples-lite.parquet has other grades than samples.parquet"}
    for name in ("samples.parquet", "journal.jsonl"):
        (run.folder / "start-1" / name).unlink()
    assert any("should be 1.0" in text for text in found(clone, run)), "the headline is of other grades"
    pq.write_table(table.slice(0, 9), lite)
    assert any("samples-lite.parquet has 9 answers" in text for text in found(clone, run))
    lite.unlink()
    assert any("samples-lite.parquet is missing" in text for text in found(clone, run))


def found(clone: Clone, run: RunFolder) -> set[str]:
    report = check(clone.root, [str(run.folder)])
    return {finding.text for finding in report.findings if finding.verdict == "fails"}


def test_a_score_without_grades_is_refused_by_a_comparison(clone: Clone) -> None:
    runs = [canary(clone, 10, "plain", "smoke-mmlu-pro"), canary(clone, 4, NGRAM, "smoke-mmlu-pro")]
    for name in ("samples.parquet", "samples-lite.parquet"):
        (runs[0].folder / "start-1" / name).unlink()
    with pytest.raises(CheckFailed, match=r"samples-lite\.parquet is missing"):
        compare(*map(RunData.read, runs), parse_subjects("decoder"))
