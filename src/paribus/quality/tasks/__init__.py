"""The four families of quality tasks: how each asks, reads an answer and grades it."""

from __future__ import annotations

from paribus.catalog import QualityTask
from paribus.quality.tasks.aime import AimeFamily
from paribus.quality.tasks.base import Family, Grade, Marks
from paribus.quality.tasks.livecodebench import LiveCodeBenchFamily
from paribus.quality.tasks.mmlu_pro import MmluProFamily

__all__ = ["FAMILIES", "Family", "Grade", "Marks", "family_of"]

FAMILIES: dict[str, Family] = {family.name: family for family in (AimeFamily(), MmluProFamily(), LiveCodeBenchFamily())}
"""The families that ask one question an item, by name. Dialogues (`tau2`) have their own module."""


def family_of(task: QualityTask) -> Family:
    """The family of a task with one question an item. Raises `KeyError` for a dialogue."""
    return FAMILIES[task.family]
