"""Items of a quality task: shipped with Paribus, from `PARIBUS_DATA`, or from the hub at a pinned revision.

The hash is of canonical items, not of files: the fields that the task names, text in NFC, items sorted by id, as
RFC 8785 JSON. Worked examples that stand in the prompts are hashed with the items.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paribus.catalog import QualityTask
from paribus.conditions import EnvironmentFault, UsageError, canonical, inside
from paribus.quality.hub import hub_rows

Item = dict[str, Any]
Source = Literal["shipped", "local", "hub"]

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

    @property
    def hash8(self) -> str:
        """First 8 hex digits of the hash, as names carry them."""
        return self.hash[:8]


def load_items(task: QualityTask, root: Path, limit: int | None = None) -> Items:
    """The items of a task; `limit` takes an even share of each group, the same items on every machine.

    Raises `UsageError` for wrong items (with the expected and the found hash) and `EnvironmentFault` where no source
    can be reached.
    """
    rows, source = _rows(task, root)
    items = _select(task, _unique(task, rows))
    examples = _examples(task, root, source)
    _check_values(task, items, examples)
    found = whole = items_hash(task, items, examples)
    partial = _compare(task, root, items, whole)
    if limit is not None and limit < len(items):
        items = spread(items, limit, task.data.id_field, task.settings.get("group"))
        found, partial = items_hash(task, items, examples), True
    name = f"partial-{found[:8]}" if partial else None
    return Items(task.task, tuple(items), tuple(examples), found, name, source, whole)


def load_planned(task: QualityTask, root: Path, limit: int | None, expected: str | None) -> Items:
    """`load_items` for a plan that names the hash of the items. Raises `UsageError` where they are others."""
    items = load_items(task, root, limit)
    if expected is not None and expected not in (items.hash, items.whole):
        raise UsageError(
            f"{task.task}: these are not the items of the plan: expected hash {expected}, found {items.whole}"
        )
    return items


def available(task: QualityTask, root: Path) -> str | None:
    """Why a task's items can't be had without the network, or null when they can. Reads no items."""
    if task.data.file is not None:
        path = inside(root / "tasks" / "quality", task.data.file)
        return None if path.is_file() else f"there is no file {path}"
    if local_files(task):
        return None
    where = f"{DATA_VARIABLE} has none of {', '.join(task.data.local)}" if task.data.local else "nothing is shipped"
    if os.environ.get(DATA_VARIABLE) is None and task.data.local:
        where = f"{DATA_VARIABLE} is not set"
    if task.data.hub is not None:
        return f"{where}; the items would come from the hub ({task.data.hub})"
    return f"{where}, and the task names no hub repository"


def items_hash(task: QualityTask, items: Sequence[Item], examples: Sequence[Item] = ()) -> str:
    """64 hex digits over the canonical items, and the examples where there are any."""
    rows = [_canonical_item(task, item) for item in _sorted(items, task.data.id_field)]
    if not examples:
        return hashlib.sha256(canonical(rows)).hexdigest()
    shown = [_nfc(example) for example in _sorted(examples, task.data.id_field)]
    return hashlib.sha256(canonical({"examples": shown, "items": rows})).hexdigest()


def item_hash(task: QualityTask, item: Item) -> str:
    """12 hex digits of one item, as the list of known items (`settings.known_file`) carries them."""
    return hashlib.sha256(canonical(_canonical_item(task, item))).hexdigest()[:12]


def item_id(task: QualityTask, item: Item) -> str:
    """An item's id as text."""
    return str(item[task.data.id_field])


def spread(items: Sequence[Item], limit: int, id_field: str, group: str | None) -> list[Item]:
    """`limit` items, one of each group in turn, in the order of a hash of their ids (so the order of files is moot)."""
    groups: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda row: _lot(str(row[id_field]))):
        groups.setdefault(str(item.get(group)) if group else "", []).append(item)
    chosen: list[Item] = []
    turn = 0
    while len(chosen) < min(limit, len(items)):
        for name in sorted(groups):
            if turn < len(groups[name]) and len(chosen) < limit:
                chosen.append(groups[name][turn])
        turn += 1
    return _sorted(chosen, id_field)


def _lot(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _sorted(items: Iterable[Item], id_field: str) -> list[Item]:
    return sorted(items, key=lambda item: str(item.get(id_field)))


def _nfc(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_nfc(part) for part in value]
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", str(key)): _nfc(part) for key, part in value.items()}
    return value


def _canonical_item(task: QualityTask, item: Item) -> Item:
    return {name: _nfc(item.get(name)) for name in task.data.fields}


def _rows(task: QualityTask, root: Path) -> tuple[list[Item], Source]:
    if task.data.file is not None:
        return list(read_rows(inside(root / "tasks" / "quality", task.data.file))), "shipped"
    files = local_files(task)
    if files:
        return [row for path in files for row in _filled(path, list(_tagged(task, path)))], "local"
    if task.data.hub is None:
        raise EnvironmentFault(f"no items for {task.task}: {available(task, root)}")
    return hub_rows(task), "hub"


def local_files(task: QualityTask) -> list[Path]:
    """The files below `PARIBUS_DATA` that hold a task's items; none for a shipped task, or where it isn't set."""
    if task.data.file is not None:
        return []
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return []
    base = Path(folder)
    if not base.is_dir():
        raise UsageError(f"{DATA_VARIABLE} is set to {folder}, which is not a folder")
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


def read_rows(path: Path) -> Iterator[Item]:
    """Rows of a JSON lines file (`.gz` too) or of a `.json` file that holds a list. Errors name file and line."""
    try:
        opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", newline="\n") as file:
            if path.suffix == ".json":
                rows = json.load(file)
                if not isinstance(rows, list):
                    raise UsageError(f"{path} must hold a list of items")
                yield from (_row(path, number, row) for number, row in enumerate(rows, 1))
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _row(path, number, json.loads(line))
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}") from error
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise UsageError(f"can't read the items of {path}: {error}") from error


