"""LiveCodeBench: programs that read standard input (or a class with one method), all tests in the sandbox.

`strict` (the headline): the last block of Python in the answer passes every test in a process of its own, as any
program would run. A class with one method, which no program runs as it stands, finds the names that the benchmark's own
grader imports: the site that its problem is from has them ready. `official`: the benchmark's own rule: the text between
the last two lines with three backticks, the names that its grader imports ahead of every program, its comparison of
outputs, no look at the exit status, and no limit on memory but the sandbox's (its runner sets none). Its grader's
faults (it replaces standard input by a stand-in, and leaves the expected output where a program can find it) are not
part of the rule.

The time limit of a test counts CPU time and is scaled by what a fixed workload takes on this machine
(`paribus.quality.calibration`); on a busy core a run may take longer on the wall.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from paribus.catalog import QualityTask
from paribus.conditions import UsageError
from paribus.quality.calibration import REFERENCE_S, measured
from paribus.quality.data import Item, Items
from paribus.quality.sandbox import Limits, runs_on
from paribus.quality.summary import Grading
from paribus.quality.tasks.base import Grade, visible
from paribus.quality.tasks.fences import Block, blocks, is_program
from paribus.quality.tasks.grader import Program, Verdict, grade_programs
from paribus.quality.tasks.pickled import PackedCases

RULES = "5"
"""Changes whenever a grade could. 5: an example's data or a call of the solution, in a later block without a language,
takes no solution's place; programs may leave nothing in the kernel, and threads on a busy core get their time."""

OFFICIAL_MEMORY_MB = 4096
"""Megabytes that a program may take by the official rule: what its runner names in a comment; it sets no limit."""

PATIENCE = 4.0
"""How many times its limit a test may take on the wall while its core is busy with something else."""


_SOLUTION = "Solution"
"""The class that problems with starter code ask for, as the site they come from does."""


class LiveCodeBenchFamily:
    """Programs, right when they pass every test."""

    name = "livecodebench"
    headline = ("strict", "share of programs that pass every test, averaged over the repeats")
    mark_titles: dict[str, str] = {
        "official": "the benchmark's own rule: its choice of the code, its imports, its comparison"
    }

    def __init__(self) -> None:
        self._verdicts: dict[Program, Verdict] = {}
        self._seconds = 0.0

    @property
    def version(self) -> str:
        """The rules' version, and what runs the programs: another Python or numpy takes other programs."""
        return f"{RULES}, {runs_on()}"

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
        code, official = last_code(text, _names(item)), official_code(text)
        if code is None and not official:
            return Grade(0.0, None, {"official": 0.0, "answered": 0.0})
        strict = self._verdict(item, code, task)
        # What passes as it stands passes with names imported ahead of it as well; the comparison is made in that run.
        other = strict if official == code and strict.right else self._verdict(item, official, task, official=True)
        words = "no code" if code is None else strict.first_fault or f"passed {strict.passed} of {strict.tests}"
        return Grade(
            float(strict.right), words, {"official": float(other.officially_right), "answered": float(code is not None)}
        )

    def prepare(
        self, answers: Sequence[tuple[Item, str]], task: QualityTask, progress: Callable[[int, int], None]
    ) -> None:
        """Grade every different program of the answers, one a core: as it stands, then by the official rule.

        What was graded before is forgotten: it belongs to another run.
        """
        self._verdicts.clear()
        strict: list[Program] = []
        taken: list[Program] = []
        for item, text in answers:  # both of an item at once: its tests are unpacked for both
            if (code := last_code(text, _names(item))) and code.strip():
                strict.append(_program(item, code))
            if (code := official_code(text)).strip():
                taken.append(_program(item, code))
        self._grade_all(strict, task, progress)
        right = {program for program in strict if self._verdicts[program].right}
        self._grade_all([replace(one, official=True) for one in taken if one not in right], task, progress)

    @property
    def grading(self) -> Grading | None:
        """How the programs of this run were graded; null before the first."""
        if not self._verdicts:
            return None
        speed = measured()
        return Grading(
            workload_s=round(speed.seconds, 6),
            reference_s=REFERENCE_S,
            factor=speed.factor,
            test_seconds=self._seconds,
            cores=speed.cores,
            starved=sum(verdict.starved for verdict in self._verdicts.values()),
            interpreter=runs_on(),
        )

    def _grade_all(self, programs: Iterable[Program], task: QualityTask, progress: Callable[[int, int], None]) -> None:
        """Grade what isn't yet, in the order of the items: programs with the same tests follow each other."""
        fresh = [one for one in dict.fromkeys(programs) if one not in self._verdicts]
        for official in (False, True):
            todo = [one for one in fresh if one.official == official]
            if todo:
                self._seconds = seconds_of(task)
                limits = limits_of(task, official=official)
                self._verdicts.update(zip(todo, grade_programs(todo, limits, progress), strict=True))

    def _verdict(self, item: Item, code: str | None, task: QualityTask, *, official: bool = False) -> Verdict:
        if not code or not code.strip():
            return Verdict(0, len(cases_of(item)), "no code")
        program = replace(_program(item, code), official=official)
        self._grade_all([program], task, lambda _done, _of: None)
        return self._verdicts[program]


