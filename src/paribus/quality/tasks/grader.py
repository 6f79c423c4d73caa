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
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from paribus.conditions import EnvironmentFault
from paribus.quality.calibration import usable_cores
from paribus.quality.sandbox import Box, Limits, Ran, opened
from paribus.quality.tasks.pickled import PackedCases, TestCase


@dataclass(frozen=True)
class Verdict:
    """What a program did on its tests; it is right when it passed all of them."""

    passed: int
    tests: int
    first_fault: str | None
    starved: int = 0
    """Tests that got more of the wall clock, because their core was busy."""
    exact: bool = True
    """Whether every output that passed is the expected one by the benchmark's own comparison too."""

    @property
    def right(self) -> bool:
        """Whether every test passed (a program without tests is not right)."""
        return self.tests > 0 and self.passed == self.tests

    @property
    def officially_right(self) -> bool:
        """Whether the benchmark's own comparison passes every test."""
        return self.right and self.exact


@dataclass(frozen=True)
class Program:
    """One program to grade. `call`: the method to call where tests are functional.

    `official`: the benchmark's own rule: the names that its grader imports, its comparison, any exit status.
    """

    code: str
    call: str | None
    cases: tuple[TestCase, ...] | PackedCases
    """Packed ones are unpacked while a program runs only."""
    official: bool = False


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
    def box(self, *, new: bool = False) -> Iterator[Box]:
        """A sandbox to oneself: one that is free, else (or where asked for) a new one."""
        stack, box = (None if new else self._taken()) or self._new()
        try:
            yield box
        finally:
            if box.fresh:
                self._free.append((stack, box))
            else:
                stack.close()

    def _taken(self) -> tuple[ExitStack, Box] | None:
        # One step: between looking whether a sandbox is free and taking it another thread may take it.
        try:
            return self._free.pop()
        except IndexError:
            return None

    def _new(self) -> tuple[ExitStack, Box]:
        stack = ExitStack()
        return stack, stack.enter_context(opened(self._limits))

    def __enter__(self) -> Benches:
        return self

    def __exit__(self, *_: object) -> None:
        while self._free:
            self._free.pop()[0].close()


def _grade(program: Program, benches: Benches) -> Verdict:
    program = replace(program, cases=tuple(program.cases))
    if not program.cases:
        return Verdict(0, 0, "no tests")
    if program.call is not None and not program.call.isidentifier():
        return Verdict(0, len(program.cases), "no function to call")
    verdict = _run(program, benches)
    # A sandbox that went down may have been taken down by this machine; one that does so again was by its program.
    return _run(program, benches, new=True) if verdict.first_fault == _lost(verdict.passed + 1) else verdict


def _run(program: Program, benches: Benches, *, new: bool = False) -> Verdict:
    for attempt in range(3):
        try:
            with benches.box(new=new) as box:
                box.load(program.code, program.call, official=program.official)
                return _verdict(program, (box.run(case.stdin.encode()) for case in program.cases))
        except EnvironmentFault:
            # Forking can fail for a moment on a full machine; a sandbox that never starts is no wrong answer.
            if attempt == 2:
                raise
    raise AssertionError("unreachable")


def _lost(number: int) -> str:
    return f"test {number}: lost"


def _verdict(program: Program, runs: Iterable[Ran]) -> Verdict:
    cases = program.cases
    passed = starved = 0
    exact = True
    for number, (case, ran) in enumerate(zip(cases, runs, strict=True), 1):
        starved += ran.starved
        if ran.status != "ok":
            fault = _lost(number) if ran.status == "lost" else f"test {number}: {ran.status}"
            return Verdict(passed, len(cases), fault, starved, exact)
        output = ran.output.decode("utf-8", "replace")
        same = officially_matches(case, output)
        if not (same if program.official else matches(case, output)):
            return Verdict(passed, len(cases), f"test {number}: wrong output", starved, exact)
        exact = exact and same
        passed += 1
    return Verdict(passed, len(cases), None, starved, exact)


def matches(case: TestCase, output: str) -> bool:
    """Whether an output is the expected one by the strict rule: as JSON for a function, else line by line."""
    if case.kind == "functional":
        return _same_value(case.expected, output.partition("\n")[0])
    return same_lines(case.expected, output)


def officially_matches(case: TestCase, output: str) -> bool:
    """Whether an output is the expected one by the benchmark's own comparison (`testing_util.py` of its runner).

    A function's result is compared by Python's `==` (so `True` is 1, and 0.1 + 0.2 isn't 0.3); a line of a program's
    output as text, or else as decimal numbers throughout.
    """
    if case.kind == "functional":
        result, _, exact = output.partition("\n")
        try:
            return exact.strip() == "true" and bool(json.loads(result) == json.loads(case.expected))
        except (RecursionError, ValueError):
            return False
    left, right = _lines(case.expected), _lines(output)
    return len(left) == len(right) and all(map(_officially_same_line, left, right))


def _officially_same_line(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        return [Decimal(word) for word in left.split()] == [Decimal(word) for word in right.split()]
    except InvalidOperation:
        return False


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
    """Equal JSON values. A true is no 1; floats compare to 1e-9: the order of a sum is no fault of a solution."""
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
