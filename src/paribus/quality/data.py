"""Items of a quality task: shipped with Paribus, from `PARIBUS_DATA`, or fetched from the hub beforehand.

Nothing here uses the network: what comes from the hub was put below `build/items/` by `paribus fetch items`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from paribus.catalog import QualityTask
from paribus.conditions import EnvironmentFault, ParibusError, UsageError, inside
from paribus.quality.canonical import (
    Item,
    check_examples,
    check_values,
    in_order,
    item_hash,
    item_id,
    items_hash,
    lot,
    spread,
)
from paribus.quality.canonical import canonical_item as _canonical_item
from paribus.quality.fetched import how_to_fetch, marker_path, read_fetched
from paribus.quality.known import Known, check_known, read_known
from paribus.quality.rows import read_object, read_rows
from paribus.quality.tau2_package import package_folder, package_rows

Source = Literal["shipped", "local", "package", "hub"]

DATA_VARIABLE = "PARIBUS_DATA"


@dataclass(frozen=True)
class Items:
    """What a task asks. `partial` is `partial-<hash8>` for a subset, null for the whole task.

    `items` are sorted by id; `examples` are what else the prompts are made of: worked examples, a dialogue's domain.
    `hash` has 64 hex digits.
    """

    task: str
    items: tuple[Item, ...]
    examples: tuple[Item, ...]
    hash: str
    partial: str | None
    source: Source
    whole: str
    """Hash of all items that the source has; differs from `hash` where a limit took some of them."""
    part: bool
    """Whether the source itself has only a part of the task, or items that nothing vouches for."""
    origin: str
    """Where they came from: `shipped`, `PARIBUS_DATA`, or data sets of the hub with their commits."""

    @property
    def hash8(self) -> str:
        """First 8 hex digits of the hash, as names carry them."""
        return self.hash[:8]

    def limited(self, task: QualityTask, limit: int | None) -> Items:
        """An even share of each group, the same items on every machine."""
        if limit is None or limit >= len(self.items):
            return self
        chosen = spread(self.items, limit, task.data.id_field, task.settings.get("group"))
        found = items_hash(task, chosen, self.examples)
        return Items(
            self.task, tuple(chosen), self.examples, found, f"partial-{found[:8]}", self.source, self.whole, self.part,
            self.origin,
        )  # fmt: skip


def load_items(task: QualityTask, root: Path, limit: int | None = None) -> Items:
    """The items of a task that are at hand; `limit` takes an even share of each group.

    Raises `UsageError` for wrong items (with the expected and the found hash) and `EnvironmentFault` where there are
    none.
    """
    for items in _at_hand(task, root):
        return items.limited(task, limit)
    raise EnvironmentFault(f"no items for {task.task}: {available(task, root)}")


def load_planned(task: QualityTask, root: Path, limit: int | None, expected: str | None) -> Items:
    """`load_items` for a plan; without a hash in it the whole task is meant. Raises `UsageError` for other items."""
    if expected is None:
        items = load_items(task, root, limit)
        if items.part:
            raise UsageError(
                f"{task.task}: the plan means the whole task, and only a part of its {task.data.count:,} items is "
                f"here, or items that no hash vouches for (hash {items.whole}): make the plan again, which names the "
                "part"
            )
        return items
    sources = list(_at_hand(task, root))
    for items in sources:
        if expected == items.whole:
            return items.limited(task, limit)
    raise _others(task, root, "of the plan", expected, [items.whole for items in sources])


def load_asked(task: QualityTask, root: Path, limit: int | None, expected: str) -> Items:
    """The items that were asked, by the hash of just those (after the limit). Raises `UsageError` for others."""
    sources = [items.limited(task, limit) for items in _at_hand(task, root)]
    for items in sources:
        if expected == items.hash:
            return items
    raise _others(task, root, "that were asked", expected, [items.hash for items in sources])


def _others(task: QualityTask, root: Path, whose: str, expected: str, found: list[str]) -> ParibusError:
    if not found:
        return EnvironmentFault(f"no items for {task.task}: {available(task, root)}")
    return UsageError(f"{task.task}: these are not the items {whose}: expected hash {expected}, found {found[0]}")


def available(task: QualityTask, root: Path) -> str | None:
    """Why a task's items aren't at hand, or null when they are. Reads no items."""
    if task.data.file is not None:
        path = inside(root / "tasks" / "quality", task.data.file)
        return None if path.is_file() else f"there is no file {path}"
    harness = task.settings.get("environment")
    if local_files(task) or marker_path(root, task).is_file() or (harness and package_folder(root, task)):
        return None
    where = f"{DATA_VARIABLE} has none of {', '.join(task.data.local)}" if task.data.local else "nothing is shipped"
    if data_folder() is None and task.data.local:
        where = f"{DATA_VARIABLE} is not set"
    if task.data.hub:
        names = ", ".join(source.repository for source in task.data.hub)
        return f"{where}, and those of the hub ({names}) are not here yet: {how_to_fetch(task)}"
    if harness:
        return f"{where}, and its harness, which brings them along, isn't built: run `paribus fetch env {harness}`"
    return f"{where}, and the task names no hub repository"


def _at_hand(task: QualityTask, root: Path) -> Iterator[Items]:
    """All items of each source that is at hand, the one that is meant first."""
    if task.data.file is not None:
        yield _checked(task, root, list(read_rows(inside(root / "tasks" / "quality", task.data.file))), "shipped")
        return
    if files := local_files(task):
        yield _checked(task, root, [row for path in files for row in _filled(path, list(_tagged(task, path)))], "local")
    if task.settings.get("environment") and (rows := package_rows(task, root)) is not None:
        yield _checked(task, root, rows, "package")
    if (fetched := read_fetched(root, task)) is not None:
        check_examples(task, fetched.items, fetched.examples, local=False)
        yield Items(
            task=task.task,
            items=tuple(fetched.items),
            examples=tuple(fetched.examples),
            hash=fetched.hash,
            partial=None,
            source="hub",
            whole=fetched.hash,
            part=False,
            origin=fetched.origin,
        )


def _checked(task: QualityTask, root: Path, rows: list[Item], source: Literal["shipped", "local", "package"]) -> Items:
    """Items out of a source's rows. Raises `UsageError` when they are not the task's."""
    known = read_known(task, root)
    items = select(task, known, unique(task, rows))
    examples = _other_examples(task, root) or _local_examples(task)
    check_values(task, items, examples)
    check_examples(task, items, examples)
    whole = items_hash(task, items, examples)
    check_known(task, known, items)
    part = _compare(task, known, items, whole)
    return Items(
        task=task.task,
        items=tuple(items),
        examples=tuple(examples),
        hash=whole,
        partial=f"partial-{whole[:8]}" if part else None,
        source=source,
        whole=whole,
        part=part,
        origin=DATA_VARIABLE if source == "local" else source,
    )


def data_folder() -> Path | None:
    """The folder that `PARIBUS_DATA` names; None where it isn't set. Raises `UsageError` when there is none."""
    folder = os.environ.get(DATA_VARIABLE, "").strip()
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise UsageError(f"{DATA_VARIABLE} is set to {folder}, which is not a folder")
    return Path(folder)


