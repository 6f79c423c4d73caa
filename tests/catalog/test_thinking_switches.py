"""What a file may send to turn thinking on and off: the switch, the right way round, and nothing beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from paribus.catalog import Catalog
from paribus.catalog.models import Thinking

ON: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": True}}
OFF: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


INLINE = {
    # <think> and </think> are no special tokens of Qwen's tokenizers: they stay in the text, and are read there.
    "clover-35b-a3b-preview--bf16--transformers": "<think>",
}
"""Engines that leave thinking in the text of the answer, where Paribus tells it apart itself."""


def test_every_engine_that_must_be_told_how_thinking_looks_is_told_on_every_card() -> None:
    """vLLM and SGLang take the name of a parser, our server the tokens around thinking; llama.cpp and mlx-vlm know the
    tags of these models by themselves (common/chat.cpp; mlx_vlm/server/responses_state.py)."""
    root = Path(__file__).parents[2]
    catalog = Catalog(root)
    cards = [None, *(path.parent.name for path in root.glob("hardware/*/hardware.yaml"))]
    wanted = {"vllm": "reasoning_parser", "sglang": "reasoning_parser", "transformers": "reasoning_end"}
    untold = {
        "--".join(str(system.name).split("--")[:3])
        for system in catalog.systems.values()
        if system.model.thinking.switch != "none" and system.name.engine in wanted
        for card in cards
        if not system.unsupported_on(card) and not system.launch_on(card).get(wanted[system.name.engine])
    }
    assert untold == INLINE.keys()


def thinking(switch: str, on: dict[str, Any], off: dict[str, Any]) -> Thinking:
    return Thinking.model_validate({"switch": switch, "on": on, "off": off})


@pytest.mark.parametrize(
    ("switch", "on", "off"),
    [
        ("chat_template", ON, OFF),
        ("chat_template", {"chat_template_kwargs": {"thinking": True}}, {"chat_template_kwargs": {"thinking": False}}),
        ("effort", {"reasoning_effort": "medium"}, {"reasoning_effort": "none"}),
        ("effort", {"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "none"}}),
        ("always", {}, {}),
        ("always", {"reasoning_effort": "high"}, {}),
        ("none", {}, {}),
    ],
)
def test_a_switch_alone_is_taken(switch: str, on: dict[str, Any], off: dict[str, Any]) -> None:
    found = thinking(switch, on, off)
    assert (found.on, found.off) == (on, off)


@pytest.mark.parametrize(
    ("switch", "on", "off"),
    [
        ("chat_template", ON, ON),
        ("chat_template", OFF, OFF),
        ("chat_template", ON, {}),
        ("chat_template", ON, {"chat_template_kwargs": {"enable_thinking": 0}}),
        ("chat_template", ON, OFF | {"temperature": 0}),
        ("chat_template", ON | {"max_tokens": 5}, OFF),
        ("chat_template", ON, OFF | {"ignore_eos": True}),
        ("chat_template", ON, OFF | {"stream": False}),
        ("chat_template", ON, {"chat_template_kwargs": {"enable_thinking": False, "system": "Be brief."}}),
        ("effort", {"reasoning_effort": "medium"}, {"reasoning_effort": "low"}),
        ("effort", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
        ("effort", {"reasoning_effort": "medium"}, {"reasoning_effort": "none", "seed": 1}),
        ("effort", {"reasoning_effort": ["medium"]}, {"reasoning_effort": "none"}),
        ("none", {}, {"temperature": 0}),
        ("none", ON, {}),
        ("always", {"temperature": 0}, {}),
        ("always", ON, OFF),
    ],
)
def test_anything_else_is_refused(switch: str, on: dict[str, Any], off: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"switch|turned off"):
        thinking(switch, on, off)
