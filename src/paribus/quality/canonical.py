"""Canonical items and their hashes, and the even share of them that a limit takes. Pure functions.

The hash is of canonical items, not of files: the fields that the task names, text in NFC, items sorted by id, as
RFC 8785 JSON. Worked examples that stand in the prompts are hashed with the items.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from paribus.catalog import QualityTask
from paribus.conditions import UsageError, canonical

Item = dict[str, Any]


def items_hash(task: QualityTask, items: Sequence[Item], examples: Sequence[Item] = ()) -> str:
    """64 hex digits over the canonical items, and the examples where there are any.

    The canonical JSON of a list is its elements' with commas between: it is hashed piece by piece, as the tests of a
    code task alone are gigabytes.
    """
    digest = hashlib.sha256()
    if examples:
        digest.update(b'{"examples":')
        _add_list(digest, (nfc(example) for example in in_order(examples, task.data.id_field)))
        digest.update(b',"items":')
    _add_list(digest, (canonical_item(task, item) for item in in_order(items, task.data.id_field)))
    if examples:
        digest.update(b"}")
    return digest.hexdigest()


def examples_hash(task: QualityTask, examples: Sequence[Item]) -> str:
    """64 hex digits over the worked examples alone."""
    digest = hashlib.sha256()
    _add_list(digest, (nfc(example) for example in in_order(examples, task.data.id_field)))
    return digest.hexdigest()


def check_examples(task: QualityTask, items: Sequence[Item], examples: Sequence[Item], *, local: bool = True) -> None:
    """Worked examples make the prompts: they are the task's own, and each item's group has `settings.shots` of them.

    `settings.examples_hash` names those of `PARIBUS_DATA` (not `local`: a pinned commit of the hub names its own).
    Raises `UsageError` for others and for too few.
    """
    shots, group = int(task.settings.get("shots") or 0), task.settings.get("group")
    if not shots or not group:
        return
    counts = Counter(str(example.get(group)) for example in examples)
    for name in sorted({str(item.get(group)) for item in items}):
        if counts[name] < shots:
            raise UsageError(
                f"{task.task}: its prompts show {shots} worked examples of each {group}, and there are "
                f"{counts[name]} of {name!r}"
            )
    expected = task.settings.get("examples_hash")
    if local and expected is not None and (found := examples_hash(task, examples)) != expected:
        raise UsageError(f"{task.task}: these are not its worked examples: expected hash {expected}, found {found}")


def _add_list(digest: Any, values: Iterable[Any]) -> None:
    for number, value in enumerate(values):
        digest.update(b"," if number else b"[")
        digest.update(canonical(value))
    digest.update(b"]")


def item_hash(task: QualityTask, item: Item) -> str:
    """12 hex digits of one item, as the list of known items (`settings.known_file`) carries them."""
    return hashlib.sha256(canonical(canonical_item(task, item))).hexdigest()[:12]


def item_id(task: QualityTask, item: Item) -> str:
    """An item's id as text."""
    return str(item[task.data.id_field])


def spread(items: Sequence[Item], limit: int, id_field: str, group: str | None) -> list[Item]:
    """`limit` items, one of each group in turn, in the order of a hash of their ids (so the order of files is moot)."""
    groups: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda row: lot(str(row[id_field]))):
        groups.setdefault(str(item.get(group)) if group else "", []).append(item)
    chosen: list[Item] = []
    turn = 0
    while len(chosen) < min(limit, len(items)):
        for name in sorted(groups):
            if turn < len(groups[name]) and len(chosen) < limit:
                chosen.append(groups[name][turn])
        turn += 1
    return in_order(chosen, id_field)


def lot(text: str) -> str:
    """A text's place in an order that nobody chose."""
    return hashlib.sha256(text.encode()).hexdigest()


def in_order(items: Iterable[Item], id_field: str) -> list[Item]:
    """Items by id."""
    return sorted(items, key=lambda item: str(item.get(id_field)))


def nfc(value: Any) -> Any:
    """A JSON value with all its text in NFC."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [nfc(part) for part in value]
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", str(key)): nfc(part) for key, part in value.items()}
    return value


def canonical_item(task: QualityTask, item: Item) -> Item:
    """The fields of an item that are hashed."""
    return {name: nfc(item.get(name)) for name in task.data.fields}


def check_values(task: QualityTask, items: Sequence[Item], examples: Sequence[Item]) -> None:
    """Raise `UsageError` for a value that has no canonical JSON: 1e400, half a surrogate pair, a huge integer."""
    for item, value in _hashed(task, items, examples):
        try:
            canonical(value)
        except (ValueError, RecursionError) as error:
            key = ascii(item.get(task.data.id_field, "?"))
            raise UsageError(f"{task.task}: the item {key} has a value that can't be hashed: {error}") from error


def _hashed(task: QualityTask, items: Sequence[Item], examples: Sequence[Item]) -> Iterable[tuple[Item, Any]]:
    for item in items:
        yield item, canonical_item(task, item)
    for example in examples:
        yield example, nfc(example)
