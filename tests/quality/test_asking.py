"""Asking a server: seeds, retries, failures that stay items, resuming; and replaying what was answered."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from asking_servers import CUT, GOOD, IN_BAND, ask, questions
from hypothesis import given
from hypothesis import strategies as st
from quality_journals import HEADER

from paribus.conditions import EnvironmentFault
from paribus.quality.asking import MISSING, Asking, LiveAnswerer, ReplayAnswerer, answer_all, seed_of, wait_s
from paribus.quality.journal import Entry, Journal, Key, read_journal
from paribus.wire import Client, Endpoint, run
from scripted import Script, Scripted, Step, answer_body

FULL = Script((Step(0, b'{"error": "busy"}'),), status=429, content_type="application/json", framing="length")
BROKEN = Script((Step(0, b"oops"),), status=503, content_type="text/plain", framing="length")
REFUSED = Script((Step(0, b'{"error": "bad"}'),), status=400, content_type="application/json", framing="length")


def test_each_request_has_a_seed_of_its_own_that_is_recorded(scripted: Scripted, tmp_path: Path) -> None:
    entries = ask(scripted.endpoint("n4"), tmp_path / "j.jsonl", questions(3, repeats=4))
    sent = [emission.request["seed"] for emission in scripted.log()]
    assert sorted(sent) == sorted(entry.seed for entry in entries)
    assert len(set(sent)) == 12


def test_a_seed_is_left_out_where_the_engine_refuses_it(scripted: Scripted, tmp_path: Path) -> None:
    (entry,) = ask(scripted.endpoint("n4"), tmp_path / "j.jsonl", questions(1), seeds=False)
    assert "seed" not in scripted.log()[0].request
    assert entry.seed is None


def test_card_sampling_and_cap_are_sent_and_no_stop_string(scripted: Scripted, tmp_path: Path) -> None:
    ask(scripted.endpoint("n4"), tmp_path / "j.jsonl", questions(1))
    request = scripted.log()[0].request
    assert (request["temperature"], request["max_tokens"]) == (0.2, 64)
    assert "stop" not in request


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 9), st.integers(0, 9)), unique=True, max_size=20))
def test_seeds_are_distinct_and_the_same_each_time(keys: list[tuple[str, int, int]]) -> None:
    seeds = [seed_of(Key("t", item, repeat, turn)) for item, repeat, turn in keys]
    assert seeds == [seed_of(Key("t", item, repeat, turn)) for item, repeat, turn in keys]
    assert len(set(seeds)) == len(keys)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_no_more_requests_at_once_than_asked_for(scripted: Scripted, tmp_path: Path) -> None:
    ask(scripted.endpoint("n8"), tmp_path / "j.jsonl", questions(12), concurrency=3)
    assert max(emission.active for emission in scripted.log()) == 3


def test_busy_and_broken_servers_are_asked_again(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("wobbly", FULL, BROKEN, FULL, GOOD)
    (entry,) = ask(scripted.endpoint("wobbly"), tmp_path / "j.jsonl", questions(1))
    assert (entry.text, entry.error, entry.attempts) == ("fine", None, 4)


@pytest.mark.parametrize(
    ("asked_for", "low", "high"),
    [(None, 0.25, 0.5), (0.0, 0.25, 0.5), (7.0, 7.0, 7.0), (1e9, 300.0, 300.0)],
)
def test_a_server_is_given_the_time_it_asks_for_within_bounds(asked_for: float | None, low: float, high: float) -> None:
    asking = Asking(Endpoint("http://127.0.0.1:9/v1", "m"), {}, 64, 4)
    outcome = SimpleNamespace(retry_after_s=asked_for)
    assert low <= wait_s(asking, 1, outcome, Key("t", "q", 0)) <= high


def test_waits_double_and_stay_within_their_longest() -> None:
    asking = Asking(Endpoint("http://127.0.0.1:9/v1", "m"), {}, 64, 4)
    outcome = SimpleNamespace(retry_after_s=None)
    waits = [wait_s(asking, attempt, outcome, Key("t", "q", 0)) for attempt in range(1, 12)]
    assert all(0.25 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits[:6]))
    assert max(waits) <= asking.longest_wait_s


@pytest.mark.parametrize(
    ("script", "error", "attempts"),
    [
        (REFUSED, "http_400", 1),
        (IN_BAND, "in_band", 2),
        (CUT, "cut", 2),
        (FULL, "http_429", 6),
        (BROKEN, "http_503", 6),
    ],
)
def test_a_failing_item_is_a_failed_item_and_the_others_go_on(
    scripted: Scripted, tmp_path: Path, script: Script, error: str, attempts: int
) -> None:
    scripted.register("one", *([script] * attempts), GOOD)
    first = ask(scripted.endpoint("one"), tmp_path / "j.jsonl", questions(1))[0]
    entries = ask(scripted.endpoint("one"), tmp_path / "j.jsonl", questions(3))
    assert (first.error, first.attempts) == (error, attempts)
    assert [entry.error for entry in entries] == [error, None, None]


def test_a_server_that_is_gone_ends_the_run_and_keeps_the_answers(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    ask(scripted.endpoint("n4"), path, questions(2))
    with pytest.raises(EnvironmentFault, match="can't reach"):
        ask(Endpoint("http://127.0.0.1:9/v1", "n4"), path, questions(4), attempts=2)
    assert len(read_journal(path)[1]) == 2


def test_a_server_known_to_be_dead_is_not_waited_for(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("dying", BROKEN)
    with pytest.raises(EnvironmentFault, match="the server is gone"):
        ask(scripted.endpoint("dying"), tmp_path / "j.jsonl", questions(1), alive=lambda: False)


def test_what_is_in_the_journal_is_not_asked_again(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    first = ask(scripted.endpoint("n4"), path, questions(2))
    again = ask(scripted.endpoint("n4"), path, questions(5))
    assert again[:2] == first
    assert len(scripted.log()) == 5


def test_every_answer_is_on_disk_before_it_is_handed_on_and_a_slow_disk_holds_up_nobody(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    ask(scripted.endpoint("n4"), path, questions(1))
    scripted.clear()
    stuck, real, synced = threading.Event(), os.fsync, []
    durable, too_early = [b""], []

    def slow(handle: int) -> None:
        """The disk takes until every other request has left."""
        synced.append(threading.get_ident())
        written = path.read_bytes()
        if len(synced) == 1:
            assert stuck.wait(60)
        real(handle)
        durable[0] = written

    def answered(key: Key) -> None:
        if f'"{key.item}"'.encode() not in durable[0]:
            too_early.append(key)

    def watch() -> None:
        while len(scripted.log()) < 8:
            stuck.wait(0.01)
        stuck.set()

    monkeypatch.setattr("paribus.quality.journal.os.fsync", slow)
    watching = threading.Thread(target=watch)
    watching.start()
    entries = ask(scripted.endpoint("n4"), path, questions(9), answered, concurrency=2)
    watching.join()
    assert not too_early
    assert 2 <= len(synced) <= 4  # those that waited for the slow sync shared the next one
    assert threading.get_ident() not in synced
    assert read_journal(path)[1] == {entry.key: entry for entry in entries}


def test_an_answer_that_came_is_written_even_when_the_run_is_stopped(scripted: Scripted, tmp_path: Path) -> None:
    """All four came, and the first is still being written when the run is cancelled: the others are kept too."""
    path, endpoint = tmp_path / "j.jsonl", scripted.endpoint("n4")
    asking, busy, came = Asking(endpoint, {}, 64, 4), threading.Event(), []

    async def go(journal: Journal) -> None:
        async with Client(endpoint) as client, LiveAnswerer(client, asking, journal, lambda _key: None) as answerer:
            recorder = answerer._recorder
            real = recorder.add

            def slowly(make: Callable[[], Entry]) -> Entry:
                busy.wait(60)
                return make()

            async def add(make: Callable[[], Entry], keep: Callable[[Entry], bool]) -> tuple[Entry, int | None]:
                came.append(make)
                return await real(partial(slowly, make), keep)

            recorder.add = add  # type: ignore[method-assign]
            work = asyncio.ensure_future(answer_all(answerer, questions(4)))
            while len(came) < 4:
                await asyncio.sleep(0.01)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            busy.set()

    with Journal(path, HEADER) as journal:
        run(go(journal))
    assert len(read_journal(path)[1]) == 4


def test_tokens_times_and_reasoning_are_kept(scripted: Scripted, tmp_path: Path) -> None:
    (entry,) = ask(scripted.endpoint("n8-R3"), tmp_path / "j.jsonl", questions(1))
    assert (entry.prompt_tokens, entry.completion_tokens, entry.finish_reason) == (16, 8, "stop")
    assert len(entry.reasoning.split()) == 3
    assert len(entry.text.split()) == 5
    assert entry.ttft_ns is not None
    assert entry.e2e_ns is not None
    assert 0 < entry.ttft_ns <= entry.e2e_ns


def test_an_answer_in_one_body_is_read(scripted: Scripted, tmp_path: Path) -> None:
    body = Script((Step(0, answer_body("whole", 1)),), content_type="application/json", framing="length")
    scripted.register("body", body)
    assert ask(scripted.endpoint("body"), tmp_path / "j.jsonl", questions(1))[0].text == "whole"


def test_a_replay_gives_the_same_answers_and_names_what_is_missing(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    live = ask(scripted.endpoint("n4"), path, questions(3))
    replayed = asyncio.run(answer_all(ReplayAnswerer(read_journal(path)[1]), questions(4)))
    assert replayed[:3] == live
    assert replayed[3].error == MISSING
