"""The recording proxy: an OpenAI-compatible server on 127.0.0.1 for the Tau2 harness, an `Answerer` behind each side.

The harness plays; the proxy decides how the system under test is asked (sampling, seeds, cap, retries: `asking.py`),
journals each answer, counts tool calls, and ends a dialogue where an answer can't be passed on. It can't tell a live
answerer from a replaying one, so that a dialogue is played again from its journal, without a server, in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import orjson

from paribus.conditions import CheckFailed
from paribus.machine.ports import LOCALHOST
from paribus.quality.asking import Answerer, Question
from paribus.quality.data import Item
from paribus.quality.dialogue import Dialogue, ToolUse
from paribus.quality.journal import Entry, Key
from paribus.quality.tasks.base import visible
from paribus.quality.tau2_calls import (
    Call,
    ToolForm,
    asked_hash,
    completion,
    plain_messages,
    read_calls,
    written_messages,
)

_OWN_FAULTS = {"connect", "reset", "cut", "protocol", "empty", "http_408", "http_425", "http_429"}
"""Words of the wire for a server that is away, broken or busy."""

_LARGEST = 64 << 20
"""Bytes of the largest request that the harness may send."""


@dataclass
class Talk:
    """One dialogue under way. `ended`: why it was ended here, null while the harness decides; `failed`: by a fault,
    `users`: of the user simulator's own."""

    item: Item
    key: Key
    """The key of its first answer."""
    entries: list[Entry] = field(default_factory=list)
    user_turns: int = 0
    tools: ToolUse = field(default_factory=ToolUse)
    ended: str | None = None
    failed: bool = False
    users: bool = False
    result: Mapping[str, Any] | None = None

    def end(self, why: str, *, failed: bool = False, users: bool = False) -> None:
        """End it; the first reason stays."""
        if self.ended is None:
            self.ended, self.failed, self.users = why, failed, users

    def dialogue(self) -> Dialogue:
        """What became of it. A dialogue that was ended here gets 0, and so does one that the harness couldn't play."""
        told = self.result or {"error": "the harness told nothing"}
        reward, failed = 0.0, self.failed
        if self.ended is not None:
            why = self.ended
        elif "error" in told:
            why, failed = f"the harness: {told['error']}", True
        else:
            reward = float(told["reward"])
            why = "as it should be" if reward >= 1 else _shortcoming(told)
        return Dialogue(reward, len(self.entries), self.tools, tuple(self.entries), failed, why, self.users)


def _shortcoming(told: Mapping[str, Any]) -> str:
    missed = [name for name, part in (told.get("parts") or {}).items() if float(part) < 1]
    if missed:
        return f"not as it should be: {', '.join(sorted(missed)).lower()}"
    return f"ended by {str(told.get('ended', '?')).replace('_', ' ')}"


@dataclass(frozen=True)
class Limits:
    """How long a dialogue may be: the harness's steps and tool errors; answers of the agent, null without a limit."""

    steps: int
    errors: int
    turns: int | None = None


class Refused(Exception):
    """A request that gets no answer: the harness then ends this dialogue."""


