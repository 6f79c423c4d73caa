"""A score's version changes with everything that could change a grade, and the flag for cut answers where it should."""

from __future__ import annotations

import pytest
from quality_journals import HEADER, entry, with_settings

from paribus.catalog import Catalog
from paribus.quality import dialogue
from paribus.quality import score as scoring
from paribus.quality.samples import Sample, accounts
from paribus.quality.score import flags_of, scorer_id
from paribus.quality.tasks import family_of


@pytest.mark.parametrize("name", ["smoke-aime", "smoke-mmlu-pro", "smoke-tau2"])
def test_another_version_another_rule_for_all_or_another_setting_is_another_score(
    catalog: Catalog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = catalog.task(name)
    here = scorer_id(task)
    assert here.startswith(f"{task.scorer}-")
    assert scorer_id(with_settings(task, another=1)) != here
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "RULES", scoring.RULES + 1)
        assert scorer_id(task) != here
    with monkeypatch.context() as patch:
        if task.family == "tau2":
            patch.setattr(dialogue, "VERSION", f"{dialogue.VERSION}0")
        else:
            patch.setattr(type(family_of(task)), "version", f"{family_of(task).version}0")
        assert scorer_id(task) != here
    assert scorer_id(task) == here


def test_settings_that_change_no_grade_are_in_no_score_version(catalog: Catalog) -> None:
    task = catalog.task("smoke-aime")
    changed = with_settings(task, margin=0.5, known_file="x", known_whole=True, known_hash="x", text_licence="MIT")
    assert scorer_id(changed) == scorer_id(task)


@pytest.mark.parametrize(("cut", "flagged"), [(5, False), (6, True), (14, True)])
def test_more_than_one_answer_in_twenty_cut_is_flagged(catalog: Catalog, cut: int, flagged: bool) -> None:
    ends = ["length" if n < cut else "stop" for n in range(100)]
    answers = [accounts((entry("t", "a", n, "1", finish_reason=end),)) for n, end in enumerate(ends)]
    samples = [Sample("a", n, None, 1.0, "1", **each) for n, each in enumerate(answers)]
    found = {one.id: one for one in flags_of(catalog.task("smoke-aime"), HEADER, [], samples)}
    assert ("capped" in found) == flagged
    if flagged:
        assert f"{cut} of 100 at 100 tokens" in found["capped"].text
