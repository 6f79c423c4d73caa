"""Items below `PARIBUS_DATA`, looked at when a plan is made: wrong ones are told at once, a part names its measure."""

from __future__ import annotations

from paribus.catalog import Catalog, Part, Plan, QualityTask
from paribus.conditions import UsageError
from paribus.quality.data import Items, load_items, local_files


class LocalItems:
    """What lies below `PARIBUS_DATA`, each task loaded and hashed once."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._found: dict[str, Items | UsageError] = {}

    def part_of(self, task: QualityTask) -> Part | None:
        """The part of a task that is there; None for all of it, for none, and for items that `check` refuses."""
        items = self._items(task)
        return Part(items.whole, len(items.items)) if isinstance(items, Items) and items.part else None

    def check(self, plan: Plan) -> list[str]:
        """The unmeasured quality tasks of a plan whose items are taken from `PARIBUS_DATA`.

        Raises `UsageError` for items that are not the task's, with the expected and the found hash.
        """
        planned = {m.id for job in plan.jobs if job.kind == "quality" and not job.done for m in job.measures}
        local = [name for name in sorted(planned) if local_files(self.catalog.task(name))]
        for name in local:
            items = self._items(self.catalog.task(name))
            if isinstance(items, UsageError):
                raise items
        return local

    def _items(self, task: QualityTask) -> Items | UsageError | None:
        if not local_files(task):
            return None
        if task.task not in self._found:
            try:
                self._found[task.task] = load_items(task, self.catalog.root)
            except UsageError as error:
                self._found[task.task] = error
        return self._found[task.task]


def check_items(catalog: Catalog, plan: Plan) -> list[str]:
    """`LocalItems.check` of a plan that was made before."""
    return LocalItems(catalog).check(plan)
