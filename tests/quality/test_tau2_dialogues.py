"""Tau2 with the benchmark's own code: known rewards, the floor, a kill and its continuation, malformed calls.

Needs the locked environment (`paribus fetch env tau2`); each test starts the harness, which takes seconds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from quality_journals import ROOT

from paribus.catalog import Catalog, PlannedMeasure
from paribus.catalog.simulator import URL_VARIABLE, simulator_of
from paribus.conditions import CheckFailed, UsageError
from paribus.engines import StartRecord
from paribus.engines.envs import build_environment, environment_marker
from paribus.quality import tau2
from paribus.quality.asking import Asking, Question
from paribus.quality.canonical import item_id
from paribus.quality.data import Items, load_items
from paribus.quality.journal import Entry, Journal, read_journal
from paribus.quality.run import Evaluation, generate, generate_start, score_start
from paribus.quality.samples import read_samples
from paribus.quality.tau2_items import check_same, without
from paribus.quality.tau2_users import ScriptedUser, said
from paribus.wire import Endpoint, run
from scripted import DONE, Script, Scripted, Step, content, finish, start_server, tool

pytestmark = pytest.mark.system

NAME = "f40-n6-u"
"""A model of the scripted endpoint that says six words, counts no tokens, and so is believed to be shown tools."""


@pytest.fixture(scope="module", autouse=True)
def _environment() -> None:
    """The harness's environment; where tests may not be skipped it is built."""
    if os.environ.get("PARIBUS_REQUIRE"):
        build_environment(ROOT, "tau2", print)
    elif not environment_marker(ROOT, "tau2").is_file():
        pytest.skip("the environment of tau2 isn't built: run `paribus fetch env tau2`")


@pytest.fixture(autouse=True)
def _no_data_and_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARIBUS_DATA", raising=False)
    monkeypatch.setenv(URL_VARIABLE, "scripted")
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def task() -> Any:
    return Catalog(ROOT).task("tau2")


def evaluation(task: Any, items: Items, *, repeats: int = 1, limit: int | None = None, **more: Any) -> Evaluation:
    return Evaluation(task, items, repeats, 256, limit, None, "m", None, False, **more)


class Oracle:
    """Plays what the benchmark itself expects of a task, then says what has to be said; journals it all."""

    def __init__(self, items: Items, journal: Journal, *, skip: frozenset[str] = frozenset()) -> None:
        self.items, self.journal, self.skip = {item["id"]: item for item in items.items}, journal, skip

    async def answer(self, question: Question) -> Entry:
        key = question.key
        wanted = self.items[key.item]["evaluation_criteria"]
        actions = [] if key.item in self.skip else wanted["actions"]
        entry = said(key, f"Done. {' '.join(wanted['communicate_info'])}")
        if key.turn < len(actions):
            action = actions[key.turn]
            call = {"name": action["name"], "arguments": json.dumps(action["arguments"]), "id": f"a{key.turn}"}
            entry = entry.model_copy(update={"text": "", "tool_calls": [call], "finish_reason": "tool_calls"})
        entry = entry.model_copy(update={"asked": question.asked})
        self.journal.append(entry)
        return entry


def play_oracle(task: Any, items: Items, folder: Path, limit: int, **more: Any) -> tau2.Played:
    facts = {
        "items": items.whole,
        "user_simulator": "scripted",
        "user_simulator_on": "scripted",
        "tools": "native",
        "excluded": {"telecom": "telecom: left out by this test"},
        "turns": None,
        "build": "b",
    }
    asked = evaluation(task, items, limit=limit, harness=facts)
    header = asked.header(Asking(Endpoint("http://127.0.0.1:9/v1", "m"), {}, 256, 4))
    user = ScriptedUser({item_id(task, item): item for item in items.items})
    with Journal(folder / "journal.jsonl", header) as journal:
        return run(tau2.play(asked, tau2.Stage(ROOT, folder, 4), Oracle(items, journal, **more), user))


