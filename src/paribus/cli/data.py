"""`paribus data`: the items of the quality tasks that are on this machine, held against their hashes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from paribus.catalog import Catalog, QualityTask
from paribus.conditions import EnvironmentFault, ParibusError, one_line

Standing = Literal["whole", "part", "missing", "wrong"]


@dataclass(frozen=True)
class Found:
    """What is here of one task: its standing, and the number, origin and hash of its items or what is wrong."""

    task: str
    standing: Standing
    told: str


@click.group()
def command() -> None:
    """Look at the data that quality tasks are made of."""


@command.command("verify")
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    show_default="this folder",
    help="The repository's folder.",
)
def verify(tasks: tuple[str, ...], root: Path) -> None:
    """Read every item of TASKS (default: all tasks) and hold them against the hashes that the tasks' files name.

    `whole`: all items of the task. `part`: some of them, or items that no hash vouches for; what is measured with them
    has a name of its own. `missing`: none here. `wrong`: others than the task's; then the command ends with 1, as it
    does where a task that was named is missing.

    \b
    Examples:
      paribus data verify
      PARIBUS_DATA=/data/evals paribus data verify aime-2024-2026 mmlu-pro
    """
    catalog = Catalog(root.resolve())
    named = [catalog.task(name) for name in tasks] or [catalog.tasks[name] for name in sorted(catalog.tasks)]
    found = list(verified(named, catalog.root))
    wide = max(len(one.task) for one in found)
    for one in found:
        print(f"{one.task:{wide}}  {one.standing:7}  {one_line(one.told)}")
    bad = {"wrong", "missing"} if tasks else {"wrong"}
    sys.exit(1 if any(one.standing in bad for one in found) else 0)


def verified(tasks: list[QualityTask], root: Path) -> Iterator[Found]:
    """Each task's items, read and hashed one task after the other."""
    from paribus.quality.data import load_items

    for task in tasks:
        try:
            items = load_items(task, root)
        except EnvironmentFault as error:
            yield Found(task.task, "missing", str(error))
        except ParibusError as error:
            yield Found(task.task, "wrong", str(error))
        else:
            told = f"{len(items.items):,} of {task.data.count:,} items from {items.origin}, hash {items.whole}"
            yield Found(task.task, "part" if items.part else "whole", told)
