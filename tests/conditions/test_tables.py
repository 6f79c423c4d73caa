"""The tables of conditions and flags are whole and unambiguous."""

import pytest

from paribus.conditions import CONDITIONS, FLAGS, Flag, differences, flag, is_slug


def test_every_flag_has_a_word_a_rule_and_a_sentence() -> None:
    for id, kind in FLAGS.items():
        assert id == kind.id
        assert is_slug(id.replace("_", "-"))
        assert kind.rule
        assert kind.sentence.endswith(".")


def test_a_flag_carries_its_detail_and_may_be_weakened() -> None:
    set_ = flag("client_bound", "lag 3 ms", severity="warning")
    assert set_ == Flag(id="client_bound", severity="warning", text=set_.text)
    assert "lag 3 ms" in set_.text
    with pytest.raises(KeyError):
        flag("no-such-flag")


def test_text_in_braces_is_not_expanded() -> None:
    assert "{0} {x.y}" in flag("busy", "{0} {x.y}").text


def test_differences_name_the_condition_and_both_values() -> None:
    assert differences({"precision": "fp8", "noise": 1}, {"precision": "bf16", "noise": 2}) == {
        "precision": ("fp8", "bf16")
    }
    assert differences({"os": "a"}, {"os": "a"}) == {}


def test_an_unknown_value_is_said() -> None:
    assert CONDITIONS["power_limit_w"].reads(None) == "power limit: not disclosed"
    assert CONDITIONS["power_limit_w"].reads(700) == "power limit 700 W"
    assert CONDITIONS["thinking"].reads(False) == "thinking off"
    assert CONDITIONS["cap"].reads(1024) == "answers up to 1,024 tokens"


def test_every_condition_of_the_protocol_gates() -> None:
    always = {name for name, condition in CONDITIONS.items() if condition.gates == "always"}
    assert {
        "edition",
        "protocol",
        "prompts_hash",
        "scenario",
        "thinking",
        "sampling_profile",
        "card",
        "power_limit_w",
        "precision",
        "scale",
        "window",
        "acceptance_method",
        "energy_scope",
        "user_simulator",
    } <= always
