"""The gates of our own prompts: balance, split, lengths, no near-duplicates, nothing from elsewhere, valid checks."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest
from prompt_statistics import prompt_tokens, statistics_table, user_text
from right_answers import RIGHT

from paribus.catalog import KINDS, Catalog, SetPrompt, prompts_hash
from paribus.speed.checks import passes, validate
from paribus.wire import standard_tokens

ROOT = Path(__file__).parents[2]
SET = "own-v0"
CARD = ROOT / "tasks/speed/prompts/CARD.md"
PROMPTS = Catalog(ROOT).prompt_set(SET)
MEASURED, TUNING = 4, 2
LANGUAGES = {"en", "de-en", "ar-en", "hi-en", "fr-en", "zh-en", "en-ja", "en-es"}
CHECKED = [p for p in PROMPTS if p.check]


def groups() -> dict[tuple[str, str], list[SetPrompt]]:
    found: dict[tuple[str, str], list[SetPrompt]] = defaultdict(list)
    for prompt in PROMPTS:
        found[prompt.kind, prompt.length].append(prompt)
    return found


def ids(prompts: list[SetPrompt]) -> list[str]:
    return [p.id for p in prompts]


def test_seven_kinds_short_and_long_are_balanced() -> None:
    assert set(groups()) == {(kind, length) for kind in KINDS for length in ("short", "long")}
    for prompts in groups().values():
        assert Counter(p.split for p in prompts) == {"measured": MEASURED, "tuning": TUNING}


def test_ids_say_kind_length_and_number() -> None:
    for (kind, length), prompts in groups().items():
        assert ids(prompts) == [f"{kind}-{length}-{n:02d}" for n in range(1, len(prompts) + 1)]


def test_the_split_is_by_hash_of_the_id_and_never_by_hand() -> None:
    for prompts in groups().values():
        by_hash = sorted(ids(prompts), key=lambda id: hashlib.sha256(id.encode()).hexdigest())
        assert {p.id for p in prompts if p.split == "tuning"} == set(by_hash[:TUNING])


def test_numbers_go_from_the_shortest_prompt_to_the_longest() -> None:
    for prompts in groups().values():
        lengths = [prompt_tokens(p) for p in prompts]
        assert lengths == sorted(lengths)


def test_long_inputs_are_1000_to_1500_standard_tokens_and_no_other_prompt_is_as_long() -> None:
    for prompt in PROMPTS:
        if prompt.kind == "long-input":
            assert 1000 <= standard_tokens(user_text(prompt)) <= 1500, prompt.id
        else:
            assert prompt_tokens(prompt) < 1000, prompt.id


def test_languages_are_labelled_and_translations_are_within_infill() -> None:
    assert {p.language for p in PROMPTS} == LANGUAGES
    assert all(p.kind == "infill" for p in PROMPTS if p.language != "en")


def test_every_prompt_renders_with_a_plain_chat_template() -> None:
    """System (at most one, first) and user turns with text only: what ChatML, and every other template, takes."""
    for prompt in PROMPTS:
        roles = [m["role"] for m in prompt.messages or []]
        assert roles in (["user"], ["system", "user"]), prompt.id
        assert all(m.keys() == {"role", "content"} and m["content"].strip() for m in prompt.messages or [])
        assert prompt.tools is None
        assert "<|im_" not in json.dumps(prompt.messages)


def shingles(text: str, size: int) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def test_no_two_prompts_are_near_duplicates() -> None:
    cut = {p.id: shingles(user_text(p), 3) for p in PROMPTS}
    for a, b in combinations(PROMPTS, 2):
        one, two = cut[a.id], cut[b.id]
        if one and two:
            assert len(one & two) / min(len(one), len(two)) < 0.25, (a.id, b.id)


def test_no_personal_data_and_no_markers_left() -> None:
    text = "\n".join(json.dumps(p.messages, ensure_ascii=False) for p in PROMPTS)
    assert not re.findall(r"[\w.]+@[\w-]+\.[a-z]{2,}", text), "an e-mail address"
    assert not re.findall(r"\+\d{2}[\d ]{7,}", text), "a telephone number"
    assert not re.findall(r"https?://", text), "an address on the web"
    assert "SCHEMA" not in text.replace("JSON SCHEMA", "")


def real_texts(folder: Path) -> str:
    """All text of the evaluation data at hand, as words."""
    import gzip

    parts = []
    for path in sorted(folder.rglob("*")):
        if path.name.endswith((".jsonl", ".json", ".md")):
            parts.append(path.read_text(encoding="utf-8"))
        elif path.name.endswith((".jsonl.gz", ".json.gz")):
            parts.append(gzip.decompress(path.read_bytes()).decode())
    return "\n".join(parts)


def test_no_thirteen_words_in_a_row_are_from_an_evaluation_set() -> None:
    folder = os.environ.get("PARIBUS_DATA")
    if not folder:
        pytest.skip("PARIBUS_DATA is not set: no evaluation data to compare with")
    own: dict[tuple[str, ...], str] = {}
    for prompt in PROMPTS:
        own |= dict.fromkeys(shingles(json.dumps(prompt.messages, ensure_ascii=False), 13), prompt.id)
    words = re.findall(r"\w+", real_texts(Path(folder)).casefold())
    assert len(words) > 10_000, "PARIBUS_DATA holds too little text to compare with"
    found = {own[t] for t in zip(*(words[i:] for i in range(13)), strict=False) if t in own}
    assert found == set()


def test_every_check_is_valid_and_most_prompts_of_the_checkable_kinds_have_one() -> None:
    for prompt in CHECKED:
        assert prompt.check is not None
        validate(prompt.check)
    share = {kind: sum(p.kind == kind for p in CHECKED) / 12 for kind in KINDS}
    assert share["json"] == share["tools"] == 1
    assert share["maths"] >= 0.75
    assert len(CHECKED) >= 50


@pytest.mark.parametrize("prompt", CHECKED, ids=lambda p: p.id)
def test_a_check_refuses_what_is_no_answer(prompt: SetPrompt) -> None:
    assert prompt.check is not None
    for text in ("", "I am sorry, I cannot help with that request.", "{}", "[]", "lorem ipsum dolor " * 200):
        calls_nothing = prompt.check.kind == "tool_call" and not prompt.check.parameters["calls"]
        if not (calls_nothing and text[:1].isalpha()):
            assert not passes(prompt.check, text), text
    assert prompt.id == "tools-short-01" or not passes(prompt.check, user_text(prompt)), "the prompt passes itself"


@pytest.mark.parametrize("id", sorted(RIGHT))
def test_a_check_accepts_a_right_answer(id: str) -> None:
    prompt = next(p for p in PROMPTS if p.id == id)
    assert prompt.check is not None
    assert passes(prompt.check, RIGHT[id])


def test_every_short_prompt_with_a_check_has_a_right_answer_here() -> None:
    assert {p.id for p in CHECKED if p.length == "short"} <= set(RIGHT)


@pytest.mark.parametrize("prompt", [p for p in CHECKED if p.check and p.check.kind == "tool_call"], ids=lambda p: p.id)
def test_expected_calls_fit_the_tools_that_the_prompt_offers(prompt: SetPrompt) -> None:
    assert prompt.check is not None
    assert prompt.messages is not None
    lines = prompt.messages[0]["content"].splitlines()
    offered = {
        t["name"]: t["parameters"] for t in (json.loads(line) for line in lines if line.startswith('{"name": "'))
    }
    assert len(offered) >= 2
    for call in prompt.check.parameters["calls"]:
        parameters = offered[call["name"]]
        assert set(call["arguments"]) == set(parameters["required"])
        for name, value in call["arguments"].items():
            allowed = parameters["properties"][name].get("enum")
            assert allowed is None or value in allowed


def test_the_card_tells_the_truth() -> None:
    card = CARD.read_text(encoding="utf-8")
    assert statistics_table(PROMPTS) in card, "run `python tests/prompts/prompt_statistics.py` and put its table in"
    assert f"`{prompts_hash(PROMPTS)}`" in card
    assert f"{len(CHECKED)} of {len(PROMPTS)}" in card
    for language in LANGUAGES - {"en"}:
        assert f"`{language}`" in card
