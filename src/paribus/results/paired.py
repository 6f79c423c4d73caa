"""Quality of two runs on the same questions: the paired difference, and the smallest one that could be seen."""

from __future__ import annotations

from dataclasses import dataclass

from paribus.catalog import Catalog
from paribus.conditions import CheckFailed
from paribus.quality.statistics import NO_SPREAD, Difference, paired_difference, question_means
from paribus.results.data import RunData
from paribus.results.items import grades
from paribus.results.run import RunSummary


@dataclass(frozen=True)
class Paired:
    """First minus second on one score, as shares of 1."""

    score: str
    difference: Difference


def margin_of(catalog: Catalog, run: RunSummary) -> float | None:
    """The preregistered margin of a run's task, as a share; null for speed and for tasks without one."""
    task = catalog.tasks.get(run.quality.task) if run.quality is not None else None
    margin = task.settings.get("margin") if task is not None else None
    return None if margin is None else float(margin)


def paired(left: RunData, right: RunData) -> Paired | None:
    """The paired difference over all questions; None without any.

    Repeats are averaged within a question first. Where not one question differs there is no spread from which an
    interval could be made, and none is given. Raises `CheckFailed` when the two didn't answer the same questions.
    """
    a, b = question_means(grades(left)), question_means(grades(right))
    if set(a) != set(b):
        raise CheckFailed(
            f"the two runs did not answer the same questions: {len(set(a) - set(b))} only in the first, "
            f"{len(set(b) - set(a))} only in the second"
        )
    found = paired_difference(a, b)
    if not found.questions:
        return None
    if found.error is None or found.error < NO_SPREAD:
        found = Difference(found.value, None, None, found.error, found.questions, None)
    quality = left.summary.quality
    headline = next((s.name for s in quality.scores if s.headline), "score") if quality else "score"
    return Paired(headline, found)
