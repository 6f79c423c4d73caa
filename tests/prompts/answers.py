"""Answers to the checked prompts, as people and models write them, each known to be right or wrong.

`answers/<kind>.jsonl`: `id`, `right` and `wrong` texts. They were written together with the prompts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "answers"


@dataclass(frozen=True)
class Answers:
    """Right and wrong answers to one prompt."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]


def read_answers() -> dict[str, Answers]:
    """All recorded answers by prompt id."""
    lines = [line for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").split("\n")]
    told = [json.loads(line) for line in lines if line.strip()]
    answers = {line["id"]: Answers(tuple(line["right"]), tuple(line["wrong"])) for line in told}
    assert len(answers) == len(told), "a prompt has two lines of answers"
    return answers
