"""Who talks to the system under test in a Tau2 dialogue: the pinned simulator at its own endpoint, or a script."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from paribus.catalog.simulator import KEY_VARIABLE, SCRIPTED, URL_VARIABLE, UserSimulator
from paribus.conditions import EnvironmentFault, UsageError
from paribus.quality.asking import Answerer, Asking, LiveAnswerer, Question, missing
from paribus.quality.data import Item
from paribus.quality.journal import Entry, Header, Journal, Key
from paribus.wire import Client, Endpoint, shown_words

SIMULATOR = "simulator.jsonl"
"""The simulator's own journal, beside that of the system under test: who said what, with tokens and times."""

_STOP = "###STOP###"
"""What ends a dialogue, in the benchmark's own words."""

_GREETING, _NOTHING = "Hello.", "I am sorry, I can't help with that."
IDLE_WORDS = (_GREETING, _STOP, _NOTHING)
"""What is said in the floor's dialogues: by the user first, by the user once answered, and by the agent."""

HERE = "this machine"
_HERE = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 (names of this machine, nothing listens there)


class ScriptedUser:
    """A user who says why they call, agrees twice, and leaves: the same words whatever they hear.

    It is no simulator. Dialogues with it show that everything works; their scores say nothing.
    """

    def __init__(self, items: Mapping[str, Item]) -> None:
        self._items = items

    async def answer(self, question: Question) -> Entry:
        """The next line of the script."""
        key = question.key
        lines = [_opening(self._items[key.item]), "Yes, please go ahead.", "Yes. Is there anything else?", _STOP]
        return said(key, lines[min(key.turn, len(lines) - 1)])


class QuietUser:
    """A user who greets and, once answered, leaves."""

    async def answer(self, question: Question) -> Entry:
        """A greeting, then the end."""
        return said(question.key, _GREETING if question.key.turn == 0 else _STOP)


class NullAgent:
    """An agent that does nothing and says so: what it gets is the floor under every score."""

    async def answer(self, question: Question) -> Entry:
        """The same sentence each time."""
        return said(question.key, _NOTHING)


def _opening(item: Item) -> str:
    told = item["user_scenario"]["instructions"]
    if not isinstance(told, dict):
        return str(told)
    return "\n".join(str(told[name]) for name in ("reason_for_call", "known_info") if told.get(name))


def said(key: Key, text: str) -> Entry:
    """An answer that no server gave."""
    return missing(key).model_copy(update={"error": None, "status": 200, "finish_reason": "stop", "text": text})


def refuse_same(simulator: UserSimulator, url: str, asked: Endpoint, repository: str | None) -> None:
    """Raise `UsageError` where the simulator would be the system under test: the same server, or the same model.

    A server of another port on this machine is taken, but if it runs on the card that is measured, all times suffer:
    that can't be seen from here.
    """
    if url == SCRIPTED:
        return
    if _place(Endpoint(url, simulator.model)) == _place(asked):
        raise UsageError(
            f"{URL_VARIABLE} is the address of the system under test: the user simulator needs a server of its own"
        )
    if simulator.model in (repository, asked.model):
        raise UsageError(f"{simulator.model} is the task's user simulator, so that it can't be the system under test")


def _place(endpoint: Endpoint) -> tuple[str, int]:
    address = endpoint.address()
    return ("here" if address.host.lower() in _HERE else address.host.lower(), address.port)


def where(url: str) -> str:
    """Where the simulator runs, as far as its address says (observed, shown)."""
    if url == SCRIPTED:
        return SCRIPTED
    return HERE if _place(Endpoint(url, "x"))[0] == "here" else "another machine"


def simulator_header(header: Header, simulator: UserSimulator) -> Header:
    """The header of the simulator's journal: it continues only for the same simulator and the same run."""
    return header.model_copy(
        update={
            "model": f"{simulator.model}@{simulator.revision}",
            "sampling": dict(simulator.sampling),
            "cap": simulator.cap,
            "profile": None,
            "served_as": simulator.model,
            "extra_body": dict(simulator.extra),
            "endpoint": None,
            "left_out": [],
            "released": None,
            "thinking": False,
        }
    )


@asynccontextmanager
async def open_user(
    simulator: UserSimulator, url: str, header: Header, items: Mapping[str, Item], folder: Path
) -> AsyncIterator[Answerer]:
    """The user of a live run. Raises `UsageError` where another model is served at the simulator's address."""
    if url == SCRIPTED:
        yield ScriptedUser(items)
        return
    endpoint = _endpoint(simulator, url)
    async with Client(endpoint) as client:
        await _check_model(client, endpoint, simulator)
        asking = Asking(endpoint, _numbers(simulator), simulator.cap, header.concurrency, name="the user simulator")
        with Journal(folder / SIMULATOR, simulator_header(header, simulator)) as journal:
            async with LiveAnswerer(client, asking, journal, lambda _key: None) as user:
                yield user


async def check_user(simulator: UserSimulator, url: str) -> None:
    """Ask the simulator's server what it serves, before anything is written down or asked.

    Raises `EnvironmentFault` where it can't be reached, `UsageError` where it serves another model.
    """
    if url != SCRIPTED:
        endpoint = _endpoint(simulator, url)
        async with Client(endpoint) as client:
            await _check_model(client, endpoint, simulator)


def _endpoint(simulator: UserSimulator, url: str) -> Endpoint:
    key = os.environ.get(KEY_VARIABLE, "").strip() or None
    return Endpoint(url, simulator.model, api_key=key, extra_body=dict(simulator.extra))


def _numbers(simulator: UserSimulator) -> dict[str, float | int]:
    return {name: value for name, value in simulator.sampling.items() if isinstance(value, int | float)}


async def _check_model(client: Client, endpoint: Endpoint, simulator: UserSimulator) -> None:
    prefix = endpoint.address().prefix
    status, body = await client.get(f"{prefix}/models")
    if status == 0:
        raise EnvironmentFault(f"can't reach the user simulator at {URL_VARIABLE} ({endpoint.base_url})")
    words = shown_words(body[:2000].decode(errors="replace"), endpoint.api_key)
    said = f" {words!r}" if words else ""
    if status not in (200, 404, 405):  # these have no such page, and the others one that isn't shown
        raise EnvironmentFault(
            f"the user simulator at {URL_VARIABLE} doesn't say what it serves (HTTP {status}{said}): see to its "
            f"address and to {KEY_VARIABLE}"
        )
    try:
        listed: list[Any] = json.loads(body)["data"] if status == 200 else []
        names = [str(model["id"]) for model in listed]
    except (ValueError, LookupError, TypeError):
        names = []
    if simulator.model not in names:
        found = f"it serves {', '.join(names[:3])}" if names else "it lists no models"
        raise UsageError(
            f"the server at {URL_VARIABLE} is not the task's user simulator: {found}; "
            f"serve {simulator.model}, revision {simulator.revision}, under that name"
        )
