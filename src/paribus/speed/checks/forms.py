"""Forms of JSON values: what a check asks of a part of an answer, where more than one value is right."""

from __future__ import annotations

from typing import Any

from paribus.speed.checks.json_text import same
from paribus.speed.checks.words import Readings

_ARGUMENT = {"any_of": list, "text": int, "length": int, "contains": list}


def fits(value: Any, form: Any) -> bool:
    """Whether a JSON value has a form; forms may stand at any depth, every other value means itself.

    `{"any_of": [...]}`: one of these forms; `{"text": n}`: any text of at least n characters; `{"length": n}`: a list,
    object or text of n parts; `{"contains": [...]}`: a text in which all of these words occur (a list inside: one of
    its forms). Forms may stand together in one object.
    """
    if isinstance(form, dict):
        if _is_form(form):
            return all(_told(value, kind, wanted) for kind, wanted in form.items())
        return (
            isinstance(value, dict)
            and value.keys() == form.keys()
            and all(fits(value[name], part) for name, part in form.items())
        )
    if isinstance(form, list):
        return (
            isinstance(value, list)
            and len(value) == len(form)
            and all(fits(one, part) for one, part in zip(value, form, strict=True))
        )
    return same(value, form)


def _is_form(form: dict[str, Any]) -> bool:
    """Whether it is one form or more, and no object of the answer that happens to have a member of such a name."""
    return bool(form) and all(type(wanted) is _ARGUMENT.get(kind) for kind, wanted in form.items())


def _told(value: Any, kind: str, wanted: Any) -> bool:
    if kind == "any_of":
        return any(fits(value, one) for one in wanted)
    if kind == "text":
        return isinstance(value, str) and len(value.strip()) >= wanted
    if kind == "length":
        return isinstance(value, list | dict | str) and len(value) == wanted
    return isinstance(value, str) and _holds_all(Readings.of(value), wanted)


def _holds_all(text: Readings, words: list[Any]) -> bool:
    return all(text.hold([word] if isinstance(word, str) else word) for word in words)
