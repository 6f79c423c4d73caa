"""The recording proxy without the benchmark: a harness of the test's own talks to it as the real one does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from quality_journals import entry

from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.quality.asking import Question, ReplayAnswerer
from paribus.quality.dialogue import Dialogue
from paribus.quality.journal import Entry, Key
from paribus.quality.tau2_proxy import Limits, Proxy, Talk
from paribus.quality.tau2_users import QuietUser

TOOL = {"type": "function", "function": {"name": "cancel", "parameters": {"type": "object", "required": ["id"]}}}


class Agent:
    """Says these things in turn, and remembers what it was asked. An error is raised."""

    def __init__(self, *turns: Any) -> None:
        self.turns, self.asked = turns, list[Question]()
        self.entries: dict[Key, Entry] = {}

    async def answer(self, question: Question) -> Entry:
        self.asked.append(question)
        said = self.turns[min(question.key.turn, len(self.turns) - 1)]
        if isinstance(said, Exception):
            raise said
        fields = {"text": said} if isinstance(said, str) else {"text": "", **said}
        key = question.key
        found = entry(key.task, key.item, key.repeat, **fields, turn=key.turn, asked=question.asked)
        self.entries[key] = found
        return found


async def send(proxy: Proxy, path: str, value: Any = None, word: str | None = None) -> tuple[int, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    body = b"" if value is None else json.dumps(value).encode()
    word = f"Bearer {proxy.token}" if word is None else word
    writer.write(
        f"POST {path} HTTP/1.1\r\nauthorization: {word}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    )
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    found = json.loads(await reader.readexactly(length))
    writer.close()
    return int(head.split()[1]), found


async def converse(proxy: Proxy, number: int = 0, answers: int = 3) -> None:
    """As the harness plays: user, agent, user, ... until the user leaves or somebody refuses; then the result."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    told: dict[str, Any] = {"reward": 1.0, "ended": "user_stop", "parts": {"DB": 1.0}}
    for _ in range(answers):
        status, user = await send(proxy, f"/{number}/user/chat/completions", {"messages": messages})
        if status != 200:
            told = {"error": user["error"]["message"]}
            break
        said = user["choices"][0]["message"]["content"]
        if "###STOP###" in said:
            break
        messages.append({"role": "user", "content": said})
        status, agent = await send(proxy, f"/{number}/agent/chat/completions", {"messages": messages, "tools": [TOOL]})
        if status != 200:
            told = {"error": agent["error"]["message"]}
            break
        messages.append(agent["choices"][0]["message"])
    await send(proxy, f"/{number}/result", told)


def talks(n: int = 1) -> list[Talk]:
    return [Talk({"domain": "airline", "id": f"airline-{i}"}, Key("tau2", f"airline-{i}", 0)) for i in range(n)]


async def never() -> str:
    await asyncio.Event().wait()
    return ""


def play(
    agent: Any,
    user: Any = None,
    *,
    n: int = 1,
    turns: int | None = None,
    harness: Callable[[], Awaitable[str]] = never,
    work: Callable[[Proxy], Awaitable[Any]] | None = None,
) -> list[Dialogue]:
    async def run() -> list[Dialogue]:
        limits = Limits(200, 10, turns)
        async with Proxy(talks(n), agent, user or QuietUser(), form="native", limits=limits, at_once=n) as proxy:
            alone = work or converse
            playing = asyncio.gather(*([alone(proxy)] if n == 1 else [converse(proxy, i) for i in range(n)]))
            played = asyncio.ensure_future(proxy.played(harness()))
            await asyncio.wait({playing, played}, timeout=20, return_when=asyncio.FIRST_EXCEPTION)
            if playing.done() and not playing.cancelled():
                playing.result()  # what failed in the test's own part is told as such
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
            return await asyncio.wait_for(played, 20)

    return asyncio.run(run())


