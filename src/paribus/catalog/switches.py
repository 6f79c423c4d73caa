"""What a switch for thinking may send: nothing but the switch, turned the right way.

What stands under `on` and `off` goes out with every request. Anything else there (a temperature, a token cap, an
ignored end) would change answers without a trace in what is declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEMPLATE_KEYS = ("enable_thinking", "thinking")
"""What chat templates call their switch; its value is true or false."""
EFFORTS_ON = ("max", "xhigh", "high", "medium", "low", "minimal")
EFFORTS_OFF = ("none", "instant")
"""Efforts without reasoning: OpenRouter's word (openrouter.ai/docs, "Reasoning Tokens"), and Inception's."""


def switch_faults(switch: str, on: Mapping[str, Any], off: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of a switch, in words; None where nothing is."""
    if switch == "none":
        return "a model without a switch sends nothing: leave out on and off" if on or off else None
    if switch == "always":
        if off:
            return "a model that always thinks can't be turned off: leave out off"
        return _fault("effort", "on", on) if on else None
    return _fault(switch, "on", on) or _fault(switch, "off", off)


def _fault(switch: str, way: str, fields: Mapping[str, Any]) -> str | None:
    if switch == "chat_template":
        wanted: list[dict[str, Any]] = [{"chat_template_kwargs": {key: way == "on"}} for key in TEMPLATE_KEYS]
        said = f"{{chat_template_kwargs: {{enable_thinking: {str(way == 'on').lower()}}}}}"
    else:
        words = EFFORTS_ON if way == "on" else EFFORTS_OFF
        wanted = [{"reasoning_effort": word} for word in words]
        wanted += [{"reasoning": {"effort": word}} for word in words]
        said = f"{{reasoning_effort: ...}} with one of {', '.join(words)}"
    # Compared by their text: True == 1, and a template may tell them apart.
    if repr(dict(fields)) in map(repr, wanted):
        return None
    return f"{way} must be the switch alone, {said}, not {dict(fields)!r}"
