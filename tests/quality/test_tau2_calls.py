"""Tau2's messages and tool calls: what servers are sent, what the harness is told, what counts as malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from quality_journals import entry

from paribus.quality.tau2_calls import asked_hash, completion, plain_messages, read_calls, written_messages

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "cancel",
            "description": "Cancels a booking.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        },
    }
]
CALL = {"id": "c1", "name": "cancel", "type": "function", "function": {"name": "cancel", "arguments": '{"id": "X"}'}}
TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Cancel X.", "name": None},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": '{"done": true}', "tool_call_id": "c1"},
    {"role": "assistant", "content": "Done.", "tool_calls": None},
]


def answer(text: str = "", *calls: tuple[str, str], turn: int = 3) -> Any:
    native = [{"name": name, "arguments": arguments, "id": ""} for name, arguments in calls]
    return entry("tau2", "airline-0", 0, text, turn=turn, tool_calls=native)


def test_messages_keep_the_standard_fields_only() -> None:
    plain = plain_messages(TALK)
    assert plain[1] == {"role": "user", "content": "Cancel X."}
    assert plain[2] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": CALL["function"]}],
    }
    assert plain[4] == {"role": "assistant", "content": "Done."}


def test_a_model_that_knows_no_tools_reads_them_as_text() -> None:
    told = written_messages(plain_messages(TALK), TOOLS)
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user", "assistant"]
    assert json.dumps(TOOLS[0]["function"]) in told[0]["content"]
    assert json.loads(told[2]["content"]) == {"name": "cancel", "arguments": {"id": "X"}}
    assert told[3]["content"] == 'Result of cancel: {"done": true}'
    assert not any("tool_calls" in message for message in told)


def test_a_written_call_reads_back_as_it_was_told() -> None:
    told = written_messages(plain_messages(TALK), TOOLS)
    text, calls = read_calls(answer(told[2]["content"]), TOOLS, "written")
    assert (text, [(call.name, call.arguments, call.fault) for call in calls]) == ("", [("cancel", {"id": "X"}, None)])


@pytest.mark.parametrize(
    ("name", "arguments", "fault", "readable"),
    [
        ("cancel", '{"id": "X"}', None, True),
        ("cancel", '{"id": "X"', "no JSON", False),
        ("cancel", "", "no JSON", False),
        ("cancel", '"X"', "no JSON object", False),
        ("cancel", "[1]", "no JSON object", False),
        ("cancel", "{}", "don't fit", True),
        ("cancel", '{"id": 7}', "don't fit", True),
        ("delete", '{"id": "X"}', "there is no tool 'delete'", True),
        ("", "{}", "there is no tool ''", True),
    ],
)
def test_what_makes_a_call_malformed(name: str, arguments: str, fault: str | None, readable: bool) -> None:
    _, [call] = read_calls(answer("", (name, arguments)), TOOLS, "native")
    assert (call.fault is None) == (fault is None)
    assert fault is None or fault in str(call.fault)
    assert (call.arguments is not None) == readable


def test_calls_without_an_id_of_their_own_get_one_that_is_the_same_each_time() -> None:
    calls = read_calls(answer("", ("cancel", '{"id": "X"}'), ("cancel", '{"id": "Y"}')), TOOLS, "native")[1]
    assert [call.id for call in calls] == ["call-3-0", "call-3-1"]


def test_a_call_in_plain_text_is_none_where_the_server_reads_calls() -> None:
    text = '{"name": "cancel", "arguments": {"id": "X"}}'
    assert read_calls(answer(text), TOOLS, "native") == (text, [])


def test_inline_reasoning_is_kept_from_the_harness() -> None:
    assert read_calls(answer("<think>hm</think>Hello."), TOOLS, "native") == ("Hello.", [])


def test_a_completion_carries_text_calls_and_usage() -> None:
    text, calls = read_calls(answer("", ("cancel", '{"id": "X"}')), TOOLS, "native")
    told = completion(answer(""), text, calls)
    message = told["choices"][0]["message"]
    assert message["content"] is None
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"id": "X"}
    assert told["usage"] == {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
    assert told["choices"][0]["finish_reason"] == "tool_calls"


def test_the_question_s_hash_is_of_all_that_is_asked() -> None:
    messages = plain_messages(TALK)
    assert asked_hash(messages, TOOLS) == asked_hash(list(messages), list(TOOLS))
    assert asked_hash(messages, TOOLS) != asked_hash(messages, [])
    assert asked_hash(messages, TOOLS) != asked_hash(messages[:-1], TOOLS)