def test_a_dialogue_is_played_rewarded_and_accounted() -> None:
    [found] = play(Agent("How can I help?"))
    assert (found.reward, found.turns, found.failed, found.why) == (1.0, 1, False, "as it should be")
    assert [each.completion_tokens for each in found.entries] == [20]


def test_every_dialogue_gets_its_own_answers_side_by_side() -> None:
    agent = Agent("How can I help?")
    found = play(agent, n=5)
    assert [each.entries[0].item for each in found] == [f"airline-{i}" for i in range(5)]
    assert len(agent.asked) == 5


def test_whoever_lacks_the_password_is_refused() -> None:
    async def work(proxy: Proxy) -> None:
        assert (await send(proxy, "/dialogues", word="Bearer wrong"))[0] == 401
        assert (await send(proxy, "/0/result", {"reward": 1.0}, word=""))[0] == 401
        status, plan = await send(proxy, "/dialogues")
        assert (status, plan["dialogues"]) == (200, [{"domain": "airline", "task": "0"}])
        assert plan["limits"] == {"max_steps": 200, "max_errors": 10}
        await converse(proxy)

    assert play(Agent("Hello."), work=work)[0].reward == 1.0


@pytest.mark.parametrize("path", ["/", "/9/result", "/x/result", "/0/agent/other", "/0/agent/chat/completions"])
def test_what_makes_no_sense_is_refused_and_ends_nothing(path: str) -> None:
    async def work(proxy: Proxy) -> None:
        assert (await send(proxy, path, {"messages": 7}))[0] == 400
        assert (await send(proxy, "/0/result", [1, 2]))[0] == 400
        await converse(proxy)

    assert play(Agent("Hello."), work=work)[0].reward == 1.0


@pytest.mark.parametrize(
    ("said", "why", "failed"),
    [
        ({"tool_calls": [{"name": "cancel", "arguments": "{", "id": "1"}]}, "turn 0: a malformed tool call", False),
        ({"finish_reason": "length", "text": "and so"}, "turn 0: the token cap cut the answer", False),
        ({"text": "<think>never ends"}, "turn 0: an empty message", False),
        ({"error": "http_500"}, "turn 0: http_500", True),
    ],
)
def test_an_answer_that_cannot_be_passed_on_ends_its_own_dialogue_only(said: Any, why: str, failed: bool) -> None:
    class Mixed(Agent):
        async def answer(self, question: Question) -> Entry:
            self.turns = (said,) if question.key.item == "airline-0" else ("Hello.",)
            return await super().answer(question)

    ended, other = play(Mixed(), n=2)
    assert (ended.reward, ended.failed) == (0.0, failed)
    assert ended.why.startswith(why)
    assert (other.reward, other.failed) == (1.0, False)


def test_malformed_calls_are_counted_and_a_readable_one_goes_on() -> None:
    calls = [{"name": "cancel", "arguments": "{}", "id": "1"}, {"name": "cancel", "arguments": '{"id": 1}', "id": "2"}]
    [found] = play(Agent({"tool_calls": calls}))
    assert (found.reward, found.tools.calls, found.tools.malformed) == (1.0, 2, 1)


def test_a_dialogue_may_have_a_limit_of_answers() -> None:
    class Stays:
        async def answer(self, question: Question) -> Entry:
            return entry("tau2", "airline-0", 0, "Go on.", turn=question.key.turn)

    async def work(proxy: Proxy) -> None:
        await converse(proxy, answers=9)

    [found] = play(Agent("Hello."), Stays(), turns=2, work=work)
    assert (found.reward, found.turns, found.why) == (0.0, 2, "not done after 2 answers")


