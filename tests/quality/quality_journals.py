"""Journals for tests: a header, answers as servers give them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paribus.catalog import QualityTask
from paribus.quality.journal import Entry, Header

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

Sheet = Callable[..., Path]
"""Writes a journal from an answer sheet and gives its folder back; see the fixture `sheet`."""

HEADER = Header(
    task="t",
    family="aime",
    version="1",
    items_hash="0" * 64,
    partial=None,
    items=["a", "b"],
    repeats=2,
    cap=100,
    scale=None,
    limit=None,
    sampling={"temperature": 0.2},
    left_out=[],
    model="m",
    released=None,
    thinking=False,
    concurrency=2,
)


def entry(task: str, item: str, repeat: int, text: str, *, turn: int = 0, **more: object) -> Entry:
    """One answer as a server gives it."""
    plain = {
        "seed": 1,
        "body_sha256": "0" * 64,
        "attempts": 1,
        "status": 200,
        "error": None,
        "reasoning": "",
        "finish_reason": "stop",
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "reasoning_tokens": 0,
        "ttft_ns": 5_000_000,
        "e2e_ns": 25_000_000,
    }
    return Entry.model_validate(
        {"task": task, "item": item, "repeat": repeat, "turn": turn, "text": text, **plain, **more}
    )


def with_settings(task: QualityTask, **more: Any) -> QualityTask:
    """The task with other settings."""
    return task.model_copy(update={"settings": {**task.settings, **more}})
