"""The strict grader of programs: every test in the sandbox, every output compared here, outside.

Upstream's graders run a model's program inside their own process, replace its standard input by a stand-in, and hold
the expected output where the program can find it. Here each test is a process with a real standard input.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from paribus.conditions import EnvironmentFault
from paribus.quality.calibration import usable_cores
from paribus.quality.sandbox import Box, Limits, Ran, opened
from paribus.quality.tasks.pickled import TestCase


@dataclass(frozen=True)
class Verdict:
    """What a program did on its tests; it is right when it passed all of them."""

    passed: int
    tests: int
    first_fault: str | None
    starved: int = 0
    """Tests that got more of the wall clock, because their core was busy."""

    @property
    def right(self) -> bool:
        """Whether every test passed (a program without tests is not right)."""
        return self.tests > 0 and self.passed == self.tests


@dataclass(frozen=True)
class Program:
    """One program to grade. `call`: the method to call where tests are functional.

    `names`: run it with the names that the benchmark's own grader imports for it (the official rule).
    """

    code: str
    call: str | None
    cases: tuple[TestCase, ...]
    names: bool = False


def grade_programs(
    programs: Sequence[Program], limits: Limits, progress: Callable[[int, int], None] | None = None
) -> list[Verdict]:
    """Grade programs side by side, one a core."""
    verdicts: list[Verdict] = []
    with Benches(limits) as benches, ThreadPoolExecutor(max_workers=usable_cores()) as pool:
        for verdict in pool.map(lambda program: _grade(program, benches), programs):
            verdicts.append(verdict)
            if progress is not None:
                progress(len(verdicts), len(programs))
    return verdicts


def grade_program(program: Program, limits: Limits) -> Verdict:
    """Run all tests until one fails. Raises `EnvironmentFault` when the sandbox itself can't be started."""
    with Benches(limits) as benches:
        return _grade(program, benches)


class Benches:
    """Sandboxes that serve one program after the other, as long as programs leave them clean. A context manager."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free: list[tuple[ExitStack, Box]] = []

    @contextmanager
    def box(self) -> Iterator[Box]:
        """A sandbox to oneself: one that is free, else a new one."""
        # Lists are safe to share between threads: append and pop are single steps.
        stack, box = self._free.pop() if self._free else self._new()
        try:
            yield box
        finally:
            if box.fresh:
                self._free.append((stack, box))
            else:
                stack.close()

    def _new(self) -> tuple[ExitStack, Box]:
        stack = ExitStack()
        return stack, stack.enter_context(opened(self._limits))

    def __enter__(self) -> Benches:
        return self

    def __exit__(self, *_: object) -> None:
        while self._free:
            self._free.pop()[0].close()


def _grade(program: Program, benches: Benches) -> Verdict:
    if not program.cases:
        return Verdict(0, 0, "no tests")
    if program.call is not None and not program.call.isidentifier():
        return Verdict(0, len(program.cases), "no function to call")
    for attempt in range(3):
        try:
            with benches.box() as box:
                box.load(program.code, program.call, names=program.names)
                return _verdict(program.cases, (box.run(case.stdin.encode()) for case in program.cases))
        except EnvironmentFault:
            # Forking can fail for a moment on a full machine; a sandbox that never starts is no wrong answer.
            if attempt == 2:
                raise
    raise AssertionError("unreachable")


def _verdict(cases: Sequence[TestCase], runs: Iterable[Ran]) -> Verdict:
    passed = starved = 0
    for number, (case, ran) in enumerate(zip(cases, runs, strict=True), 1):
        starved += ran.starved
        if ran.status != "ok":
            return Verdict(passed, len(cases), f"test {number}: {ran.status}", starved)
        if not matches(case, ran.output.decode("utf-8", "replace")):
            return Verdict(passed, len(cases), f"test {number}: wrong output", starved)
        passed += 1
    return Verdict(passed, len(cases), None, starved)


def matches(case: TestCase, output: str) -> bool:
    """Whether an output is the expected one: as JSON for a function, else line by line."""
    return _same_value(case.expected, output) if case.kind == "functional" else same_lines(case.expected, output)


def same_lines(expected: str, output: str) -> bool:
    """Line by line, blanks at the ends aside: equal as text, or equal as exact decimal numbers, token by token.

    `1.50` equals `1.5`, and `1e3` equals `1000`; `1.4999` equals neither (the benchmark's tests state exact outputs).
    """
    left, right = _lines(expected), _lines(output)
    return len(left) == len(right) and all(map(_same_line, left, right))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(left: str, right: str) -> bool:
    if left == right:
        return True
    first, second = left.split(), right.split()
    return len(first) == len(second) and all(map(_same_token, first, second))


def _same_token(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        first, second = Decimal(left), Decimal(right)
    except InvalidOperation:
        return False
    return first.is_finite() and second.is_finite() and first == second


def _same_value(expected: str, output: str) -> bool:
    try:
        left, right = json.loads(expected), json.loads(output)
    except (json.JSONDecodeError, RecursionError, ValueError):
        return expected.strip() == output.strip()
    return _equal(left, right)


def _equal(left: Any, right: Any) -> bool:
    """Equal JSON values. A true is no 1; floats compare to 1e-9, as JSON keeps no more of them."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        return numbers and math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    return type(left) is type(right) and bool(left == right)
