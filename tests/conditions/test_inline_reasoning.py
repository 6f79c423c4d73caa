"""Reasoning in the text of an answer: what opens it is a thought, what it quotes is none."""

from __future__ import annotations

import pytest

from paribus.conditions.thinking import TAGS, apart

LONG = "I must think about it. " * 20


@pytest.mark.parametrize(
    "answer",
    [
        f"Wrap thoughts in `<think>` and `</think>`. {LONG}",
        f"{LONG} Models write <think>{LONG}</think> before the answer.",
        f"{LONG}\n```html\n<think>\n{LONG}\n</think>\n```\nThat is all.",
        f"Strip it:\n```python\nx = re.sub('<think>.*?</think>', '', x)  # {LONG}\n```",
        f"{LONG} An open <think> tag: {LONG}",
        f"{LONG} The end is `</think>`, they say. {LONG}",
        f"```python\nreturn x.partition('</think>')[2]  # {LONG}\n```",
        f"```python\nprint('a</think>b')  # {LONG}\n```",
        f'{LONG} split at "</think>" first',
        "4",
        "",
    ],
)
def test_tags_that_an_answer_quotes_are_no_reasoning(answer: str) -> None:
    assert apart(answer) == ("", answer)


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        (f"<think>{LONG}</think>42", LONG, "42"),
        (f"\n  <think>{LONG}</think>42", LONG, "42"),
        (f"<think>{LONG}", LONG, ""),
        (f"{LONG}</think>42", LONG, "42"),
        (f"{LONG}\n</think>\n\n42", f"{LONG}\n", "\n\n42"),
        (f"{LONG}\n```python\nx\n</think>\n42", f"{LONG}\n```python\nx\n", "\n42"),
        ("<think>\n\n</think>\n\n42", "", "\n\n42"),
        (f"<think>\n\n</think>\n\n<think>{LONG}</think>42", LONG, "42"),
        (f"<think>{LONG}</think>Write </think> behind it.", LONG, "Write </think> behind it."),
        (f"<think>Not `</think>` yet. {LONG}</think>42", f"Not `</think>` yet. {LONG}", "42"),
        (f"<think>{LONG} `x</think>42", f"{LONG} `x", "42"),
        (f"{LONG}</think>Use `<think>` so.", LONG, "Use `<think>` so."),
        (f"<think>a</think>42\n<think>{LONG}</think> or 43", f"a{LONG}", "42\n or 43"),
    ],
)
def test_what_opens_an_answer_is_reasoning_up_to_its_end(text: str, reasoning: str, rest: str) -> None:
    assert apart(text) == (reasoning, rest)


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        (f"<|channel>thought\n{LONG}<channel|>42", f"\n{LONG}", "42"),
        (f"<|channel>thought\n{LONG}", f"\n{LONG}", ""),
        ("<|channel>thought\n<channel|>42", "", "42"),
        (f"{LONG}<channel|>42", LONG, "42"),
        (f"<|channel>thought\nA <think> tag </think>. {LONG}<channel|>42", f"\nA <think> tag </think>. {LONG}", "42"),
        (f"<|channel>thought\nUp to </think>. {LONG}<channel|>42", f"\nUp to </think>. {LONG}", "42"),
        (f"<think>A <channel|> tag. {LONG}</think>42", f"A <channel|> tag. {LONG}", "42"),
    ],
)
def test_gemmas_tags_are_read_as_others_are(text: str, reasoning: str, rest: str) -> None:
    """With thinking off its template closes an empty thought in the prompt; what thinks all the same writes the
    closing tag alone (attevon-llc/OpenTranscribe#439)."""
    assert apart(text) == (reasoning, rest)


@pytest.mark.parametrize("tags", TAGS, ids=lambda tags: tags.opens)
def test_tags_of_either_kind_that_are_quoted_are_no_reasoning(tags) -> None:
    answer = f"Wrap thoughts in `{tags.opens}` and `{tags.closes}`. {LONG}"
    assert apart(answer) == ("", answer)