def seconds_of(task: QualityTask) -> float:
    """The rule's limit of one test, in seconds (upstream's default: 6)."""
    return float(task.settings.get("test_seconds", 6.0))


def limits_of(task: QualityTask, *, official: bool = False) -> Limits:
    """The limits of one test on this machine: the rule's seconds times this machine's factor, megabytes."""
    memory = OFFICIAL_MEMORY_MB if official else int(task.settings.get("memory_mb", 1024))
    return Limits(
        time_s=seconds_of(task) * measured().factor,
        memory=memory << 20,
        patience=PATIENCE,
    )


def cases_of(item: Item) -> PackedCases:
    """Public and private tests of an item. Raises `UsageError` where they can't be read."""
    cases = PackedCases(str(item["public_test_cases"]), str(item["private_test_cases"]))
    try:
        cases.unpacked()
    except UsageError as error:
        raise UsageError(f"the item {item.get('question_id')!r}: {error}") from error
    return cases


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


def _names(item: Item) -> frozenset[str]:
    """What a solution has to define, one of them: nothing where it is a whole program."""
    starter = str(item.get("starter_code") or "")
    return frozenset({_SOLUTION, _function(item)}) if starter.strip() else frozenset()


def last_code(text: str, names: Collection[str] = ()) -> str | None:
    """The last block of Python that was closed, else one cut short, else the same of blocks without a language.

    A block without a language behind a closed one of Python takes its place when it is a program, too; where the
    problem asks for a class or a function (`names`), when it defines one. A block marked as another language (an
    example's output, say) is not the solution, and a blank one is none.
    """
    found = [block for block in blocks(visible(text)) if block.code.strip()]
    for wanted in (
        [block for block in found if block.python and block.closed],
        [block for block in found if block.python],
        [block for block in found if not block.tag and block.closed],
        [block for block in found if not block.tag],
    ):
        if wanted:
            return _last_program(wanted[-1], found, names).code
    return None


def _last_program(chosen: Block, found: Sequence[Block], names: Collection[str]) -> Block:
    """The last closed block without a language behind the chosen one that is a program, else the chosen one."""
    later = (one for one in reversed(found) if one.begin > chosen.begin and one.closed and not one.tag)
    return next((one for one in later if is_program(one.code, names)), chosen)


def official_code(text: str) -> str:
    """What the benchmark takes: the lines between the last two lines that hold three backticks; else nothing."""
    lines = visible(text).split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[fences[-2] + 1 : fences[-1]]) + "\n" if len(fences) >= 2 else ""
