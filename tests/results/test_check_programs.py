"""A check of answers that are programs: `--grade` runs them again, where they would run alike."""

from __future__ import annotations

import os

import pytest
from synthetic_runs import Clone, make_catalog
from test_checking import edit
from test_quality_runs import quality_run

from paribus.quality import sandbox
from paribus.results.check import check
from paribus.results.run import RunFolder
from paribus.results.seal import seal

pytest.importorskip("lm_eval", reason="lm-eval is not installed (uv sync --extra quality)")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("programs")
    return Clone(root, make_catalog(root))


@pytest.fixture(scope="module")
def run(clone: Clone) -> RunFolder:
    if (missing := sandbox.available()) is not None:
        (pytest.fail if os.environ.get("PARIBUS_REQUIRE") else pytest.skip)(f"no sandbox: {missing}")
    made = quality_run(
        clone, 2, name="smoke-livecodebench", told=lambda item: f"```python\n{item['reference_solution']}\n```"
    )
    seal(made, clone.catalog)
    return made


def scores(clone: Clone, run: RunFolder, *, grade: bool) -> set[tuple[str, str]]:
    """What a check says of a run's scores: verdicts and texts."""
    report = check(clone.root, [str(run.folder)], grade=grade)
    return {(each.verdict, each.text) for each in report.findings if each.subject == "scores"}


def test_programs_are_run_again_on_request(clone: Clone, run: RunFolder) -> None:
    assert scores(clone, run, grade=True) == {("holds", "")}
    said = "this task runs code: --grade runs it again in the sandbox"
    assert ("not checked", said) in scores(clone, run, grade=False)


def test_a_grade_that_the_programs_do_not_earn_is_found(clone: Clone, run: RunFolder) -> None:
    path = run.folder / "start-1" / "score.json"
    honest = path.read_bytes()
    edit(
        path,
        lambda score: score["by_group"].update(
            {name: {**part, "value": 1.0} for name, part in score["by_group"].items()}
        ),
    )
    try:
        seal(run, clone.catalog)
        said = {text for verdict, text in scores(clone, run, grade=True) if verdict == "fails"}
        assert any("by_group" in text for text in said)
        assert not any(verdict == "fails" for verdict, _ in scores(clone, run, grade=False))
    finally:
        path.write_bytes(honest)
        seal(run, clone.catalog)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("runs_on", "graded on {here}; here they would run on Python 3.99"),
        ("available", "there is no sandbox here: Python 3.99"),
    ],
)
def test_programs_are_not_run_where_they_would_run_otherwise(
    clone: Clone, run: RunFolder, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setattr(f"paribus.results.check_quality.{name}", lambda: "Python 3.99")
    found = scores(clone, run, grade=True)
    assert any(verdict == "not checked" and said.format(here=sandbox.runs_on()) in text for verdict, text in found)
    assert not any(verdict == "fails" for verdict, _ in found)