def test_known_right_actions_get_the_whole_reward_live_and_again_from_the_journal(task: Any, tmp_path: Path) -> None:
    items = without(task, ROOT, load_items(task, ROOT).whole, {"telecom": ""}, 8)
    acting = [item["id"] for item in items.items if item["evaluation_criteria"]["actions"]]
    idle = frozenset(acting[:1])
    played = play_oracle(task, items, tmp_path, 8, skip=idle)
    assert len(acting) >= 3
    expected = {item["id"]: float(item["id"] not in idle) for item in items.items}
    assert {item: each.reward for item, _, each in played} == expected
    assert all(each.tools.malformed == 0 and not each.failed for _, _, each in played)

    summary = score_start(tmp_path, Catalog(ROOT))
    scores = {score.name: score.value for score in summary.scores}
    assert scores["pass^1"] == pytest.approx(7 / 8)
    samples = {sample.item: sample for sample in read_samples(tmp_path / "samples.parquet")}
    assert {item: sample.correct for item, sample in samples.items()} == expected
    assert samples[acting[0]].answer == "not as it should be: db"
    assert {"scripted_user", "left_out", "partial"} <= {flag.id for flag in summary.flags}
    assert next(flag for flag in summary.flags if flag.id == "scripted_user").severity == "invalid"


def test_the_floor_is_what_doing_nothing_gets(task: Any) -> None:
    whole = load_items(task, ROOT)
    chosen = tuple(item for item in whole.items if item["id"] in ("airline-0", "airline-12", "retail-0"))
    telecom = tuple(item for item in whole.items if item["domain"] == "telecom")[:1]
    wanted = [item["evaluation_criteria"] for item in chosen]
    assert (wanted[0]["actions"], wanted[0]["communicate_info"]) == ([], [])
    found = tau2.floors(evaluation(task, Items(**{**vars(whole), "items": chosen + telecom})), ROOT)
    assert (found["airline"][0], found["retail"], found["telecom"]) == (1.0, [0.0], [0.0])


def ask(scripted: Scripted, out: Path, *more: str, model: str = NAME) -> list[str]:
    words = ["--base-url", scripted.base_url, "--model", model, "--task", "tau2", "--out", str(out)]
    return [str(Path(sys.executable).with_name("paribus")), "quality", *words, *more]


def test_a_kill_in_the_middle_costs_the_requests_in_flight_and_nothing_is_asked_twice(
    scripted: Scripted, tmp_path: Path
) -> None:
    command = ask(scripted, tmp_path / "out", "--limit", "3", "--repeats", "2", "--concurrency", "2", "--no-score",
                  model="f400-n6-u")  # fmt: skip
    path = tmp_path / "out" / "journal.jsonl"
    first = subprocess.Popen(command, env=os.environ | {URL_VARIABLE: "scripted"}, start_new_session=True)
    until = time.monotonic() + 200
    while not (path.exists() and path.read_bytes().count(b"\n") >= 6) and time.monotonic() < until:
        assert first.poll() is None
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(1.0)  # what was on its way arrives, and the harness dies with its parent
    kept, asked = path.read_bytes(), len(scripted.log())
    assert kept.count(b"\n") < 3 * 2 * 3 + 1

    subprocess.run(command, env=os.environ | {URL_VARIABLE: "scripted"}, check=True, capture_output=True)
    assert path.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    _, entries = read_journal(path)
    per_dialogue = Counter(key[:3] for key in entries)
    assert set(per_dialogue.values()) == {3}
    assert len(per_dialogue) == 6
    probes = 2 * 2
    in_flight = asked + (len(scripted.log()) - asked) - probes - len(entries)
    assert 0 <= in_flight <= 2


def stream(*pieces: bytes) -> Script:
    return Script(tuple(Step(1, piece) for piece in (*pieces, DONE)))


def test_malformed_calls_end_their_own_dialogue_and_are_counted(scripted: Scripted, task: Any, tmp_path: Path) -> None:
    hello, stop = stream(content("Hello."), finish()), finish("tool_calls")
    unreadable = stream(tool(0, '{"user_id": ', name="get_user_details", id="c1"), stop)
    unknown = stream(tool(0, "{}", name="open_the_door", id="c2"), stop)
    endless = stream(tool(0, '{"expression": "9**9**9**9"}', name="calculate", id="c3"), stop)
    # The two probes, then: one that can't be read ends the first dialogue; an unknown tool is answered with an error,
    # and so is a sum that would never end.
    scripted.register("m", hello, hello, unreadable, unknown, endless, hello)
    items = load_items(task, ROOT, 2)
    asking = Asking(scripted.endpoint("m"), {}, 256, 1)
    generate(evaluation(task, items, limit=2), asking, ROOT, tmp_path)
    summary = score_start(tmp_path, Catalog(ROOT))
    first, second = read_samples(tmp_path / "samples.parquet")
    assert (first.correct, first.turns, first.tool_calls, first.malformed_calls) == (0.0, 1, 1, 1)
    assert str(first.answer).startswith("turn 0: a malformed tool call")
    assert (second.turns, second.tool_calls, second.malformed_calls, second.status) == (5, 2, 1, "ok")
    assert summary.failed == 0


