"""The items of planned quality tasks, looked at before anything is measured: wrong ones are told at once, not last."""

from __future__ import annotations

from paribus.catalog import Catalog, Plan
from paribus.quality.data import load_planned, local_files


def check_items(catalog: Catalog, plan: Plan) -> list[str]:
    """Load and hash what the unmeasured quality tasks of a plan take from `PARIBUS_DATA`; returns those tasks.

    Raises `UsageError` for items that are not the task's, with the expected and the found hash.
    """
    planned = {m.id: m for job in plan.jobs if job.kind == "quality" and not job.done for m in job.measures}
    local = [name for name in sorted(planned) if local_files(catalog.task(name))]
    for name in local:
        task, declared = catalog.task(name), planned[name].declared
        limit = task.effort(catalog.scale(plan.scale), int(declared["cap"])).items
        load_planned(task, catalog.root, limit, declared.get("items_hash"))
    return local
