"""lm-eval as the harness of the tasks with one question an item: our tasks, our model, its evaluation loop.

Importing this module imports lm-eval, which takes seconds.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TQDM_DISABLE", "1")  # its progress bars would cover ours

from lm_eval.api.instance import Instance
from lm_eval.api.task import Task, TaskConfig
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

from paribus.catalog import QualityTask
from paribus.quality.data import Item, Items, item_id
from paribus.quality.lm import AnswerMany, ParibusLM
from paribus.quality.tasks import Family, Grade, family_of

Grades = dict[tuple[str, int], Grade]
"""Grades by (item, repeat)."""

Progress = Callable[[int, int], None]


class ItemsTask(Task):  # type: ignore[misc]  # lm-eval has no types
    """One of our quality tasks as lm-eval sees it. `grade=False` while answers are generated: scoring comes later."""

    VERSION = 1
    OUTPUT_TYPE = "generate_until"

    def __init__(self, task: QualityTask, items: Items, repeats: int, grade: bool, progress: Progress) -> None:
        self.ours, self.items, self.family = task, items, family_of(task)
        self.grades: Grades = {}
        self._grade, self._progress = grade, progress
        config = {
            "task": task.task,
            "output_type": "generate_until",
            "repeats": repeats,
            "num_fewshot": 0,
            "generation_kwargs": {"until": []},
            "metadata": {"version": task.version},
        }
        super().__init__()
        # The base class hands a mapping to TaskConfig as if it were the task's name (0.4.13): make it ourselves.
        self._config = TaskConfig(**config)

    def download(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing to download: the items are here."""
        self.dataset = {"test": list(self.items.items)}

    def has_training_docs(self) -> bool:
        """None."""
        return False

    def has_validation_docs(self) -> bool:
        """None."""
        return False

    def has_test_docs(self) -> bool:
        """All items."""
        return True

    def test_docs(self) -> list[Item]:
        """All items, in the order of their ids."""
        return list(self.items.items)

    def doc_to_text(self, doc: Item) -> str:
        """The message that asks an item."""
        return self.family.prompt(doc, self.items, self.ours)

    def doc_to_target(self, doc: Item) -> str:
        """The item's id: what is right is the grader's business and stays out of lm-eval's logs."""
        return item_id(self.ours, doc)

    def doc_to_prefix(self, doc: Item) -> None:
        """Nothing is put into the model's mouth."""

    def fewshot_context(self, doc: Item, *_args: Any, **_kwargs: Any) -> str:
        """The message; worked examples are part of it already."""
        return self.doc_to_text(doc)

    def construct_requests(self, doc: Item, ctx: str, **kwargs: Any) -> Instance:
        """One generation; lm-eval repeats it."""
        return Instance(
            request_type="generate_until", doc=doc, arguments=(ctx, {"until": []}), idx=0, metadata=kwargs["metadata"]
        )

    def apply_filters(self) -> None:
        """Keep every repeat; grade programs ahead, side by side."""
        for instance in self._instances:
            instance.filtered_resps["all"] = list(instance.resps)
        if self._grade:
            answers = [(instance.doc, text) for instance in self._instances for text in instance.resps]
            self.family.prepare(answers, self.ours, self._progress)

    def process_results(self, doc: Item, results: list[list[str]]) -> dict[str, float]:
        """Grade all repeats of one item; its means are what lm-eval averages."""
        if not self._grade:
            return {"generated": float(len(results[0]))}
        grades = [self.family.grade(doc, text, self.ours) for text in results[0]]
        for repeat, grade in enumerate(grades):
            self.grades[item_id(self.ours, doc), repeat] = grade
        values = {"correct": _mean([grade.correct for grade in grades])}
        return values | {name: _mean([grade.marks[name] for grade in grades]) for name in grades[0].marks}

    def aggregation(self) -> dict[str, Callable[[Sequence[float]], float]]:
        """Means over the items."""
        return dict.fromkeys(("generated", "correct", "answered", *self.family.mark_titles), _mean)

    def higher_is_better(self) -> dict[str, bool]:
        """All of them."""
        return dict.fromkeys(self.aggregation(), True)


def evaluate(
    task: QualityTask,
    items: Items,
    repeats: int,
    answer_many: AnswerMany,
    *,
    grade: bool,
    progress: Progress = lambda _done, _of: None,
) -> tuple[Grades, dict[str, float]]:
    """Run lm-eval over the items; returns our grades and lm-eval's own means (`correct`, the marks)."""
    for name in ("lm_eval", "lm-eval"):
        logging.getLogger(name).setLevel(logging.ERROR)
    ours = ItemsTask(task, items, repeats, grade, progress)
    results = simple_evaluate(
        model=ParibusLM(task.task, task.data.id_field, answer_many),
        tasks=[ours],
        task_manager=TaskManager(include_defaults=False),
        bootstrap_iters=0,
        log_samples=False,
    )
    found = results["results"][task.task]
    names = set(ours.aggregation())
    means = {name.split(",")[0]: float(value) for name, value in found.items() if name.split(",")[0] in names}
    return ours.grades, means


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


__all__ = ["Family", "Grades", "ItemsTask", "evaluate"]
