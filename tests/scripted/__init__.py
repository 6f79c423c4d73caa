"""A full OpenAI-compatible endpoint that says what a script tells it to, when the script tells it to, and writes
down when it really did. Its clock is the truth that the client is held against. It lives in the tests only."""

from scripted.ask import Asked, ask, ask_one
from scripted.handle import Emission, Scripted, start_server
from scripted.script import (
    DONE,
    Script,
    Step,
    answer_body,
    chunk,
    content,
    error_event,
    event,
    finish,
    named_script,
    reasoning,
    role,
    steps,
    tool,
    usage,
    words,
)

__all__ = [
    "DONE",
    "Asked",
    "Emission",
    "Script",
    "Scripted",
    "Step",
    "answer_body",
    "ask",
    "ask_one",
    "chunk",
    "content",
    "error_event",
    "event",
    "finish",
    "named_script",
    "reasoning",
    "role",
    "start_server",
    "steps",
    "tool",
    "usage",
    "words",
]
