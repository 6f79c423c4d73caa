"""Whether the switch for thinking does anything: the template must render it on and off as two prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paribus.catalog import System
from paribus.conditions import EnvironmentFault
from paribus.engines.base import Engine, Running
from paribus.engines.local import NoAnswer, ask_json

SHOWN = 2000
"""Characters of a rendered prompt that are kept. A longer one may differ in what is cut off."""


def shown(answer: Any, name: str) -> str | None:
    """The rendered prompt out of a server's answer, as much of it as is kept; None where the answer has none."""
    text = answer.get(name) if isinstance(answer, Mapping) else None
    return text[:SHOWN] if isinstance(text, str) else None


def by_template(running: Running) -> str | None:
    """One short message as a server's `/apply-template` renders it (llama.cpp's page, and our own server's), with the
    system's switch for thinking; None where it doesn't."""
    body = {"messages": [{"role": "user", "content": "hello"}], **running.launch.system.thinking_settings}
    try:
        return shown(ask_json(f"{running.base}/apply-template", body), "prompt")
    except NoAnswer:
        return None


def switch_seen(engine: Engine, running: Running, read: Mapping[str, Any]) -> dict[str, str]:
    """`thinking_switch`: whether the switch was seen to work (PROTOCOL rule 2); {} for a model that has none.

    Raises `EnvironmentFault` where the engine renders one prompt for both: a run with thinking on and one with thinking
    off would be the same run under two names.
    """
    system = running.launch.system
    if system.model.thinking.switch != "chat_template":
        return {}
    mine = read.get("rendered_prompt")
    opposite = System(system.model, replace(system.name, think=not system.name.think))
    other = engine.rendered(replace(running, launch=replace(running.launch, system=opposite))) if mine else None
    if not mine or not other:
        return {"thinking_switch": f"not seen: {engine.name} shows no rendered prompt"}
    if mine != other:
        return {"thinking_switch": "seen: on and off render two prompts"}
    if len(mine) >= SHOWN:
        return {"thinking_switch": f"not seen: on and off are alike in the {SHOWN:,} characters that are kept"}
    raise EnvironmentFault(
        f"{system.name}: {engine.name} renders the same prompt with thinking on and off, so that the switch "
        f"({system.thinking_settings}) does nothing: correct `thinking` in the model's file, or the chat template"
    )
