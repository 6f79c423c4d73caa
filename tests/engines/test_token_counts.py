"""Servers that lend their tokenizer: how each is asked, and what becomes of a reply that is none."""

from types import SimpleNamespace

import pytest

from paribus.engines import engine, session
from paribus.engines.local import NoAnswer
from paribus.engines.session import Session


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("llamacpp", {"content": "two words", "add_special": False}),
        ("vllm", {"model": "m", "prompt": "two words", "add_special_tokens": False}),
        ("sglang", {"model": "m", "prompt": "two words", "add_special_tokens": False}),
    ],
)
def test_a_text_is_counted_without_special_tokens(name, body):
    call = engine(name).token_count("m", "two words")
    assert (call.path, call.body) == ("/tokenize", body)
    assert call.read({"tokens": [5, 7, 9]}) == 3
    for odd in ({}, {"tokens": "abc"}, {"tokens": [True]}, [], None):
        with pytest.raises((LookupError, TypeError, ValueError)):
            call.read(odd)


def test_an_engine_that_lends_none_counts_nothing():
    assert engine("hosted").token_count("m", "two words") is None


def counter(monkeypatch, replies: list):
    asked: list[str] = []

    def ask_json(url, body, **_):
        asked.append(url)
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    monkeypatch.setattr(session, "ask_json", ask_json)
    endpoint = SimpleNamespace(model="m", api_key=None)
    one = SimpleNamespace(engine=engine("llamacpp"), endpoint=endpoint, base="http://127.0.0.1:1")
    return Session.token_counter(one), asked


@pytest.mark.parametrize("silence", [NoAnswer("HTTP 404"), {"tokens": None}, ["odd"]])
def test_a_server_that_does_not_answer_is_asked_no_more(monkeypatch, silence):
    count, asked = counter(monkeypatch, [{"tokens": [1, 2]}, silence, {"tokens": [1]}])
    assert [count("a b"), count("a b"), count("a")] == [2, None, None]
    assert asked == ["http://127.0.0.1:1/tokenize"] * 2
