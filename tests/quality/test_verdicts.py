"""A reader that changes is a new score version: what each rule reads from the forms of these tests is held beside the
rule's version (`verdicts/FAMILY.json`: of each text a hash, and what is read from it).

After a wanted change raise the rule's version, then write the new verdicts:

    PARIBUS_GOLDEN=write pytest tests/quality/test_verdicts.py

Writing is refused as long as a text that is held is read otherwise under the same version; new texts need none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import test_aime_forms as aime_forms
import test_aime_reading as aime_reading
import test_code_reading as code
import test_mmlu_pro_forms as letters
import test_mmlu_pro_reading as letter_reading

from paribus.conditions import hash12
from paribus.quality.tasks import livecodebench
from paribus.quality.tasks.aime import AimeFamily, final_answer, read_integer
from paribus.quality.tasks.grader import matches, officially_matches, same_lines
from paribus.quality.tasks.livecodebench import last_code, official_code
from paribus.quality.tasks.mmlu_pro import MmluProFamily, read_lenient, read_official, read_strict
from paribus.quality.tasks.pickled import TestCase as Case

HELD = Path(__file__).parent / "verdicts"
WRITE = "PARIBUS_GOLDEN=write pytest tests/quality/test_verdicts.py"


def rows(test: Callable[..., object]) -> list[tuple]:
    """The rows of a parametrised test."""
    return [tuple(row) for mark in test.pytestmark if mark.name == "parametrize" for row in mark.args[1]]  # type: ignore[attr-defined]


def aime() -> dict[str, object]:
    texts = [row[0] for row in [*aime_forms.FORMS, *aime_forms.MISSED, *rows(aime_reading.test_particular_texts)]]
    texts += [box.format(number.format(n=25)) for box in aime_reading.BOXES[:1] for number in aime_reading.NUMBERS]
    texts += [phrase.format(25) for phrase in aime_reading.PHRASES]
    behind = aime_reading.CORRECTIONS + aime_reading.ABOUT
    texts += [firm.format(24) + one.format(25) for firm in aime_reading.FIRM for one in behind]
    return {text: [read_integer(text), final_answer(text)] for text in texts}


def mmlu_pro() -> dict[str, object]:
    texts = [row[0] for row in letters.BOTH + letters.LENIENT_ONLY + letters.RUN_ON] + letters.NEITHER
    one = letter_reading.STRICT + letter_reading.LENIENT + letter_reading.MENTIONS + letter_reading.FORMULAS
    texts += [form.format("C") for form in one] + [form.format("C", "D") for form in letter_reading.TWO]
    texts += [f"The answer is C{more}" for more in letter_reading.REASONS + letter_reading.SUPPOSED]
    texts += [f"The answer is (B).{more.format('C')}" for more in letter_reading.CORRECTIONS + letter_reading.PROSE]
    asked = letters.ASKED
    return {text: [read_strict(text, 10, asked), read_lenient(text, 10, asked), read_official(text)] for text in texts}


def livecodebench_() -> dict[str, object]:
    texts = [row[0] for row in rows(code.test_the_last_block_of_python_is_the_solution)]
    texts += [
        f"```python\n{one}```\n\n```\n{two}```\n"
        for one in code.SOLUTIONS
        for two in code.EXAMPLES + code.USES + code.SOLUTIONS
    ]
    found: dict[str, object] = {
        text: [last_code(text), last_code(text, {"Solution", "f"}), official_code(text)] for text in texts
    }
    for expected, output, _ in rows(code.test_lines_are_equal_as_text_or_as_exact_numbers):
        official = officially_matches(Case("", expected, "stdin"), output)
        found[f"lines {expected!r} {output!r}"] = [same_lines(expected, output), official]
    for expected, output, _ in rows(code.test_results_of_functions_are_equal_as_json):
        case = Case("", expected, "functional")
        found[f"result {expected!r} {output!r}"] = [matches(case, output), officially_matches(case, output)]
    return found


FAMILIES: dict[str, tuple[Callable[[], dict[str, object]], str]] = {
    "aime": (aime, AimeFamily.version),
    "mmlu-pro": (mmlu_pro, MmluProFamily.version),
    "livecodebench": (livecodebench_, livecodebench.RULES),
}


def complaint(held: dict, version: str, verdicts: dict[str, str]) -> str | None:
    """What is wrong with what is held: verdicts that changed need a new version, new texts are to be held, too."""
    changed = [text for text, verdict in verdicts.items() if held["verdicts"].get(text, verdict) != verdict]
    if changed and held["version"] == version:
        return f"{len(changed)} texts are read otherwise than by version {version}: raise the version, then {WRITE}"
    if held != {"version": version, "verdicts": verdicts}:
        return f"texts or the version are new: {WRITE}"
    return None


@pytest.mark.parametrize("name", FAMILIES)
def test_another_verdict_is_another_version(name: str) -> None:
    read, version = FAMILIES[name]
    verdicts = {hash12(text): hash12(verdict)[:6] for text, verdict in read().items()}
    file = HELD / f"{name}.json"
    held = json.loads(file.read_text()) if file.exists() else {"version": None, "verdicts": {}}
    said = complaint(held, version, verdicts)
    if os.environ.get("PARIBUS_GOLDEN") == "write" and (said is None or "raise the version" not in said):
        file.parent.mkdir(exist_ok=True)
        text = json.dumps({"version": version, "verdicts": dict(sorted(verdicts.items()))}, indent=0)
        file.write_text(text + "\n")
        said = None
    assert said is None, f"{name}: {said}"


HELD_ONE = {"version": "4", "verdicts": {"a": "25", "b": "24"}}


@pytest.mark.parametrize(
    ("version", "verdicts", "said"),
    [
        ("4", {"a": "25", "b": "24"}, None),
        ("4", {"a": "25", "b": "25"}, "1 texts are read otherwise than by version 4: raise the version, then"),
        ("4", {"a": "25", "b": "24", "c": "1"}, "texts or the version are new:"),
        ("5", {"a": "25", "b": "25"}, "texts or the version are new:"),
        ("4", {"a": "24", "c": "1"}, "raise the version"),
    ],
)
def test_what_changed_is_named(version: str, verdicts: dict[str, str], said: str | None) -> None:
    found = complaint(HELD_ONE, version, verdicts)
    assert found is None if said is None else said in str(found)
