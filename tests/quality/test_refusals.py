"""Refusals: those of whoever asks end the run and leave nothing; those of one question are its result."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from asking_servers import GOOD, ask, questions
from quality_journals import HEADER, ROOT

from paribus.catalog import Catalog
from paribus.catalog.simulator import KEY_VARIABLE, UserSimulator, simulator_of
from paribus.conditions import EnvironmentFault
from paribus.quality.asking import Asking
from paribus.quality.journal import read_journal
from paribus.quality.tau2_probe import tool_form
from paribus.quality.tau2_users import check_user, open_user
from paribus.wire import Endpoint
from scripted import DONE, Script, Scripted, Step, content, finish, usage

KEY = "sk-live-0123456789wXyZ"


def refusal(status: int, words: str = "token expired") -> Script:
    body = json.dumps({"error": {"message": words}}).encode()
    return Script((Step(0, body),), status=status, content_type="application/json", framing="length")


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 407, 410, 302, 409])
def test_a_server_that_refuses_everybody_ends_the_run_and_leaves_no_answer_of_it(
    scripted: Scripted, tmp_path: Path, status: int
) -> None:
    """After two answers; when it takes questions again the same run goes on and all are answered."""
    path = tmp_path / "j.jsonl"
    scripted.register("m", GOOD, GOOD, refusal(status))
    with pytest.raises(EnvironmentFault, match=f"refuses whatever is asked .HTTP {status}, saying 'token expired'"):
        ask(scripted.endpoint("m"), path, questions(12), attempts=3, concurrency=1)
    assert [entry.error for entry in read_journal(path)[1].values()] == [None, None]
    scripted.register("m", GOOD)
    assert {entry.error for entry in ask(scripted.endpoint("m"), path, questions(12), attempts=3)} == {None}
    assert len(read_journal(path)[1]) == 12


@pytest.mark.parametrize("status", [400, 413, 422])
def test_the_refusal_of_a_question_is_its_result(scripted: Scripted, tmp_path: Path, status: int) -> None:
    scripted.register("m", refusal(status), GOOD)
    entries = ask(scripted.endpoint("m"), tmp_path / "j.jsonl", questions(3), concurrency=1)
    assert [entry.error for entry in entries] == [f"http_{status}", None, None]
    assert len(scripted.log()) == 3


def test_a_question_that_a_server_won_t_hear_is_a_failed_item(scripted: Scripted, tmp_path: Path) -> None:
    """403 twice, and in between nothing is wrong with who asks: a short request is answered."""
    scripted.register("m", refusal(403, "flagged"), refusal(403, "flagged"), GOOD)
    entries = ask(scripted.endpoint("m"), tmp_path / "j.jsonl", questions(2), concurrency=1)
    assert [(entry.error, entry.attempts) for entry in entries] == [("http_403", 2), (None, 1)]


def test_one_403_is_asked_again(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", refusal(403), GOOD)
    (entry,) = ask(scripted.endpoint("m"), tmp_path / "j.jsonl", questions(1))
    assert (entry.error, entry.attempts) == (None, 2)


def test_a_used_up_quota_that_is_called_busy_is_told_in_the_server_s_words(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", GOOD, refusal(429, "You exceeded your current quota"))
    with pytest.raises(EnvironmentFault, match="after http_429: http_429 'You exceeded your current quota'"):
        ask(scripted.endpoint("m"), tmp_path / "j.jsonl", questions(3), attempts=2, concurrency=1)


@pytest.mark.parametrize("shown", [KEY, "sk-l**********wXyZ", "sk-...yZ", "Bearer:0123456789wXyZ", KEY.upper()])
def test_no_part_of_the_key_is_told(scripted: Scripted, tmp_path: Path, shown: str) -> None:
    scripted.register("m", refusal(401, f"Incorrect API key provided: {shown}. You find yours in the settings."))
    with pytest.raises(EnvironmentFault, match=r"Incorrect API key provided: \[the key\]") as fault:
        ask(replace(scripted.endpoint("m"), api_key=KEY), tmp_path / "j.jsonl", questions(1))
    said = str(fault.value).lower()
    assert "settings" in said
    assert not any(part in said for part in ("0123", "wxyz", "sk-", "yz"))


@pytest.fixture(scope="module")
def simulator() -> UserSimulator:
    found = simulator_of(Catalog(ROOT).task("tau2"))
    assert found is not None
    return found


def test_a_simulator_that_refuses_everybody_ends_the_run(
    scripted: Scripted, simulator: UserSimulator, tmp_path: Path
) -> None:
    scripted.register(simulator.model, GOOD, refusal(401))

    async def go() -> None:
        async with open_user(simulator, scripted.base_url, HEADER, {}, tmp_path) as user:
            for question in questions(3):
                await user.answer(question)

    with pytest.raises(EnvironmentFault, match=r"the user simulator refuses whatever is asked \(HTTP 401"):
        asyncio.run(go())
    assert [entry.error for entry in read_journal(tmp_path / "simulator.jsonl")[1].values()] == [None]


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_a_simulator_that_does_not_say_what_it_serves_is_not_taken_for_another(
    simulator: UserSimulator, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    async def get(*_: object) -> tuple[int, bytes]:
        return status, b'{"error": {"message": "bad key %s"}}' % KEY.encode()

    monkeypatch.setattr("paribus.wire.client.Client.get", get)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.raises(EnvironmentFault, match=f"HTTP {status} .*bad key .the key.*{KEY_VARIABLE}"):
        asyncio.run(check_user(simulator, "http://127.0.0.1:9/v1"))


TOLD = Script((Step(1, content("y")), Step(1, finish("length")), Step(1, usage(1) + DONE)))


def form(endpoint: Endpoint) -> str:
    return asyncio.run(tool_form(Asking(endpoint, {}, 64, 1, attempts=2, first_wait_s=0.01)))


@pytest.mark.parametrize("status", [401, 403, 404, 429, 503])
def test_a_server_that_refuses_everybody_says_nothing_of_tools(scripted: Scripted, status: int) -> None:
    """The form of tool use is a condition of the whole run: it isn't decided by a key that expired meanwhile."""
    scripted.register("m", TOLD, refusal(status))
    with pytest.raises(EnvironmentFault, match=r"token expired"):
        form(scripted.endpoint("m"))


@pytest.mark.parametrize(("status", "times"), [(404, 1), (403, 1), (500, 2)])
def test_whoever_answers_all_but_tools_gets_them_in_words(scripted: Scripted, status: int, times: int) -> None:
    scripted.register("m", TOLD, *[refusal(status)] * times, TOLD)
    assert form(scripted.endpoint("m")) == "written"
