"""What is sent: nothing more than was asked for, and never what would make the measurement another one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.catalog import PromptLine
from paribus.conditions import UsageError
from paribus.wire import Endpoint, payload

CHAT = Endpoint("http://h/v1", "m")
COMPLETIONS = Endpoint("http://h/v1", "m", api="completions")
PROMPT = PromptLine(id="p", prompt="Tell me")
DIALOGUE = PromptLine(
    id="d",
    messages=[
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ],
)


def sent(endpoint: Endpoint, prompt: PromptLine, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(payload(endpoint, prompt, **{"max_tokens": 64, "sampling": {}} | more))
    return value


def test_a_chat_request_asks_for_a_stream_with_usage() -> None:
    assert sent(CHAT, PROMPT) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Tell me"}],
        "max_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_request_that_does_not_stream_has_no_stream_options() -> None:
    body = sent(CHAT, PROMPT, stream=False)
    assert body["stream"] is False
    assert "stream_options" not in body


def test_a_completions_request_carries_plain_text() -> None:
    assert sent(COMPLETIONS, PROMPT)["prompt"] == "Tell me"
    assert sent(COMPLETIONS, DIALOGUE)["prompt"] == "Be brief\n\nHi"
    assert "messages" not in sent(COMPLETIONS, DIALOGUE)


def test_sampling_is_sent_as_given_and_no_seed_is_made_up() -> None:
    body = sent(CHAT, PROMPT, sampling={"temperature": 0.2, "top_k": 40})
    assert (body["temperature"], body["top_k"]) == (0.2, 40)
    assert not {"seed", "top_p", "n"} & body.keys()


def test_extra_fields_come_last_and_a_null_takes_a_field_out() -> None:
    endpoint = Endpoint("http://h/v1", "m", extra_body={"max_tokens": None, "max_completion_tokens": 9, "a": 1})
    body = sent(endpoint, PROMPT, extra={"a": 2, "chat_template_kwargs": {"enable_thinking": False}})
    assert "max_tokens" not in body
    assert (body["max_completion_tokens"], body["a"]) == (9, 2)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize("extra", [{"n": 2}, {"best_of": 3}, {"n": "1"}])
def test_several_answers_a_request_are_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="one answer a request"):
        sent(CHAT, PROMPT, extra=extra)
    with pytest.raises(UsageError):
        sent(Endpoint("http://h/v1", "m", extra_body=extra), PROMPT)
    assert sent(CHAT, PROMPT, extra={"n": 1})["n"] == 1


def test_tools_go_with_chat_only() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    prompt = PromptLine(id="t", prompt="x", tools=tools)
    assert sent(CHAT, prompt)["tools"] == tools
    with pytest.raises(UsageError, match="tools"):
        sent(COMPLETIONS, prompt)


def test_the_unique_line_comes_before_everything_so_that_no_prefix_is_shared() -> None:
    assert sent(CHAT, PROMPT, unique_line="u1")["messages"] == [{"role": "user", "content": "u1\nTell me"}]
    assert sent(CHAT, DIALOGUE, unique_line="u1")["messages"][0]["content"] == "u1\nBe brief"
    assert sent(COMPLETIONS, PROMPT, unique_line="u1")["prompt"] == "u1\nTell me"
    parts = PromptLine(id="x", messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    assert sent(CHAT, parts, unique_line="u1")["messages"][0]["content"][0] == {"type": "text", "text": "u1\n"}
    bare = PromptLine(id="x", messages=[{"role": "assistant", "content": None}])
    assert sent(CHAT, bare, unique_line="u1")["messages"][0]["content"] == "u1"


def test_the_prompt_itself_is_left_as_it_was() -> None:
    before = DIALOGUE.model_dump_json()
    sent(CHAT, DIALOGUE, unique_line="u1")
    assert DIALOGUE.model_dump_json() == before


def test_text_that_json_cannot_carry_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        sent(CHAT, PROMPT, unique_line="\ud83d")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(1, 10**6))
def test_any_prompt_arrives_as_it_is(text: str, cap: int) -> None:
    body = sent(CHAT, PromptLine(id="p", prompt=text), max_tokens=cap)
    assert body["messages"][0]["content"] == text
    assert body["max_tokens"] == cap
