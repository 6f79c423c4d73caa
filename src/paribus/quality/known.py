"""Lists of known items: ids and hashes of a task's items, without a word of their text.

`settings.known_file` names the list; `settings.known_whole` says of which groups (`true`: of the whole task) it holds
every item, so that an id that isn't listed is no item of the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.catalog import QualityTask
from paribus.conditions import UsageError, inside
from paribus.quality.canonical import Item, item_hash, item_id


@dataclass(frozen=True)
class Known:
    """What is known of a task's items. `hashes`: id to the first 12 hex digits of its hash."""

    hashes: Mapping[str, str]
    groups: frozenset[str]
    whole: bool

    def lists(self, group: str | None) -> bool:
        """Whether every item of a group is known."""
        return self.whole or group in self.groups


def read_known(task: QualityTask, root: Path) -> Known:
    """The list of a task's known items; an empty one where it has none."""
    name = task.settings.get("known_file")
    if name is None:
        return Known({}, frozenset(), whole=False)
    path = inside(root / "tasks" / "quality", str(name))
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        hashes = dict(line.split() for line in lines if line.strip() and not line.startswith("#"))
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {path}: {error}") from error
    whole = task.settings.get("known_whole", [])
    groups = frozenset() if whole is True else frozenset(str(group) for group in whole)
    return Known(hashes, groups, whole=whole is True)


def check_known(task: QualityTask, known: Known, items: Sequence[Item]) -> None:
    """Each item whose hash is known must have it: a changed question in a part of the task is found too.

    An unknown id where every item is known is refused. Raises `UsageError` with the expected and the found hash.
    """
    group = task.settings.get("group")
    for item in items:
        name = item_id(task, item)
        expected, found = known.hashes.get(name), item_hash(task, item)
        here = str(item.get(group)) if group else None
        if expected is None and known.lists(here):
            which = f"the {len(known.hashes):,} items" if known.whole else f"all items of {group} {here}"
            raise UsageError(
                f"{task.task}: the item {name!r} is not the task's: {which} are known, and none has this id "
                f"(found hash {found})"
            )
        if expected is not None and expected != found:
            raise UsageError(
                f"{task.task}: the item {name!r} is not the task's: expected hash {expected}, found {found}"
            )
