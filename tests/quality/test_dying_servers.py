"""A server that dies under way: what it cut off is no answer, so none of it is journalled and all is asked again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asking_servers import CUT, GOOD, IN_BAND, ask, questions
from quality_journals import HEADER, ROOT

from paribus.catalog import Catalog
from paribus.catalog.simulator import simulator_of
from paribus.conditions import EnvironmentFault
from paribus.quality.asking import Asking
from paribus.quality.journal import read_journal
from paribus.quality.pulse import Pulse
from paribus.quality.tau2_users import open_user
from paribus.wire import Endpoint, run
from scripted import DONE, Script, Scripted, Step, content, finish, start_server

RESET = Script((Step(0, content("so")), Step(1, act="reset")))
GATEWAY = Script((Step(0, b"bad gateway"),), status=502, content_type="text/plain", framing="length")
BUSY = Script((Step(0, b"{}"),), status=429, content_type="application/json", framing="length")
GARBLED = Script((Step(0, b"data: oops\n\n"), Step(1, DONE)))
ABORTED = Script((Step(0, content("so")), Step(1, finish("abort")), Step(1, DONE)))
ENDS = {
    "in_band": IN_BAND,
    "cut": CUT,
    "reset": RESET,
    "http_502": GATEWAY,
    "http_429": BUSY,
    "protocol": GARBLED,
    "abort": ABORTED,
}

BODY = {"body": b'{"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}', "reads": [(1, 72)]}
BODY |= {"content_type": "application/json", "api": "chat", "status": 200}

ENDLESS = """
import asyncio
async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\\r\\n")[0]))
            writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\n")
            writer.write(b"transfer-encoding: chunked\\r\\n\\r\\n")
            while True:
                piece = b'data: {"choices": [{"index": 0, "delta": {"content": "x"}}]}\\n\\n'
                writer.write(b"%x\\r\\n%b\\r\\n" % (len(piece), piece))
                await writer.drain()
                await asyncio.sleep(0.02)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def test_a_killed_server_leaves_no_answer_of_those_under_way(scripted: Scripted, tmp_path: Path) -> None:
    """Eight answers are being written when the process is killed; its connections end politely."""
    path = tmp_path / "j.jsonl"
    server = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    endpoint = Endpoint(f"http://127.0.0.1:{int(server.stdout.readline())}/v1", "n4")
    threading.Timer(0.7, server.kill).start()
    with pytest.raises(EnvironmentFault, match="the server is gone: start again, what it answered is kept"):
        ask(endpoint, path, questions(20), attempts=3, concurrency=8, alive=lambda: server.poll() is None)
    server.communicate()
    assert read_journal(path)[1] == {}
    assert {entry.error for entry in ask(scripted.endpoint("n4"), path, questions(20), attempts=3)} == {None}


@pytest.mark.parametrize("end", ENDS)
def test_a_server_of_somebody_else_that_answers_nothing_any_more_ends_the_run(
    scripted: Scripted, tmp_path: Path, end: str
) -> None:
    """Nobody sees its process: what stands for it from then on (a gateway, an engine's last words) is no answer."""
    path = tmp_path / "j.jsonl"
    scripted.register("m", GOOD, GOOD, ENDS[end])
    with pytest.raises(EnvironmentFault, match="the server answers nothing any more"):
        ask(scripted.endpoint("m"), path, questions(12), attempts=3)
    _, entries = read_journal(path)
    assert [entry.error for entry in entries.values()] == [None, None]
    scripted.register("m", GOOD)
    assert {entry.error for entry in ask(scripted.endpoint("m"), path, questions(12), attempts=3)} == {None}
    assert len(read_journal(path)[1]) == 12


@pytest.mark.parametrize("end", ["in_band", "cut"])
def test_a_server_that_was_away_in_between_is_asked_again(scripted: Scripted, tmp_path: Path, end: str) -> None:
    """The answer breaks off twice, then nothing answers for a while, then somebody has started the server again."""
    scripted.register("m", ENDS[end], ENDS[end], GATEWAY, GOOD)
    (entry,) = ask(scripted.endpoint("m"), tmp_path / "j.jsonl", questions(1), attempts=3)
    assert (entry.error, entry.text, entry.attempts) == (None, "fine", 3)


def test_a_server_that_never_stays_ends_the_run(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    scripted.register("m", CUT, CUT, GATEWAY, GOOD, CUT, GATEWAY, GOOD)
    with pytest.raises(EnvironmentFault, match="the server goes away again and again"):
        ask(scripted.endpoint("m"), path, questions(1), attempts=3)
    assert read_journal(path)[1] == {}


@pytest.mark.parametrize("end", ["in_band", "cut", "protocol"])
def test_a_question_that_breaks_its_own_answer_is_a_failed_item(scripted: Scripted, tmp_path: Path, end: str) -> None:
    """Twice, on a server that answers in between: then it is written down, once, and kept."""
    scripted.register("m", ENDS[end], ENDS[end], GOOD)
    for _ in range(2):
        (entry,) = ask(scripted.endpoint("m"), tmp_path / "j.jsonl", questions(1), attempts=3)
        assert (entry.error, entry.attempts) == (end, 2)
    assert len(scripted.log()) == 3  # two tries, and one short request that was answered
    assert scripted.log()[-1].request["max_tokens"] == 16


def test_one_request_vouches_for_all_that_failed_before_it() -> None:
    sent = []

    async def probe() -> Any:
        sent.append(None)
        return SimpleNamespace(error=None if len(sent) > 1 else "connect", sent_ns=100 * len(sent), **BODY)

    async def go() -> list[bool]:
        pulse = Pulse(probe, lambda: True, lambda _number: 0.0, tries=3, name="it")
        failed = [pulse.lasted(failed_ns, "cut") for failed_ns in (10, 20, 99, 150)]
        return list(await asyncio.gather(*failed))

    assert asyncio.run(go()) == [False, False, False, True]  # the last failed after it had been away
    assert len(sent) == 2


@pytest.mark.parametrize("end", ["in_band", "cut", "http_502"])
def test_a_simulator_that_dies_ends_the_run_and_leaves_no_words_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """In Tau2 nobody started the simulator: its process can't be looked at."""
    monkeypatch.setattr("paribus.quality.tau2_users.Asking", partial(Asking, first_wait_s=0.01, attempts=3))
    task = Catalog(ROOT).task("tau2")
    simulator = simulator_of(task)
    assert simulator is not None

    async def go(url: str) -> None:
        async with open_user(simulator, url, HEADER, {}, tmp_path) as user:
            for question in questions(3):
                await user.answer(question)

    with start_server() as server:
        server.register(simulator.model, GOOD, ENDS[end])
        with pytest.raises(EnvironmentFault, match="the user simulator answers nothing any more"):
            run(go(server.base_url))
    _, entries = read_journal(tmp_path / "simulator.jsonl")
    assert [(entry.text, entry.error) for entry in entries.values()] == [("fine", None)]
