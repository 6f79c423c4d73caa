"""Checker `json_schema`: the answer holds one JSON value that fits a schema and says what it should."""

from __future__ import annotations

from typing import Any

import jsonschema
from pydantic import Field, field_validator

from paribus.catalog import Spec
from paribus.speed.checks.forms import fits
from paribus.speed.checks.json_text import json_values
from paribus.speed.checks.text import GivenAnswer


class JsonSchemaParameters(Spec):
    """`json_schema`: a JSON Schema (2020-12; no regular expressions, no references to other documents).

    `expect`: JSON pointers (`/items/0/name`) to the values that must be there, each a value or a form (`forms.fits`).
    """

    json_schema: dict[str, Any]
    expect: dict[str, Any] = Field(default={}, max_length=60)

    @field_validator("json_schema")
    @classmethod
    def _safe(cls, schema: dict[str, Any]) -> dict[str, Any]:
        return safe_schema(schema)


def check_json_schema(parameters: JsonSchemaParameters, answer: GivenAnswer) -> bool:
    """The last JSON value of the schema's type fits the schema and says what it should; prose may stand around it."""
    wanted = list if parameters.json_schema.get("type") == "array" else dict
    values = [value for value in json_values(answer.text) if isinstance(value, wanted)]
    if not values:
        return False
    value = values[-1]
    return obeys(value, parameters.json_schema) and all(
        _holds(value, pointer, wanted) for pointer, wanted in parameters.expect.items()
    )


def _holds(value: Any, pointer: str, wanted: Any) -> bool:
    found, there = resolve(value, pointer)
    return there and fits(found, wanted)


def safe_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, when it is a JSON Schema that can neither hang nor reach out; `ValueError` when it isn't."""
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"not a JSON Schema: {error.message[:200]}") from error
    _refuse_unsafe(schema)
    return schema


def obeys(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a JSON value fits a schema; values that the validation can't bear don't."""
    try:
        return jsonschema.Draft202012Validator(schema).is_valid(value)
    except (RecursionError, ArithmeticError, ValueError):
        return False


def resolve(value: Any, pointer: str) -> tuple[Any, bool]:
    """The part of a JSON value at a JSON pointer (RFC 6901), and whether it is there."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) < 6 and int(name) < len(value):
            value = value[int(name)]
        else:
            return None, False
    return value, True


def _refuse_unsafe(schema: Any) -> None:
    """Refuse what could hang or reach out: regular expressions and references outside the schema."""
    if isinstance(schema, list):
        for part in schema:
            _refuse_unsafe(part)
    if not isinstance(schema, dict):
        return
    for name, part in schema.items():
        if (name == "pattern" and isinstance(part, str)) or name == "patternProperties":
            raise ValueError(f"{name} is not allowed in a check's schema: use enum, format or expect")
        if name in {"$ref", "$dynamicRef"} and isinstance(part, str) and not part.startswith("#"):
            raise ValueError(f"{name} {part!r} leaves the schema: only references that begin with # are allowed")
        _refuse_unsafe(part)
