"""Scripted answers of servers under test, questions, and how they are put to a server, for the tests of asking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quality_journals import HEADER

from paribus.quality.asking import Asking, LiveAnswerer, Question, answer_all
from paribus.quality.journal import Entry, Journal, Key
from paribus.wire import Client, Endpoint, run
from scripted import DONE, Script, Step, content, error_event, finish, usage

GOOD = Script((Step(1, content("fine")), Step(2, finish()), Step(2, usage(3) + DONE)))
IN_BAND = Script((Step(0, content("so")), Step(1, error_event()), Step(1, DONE)))
CUT = Script((Step(0, content("so")), Step(1, act="cut")))


def questions(n: int, repeats: int = 1) -> list[Question]:
    return [
        Question(Key("t", f"q{i}", r), ({"role": "user", "content": f"question {i}"},))
        for i in range(n)
        for r in range(repeats)
    ]


def ask(
    endpoint: Endpoint,
    path: Path,
    asked: list[Question],
    answered: Callable[[Key], None] = lambda _key: None,
    **more: object,
) -> list[Entry]:
    asking = Asking(endpoint, {"temperature": 0.2}, 64, first_wait_s=0.01, **{"concurrency": 4, **more})

    async def go(journal: Journal) -> list[Entry]:
        async with Client(endpoint) as client, LiveAnswerer(client, asking, journal, answered) as answerer:
            return await answer_all(answerer, asked)

    with Journal(path, HEADER) as journal:
        return run(go(journal))
