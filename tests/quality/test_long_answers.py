"""Answers that repeat themselves up to their cap are read in time that grows with their length, by every rule."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from paribus.quality.tasks.aime import read_integer
from paribus.quality.tasks.base import visible
from paribus.quality.tasks.livecodebench import last_code, official_code
from paribus.quality.tasks.mmlu_pro import read_lenient, read_official, read_strict

RULES: dict[str, Callable[[str], object]] = {
    "aime": read_integer,
    "mmlu-pro strict": lambda text: read_strict(text, 10),
    "mmlu-pro lenient": lambda text: read_lenient(text, 10),
    "mmlu-pro official": read_official,
    "code": last_code,
    "official code": official_code,
    "visible": visible,
}
HEADS = ["", "answer", "answer is", "answer is ", "The answer is (", "Answer:", "\\boxed", "\\boxed{", "**",
            "__", "> ", "- ", "####",
         "A", "(A", "A. ", "no,", "```", "```python", "```python\n", "So", "7", "answer is 7",
            "answer is 7 =", "<think>",
         "x</think>"]  # fmt: skip
REPEATED = [" ", "\n", "\t", "*", "_", "(", ")", "{", "}", "\\", "`", "~", "$", "#", ">", "7", ",", ".", ":",
            "A", "a", "[", "-", "!",
            "7,", "7 ", "A ", "A) ", "(A) ", "**A", "** ", "\n**", " \n", "wait ", "no, ", "so ", "answer ",
            "answer is ", "Answer: ",
            "answer: A", "is ", "option ", "correct ", "the answer is (B), ", "\\boxed", "\\boxed{",
            "\\boxed{7} ", "{}", "\\text", "\\ ",
            "```\n", "```python\n", "``` ", "<think>", "</think>", "<think>\n", "\n</think>", "= ",
            "which is ", "mod ", "\u0301\u0323",
            "\u200b", "A is correct ", "(A) and ", "x" , "#### ", "\n#### ", "if ",
            "wait, ", "\n## Answer\n", "the answer is 7. ", "25 is the answer ", "i.e. ", "so 7", "|", "-", "\n- ",
            "A or ", "not A but ", "option A ", "= 7 ", "“", "<", "答案", "is ", "(7 ", "answer is not 7 ",
            "I ", "I forgot ", "let me ", "made a ", "answer to the ", "answer (", "not 7 ", "it is 7, ", "no, it is ",
            "! ", "7! ", ", where ", "\nQuestion:", "\nQuestion:\nOptions:", "Options:\n", "\n> "]  # fmt: skip
PAIRS = [("", unit) for unit in REPEATED] + [(head, unit) for head in HEADS for unit in (" ", "\n", "*", "7", "(")]
LENGTH = 5_000


def seconds(rule: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    rule(text)
    return time.process_time() - began


@pytest.mark.parametrize("name", RULES)
def test_no_repetition_stalls_a_rule(name: str) -> None:
    """Four times the length takes about four times as long, not sixteen; what is over in no time is not compared."""
    rule, slow = RULES[name], []
    for head, unit in PAIRS:
        texts = [head + unit * (n // len(unit)) + "z" for n in (LENGTH, 4 * LENGTH)]
        took = seconds(rule, texts[1])
        if took > 0.2:  # again: collecting what other tests left may have fallen into it
            took = min(took, *(seconds(rule, texts[1]) for _ in range(2)))
        if took > 0.2 and took > 10 * min(seconds(rule, texts[0]) for _ in range(2)):
            slow.append((head, unit, took))
    assert slow == []


@pytest.mark.parametrize("name", RULES)
def test_repetition_in_front_hides_no_answer(name: str) -> None:
    rule = RULES[name]
    right = {
        "aime": ("\nThe answer is 25.", 25), "mmlu-pro strict": ("\nThe answer is (C).", "C"),
        "mmlu-pro lenient": ("\n**C**", "C"), "mmlu-pro official": ("\nthe answer is (C).", "C"),
        "code": ("\n```python\nprint(1)\n```", "print(1)\n"),
        "official code": ("\n```python\nprint(1)\n```", "print(1)\n"),
        "visible": ("</think>x", "x"),
    }[name]  # fmt: skip
    for unit in (" ", "\n", "wait ", "7", "\\boxed{", "("):
        assert rule(unit * (100_000 // len(unit)) + right[0]) == right[1], unit
