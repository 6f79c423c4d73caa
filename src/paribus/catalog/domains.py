"""Domains of a dialogue task: which of them a system's context can't hold."""

from __future__ import annotations

from collections.abc import Mapping

from paribus.catalog.tasks import QualityTask


def too_long(task: QualityTask, context: int | None) -> dict[str, str]:
    """Domains whose prompt doesn't fit a context of so many tokens, with the reason. None: the context isn't known.

    A prompt is the policy with all tools, in standard tokens as the task's file lists them (`prompt_tokens`); `room`
    tokens must be left for the dialogue.
    """
    if context is None:
        return {}
    room = int(task.settings.get("room", 0))
    sizes: Mapping[str, int] = task.settings.get("prompt_tokens", {})
    return {
        domain: f"{domain}: its policy and tools take about {size:,} tokens and a dialogue {room:,} more, and the "
        f"system's context holds {context:,}"
        for domain, size in sizes.items()
        if size + room > context
    }


def all_too_long(task: QualityTask, context: int | None) -> bool:
    """Whether no domain of a task fits."""
    return bool(out := too_long(task, context)) and len(out) == len(task.settings["prompt_tokens"])
