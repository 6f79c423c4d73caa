"""The checks of our own prompts: valid, fair to right answers in many forms, and hard on wrong ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import read_answers
from number_prompts import offered_tools
from prompt_statistics import user_text

from paribus.catalog import KINDS, Catalog, Check, SetPrompt
from paribus.speed.checks import passes, validate
from paribus.speed.metrics.degenerate import is_degenerate

PROMPTS = Catalog(Path(__file__).parents[2]).prompt_set("own-v1")
CHECKED = [p for p in PROMPTS if p.check]
ANSWERS = read_answers()
PER_KIND = 64


def check_of(prompt: SetPrompt) -> Check:
    assert prompt.check is not None
    return prompt.check


def calls_nothing(check: Check) -> bool:
    """Whether the right answer is words: none of the offered tools is to be called."""
    return check.kind == "tool_call" and not check.parameters["calls"]


def forms(text: str) -> Iterator[str]:
    """A text as it is; JSON also as others indent it."""
    yield text
    try:
        told = json.loads(text.strip().removeprefix("```json").removesuffix("```"))
    except ValueError:
        return
    yield from (json.dumps(told, indent=indent, ensure_ascii=False) for indent in (2, 4))


def test_no_right_answer_is_a_loop() -> None:
    seen = [(name, form) for name, told in ANSWERS.items() for text in told.right for form in forms(text)]
    assert len(seen) > 1500
    assert [name for name, form in seen if is_degenerate(form, capped=True)] == []


def test_every_check_is_valid_and_most_prompts_of_the_checkable_kinds_have_one() -> None:
    for prompt in CHECKED:
        validate(check_of(prompt))
    share = {kind: sum(p.kind == kind for p in CHECKED) / PER_KIND for kind in KINDS}
    assert share["json"] == share["tools"] == 1
    assert share["maths"] >= 0.9
    assert share["infill"] >= 0.8
    assert len(CHECKED) >= 300


def test_every_check_has_three_right_and_three_wrong_answers_on_record() -> None:
    assert set(ANSWERS) == {p.id for p in CHECKED}
    few = {id for id, told in ANSWERS.items() if len(set(told.right)) < 3 or len(set(told.wrong)) < 3}
    assert few == set()


@pytest.mark.parametrize("prompt", CHECKED, ids=lambda p: p.id)
def test_a_check_accepts_every_right_answer_and_refuses_every_wrong_one(prompt: SetPrompt) -> None:
    check = check_of(prompt)
    for text in ANSWERS[prompt.id].right:
        assert passes(check, text), f"refuses the right answer {text!r}"
    for text in ANSWERS[prompt.id].wrong:
        assert not passes(check, text), f"accepts the wrong answer {text!r}"


@pytest.mark.parametrize("prompt", CHECKED, ids=lambda p: p.id)
def test_a_check_refuses_what_is_no_answer(prompt: SetPrompt) -> None:
    check = check_of(prompt)
    empty = ("", "{}", "[]")
    words = ("I am sorry, I cannot help with that request.", "lorem ipsum dolor " * 200, user_text(prompt))
    for text in empty if calls_nothing(check) else (*empty, *words):
        assert not passes(check, text), text


@pytest.mark.parametrize("prompt", [p for p in CHECKED if check_of(p).kind == "tool_call"], ids=lambda p: p.id)
def test_expected_calls_fit_the_tools_that_the_prompt_offers(prompt: SetPrompt) -> None:
    assert prompt.messages is not None
    offered = offered_tools(prompt.messages[0]["content"])
    assert len(offered) >= 2
    expected = check_of(prompt).parameters
    called = {call["name"] for call in expected["calls"]}
    assert expected.get("schemas", {}) == {name: offered[name] for name in called}, "run number_prompts.py"
    for call in expected["calls"]:
        parameters = offered[call["name"]]
        assert set(parameters["required"]) <= set(call["arguments"]) <= set(parameters["properties"])
        for name, value in call["arguments"].items():
            allowed = parameters["properties"][name].get("enum")
            forms = value["any_of"] if isinstance(value, dict) and value.keys() == {"any_of"} else [value]
            assert allowed is None or all(form in allowed for form in forms), (call["name"], name)