def test_the_pinned_simulator_is_asked_at_its_own_server_and_journalled(
    scripted: Scripted, task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator = simulator_of(task)
    assert simulator is not None
    agent = scripted.register("m", stream(content("How can I help?"), finish()))
    items = load_items(task, ROOT, 1)
    with start_server() as other:
        monkeypatch.setenv(URL_VARIABLE, other.base_url)
        asking = Asking(scripted.endpoint(agent), {}, 256, 1)
        with pytest.raises(UsageError, match="is not the task's user simulator: it lists no models"):
            generate(evaluation(task, items, limit=1), asking, ROOT, tmp_path)
        assert not list(tmp_path.iterdir())  # nothing was asked, so nothing is left that would forbid another try
        user = [stream(content("I want to cancel."), finish()), stream(content("###STOP###"), finish())]
        other.register(simulator.model, *user)
        generate(evaluation(task, items, limit=1), asking, ROOT, tmp_path)
        asked = other.log(simulator.model)
    assert [len(emission.request["messages"]) for emission in asked] == [2, 4]
    assert {emission.request["temperature"] for emission in asked} == {0.0}
    assert {emission.request["reasoning_effort"] for emission in asked} == {"low"}
    header, entries = read_journal(tmp_path / "simulator.jsonl")
    assert header.model == f"{simulator.model}@{simulator.revision}"
    assert [entry.text for entry in entries.values()] == ["I want to cancel.", "###STOP###"]
    summary = score_start(tmp_path, Catalog(ROOT))
    assert "scripted_user" not in {flag.id for flag in summary.flags}
    assert (summary.items, summary.failed) == (1, 0)

    lines = (tmp_path / "simulator.jsonl").read_text().splitlines()
    changed = json.loads(lines[1]) | {"text": "I want something else."}
    (tmp_path / "simulator.jsonl").write_text("\n".join([lines[0], json.dumps(changed), *lines[2:]]) + "\n")
    with pytest.raises(CheckFailed, match="the journal's answer is to another question"):
        score_start(tmp_path, Catalog(ROOT))


def test_the_package_carries_the_task_s_items(task: Any) -> None:
    check_same(task, ROOT)
    whole = load_items(task, ROOT)
    assert (whole.origin, whole.partial, len(whole.items)) == ("package", None, task.data.count)
    assert whole.hash == task.data.items_hash
    assert Counter(item["domain"] for item in whole.items) == {"airline": 50, "retail": 114, "telecom": 114}


def test_a_planned_start_leaves_out_what_does_not_fit_and_says_so(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(ROOT)
    system = next(each for each in catalog.systems.values() if each.name.model == "smollm2-135m")
    session: Any = SimpleNamespace(
        endpoint=scripted.endpoint(NAME),
        system=system,
        accepted=frozenset({"temperature", "seed"}),
        sampling=lambda: {"temperature": 0.2},
        sampling_left_out=["top_p"],
        alive=lambda: True,
        measuring=nullcontext,
        record=StartRecord(),
    )
    declared = {"scale": "demo", "repeats": 1, "cap": 48, "launch": {"context_per_slot": 8192}, "requests_at_once": 3}
    planned = PlannedMeasure(
        measure="tau2.demo", id="tau2", run="r", hashes={}, declared={**declared, "sampling_profile": "served"}
    )
    record = generate_start(session, planned, catalog, tmp_path)
    assert record.observed["left_out_domains"] == "telecom"
    assert record.observed["tool_form"] == "native"
    assert record.observed["user_simulator_on"] == "scripted"
    assert record.observed["sampling_accepted"] == ["seed", "temperature"]
    header, entries = read_journal(tmp_path / "journal.jsonl")
    assert {item.split("-")[0] for item in header.items} == {"airline", "retail"}
    assert (len(header.items), len({key[:3] for key in entries}), header.left_out) == (4, 4, ["top_p"])
    asked = [emission.request for emission in scripted.log(NAME)[2:]]
    assert {request["max_tokens"] for request in asked} == {48}
    assert len({request["seed"] for request in asked}) == len(asked) == len(entries)
    assert all(request["tools"] and request["messages"][0]["role"] == "system" for request in asked)

    declared["launch"] = {"context_per_slot": 4096}
    with pytest.raises(UsageError, match="no domain is left: airline: its policy and tools take about"):
        generate_start(session, planned.model_copy(update={"declared": declared}), catalog, tmp_path / "other")
