"""The switch for thinking must do something: on and off are two prompts, or nothing is measured."""

from __future__ import annotations

import pytest
from test_vllm import PLAIN, launch_of

from paribus.conditions import EnvironmentFault
from paribus.engines import engine
from paribus.engines.base import Adapter, Running
from paribus.engines.thinking import SHOWN, switch_seen

ADAPTERS = ("vllm", "sglang", "llamacpp", "transformers")


def running() -> Running:
    return Running("http://127.0.0.1:1", "", launch_of(PLAIN))


def answered(monkeypatch, name: str, page) -> None:
    """The engine's pages, whoever asks for them: its adapter, or what adapters share."""
    for module in (f"adapters.{name}", "thinking"):
        monkeypatch.setattr(f"paribus.engines.{module}.ask_json", page)


def served(monkeypatch, name: str, *, obeys: bool) -> None:
    """The engine's pages: a template that reads the switch, or one that doesn't."""

    def page(url: str, body: dict | None = None, **_: object) -> object:
        kwargs = (body or {}).get("chat_template_kwargs") or {}
        thought = "<think>" if obeys and kwargs.get("enable_thinking") else ""
        if url.endswith("/apply-template"):
            return {"prompt": f"hello{thought}"}
        if url.endswith("/tokenize"):
            return {"tokens": [1, 2] if thought else [1]}
        text = f"hello{(body or {}).get('tokens')}"
        return {"prompt": text, "text": text}

    answered(monkeypatch, name, page)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_switch_that_renders_two_prompts_is_seen(monkeypatch, name):
    served(monkeypatch, name, obeys=True)
    read = {"rendered_prompt": engine(name).rendered(running())}
    assert read["rendered_prompt"]
    assert switch_seen(engine(name), running(), read) == {"thinking_switch": "seen: on and off render two prompts"}


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_switch_that_renders_one_prompt_for_both_is_a_fault(monkeypatch, name):
    served(monkeypatch, name, obeys=False)
    read = {"rendered_prompt": engine(name).rendered(running())}
    with pytest.raises(EnvironmentFault, match="the same prompt with thinking on and off"):
        switch_seen(engine(name), running(), read)


@pytest.mark.parametrize("answer", [{}, {"prompt": None, "text": None}, []])
@pytest.mark.parametrize("name", ADAPTERS)
def test_an_answer_without_the_prompt_shows_none_and_blames_no_file(monkeypatch, name, answer):
    def page(url: str, *_: object, **__: object) -> object:
        return {"tokens": [1]} if url.endswith("/tokenize") else answer

    answered(monkeypatch, name, page)
    assert engine(name).rendered(running()) is None
    said = switch_seen(engine(name), running(), {"rendered_prompt": engine(name).rendered(running())})
    assert said == {"thinking_switch": f"not seen: {name} shows no rendered prompt"}


@pytest.mark.parametrize("name", ADAPTERS)
def test_as_much_of_a_prompt_is_kept_as_is_compared(monkeypatch, name):
    def page(url: str, *_: object, **__: object) -> object:
        return {"tokens": [1]} if url.endswith("/tokenize") else dict.fromkeys(("prompt", "text"), "x" * 3 * SHOWN)

    answered(monkeypatch, name, page)
    assert engine(name).rendered(running()) == "x" * SHOWN


def test_where_nothing_is_rendered_it_is_said():
    assert engine("mlx").rendered(running()) is None
    said = switch_seen(engine("mlx"), running(), {})
    assert said == {"thinking_switch": "not seen: mlx shows no rendered prompt"}


def test_prompts_that_are_alike_as_far_as_they_are_kept_decide_nothing():
    class Long(Adapter):
        name = "long"

        def rendered(self, running: Running) -> str:
            return "x" * SHOWN

    said = switch_seen(Long(), running(), {"rendered_prompt": "x" * SHOWN})
    assert said["thinking_switch"].startswith("not seen: on and off are alike")


def test_a_model_without_a_switch_is_not_asked_for_it():
    launch = running().launch
    model = launch.system.model
    without = model.model_copy(update={"thinking": type(model.thinking)()})
    bare = Running("", "", launch_of(PLAIN))
    object.__setattr__(bare.launch.system, "model", without)
    assert switch_seen(engine("vllm"), bare, {"rendered_prompt": "hello"}) == {}
