"""The gates of our own prompts: balance, split, lengths, languages, templates, and a card that tells the truth."""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

import number_prompts
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from prompt_statistics import CARD, SET, card_with, prompt_tokens, statistics, user_text

from paribus.catalog import KINDS, Catalog, SetPrompt
from paribus.wire import standard_tokens

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
PROMPTS = CATALOG.prompt_set(SET)
MEASURED, TUNING = 24, 8
FOREIGN = {"ar", "de", "es", "fr", "hi", "ja", "zh"}


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
        assert {p.id for p in prompts if p.split == "tuning"} == number_prompts.tuning_ids(ids(prompts))


def test_numbers_go_from_the_shortest_prompt_to_the_longest() -> None:
    for prompts in groups().values():
        lengths = [prompt_tokens(p) for p in prompts]
        assert lengths == sorted(lengths)


def test_ids_and_split_stay_the_same_however_the_lines_are_ordered() -> None:
    lines = number_prompts.read_lines(number_prompts.SET)
    shuffled = random.Random(4).sample(lines, len(lines))
    again, renamed = number_prompts.numbered(shuffled)
    assert again == lines
    assert all(old == new for old, new in renamed.items())


def test_every_speed_scenario_of_ours_sends_this_set() -> None:
    ours = {s.scenario for s in CATALOG.scenarios.values() if s.prompts == SET}
    assert {"c1-short", "c1-long", "c16-short", "c16-long", "race-c1-long", "race-c16-long"} <= ours
    assert all(s.prompts == SET for s in CATALOG.scenarios.values() if s.headline or s.race)


def test_small_scales_take_the_cheapest_prompts_and_a_larger_scale_keeps_them() -> None:
    for scenario in (CATALOG.scenario("c1-short"), CATALOG.scenario("c16-long")):
        chosen = {
            name: {p.id for p in CATALOG.scenario_prompts(scenario, CATALOG.scale(name))}
            for name in ("demo", "quick", "full")
        }
        assert chosen["demo"] < chosen["quick"] < chosen["full"]
        assert len(chosen["full"]) == 7 * MEASURED


def test_long_inputs_are_1000_to_1500_standard_tokens_and_no_other_prompt_is_as_long() -> None:
    for prompt in PROMPTS:
        if prompt.kind == "long-input":
            assert 1000 <= standard_tokens(user_text(prompt)) <= 1500, prompt.id
        else:
            assert prompt_tokens(prompt) < 1000, prompt.id


def test_translations_are_within_infill_labelled_by_both_languages_and_cover_seven() -> None:
    translations = [p for p in PROMPTS if p.language != "en"]
    assert all(p.kind == "infill" for p in translations)
    pairs = [tuple(p.language.split("-")) for p in translations]
    assert all(len(pair) == 2 and pair[0] != pair[1] and set(pair) <= FOREIGN | {"en"} for pair in pairs)
    for language in FOREIGN:
        assert any(pair[0] == language for pair in pairs), f"nothing is translated from {language}"
        assert any(pair[1] == language for pair in pairs), f"nothing is translated to {language}"


def test_infilling_and_translation_are_both_there_in_both_lengths() -> None:
    for length in ("short", "long"):
        languages = [p.language for p in groups()["infill", length]]
        assert 10 <= languages.count("en") <= 22


def test_every_prompt_is_system_and_user_text() -> None:
    """System (at most one, first) and one user turn with text only: what ChatML, and every other template, takes."""
    for prompt in PROMPTS:
        roles = [m["role"] for m in prompt.messages or []]
        assert roles in (["user"], ["system", "user"]), prompt.id
        assert all(m.keys() == {"role", "content"} and m["content"].strip() for m in prompt.messages or [])
        assert prompt.tools is None
        assert "<|im_" not in json.dumps(prompt.messages)


DEFAULT_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""The chat template of the default model of the `cpu` profile, as its weights carry it."""


def test_every_prompt_renders_through_the_chat_template_of_the_default_model() -> None:
    template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(DEFAULT_TEMPLATE)
    for prompt in PROMPTS:
        text = template.render(messages=prompt.messages, add_generation_prompt=True)
        turns = re.findall(r"<\|im_start\|>(\w+)\n(.*?)<\|im_end\|>\n", text, flags=re.DOTALL)
        assert turns[-len(prompt.messages or []) :] == [(m["role"], m["content"]) for m in prompt.messages or []]
        assert len(turns) == 2, prompt.id
        assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")


def test_the_template_is_the_one_in_the_default_model_s_weights() -> None:
    weights = next(ROOT.glob("build/weights/smollm2-135m--q4-1*/*.gguf"), None)
    if weights is None:
        pytest.skip("the default model's weights are not there: `paribus fetch weights smollm2-135m--q4-1`")
    with weights.open("rb") as file:
        head = file.read(16_000_000)
    assert DEFAULT_TEMPLATE.encode() in head


def test_no_personal_data_and_no_markers_left() -> None:
    text = "\n".join(json.dumps(p.messages, ensure_ascii=False) for p in PROMPTS)
    assert not re.findall(r"[\w.]+@[\w-]+\.[a-z]{2,}", text), "an e-mail address"
    assert not re.findall(r"\+\d{2}[\d ]{7,}", text), "a telephone number"
    assert not re.findall(r"https?://", text), "an address on the web"
    assert "SCHEMA" not in text.replace("JSON SCHEMA", "")
    assert not re.findall(r"\b(?:FIXME|TBD|XXX|lorem ipsum)\b", text), "a marker of unfinished text"


def test_the_card_tells_the_truth() -> None:
    card = CARD.read_text(encoding="utf-8")
    assert card_with(card, "") != card, "the card has no place for its statistics"
    assert card_with(card, statistics(PROMPTS)) == card, "run `python tests/prompts/prompt_statistics.py`"
