"""What the dialogues of a task like Tau2 cost: answers x tokens x dialogues, and the waits for the simulated user.

Rough, and said to be: nobody's published means were found for this build of the benchmark. What is counted from the
benchmark's own package: its tasks expect 3.0 (airline), 4.9 (retail) and 4.5 (telecom) tool calls on average. Looking
things up first, questions, confirmations and goodbyes come on top: how many is a guess, and so are the lengths. One
project reports half an hour for 40 telecom tasks with a thinking model on an H100, several at once, and 33 hours for
three times as many one at a time (github.com/open-jarvis/OpenJarvis, pull request 207): real runs may take longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paribus.catalog.simulator import SCRIPTED
from paribus.catalog.tasks import QualityTask

ANSWERS = 15
"""Answers of the system in a dialogue (a guess, about three times the tool calls that the tasks expect)."""
TOKENS = {True: 1_000, False: 120}
"""Tokens of one of them, thinking or not (a guess)."""
NEW_PROMPT_TOKENS = 250
"""Tokens of a prompt that the prefix cache doesn't hold: the last answer and what came back (a guess)."""
USER_MESSAGES = 0.5
"""Messages of the user for each answer of the system: about every other answer is a tool call (a guess)."""
USER_SECONDS = 4.0
"""How long the user simulator takes for a message, on a card of its own (a guess)."""


@dataclass(frozen=True)
class DialogueCost:
    """Of all dialogues of one measure. `waiting_s`: seconds in which the server has nothing to do for a dialogue."""

    tokens: float
    prompt_tokens: float
    waiting_s: float


def dialogue_cost(task: QualityTask, declared: Mapping[str, Any], items: int) -> DialogueCost:
    """The cost of `items` dialogues times their repeats.

    Tokens: dialogues x answers x tokens, and what each answer adds to its prompt; each domain's policy and tools are
    read once for every dialogue that starts beside others (then the cache has them). Waiting: the simulated user's
    messages, divided by the dialogues at once.
    """
    dialogues, at_once = items * int(declared["repeats"]), int(declared["requests_at_once"])
    scripted = declared.get("user_simulator") == SCRIPTED
    answers = min(ANSWERS, int(task.settings["scripted_turns"])) if scripted else ANSWERS
    tokens = min(float(declared["cap"]), TOKENS[bool(declared["thinking"])])
    policies: Mapping[str, int] = task.settings.get("prompt_tokens", {})
    once = sum(policies.values()) / max(1, len(policies)) * min(dialogues, at_once)
    user_s = 0.0 if scripted else USER_SECONDS
    return DialogueCost(
        tokens=dialogues * answers * tokens,
        prompt_tokens=dialogues * answers * NEW_PROMPT_TOKENS + once,
        waiting_s=dialogues * answers * USER_MESSAGES * user_s / min(at_once, max(1, dialogues)),
    )
