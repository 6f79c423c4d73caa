"""The registry of checkers: found by name, parameters validated, one entry point `passes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from paribus.catalog import Check, Spec
from paribus.catalog.faults import one_sentence
from paribus.conditions import UsageError, canonical
from paribus.speed.checks import json_schema, numbers, tool_call, words
from paribus.speed.checks.text import GivenAnswer


@dataclass(frozen=True)
class Checker:
    """One kind of check: its parameters' type and the function that judges; its docstring says what is accepted."""

    parameters: type[Spec]
    judge: Callable[[Any, GivenAnswer], bool]


CHECKERS: Mapping[str, Checker] = {
    "integer": Checker(numbers.IntegerParameters, numbers.check_integer),
    "number": Checker(numbers.NumberParameters, numbers.check_number),
    "short_answer": Checker(words.ShortAnswerParameters, words.check_short_answer),
    "contains_all": Checker(words.ContainsAllParameters, words.check_contains_all),
    "exact_line": Checker(words.ExactLineParameters, words.check_exact_line),
    "json_schema": Checker(json_schema.JsonSchemaParameters, json_schema.check_json_schema),
    "tool_call": Checker(tool_call.ToolCallParameters, tool_call.check_tool_call),
}


def passes(check: Check, text: str, tool_calls: Sequence[Mapping[str, str]] = ()) -> bool:
    """Whether an answer (its visible text, and the tool calls the engine reported) passes a check.

    Whatever the text, the result is True or False. A check that is itself wrong raises `UsageError`.
    """
    checker, parameters = _checker(check)
    answer = GivenAnswer(text, tuple(tool_calls))
    return not answer.too_long and checker.judge(parameters, answer)


def validate(check: Check) -> None:
    """Raise `UsageError`, in one sentence, when a check's kind or parameters are wrong."""
    _checker(check)


def _checker(check: Check) -> tuple[Checker, Spec]:
    try:
        parameters = canonical(check.parameters)
    except ValueError as error:
        raise UsageError(f"the check {check.kind!r}: its parameters are no plain JSON ({error})") from error
    return _ready(check.kind, parameters)


@lru_cache(maxsize=1024)
def _ready(kind: str, parameters: bytes) -> tuple[Checker, Spec]:
    """The checker with its parameters read; kept, because a run judges the same few checks again and again."""
    checker = CHECKERS.get(kind)
    if checker is None:
        raise UsageError(f"there is no check {kind!r}; known: {', '.join(sorted(CHECKERS))}")
    try:
        return checker, checker.parameters.model_validate_json(parameters)
    except ValidationError as error:
        raise UsageError(f"the check {kind!r}: {one_sentence(error)}") from error
