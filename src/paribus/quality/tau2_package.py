"""The benchmark's own package in its locked environment (`envs/<name>`): where it lies, which tasks it carries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from paribus.catalog import QualityTask
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.envs import environment_folder, environment_marker
from paribus.quality.canonical import Item


def environment_of(task: QualityTask) -> str:
    """Name of the locked environment that plays a task's dialogues (`envs/<name>`)."""
    name = task.settings.get("environment")
    if not isinstance(name, str):
        raise UsageError(f"tasks/quality/{task.task}.yaml: settings.environment must name its harness's environment")
    return name


def package_folder(root: Path, task: QualityTask) -> Path | None:
    """The benchmark's own package in its environment; None while that isn't built."""
    name = environment_of(task)
    if not environment_marker(root, name).is_file():
        return None
    folder = environment_folder(root, name)
    return next(iter(sorted(folder.glob("lib/python*/site-packages/tau2"))), None)


def package_rows(task: QualityTask, root: Path) -> list[Item] | None:
    """The base split of every domain as the harness's package carries it; None while its environment isn't built."""
    package = package_folder(root, task)
    if package is None:
        return None
    return [row for domain in task.settings["domains"] for row in _domain_rows(package, str(domain))]


def _domain_rows(package: Path, domain: str) -> Iterator[Item]:
    place = package / "data" / "tau2" / "domains" / domain
    try:
        base = set(json.loads((place / "split_tasks.json").read_bytes())["base"])
        rows = json.loads((place / "tasks.json").read_bytes())
    except (OSError, ValueError, LookupError) as error:
        raise EnvironmentFault(f"the harness's package has no readable tasks of {domain}: build it again") from error
    for row in rows:
        if row["id"] in base:
            yield {**row, "domain": domain, "id": f"{domain}-{row['id']}"}