def local_files(task: QualityTask) -> list[Path]:
    """The files below `PARIBUS_DATA` that hold a task's items; none for a shipped task, or where it isn't set."""
    base = data_folder() if task.data.file is None else None
    if base is None:
        return []
    return [path for path in (inside(base, name) for name in task.data.local) if path.is_file()]


def _filled(path: Path, rows: list[Item]) -> list[Item]:
    if not rows:
        raise UsageError(f"{path} holds no items: put its items back, or take the file away to do without it")
    return rows


def _tagged(task: QualityTask, path: Path) -> Iterator[Item]:
    """Rows of a local file; Tau2's files hold one domain each, which only their names say."""
    for row in read_rows(path):
        if task.family == "tau2" and "domain" not in row:
            domain = path.name.split("_")[0]
            yield {**row, "domain": domain, "id": f"{domain}-{row.get('id')}"}
        else:
            yield row


def unique(task: QualityTask, rows: Sequence[Item]) -> list[Item]:
    """Every item once, by id. Files may overlap; the same id with other content is refused."""
    found: dict[str, Item] = {}
    for row in rows:
        missing = [name for name in [task.data.id_field, *task.data.fields] if name not in row]
        if missing:
            raise UsageError(
                f"{task.task}: the item {row.get(task.data.id_field, '?')!r} has no field {missing[0]!r}; "
                f"items need {', '.join(task.data.fields)}"
            )
        key = item_id(task, row)
        if key in found and _canonical_item(task, found[key]) != _canonical_item(task, row):
            raise UsageError(f"{task.task}: two different items have the id {key!r}")
        found.setdefault(key, row)
    if not found:
        raise UsageError(f"{task.task}: there are no items")
    return in_order(found.values(), task.data.id_field)