class Proxy:
    """Serves dialogues until all are told. `async with Proxy(...) as proxy: ... await proxy.played(ended)`.

    `agent` answers for the system under test and `user` for the user simulator; `changed` is called with the number of
    finished dialogues.
    """

    def __init__(
        self,
        talks: Sequence[Talk],
        agent: Answerer,
        user: Answerer,
        *,
        form: ToolForm,
        limits: Limits,
        at_once: int,
        changed: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self.talks = talks
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        self._agent, self._user = agent, user
        self._form: ToolForm = form
        self._limits, self._at_once, self._changed = limits, at_once, changed
        self._done = 0
        self._over: asyncio.Future[None] | None = None
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._over = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._connected, LOCALHOST, 0, limit=1 << 20, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def address(self) -> str:
        """Where the harness finds it."""
        return f"http://{LOCALHOST}:{self.port}"

    async def played(self, harness: Awaitable[str]) -> list[Dialogue]:
        """Wait until every dialogue is told. `harness` ends when the harness does, with its last words.

        Raises the first fault of an answerer, and `CheckFailed` when the harness ended before its work was done.
        """
        assert self._over is not None
        watch = asyncio.ensure_future(harness)
        try:
            await asyncio.wait((self._over, watch), return_when=asyncio.FIRST_COMPLETED)
            if self._over.done():
                self._over.result()
            elif self._done < len(self.talks):
                raise CheckFailed(f"the Tau2 harness ended after {self._done} of {len(self.talks)}: {watch.result()}")
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
        return [talk.dialogue() for talk in self.talks]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            while (request := await _read(reader)) is not None:
                status, value = await self._answer(*request)
                body = orjson.dumps(value)
                writer.write(
                    b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                    % (status, len(body), body)
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # whoever sent that isn't the harness, or it is gone
        except asyncio.CancelledError:
            pass  # the proxy closes; asyncio would print a connection's cancelled task as an error
        finally:
            self._serving.discard(task)
            writer.close()

    async def _answer(self, path: str, word: str, body: bytes) -> tuple[int, Any]:
        if not hmac.compare_digest(word.encode(), f"Bearer {self.token}".encode()):
            return 401, {"error": {"message": "this proxy is not for you"}}
        try:
            return 200, await self._serve(path, body)
        except Refused as why:
            # 400: the one kind of answer that no client library tries again.
            return 400, {"error": {"message": str(why), "type": "paribus"}}
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            return 400, {"error": {"message": f"not understood: {error}", "type": "paribus"}}
        except Exception as fault:
            assert self._over is not None
            if not self._over.done():
                self._over.set_exception(fault)
            return 400, {"error": {"message": "the run is over", "type": "paribus"}}

    async def _serve(self, path: str, body: bytes) -> Any:
        if path == "/dialogues":
            return {
                "dialogues": [{"domain": t.item["domain"], "task": _own_id(t.item)} for t in self.talks],
                "at_once": self._at_once,
                "limits": {"max_steps": self._limits.steps, "max_errors": self._limits.errors},
            }
        number, _, rest = path.removeprefix("/").partition("/")
        talk, value = self.talks[int(number)], orjson.loads(body)
        if not isinstance(value, dict):
            raise TypeError("the body is no object")
        if rest == "agent/chat/completions":
            return await self._ask_agent(talk, value)
        if rest == "user/chat/completions":
            return await self._ask_user(talk, value)
        if rest == "result":
            return self._told(talk, value)
        raise LookupError(rest[:80])

    def _told(self, talk: Talk, value: Mapping[str, Any]) -> dict[str, Any]:
        if talk.result is None:
            talk.result = value
            self._done += 1
            self._changed(self._done)
            if self._done == len(self.talks) and self._over is not None and not self._over.done():
                self._over.set_result(None)
        return {}

    async def _ask_agent(self, talk: Talk, body: Mapping[str, Any]) -> dict[str, Any]:
        turn = len(talk.entries)
        if self._limits.turns is not None and turn >= self._limits.turns:
            talk.end(f"not done after {turn} answers")
        _go_on(talk)
        messages, tools = plain_messages(body["messages"]), tuple(body.get("tools") or ())
        entry = await _asked(self._agent, talk.key._replace(turn=turn), messages, tools, self._form)
        talk.entries.append(entry)
        if entry.error:
            talk.end(f"turn {turn}: {entry.error}", failed=True)
        elif entry.capped:  # unfinished counts as wrong, whatever the database looks like by now
            talk.end(f"turn {turn}: the token cap cut the answer")
        text, calls = read_calls(entry, tools, self._form)
        talk.tools.calls += len(calls)
        talk.tools.malformed += sum(call.fault is not None for call in calls)
        _end_where_unreadable(talk, f"turn {turn}", text, calls)
        _go_on(talk)
        return completion(entry, text, calls)

    async def _ask_user(self, talk: Talk, body: Mapping[str, Any]) -> dict[str, Any]:
        _go_on(talk)
        messages, tools = plain_messages(body["messages"]), tuple(body.get("tools") or ())
        turn, talk.user_turns = talk.user_turns, talk.user_turns + 1
        entry = await _asked(self._user, talk.key._replace(turn=turn), messages, tools, "native")
        text, calls = read_calls(entry, tools, "native")
        fault, users = entry.error, _by_itself(entry)
        if fault is None and entry.capped:
            fault, users = "the token cap cut it", False
        if fault is None and not visible(text).strip() and not calls:
            fault = "it said nothing"
        if fault is None and any(call.arguments is None for call in calls):
            fault = "a tool call of its is no JSON"
        if fault is not None:
            talk.end(f"the user simulator, turn {turn}: {fault}", failed=True, users=users)
        _go_on(talk)
        return completion(entry, text, calls)


async def _asked(
    answerer: Answerer, key: Key, messages: list[dict[str, Any]], tools: tuple[dict[str, Any], ...], form: ToolForm
) -> Entry:
    asked = asked_hash(messages, tools)
    if form == "written":
        return await answerer.answer(Question(key, tuple(written_messages(messages, tools)), (), asked))
    return await answerer.answer(Question(key, tuple(messages), tools, asked))


def _by_itself(entry: Entry) -> bool:
    """Whether a simulator's failure is its own: nothing that the system under test wrote can have brought it about.

    A refusal (400, or an error inside an answer) may come of a turn that is too long for the simulator's context.
    """
    word = entry.error
    return word is None or word in _OWN_FAULTS or word.startswith(("http_5", "timeout_"))


def _end_where_unreadable(talk: Talk, where: str, text: str, calls: Sequence[Call]) -> None:
    """End a dialogue whose answer the harness can't take: it would end the whole run over it."""
    broken = next((call for call in calls if call.arguments is None), None)
    if broken is not None:
        talk.end(f"{where}: a malformed tool call: {broken.fault}")
    elif not text.strip() and not calls:
        talk.end(f"{where}: an empty message")


def _go_on(talk: Talk) -> None:
    if talk.ended is not None:
        raise Refused(talk.ended)


def _own_id(item: Item) -> str:
    """The benchmark's own id of a task: ours has the domain before it."""
    return str(item["id"]).removeprefix(f"{item['domain']}-")


async def _read(reader: asyncio.StreamReader) -> tuple[str, str, bytes] | None:
    """One request: its path, its `Authorization`, its body; null when the connection has ended."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    _, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= _LARGEST:
        raise ValueError("too large")
    return path, headers.get("authorization", ""), await reader.readexactly(length)
