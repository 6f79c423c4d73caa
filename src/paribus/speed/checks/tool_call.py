"""Checker `tool_call`: the answer makes exactly the right calls, natively or as JSON in its text."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from paribus.catalog import Spec
from paribus.speed.checks.forms import fits
from paribus.speed.checks.json_schema import obeys, safe_schema
from paribus.speed.checks.json_text import json_values, parse_json
from paribus.speed.checks.text import GivenAnswer


class ExpectedCall(Spec):
    """One call: each argument's value, or a form of it (`forms.fits`).

    `optional` arguments may be there with any value.
    """

    name: str
    arguments: dict[str, Any] = {}
    optional: list[str] = []


class ToolCallParameters(Spec):
    """`calls`: all calls that must be made, no other (none: the answer must be words); `ordered`: in this order.

    `schemas`: by a tool's name the JSON Schema that the arguments of its calls must fit.
    """

    calls: list[ExpectedCall] = Field(max_length=40)
    ordered: bool = False
    schemas: dict[str, dict[str, Any]] = {}

    @field_validator("schemas")
    @classmethod
    def _safe(cls, schemas: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {name: safe_schema(schema) for name, schema in schemas.items()}


def check_tool_call(parameters: ToolCallParameters, answer: GivenAnswer) -> bool:
    """The calls made are the expected ones: reported by the engine, else read from the JSON in the text."""
    calls = _native(answer) if answer.tool_calls else _written(answer.text)
    if calls is None or len(calls) != len(parameters.calls):
        return False
    if not calls:
        return any(character.isalpha() for character in answer.text)
    if not all(obeys(arguments, parameters.schemas.get(name, {})) for name, arguments in calls):
        return False
    if parameters.ordered:
        return all(_fits(call, wanted) for call, wanted in zip(calls, parameters.calls, strict=True))
    return _all_matched(calls, list(parameters.calls))


Call = tuple[str, dict[str, Any]]


def _native(answer: GivenAnswer) -> list[Call] | None:
    calls = [_call({"name": c.get("name", ""), "arguments": c.get("arguments", "")}) for c in answer.tool_calls]
    return None if None in calls else [call for call in calls if call]


def _written(text: str) -> list[Call] | None:
    """Calls in the text: JSON objects with a name and arguments, alone, in an array, or under `tool_calls`.

    A list without objects, such as a remark's number `[1]`, belongs to the words.
    """
    calls: list[Call] = []
    for value in json_values(text):
        parts = _flat(value)
        for part in parts if any(isinstance(part, dict) for part in parts) else ():
            call = _call(part)
            if call is None:
                return None
            calls.append(call)
    return calls


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    return value if isinstance(value, list) else [value]


def _call(value: Any) -> Call | None:
    """A call from the forms in use: name/arguments, name/parameters, function: {...}, arguments as text."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = parse_json(arguments) if arguments.strip() else {}
    return (value["name"], arguments) if isinstance(arguments, dict) else None


def _all_matched(calls: list[Call], wanted: list[ExpectedCall]) -> bool:
    """Whether the calls can be paired with the wanted ones in any order: a matching grown by augmenting paths."""
    partner: dict[int, int] = {}

    def place(call: int, tried: set[int]) -> bool:
        for seat, candidate in enumerate(wanted):
            if seat in tried or not _fits(calls[call], candidate):
                continue
            tried.add(seat)
            if seat not in partner or place(partner[seat], tried):
                partner[seat] = call
                return True
        return False

    return all(place(call, set()) for call in range(len(calls)))


def _fits(call: Call, wanted: ExpectedCall) -> bool:
    name, arguments = call
    given = {key: value for key, value in arguments.items() if key not in wanted.optional or key in wanted.arguments}
    if name != wanted.name or given.keys() != wanted.arguments.keys():
        return False
    return all(fits(given[key], form) for key, form in wanted.arguments.items())