@pytest.mark.parametrize(
    "said",
    [
        *({"error": word} for word in ("http_500", "http_503", "http_429", "connect", "reset", "cut", "timeout_idle")),
        {"text": " "},
        {"error": "protocol"},
        {"tool_calls": [{"name": "cancel", "arguments": "{", "id": "1"}]},
    ],
)
def test_a_fault_of_the_simulator_is_not_the_agent_s(said: Any) -> None:
    [found] = play(Agent("Hello."), Agent(said))
    assert (found.reward, found.failed, found.users, found.entries) == (0.0, True, True, ())
    assert found.why.startswith("the user simulator, turn 0")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"error": "http_400"}, "http_400"),
        ({"error": "http_413"}, "http_413"),
        ({"error": "in_band"}, "in_band"),
        ({"finish_reason": "length", "text": "x"}, "the token cap cut it"),
        ({"finish_reason": "length", "text": " "}, "the token cap cut it"),
    ],
)
def test_a_simulator_that_the_agent_can_bring_to_refuse_is_not_called_at_fault(said: Any, why: str) -> None:
    """A turn longer than the simulator's context is refused; one that asks for a book runs into its cap."""
    [found] = play(Agent("Hello. " * 9), Agent(said))
    assert (found.reward, found.failed, found.users) == (0.0, True, False)
    assert found.why == f"the user simulator, turn 0: {why}"


def test_a_fault_of_the_agent_is_not_the_simulator_s() -> None:
    [found] = play(Agent({"error": "http_503"}))
    assert (found.failed, found.users) == (True, False)


def test_a_harness_that_cannot_play_a_dialogue_fails_it() -> None:
    async def work(proxy: Proxy) -> None:
        await send(proxy, "/0/result", {"error": "KeyError in play: 'x'"})

    [found] = play(Agent("Hello."), work=work)
    assert (found.reward, found.failed, found.why) == (0.0, True, "the harness: KeyError in play: 'x'")
    assert not found.users


def test_an_unrewarded_dialogue_says_what_was_missed() -> None:
    async def work(proxy: Proxy) -> None:
        await send(proxy, "/0/result", {"reward": 0.0, "ended": "user_stop", "parts": {"DB": 0.0, "COMMUNICATE": 1.0}})

    assert play(Agent("Hello."), work=work)[0].why == "not as it should be: db"


def test_the_first_fault_of_a_server_ends_the_run() -> None:
    with pytest.raises(EnvironmentFault, match="the server is gone"):
        play(Agent(EnvironmentFault("the server is gone")), n=2)


def test_a_harness_that_ends_early_is_said() -> None:
    async def dies() -> str:
        await asyncio.sleep(0.05)
        return "exit code 1; ImportError: no tau2"

    with pytest.raises(CheckFailed, match=r"ended after 0 of 1: exit code 1; ImportError"):
        play(Agent("Hello."), harness=dies, work=lambda proxy: asyncio.sleep(5))


def test_the_same_answers_again_give_the_same_dialogue_and_others_are_refused() -> None:
    agent = Agent("How can I help?")
    [first] = play(agent)
    [again] = play(ReplayAnswerer(agent.entries))
    assert again == first
    changed = {key: each.model_copy(update={"asked": "0" * 12}) for key, each in agent.entries.items()}
    with pytest.raises(CheckFailed, match="the journal's answer is to another question"):
        play(ReplayAnswerer(changed))
    [missing] = play(ReplayAnswerer({}))
    assert (missing.failed, missing.why) == (True, "turn 0: missing")


def test_waiting_for_one_answer_holds_up_no_other() -> None:
    class Slow(Agent):
        async def answer(self, question: Question) -> Entry:
            await asyncio.sleep(0.3)
            return await super().answer(question)

    began = time.monotonic()
    play(Slow("Hello."), n=20)
    assert time.monotonic() - began < 20 * 0.3


def test_closing_while_the_harness_keeps_its_connections_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Any] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        limits = Limits(200, 10)
        async with Proxy(talks(), Agent("Hello."), QuietUser(), form="native", limits=limits, at_once=1) as proxy:
            _, kept = await asyncio.open_connection("127.0.0.1", proxy.port)
            played = asyncio.ensure_future(proxy.played(never()))
            await converse(proxy)
            await played
        await asyncio.sleep(0.05)
        kept.close()

    asyncio.run(run())
    assert told == []
    assert capsys.readouterr().err == ""
