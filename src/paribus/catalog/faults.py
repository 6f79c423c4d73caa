"""Faults of a validation as a user reads them: the library's own words speak of classes and parsers."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

Loc = list[int | str]
NO_SUCH_KEY = "there is no such key"
_SAID = {
    "missing": "this key is missing",
    "extra_forbidden": NO_SUCH_KEY,
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "keys with their values belong here"),
    "list_type": "a list belongs here",
    "string_type": "text belongs here; a number or a date that is meant as text stands in quotes",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number belongs here"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number belongs here"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false belongs here"),
}
"""By pydantic's types of faults."""
_BEGINNINGS = {
    "Value error, ": "",
    "Input should be ": "this must be ",
    "String should match pattern ": "this must match the pattern ",
    "String should have ": "this must have ",
    "List should have ": "this must have ",
}
_SCALARS = {"bool", "int", "float", "str"}
"""What pydantic adds to the place of a value that is to be any of these: each is tried, and told by itself."""


def told(error: ValidationError) -> list[tuple[Loc, str]]:
    """Every fault of a validation once: the path of keys to it, and what is wrong in words."""
    return list({str(each): each for each in map(_told, error.errors())}.values())


def _told(fault: Any) -> tuple[Loc, str]:
    loc: Loc = [part for part in fault["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
    if len(loc) > 1 and loc[-1] in _SCALARS and fault["type"].endswith("_type"):
        return loc[:-1], "one value belongs here: text, a number, true or false"
    text = _SAID.get(fault["type"], fault["msg"])
    for beginning, ours in _BEGINNINGS.items():
        if text.startswith(beginning):
            return loc, ours + text.removeprefix(beginning)
    return loc, text


def one_sentence(error: Exception) -> str:
    """The first fault of a validation in one sentence, and how many more there are."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    faults = told(error)
    loc, text = faults[0]
    where = ".".join(str(part) for part in loc)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where + ': ' if where else ''}{text}{more}"
