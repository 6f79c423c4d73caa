"""What of a journal is believed: its header must follow from task and items, each answer from a request that it makes.

A journal is written by whoever submits it. Nothing here needs a server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from paribus.catalog import QualityTask
from paribus.conditions import CheckFailed, UsageError
from paribus.quality.asking import Asking, Question, body_of, seed_of
from paribus.quality.data import Items, item_id
from paribus.quality.journal import Entry, Header, Key
from paribus.wire import Endpoint

_NAMED = 3


def check_journal(task: QualityTask, items: Items, header: Header, entries: Mapping[Key, Entry]) -> None:
    """Raise `CheckFailed` where the header contradicts task and items, or where an answer was never asked for."""
    facts = {
        "task": task.task,
        "family": task.family,
        "version": task.version,
        "items_hash": items.hash,
        "partial": items.partial,
        "items": [item_id(task, item) for item in items.items],
    }
    for name, fact in facts.items():
        said = getattr(header, name)
        if said != fact:
            words = "" if name == "items" else f": {said!r}, and it is {fact!r}"
            raise CheckFailed(f"the journal's header is wrong about its {name}{words}")
    asked = {task.task}, set(header.items), range(header.repeats)
    for key in entries:
        turns = task.family == "tau2" or key.turn == 0
        if not turns or not all(part in known for part, known in zip(key[:3], asked, strict=True)):
            raise CheckFailed(f"the journal has an answer that was not asked for: {', '.join(map(str, key))}")


def wrong_seeds(header: Header, entries: Mapping[Key, Entry]) -> Iterator[str]:
    """Where answers have another seed than theirs: each request has one of its own, or none has."""
    seeds = "seed" not in header.left_out
    wrong = [key for key, entry in entries.items() if entry.seed != (seed_of(key) if seeds else None)]
    if wrong:
        yield f"{len(wrong)} answers have another seed than the request's own: {_some(wrong)}"


@dataclass
class Witness:
    """Sees each question and its answer while a journal is scored again, and makes the request once more."""

    header: Header
    wrong: list[Key] = field(default_factory=list)
    seen: int = 0

    def __call__(self, question: Question, entry: Entry) -> None:
        """Compare the sha256 of the request that the question makes with the one that was recorded."""
        self.seen += 1
        try:
            body = body_of(asking_of(self.header), question)
        except UsageError:
            self.wrong.append(question.key)
            return
        if hashlib.sha256(body).hexdigest() != entry.body_sha256:
            self.wrong.append(question.key)

    def faults(self) -> Iterator[str]:
        """What was found, in words."""
        if self.wrong:
            yield f"{len(self.wrong)} answers are to another request than their question makes: {_some(self.wrong)}"


def asking_of(header: Header) -> Asking:
    """How a journal's requests were asked, as far as it went into them."""
    return Asking(
        endpoint=Endpoint("http://127.0.0.1/v1", header.served_as, header.api, extra_body=dict(header.extra_body)),
        sampling=header.sampling,
        cap=header.cap,
        concurrency=header.concurrency,
        seeds="seed" not in header.left_out,
    )


def _some(keys: Sequence[Key]) -> str:
    shown = [f"{key.item} ({key.repeat})" for key in keys[:_NAMED]]
    return ", ".join(shown) + (" and more" if len(keys) > _NAMED else "")
