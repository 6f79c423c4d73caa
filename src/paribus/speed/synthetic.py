"""Fields of a request that make a load synthetic (PROTOCOL rule 6): the model doesn't write as it would by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_ENDLESS = frozenset({"ignore_eos", "ignore_eos_token"})
_BIASES = frozenset({"logit_bias", "logit_biases", "bad_words", "allowed_token_ids"})
_SCHEMAS = frozenset({"tools", "functions", "response_format", "structured_outputs", "guided_json", "json_schema"})
"""What holds names of the user's own."""


def synthetic_fields(fields: Mapping[str, Any]) -> list[str]:
    """Names of the fields that ignore the end of the text, ask for a least length, favour or ban tokens (such as the
    end's) or pin steps; at any depth.

    A field that is off (false, null, 0) is none.
    """
    return sorted(set(_found(fields)))


def synthetic_words(fields: Mapping[str, Any]) -> str:
    """What makes a load with these fields synthetic; empty for natural text."""
    found = synthetic_fields(fields)
    return f"requests set {', '.join(found)}" if found else ""


def _found(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if name.lower() in _BIASES:
            yield from (name,) if value else ()
        elif isinstance(value, Mapping):
            yield from () if name in _SCHEMAS else _found(value)
        elif value and _pins(name):
            yield name


def _pins(name: str) -> bool:
    words = name.lower().split("_")
    least = words[0] == "min" and words[-1] in ("tokens", "length")
    return name.lower() in _ENDLESS or least or "steps" in words