def in_window(task: QualityTask, item: Item) -> bool:
    """Whether an item's contest date lies in the task's window; true where the task has none."""
    window = task.settings.get("window")
    if not window:
        return True
    first, last = (str(day) for day in window)
    return first <= str(item.get("contest_date", ""))[:10] <= last


def window_of(task: QualityTask, items: Sequence[Item]) -> str:
    """The months that items come from, in words: the task's window, or a wider one where a part has others too.

    Nothing where the task has no window.
    """
    window = task.settings.get("window")
    if not window:
        return ""
    outside = [str(item.get("contest_date", ""))[:7] for item in items if not in_window(task, item)]
    months = sorted([str(day)[:7] for day in window] + [month for month in outside if month])
    unknown = ", and of unknown date" if "" in outside else ""
    return f"{months[0]} to {months[-1]}{unknown}"


def select(task: QualityTask, known: Known, items: list[Item]) -> list[Item]:
    """The task's own choice out of a larger set: a window of contest dates, the listed items, a number of each kind."""
    if len(items) > task.data.count:
        items = [item for item in items if in_window(task, item)]
    if known.whole and len(items) > task.data.count:
        items = [item for item in items if item_id(task, item) in known.hashes]
    each = task.settings.get("sample_per_category")
    group = task.settings.get("group")
    if each and group and len(items) > task.data.count:
        seed = task.settings.get("sample_seed", 0)
        chosen: dict[str, list[Item]] = {}
        for item in sorted(items, key=lambda row: lot(f"{seed}:{item_id(task, row)}")):
            members = chosen.setdefault(str(item.get(group)), [])
            if len(members) < each:
                members.append(item)
        items = in_order((item for members in chosen.values() for item in members), task.data.id_field)
    return items


def _other_examples(task: QualityTask, root: Path) -> list[Item]:
    """What is shipped beside the items: worked examples, a dialogue's domain."""
    settings = task.settings
    if settings.get("domain_file"):
        return [read_object(inside(root / "tasks" / "quality", str(settings["domain_file"])))]
    if settings.get("examples_file"):
        return list(read_rows(inside(root / "tasks" / "quality", str(settings["examples_file"]))))
    return []


def _local_examples(task: QualityTask) -> list[Item]:
    """Worked examples from below `PARIBUS_DATA`. Raises `UsageError` for a file of them that isn't there."""
    base = data_folder()
    names = [str(name) for name in task.settings.get("examples_local") or []] if base else []
    if base and (lacking := [name for name in names if not inside(base, name).is_file()]):
        raise UsageError(
            f"{task.task}: its prompts show worked examples, and {DATA_VARIABLE} lacks {lacking[0]}: put it beside "
            "the items"
        )
    return [row for name in names if base for row in read_rows(inside(base, name))]


def _compare(task: QualityTask, known: Known, items: list[Item], found: str) -> bool:
    """Whether these items are only a part of the task, or can't be told from others: no hash vouches for them.

    Raises `UsageError` when they are not the task's items.
    """
    expected, count = task.data.items_hash, task.data.count
    if found == expected:
        return False
    if len(items) > count:
        raise UsageError(
            f"{task.task}: these are not the task's items: expected {count} items, found {len(items)} items with "
            f"hash {found}"
        )
    if task.data.file is not None and len(items) < count:
        raise UsageError(f"{task.task}: expected {count} items with hash {expected}, found {len(items)} with {found}")
    if len(items) < count:
        return True
    alone = task.settings.get("known_hash")
    if alone is not None and (own := items_hash(task, items)) != alone:
        raise UsageError(f"{task.task}: these are not the task's items: expected hash {alone}, found hash {own}")
    if expected is not None:
        raise UsageError(f"{task.task}: these are not the task's items: expected hash {expected}, found hash {found}")
    return alone is None and not known.whole


__all__ = [
    "DATA_VARIABLE",
    "Item",
    "Items",
    "available",
    "data_folder",
    "in_window",
    "item_hash",
    "item_id",
    "items_hash",
    "load_asked",
    "load_items",
    "load_planned",
    "local_files",
    "select",
    "spread",
    "unique",
    "window_of",
]
