"""LiveCodeBench: programs that read standard input (or a class with one method), all tests in the sandbox.

`strict` (the headline): the last block of Python in the answer passes every test in a process of its own. `official`:
the benchmark's choice of code, the text between the last two lines with three backticks, graded the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from paribus.catalog import QualityTask
from paribus.conditions import UsageError
from paribus.quality.data import Item, Items
from paribus.quality.sandbox import Limits
from paribus.quality.tasks.base import Grade, visible
from paribus.quality.tasks.grader import Program, Verdict, grade_programs
from paribus.quality.tasks.pickled import read_cases

_FENCE = re.compile(r"^[ \t]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[^\s`]*)[^\n`]*$")
_PYTHON = {"python", "python3", "py", "py3", "pypy", "pypy3"}


class LiveCodeBenchFamily:
    """Programs, right when they pass every test."""

    name = "livecodebench"
    version = "1"
    headline = ("strict", "share of programs that pass every test, averaged over the repeats")
    mark_titles: dict[str, str] = {"official": "the benchmark's own choice of the code in an answer"}

    def __init__(self) -> None:
        self._verdicts: dict[Program, Verdict] = {}

    def prompt(self, item: Item, items: Items, task: QualityTask) -> str:  # noqa: ARG002 (the families' interface)
        """The problem, the frame of the solution, and how to hand it in."""
        starter = str(item.get("starter_code") or "")
        if starter.strip():
            how = f"Complete this class; keep its names:\n```python\n{starter.rstrip()}\n```\n"
        else:
            how = "Write a whole program that reads standard input and prints the output, nothing else.\n"
        return (
            f"Solve this problem in Python.\n\n{item['question_content']}\n\n{how}"
            "Give the whole solution in one block that starts with ```python and ends with ```."
        )

    def grade(self, item: Item, text: str, task: QualityTask) -> Grade:
        """1 when the last block of Python passes every test."""
        code, official = last_code(text), official_code(text)
        if code is None and not official:
            return Grade(0.0, None, {"official": 0.0, "answered": 0.0})
        strict = self._verdict(item, code, task)
        other = strict if official == code else self._verdict(item, official, task)
        words = "no code" if code is None else strict.first_fault or f"passed {strict.passed} of {strict.tests}"
        return Grade(float(strict.right), words, {"official": float(other.right), "answered": float(code is not None)})

    def prepare(
        self, answers: Sequence[tuple[Item, str]], task: QualityTask, progress: Callable[[int, int], None]
    ) -> None:
        """Grade every different program of the answers, one a core."""
        programs: dict[Program, None] = {}
        for item, text in answers:
            for code in (last_code(text), official_code(text)):
                if code and code.strip():
                    programs.setdefault(_program(item, code))
        todo = [program for program in programs if program not in self._verdicts]
        self._verdicts.update(zip(todo, grade_programs(todo, limits_of(task), progress), strict=True))

    def _verdict(self, item: Item, code: str | None, task: QualityTask) -> Verdict:
        if not code or not code.strip():
            return Verdict(0, len(cases_of(item)), "no code")
        program = _program(item, code)
        if program not in self._verdicts:
            self._verdicts[program] = grade_programs([program], limits_of(task))[0]
        return self._verdicts[program]


def limits_of(task: QualityTask) -> Limits:
    """The task's limits: seconds a test, megabytes."""
    time_s = float(task.settings.get("test_seconds", 6.0))
    return Limits(time_s=time_s, memory=int(task.settings.get("memory_mb", 1024)) << 20)


def cases_of(item: Item) -> tuple[Any, ...]:
    """Public and private tests of an item."""
    try:
        return tuple(
            case for name in ("public_test_cases", "private_test_cases") for case in read_cases(str(item[name]))
        )
    except UsageError as error:
        raise UsageError(f"the item {item.get('question_id')!r}: {error}") from error


def _program(item: Item, code: str) -> Program:
    cases = cases_of(item)
    functional = any(case.kind == "functional" for case in cases)
    return Program(code, _function(item) if functional else None, cases)


def _function(item: Item) -> str:
    try:
        metadata = json.loads(str(item.get("metadata") or "{}"))
    except json.JSONDecodeError:
        return ""
    return str(metadata.get("func_name") or "") if isinstance(metadata, dict) else ""


def last_code(text: str) -> str | None:
    """The last closed block of Python; else the last closed block without a language; else a block cut short.

    A block marked as another language (an example's output, say) is not the solution.
    """
    blocks = list(_blocks(visible(text)))
    for wanted in (
        [code for tag, code, closed in blocks if closed and tag in _PYTHON],
        [code for tag, code, closed in blocks if closed and not tag],
        [code for tag, code, closed in blocks if not closed and (tag in _PYTHON or not tag)],
    ):
        if wanted:
            return wanted[-1]
    return None


def _blocks(text: str) -> list[tuple[str, str, bool]]:
    """Fenced blocks in order: language, content, whether it was closed."""
    blocks: list[tuple[str, str, bool]] = []
    fence, tag, lines = "", "", list[str]()
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if not fence and match:
            fence, tag, lines = match.group("fence"), match.group("tag").lower(), []
        elif fence and match and not match.group("tag") and match.group("fence").startswith(fence):
            blocks.append((tag, "\n".join(lines) + "\n", True))
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        blocks.append((tag, "\n".join(lines) + "\n", False))
    return blocks


def official_code(text: str) -> str:
    """What the benchmark takes: the lines between the last two lines that hold three backticks; else nothing."""
    lines = visible(text).split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) + "\n" if len(fences) >= 2 else ""
