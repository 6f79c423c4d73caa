"""What a check found: one finding a claim that was looked at. The table of a check counts them by subject."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from paribus.conditions import ParibusError, one_line

Subject = Literal[
    "files", "conditions", "requests", "summary", "identities", "scores", "race", "lossless", "log", "catalog"
]
SUBJECTS: dict[Subject, str] = {
    "files": "every file is there, is the one that the manifest lists, and nothing else is",
    "conditions": "declared conditions give the hashes and the path",
    "requests": "the rows are made again from the raw bytes; every prompt came in its turn",
    "summary": "every number is made again from the rows",
    "identities": "numbers that can't be otherwise",
    "scores": "the scores are made again from the answers",
    "race": "the verdict is made again from the candidates' runs",
    "lossless": "the gate's verdict is made again from the answers' hashes",
    "log": "the run's summary and chained log are made again from its starts",
    "catalog": "files of the catalog",
}
"""What a check looks at, in the order of its table."""

Verdict = Literal["holds", "fails", "warning", "not checked"]
TOLERANCE = 1e-9
MOST = 5
"""Differences named one by one; the rest is counted."""


@dataclass(frozen=True)
class Finding:
    """One claim: what was looked at, where, whether it holds, and what is wrong if it doesn't."""

    subject: Subject
    where: str
    verdict: Verdict
    text: str = ""


@dataclass
class Report:
    """Findings as they come."""

    findings: list[Finding] = field(default_factory=list)

    def say(self, subject: Subject, where: str, verdict: Verdict, text: str = "") -> None:
        """Add one finding. Its text may quote what a stranger wrote, and stays one line."""
        self.findings.append(Finding(subject, one_line(where), verdict, one_line(text)))

    def expect(self, subject: Subject, where: str, right: bool, text: str) -> bool:
        """Add a claim that holds, or else fails with `text`."""
        self.say(subject, where, "holds" if right else "fails", "" if right else text)
        return right

    def same(self, subject: Subject, where: str, stored: Any, made: Any) -> bool:
        """Compare what is stored with what was made again; every difference is named (the first few)."""
        found = list(unequal(stored, made))
        for number, text in enumerate(found[:MOST], 1):
            more = f" (and {len(found) - MOST} more)" if number == MOST and len(found) > MOST else ""
            self.say(subject, where, "fails", text + more)
        if not found:
            self.say(subject, where, "holds")
        return not found

    @contextmanager
    def looking(self, subject: Subject, where: str) -> Iterator[None]:
        """Turn what makes looking impossible (a broken file) into a finding.

        Strangers' files may break any line of code that reads them; that must not end the check of all others.
        """
        try:
            yield
        except ParibusError as error:
            self.say(subject, where, "fails", str(error))
        except Exception as error:
            said = " ".join(str(error).split())[:200]
            self.say(subject, where, "fails", f"looking at it failed ({type(error).__name__}: {said})")

    def count(self, verdict: Verdict, subject: Subject | None = None) -> int:
        """How many findings there are of one verdict."""
        return sum(f.verdict == verdict and subject in (None, f.subject) for f in self.findings)

    @property
    def failed(self) -> bool:
        """Whether anything doesn't hold."""
        return self.count("fails") > 0


def unequal(stored: Any, made: Any, path: str = "") -> Iterator[str]:
    """Every place where two JSON values differ, in words. Numbers may differ by rounding (1e-9 of their size)."""
    if isinstance(stored, Mapping) and isinstance(made, Mapping):
        for key in dict.fromkeys([*stored, *made]):
            place = f"{path}.{key}" if path else str(key)
            if key not in stored or key not in made:
                yield f"{place} is {'missing' if key not in stored else 'there and should not be'}"
            else:
                yield from unequal(stored[key], made[key], place)
    elif _list(stored) and _list(made):
        if len(stored) != len(made):
            yield f"{path} has {len(stored)} entries and should have {len(made)}"
        else:
            for number, (one, two) in enumerate(zip(stored, made, strict=True)):
                yield from unequal(one, two, f"{path}[{number}]")
    elif not _equal(stored, made):
        yield f"{path} is {short(stored)} and should be {short(made)}"


def _list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _equal(one: Any, two: Any) -> bool:
    numbers = [isinstance(v, (int, float)) and not isinstance(v, bool) for v in (one, two)]
    if all(numbers):
        return one == two or math.isclose(one, two, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(one) is type(two) and bool(one == two)


def short(value: Any) -> str:
    """A value as a sentence names it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
