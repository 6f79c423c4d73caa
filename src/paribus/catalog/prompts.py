"""Prompts: JSON lines with `id`, `messages` or `prompt`, optional `max_tokens`, `check`. Unknown keys are refused."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from paribus.catalog.faults import one_sentence
from paribus.catalog.specs import Spec
from paribus.conditions import UsageError, hash12


class Check(Spec):
    """How an answer is verified: the checker's name (see `paribus.speed.checks`) and its parameters."""

    kind: str
    parameters: dict[str, Any] = {}


class PromptLine(Spec):
    """One prompt as any user may write it."""

    id: str = Field(min_length=1, max_length=200)
    messages: list[dict[str, Any]] | None = None
    prompt: str | None = None
    tools: list[dict[str, Any]] | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    check: Check | None = None

    @model_validator(mode="after")
    def _one_text(self) -> PromptLine:
        if (self.messages is None) == (self.prompt is None):
            raise ValueError("give either messages or prompt")
        return self


class SetPrompt(PromptLine):
    """One prompt of a set of ours: its kind of text, length and split (by hash of the id, never by hand)."""

    kind: str
    length: Literal["short", "long"]
    split: Literal["measured", "tuning"]
    language: str = "en"


def prompts_hash(prompts: Iterable[PromptLine]) -> str:
    """12 hex digits over the canonical prompts, sorted by id."""
    return hash12(sorted((p.model_dump(exclude_none=True, mode="json") for p in prompts), key=lambda p: str(p["id"])))


def read_prompts(path: Path) -> list[PromptLine]:
    """Prompts of a user's file. Errors name the file and the line."""
    return [_line(PromptLine, path, number, text) for number, text in _lines(path)]


def read_prompt_set(path: Path) -> list[SetPrompt]:
    """Prompts of a set of ours, with kind, length and split."""
    return [_line(SetPrompt, path, number, text) for number, text in _lines(path)]


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read the prompts {path}: {error}") from error
    # Split at newlines only: U+2028 and its like are legal inside a JSON string.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise UsageError(f"{path} holds no prompts")
    return lines


P = TypeVar("P", bound=PromptLine)


def _line(kind: type[P], path: Path, number: int, text: str) -> P:
    try:
        return kind.model_validate(json.loads(text))
    except (ValidationError, json.JSONDecodeError) as error:
        raise UsageError(f"{path}, line {number}: {one_sentence(error)}") from error
