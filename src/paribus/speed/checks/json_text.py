"""JSON values inside an answer: found, parsed and bounded, whatever stands around them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from paribus.speed.checks.text import one_typing

MAX_VALUES = 4_000
"""A JSON value with more parts than this is no honest answer; comparing it could take long."""
MAX_DEPTH = 60
MAX_FAILURES = 100
"""Places in one answer where JSON seems to begin and doesn't, before the search is given up."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)


def json_values(text: str) -> Iterator[Any]:
    """Objects and arrays in the text, in order, the outermost ones only. Values beyond the bounds are left out."""
    at, failures = 0, 0
    while failures < MAX_FAILURES:
        at = _next_bracket(text, at)
        if at < 0:
            return
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            failures += 1
            at += 1
            continue
        if bounded(value):
            yield value
        at = end


def parse_json(text: str) -> Any:
    """One JSON text, or None when it is none or beyond the bounds."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if bounded(value) else None


def bounded(value: Any) -> bool:
    """Whether a parsed value is within `MAX_DEPTH` and `MAX_VALUES`."""
    seen, level, layer = 0, 0, [value]
    while layer:
        seen, level = seen + len(layer), level + 1
        if seen > MAX_VALUES or level > MAX_DEPTH:
            return False
        layer = [part for whole in layer for part in _parts(whole)]
    return True


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values say the same: text however it is typed (`one_typing`), 3 = 3.0, true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) and isinstance(right, str):
        return one_typing(left) == one_typing(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _next_bracket(text: str, start: int) -> int:
    found = [at for at in (text.find("{", start), text.find("[", start)) if at >= 0]
    return min(found, default=-1)
