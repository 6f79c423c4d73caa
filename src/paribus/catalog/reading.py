"""Reading the catalog's YAML files; every fault becomes one sentence that names the file and the place in it.

Files come from contributors. What YAML can hold and the catalog can't is refused before anything looks at it: aliases
that grow without end, deep nesting, numbers that JSON can't carry exactly, dates and bytes, characters that are no
text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel

from paribus.catalog.faults import one_sentence
from paribus.conditions import UsageError

T = TypeVar("T", bound=BaseModel)
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MOST_BYTES, MOST_NODES, MOST_DEEP = 1_000_000, 100_000, 40
"""The largest file of the catalog has 20 kB, about 1,500 nodes (aliases counted as often as they are used), 10 deep."""
_EXACT = 2**53
"""Whole numbers up to here are the same in JSON (RFC 8785), on which all hashes rest."""


def read_yaml(path: Path, kind: type[T]) -> T:
    """One YAML file as the given type; a `UsageError` with file and place otherwise."""
    document = read_document(path)
    for line, key in document.twice:
        raise UsageError(f"{path}, line {line}: {key} stands twice here")
    try:
        return kind.model_validate(document.data)
    except ValueError as error:
        raise UsageError(f"{path}: {one_sentence(error)}") from error


@dataclass(frozen=True)
class Document:
    """A YAML file: its tree of nodes, its data, and keys that stand twice in one place, with the second's line."""

    root: yaml.Node | None
    data: Any
    twice: list[tuple[int, str]]


def read_document(path: Path) -> Document:
    """A YAML file; a `UsageError` with the line for what is none, or can't be ours."""
    text = _text(path)
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        _measure(path, root)
        keys = list(_twice(root))  # before merged keys (`<<`) are put among them
        data = loader.construct_document(root) if root is not None else None
        for line, what in _strange(root, data):
            raise UsageError(f"{path}, line {line}: {what}")
    except yaml.MarkedYAMLError as error:
        place = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{place}: {' '.join(str(error.problem or 'no YAML').split())}") from error
    except (ValueError, TypeError, yaml.YAMLError) as error:  # a date or number that is none
        raise UsageError(f"{path}: {' '.join(str(error).split())}") from error
    finally:
        loader.dispose()
    return Document(root, data, keys)


def _twice(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    seen: set[int] = set()
    left = [node]
    while left:
        here = left.pop()
        if here is None or id(here) in seen:
            continue
        seen.add(id(here))
        left += _children(here)
        if isinstance(here, yaml.MappingNode):
            keys: set[str] = set()
            for key in (key for key, _ in here.value if isinstance(key, yaml.ScalarNode)):
                if key.value in keys and key.value != "<<":
                    yield key.start_mark.line + 1, key.value
                keys.add(key.value)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            read = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {path}: {error}") from error
    if len(read) > MOST_BYTES:
        raise UsageError(f"{path} has more than {MOST_BYTES / 1e6:g} MB: a file of the catalog has a few kB")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"can't read {path}: {error}") from error


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return []


def _measure(path: Path, root: yaml.Node | None) -> None:
    """Refuse a tree that is too deep, or that its aliases make too large (or endless)."""
    left = [(root, 1)] if root is not None else []
    count = 0
    while left:
        node, depth = left.pop()
        count += 1
        if depth > MOST_DEEP or count > MOST_NODES:
            what = (
                "nested too deep" if depth > MOST_DEEP else "too much, counting its aliases as often as they are used"
            )
            raise UsageError(f"{path}, line {node.start_mark.line + 1}: this is {what}")
        left += [(child, depth + 1) for child in _children(node)]


def _strange(root: yaml.Node | None, data: Any) -> Iterator[tuple[int, str]]:
    """Values that JSON doesn't have, each with its line and what to do."""
    for value, line in _values(root, data, 1):
        if isinstance(value, str):
            if any(not (c.isprintable() or c in "\n\t") for c in value):
                yield line, f"{value!a} has a character that is no text"
        elif value is None or isinstance(value, bool):
            continue
        elif isinstance(value, int):
            if abs(value) > _EXACT:
                yield line, "this number is too large"
        elif isinstance(value, float):
            if not math.isfinite(value):
                yield line, f"{value} is no number"
        else:
            yield line, f"YAML reads this as a {type(value).__name__}: put it in quotes"


def _values(node: yaml.Node | None, data: Any, line: int) -> Iterator[tuple[Any, int]]:
    """Every value and key that isn't a container, with the line of the entry of the outermost list or key it is in."""
    line = node.start_mark.line + 1 if node is not None else line
    if isinstance(data, dict):
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        known = {str(key.value): value for key, value in pairs}
        for key, value in data.items():
            yield key, line
            yield from _values(known.get(str(key)), value, line)
    elif isinstance(data, list):
        entries = node.value if isinstance(node, yaml.SequenceNode) else []
        for number, value in enumerate(data):
            yield from _values(entries[number] if number < len(entries) else None, value, line)
    else:
        yield data, line
