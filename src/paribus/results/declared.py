"""What strangers declare and observe, held against the forms that everything behind relies on, and against the path.

A run that says something of another form, or of another place than the one where it lies, is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from paribus.catalog.declare import part_name
from paribus.conditions import RunPath, SystemName, is_slug
from paribus.results.findings import short

Values = Mapping[str, Any]
LARGEST = 2**31 - 1


def _name(value: Any) -> bool:
    return isinstance(value, str) and is_slug(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _switch(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _settings(value: Any) -> bool:
    return isinstance(value, Mapping)


def _fields(value: Any) -> bool:
    return isinstance(value, (list, Mapping)) and all(isinstance(each, str) for each in value)


Form = tuple[str, Callable[[Any], bool]]
NAME: Form = ("a plain name", _name)
COUNT: Form = ("a whole number", _count)
NUMBER: Form = ("a number from 0 on", _number)
SWITCH: Form = ("true or false", _switch)
TEXT: Form = ("a text", _text)
SETTINGS: Form = ("settings by name", _settings)
FIELDS: Form = ("a list of names", _fields)

DECLARED: dict[str, Form] = {
    **dict.fromkeys(("hardware", "model", "precision", "engine", "decoder", "scenario", "task", "scale"), NAME),
    **dict.fromkeys(("sampling_profile", "prompts", "track"), NAME),
    **dict.fromkeys(("requests_at_once", "cap", "starts", "repeats"), COUNT),
    **dict.fromkeys(("window",), NUMBER),
    **dict.fromkeys(("thinking", "prefix_caching"), SWITCH),
    **dict.fromkeys(("kind", "weights", "engine_build", "acceptance_method", "prompts_hash", "items_hash"), TEXT),
    **dict.fromkeys(("decoder_parameters", "lossy", "launch", "sampling"), SETTINGS),
    **dict.fromkeys(("weights_artifact", "number_types", "model_sampling", "lossy_drafter", "hosted"), SETTINGS),
}
OBSERVED: dict[str, Form] = {"admitted": COUNT, "cached_tokens": NUMBER, "sampling_accepted": FIELDS}
"""Conditions that more is done with than printing and comparing them. Unknown ones may be null, or missing."""


def forms(declared: Values, observed: Values) -> Iterator[str]:
    """Every condition of another form than it must have, in words."""
    for how, values, table in (("declared", declared, DECLARED), ("observed", observed, OBSERVED)):
        for name, (form, holds) in table.items():
            value = values.get(name)
            if value is not None and not holds(value):
                yield f"{name} is {how} {short(value)}, which is not {form}"


def names(declared: Values, path: RunPath) -> Iterator[str]:
    """Every name in a path that says something else than the declared conditions do."""
    name = SystemName.parse(path.system)
    wanted = {
        "hardware": path.hardware,
        "model": name.model,
        "precision": name.precision,
        "engine": name.engine,
        "decoder": name.decoder,
        "thinking": name.think,
    }
    for key, value in wanted.items():
        if declared.get(key) != value:
            yield f"{key} is declared {short(declared.get(key))} and the path says {value!r}"
    if (declared.get("scenario") is None) == (declared.get("task") is None):
        yield "either a scenario or a task must be declared"
    named = {_measure(declared, part=False)} | (
        {_measure(declared, part=True)} if declared.get("items_hash") else set()
    )
    if path.measure not in named:
        words = " or ".join(short(each) for each in sorted(named))
        yield f"the measure is declared {words} and the path says {path.measure!r}"


def _measure(declared: Values, *, part: bool) -> str:
    """The measure's name; a part of a task carries the hash of its items, which is the one declared."""
    name = str(declared.get("scenario") or declared.get("task"))
    name = part_name(name, str(declared["items_hash"])) if part else name
    name += ".greedy" if declared.get("sampling_profile") == "greedy" else ""
    return name + (f".{declared.get('scale')}" if declared.get("scale") != "full" else "")
