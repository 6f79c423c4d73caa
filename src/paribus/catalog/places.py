"""Where in a YAML file something stands: line numbers for what a check finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel, ValidationError

from paribus.catalog.faults import NO_SUCH_KEY, told
from paribus.catalog.reading import read_document

Loc = Sequence[int | str]


class Places:
    """One file's text and its tree of nodes. Raises `UsageError` with the line for what is no YAML."""

    def __init__(self, path: Path) -> None:
        document = read_document(path)
        self._root, self.data, self._twice = document.root, document.data, document.twice

    def line(self, loc: Loc) -> int:
        """The line (from 1) of the key or entry that a path of keys leads to, or of the last one on the way."""
        node, line = self._root, 1
        for part in loc:
            step = _child(node, part)
            if step is None:
                break
            line, node = step
        return line

    def twice(self) -> Iterator[tuple[int, str]]:
        """Keys that stand twice in one place, with the line of the second: YAML keeps only the last."""
        yield from self._twice


def faults(places: Places, error: ValidationError, kind: type[BaseModel]) -> Iterator[tuple[int, str]]:
    """Every fault of a validation in words, with its line; an unknown key with the keys that there are."""
    for loc, text in told(error):
        where = ".".join(str(part) for part in loc)
        known = f"; here belong: {', '.join(_keys(kind, loc[:-1]))}" if text == NO_SUCH_KEY else ""
        yield places.line(loc), (f"{where}: {text}" if where else text) + known


def _keys(kind: type[BaseModel], loc: Loc) -> list[str]:
    """The keys that the type at a path of keys has; those of the whole file where the path can't be followed."""
    here: object = kind
    for part in loc:
        fields = getattr(here, "model_fields", None)
        here = fields[part].annotation if fields and part in fields else _inside(here)
        here = _model(here) or here
    fields = getattr(here, "model_fields", None) or kind.model_fields
    return sorted(fields)


def _inside(annotation: object) -> object:
    """The type of a list's entries or a dict's values."""
    arguments = getattr(annotation, "__args__", ())
    return arguments[-1] if arguments else annotation


def _model(annotation: object) -> object:
    """The model in `Model | None`."""
    options = getattr(annotation, "__args__", ())
    models = [one for one in options if isinstance(one, type) and issubclass(one, BaseModel)]
    return models[0] if type(None) in options and models else None


def _child(node: yaml.Node | None, part: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark.line + 1, value
    return None