def _read_object(path: Path) -> Item:
    try:
        return _row(path, 1, json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"can't read {path}: {error}") from error


def _row(path: Path, number: int, row: Any) -> Item:
    if not isinstance(row, dict):
        raise UsageError(f"{path}, item {number}: an item must be an object")
    return row


def _unique(task: QualityTask, rows: list[Item]) -> list[Item]:
    """Every item once. Files may overlap; the same id with other content is refused."""
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
    return _sorted(found.values(), task.data.id_field)


def _select(task: QualityTask, items: list[Item]) -> list[Item]:
    """The task's own choice out of a larger set: a window of contest dates, a number of each category."""
    window = task.settings.get("window")
    if window and len(items) > task.data.count:
        first, last = (str(day) for day in window)
        items = [item for item in items if first <= str(item.get("contest_date", ""))[:10] <= last]
    each = task.settings.get("sample_per_category")
    group = task.settings.get("group")
    if each and group and len(items) > task.data.count:
        seed = task.settings.get("sample_seed", 0)
        chosen: dict[str, list[Item]] = {}
        for item in sorted(items, key=lambda row: _lot(f"{seed}:{item_id(task, row)}")):
            members = chosen.setdefault(str(item.get(group)), [])
            if len(members) < each:
                members.append(item)
        items = _sorted((item for members in chosen.values() for item in members), task.data.id_field)
    return items


def _examples(task: QualityTask, root: Path, source: Source) -> list[Item]:
    """What else the prompts are made of: worked examples (shipped, local, the hub's own split), a dialogue's domain."""
    settings = task.settings
    if settings.get("domain_file"):
        return [_read_object(inside(root / "tasks" / "quality", str(settings["domain_file"])))]
    if settings.get("examples_file"):
        return list(read_rows(inside(root / "tasks" / "quality", str(settings["examples_file"]))))
    if source == "hub" and settings.get("examples_split"):
        return hub_rows(task, split=str(settings["examples_split"]))
    names = settings.get("examples_local") or []
    base = os.environ.get(DATA_VARIABLE)
    paths = [inside(Path(base), str(name)) for name in names] if base else []
    return [row for path in paths if path.is_file() for row in read_rows(path)]


def _check_values(task: QualityTask, items: list[Item], examples: list[Item]) -> None:
    """Raise `UsageError` for a value that has no canonical JSON: 1e400, half a surrogate pair, a huge integer."""
    hashed = [(item, _canonical_item(task, item)) for item in items] + [(each, _nfc(each)) for each in examples]
    for item, value in hashed:
        try:
            canonical(value)
        except (ValueError, RecursionError) as error:
            key = ascii(item.get(task.data.id_field, "?"))
            raise UsageError(f"{task.task}: the item {key} has a value that can't be hashed: {error}") from error


def _compare(task: QualityTask, root: Path, items: list[Item], found: str) -> bool:
    """Whether these items are only a part of the task. Raises `UsageError` when they are not the task's items."""
    expected, count = task.data.items_hash, task.data.count
    _check_known(task, root, items)
    if found == expected or (expected is None and len(items) == count):
        return False
    if len(items) >= count:
        what = f"hash {expected}" if expected and len(items) == count else f"{count} items"
        got = f"hash {found}" if expected and len(items) == count else f"{len(items)} items with hash {found}"
        raise UsageError(f"{task.task}: these are not the task's items: expected {what}, found {got}")
    if task.data.file is not None:
        raise UsageError(f"{task.task}: expected {count} items with hash {expected}, found {len(items)} with {found}")
    return True


def _check_known(task: QualityTask, root: Path, items: list[Item]) -> None:
    """Each item whose hash is known must have it: a changed question in a subset is found too.

    `settings.known_whole` names the groups of which every item is known: an unknown id in one of them is refused.
    """
    name = task.settings.get("known_file")
    if name is None:
        return
    path = inside(root / "tasks" / "quality", str(name))
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"can't read {path}: {error}") from error
    known = dict(line.split() for line in lines if line.strip() and not line.startswith("#"))
    whole = {str(group) for group in task.settings.get("known_whole", [])}
    group = task.settings.get("group")
    for item in items:
        expected, found = known.get(item_id(task, item)), item_hash(task, item)
        if expected is None and group and str(item.get(group)) in whole:
            raise UsageError(
                f"{task.task}: the item {item_id(task, item)!r} is not the task's: all items of {group} "
                f"{item[group]} are known, and none has this id (found hash {found})"
            )
        if expected is not None and expected != found:
            raise UsageError(
                f"{task.task}: the item {item_id(task, item)!r} is not the task's: expected hash {expected}, "
                f"found {found}"
            )
