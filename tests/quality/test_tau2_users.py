"""Who plays Tau2's user: what is pinned, what is refused, what makes a run never rankable; and what doesn't fit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from quality_journals import HEADER, ROOT

from paribus.catalog import Catalog, QualityTask
from paribus.catalog.domains import all_too_long, too_long
from paribus.catalog.simulator import (
    URL_VARIABLE,
    UserSimulator,
    lacks_simulator,
    simulator_condition,
    simulator_of,
    simulator_url,
)
from paribus.conditions import CheckFailed, EnvironmentFault, UsageError
from paribus.conditions.registry import CONDITIONS
from paribus.quality import tau2
from paribus.quality.asking import Asking, Question
from paribus.quality.journal import Key
from paribus.quality.tau2_probe import tool_form
from paribus.quality.tau2_users import (
    NullAgent,
    QuietUser,
    ScriptedUser,
    open_user,
    refuse_same,
    simulator_header,
    where,
)
from paribus.wire import Endpoint
from scripted import DONE, Script, Scripted, Step, content, finish, usage

ITEM = {
    "id": "airline-7",
    "domain": "airline",
    "user_scenario": {"instructions": {"reason_for_call": "Cancel my flight.", "known_info": "You are Ann."}},
}


@pytest.fixture(scope="module")
def task() -> QualityTask:
    return Catalog(ROOT).task("tau2")


@pytest.fixture(scope="module")
def simulator(task: QualityTask) -> UserSimulator:
    found = simulator_of(task)
    assert found is not None
    return found


def says(who: Any, turns: int) -> list[str]:
    async def all_of() -> list[str]:
        return [(await who.answer(Question(Key("tau2", "airline-7", 0, turn), ()))).text for turn in range(turns)]

    return asyncio.run(all_of())


def test_the_script_says_the_same_whatever_it_hears_and_leaves() -> None:
    lines = says(ScriptedUser({"airline-7": ITEM}), 5)
    assert lines[0] == "Cancel my flight.\nYou are Ann."
    assert lines[3] == lines[4] == "###STOP###"
    assert len(set(lines)) == 4


def test_the_floor_s_agent_does_nothing_and_its_user_leaves() -> None:
    assert len(set(says(NullAgent(), 3))) == 1
    assert says(QuietUser(), 2) == ["Hello.", "###STOP###"]


def test_the_simulator_is_a_condition_that_gates(task: QualityTask, simulator: UserSimulator) -> None:
    assert simulator.model in simulator.condition
    assert simulator.revision[:12] in simulator.condition
    assert "temperature 0.0" in simulator.condition
    assert simulator_condition(task, "http://10.0.0.1:8000/v1") == simulator.condition
    assert simulator_condition(task, "scripted") == "scripted"
    assert CONDITIONS["user_simulator"].gates == "always"
    assert CONDITIONS["tool_form"].gates == "always"
    other = simulator.model_copy(update={"sampling": {"temperature": 1.0}})
    assert other.condition != simulator.condition


def test_without_a_simulator_the_task_is_left_out_with_a_reason(task: QualityTask) -> None:
    reason = str(lacks_simulator(task, None))
    assert "it needs its user simulator" in reason
    assert URL_VARIABLE in reason
    assert lacks_simulator(task, "scripted") is None
    assert lacks_simulator(Catalog(ROOT).task("smoke-tau2"), None) is None
    assert simulator_condition(Catalog(ROOT).task("smoke-tau2"), None) is None


def test_a_wrong_pin_is_said(task: QualityTask) -> None:
    broken = task.model_copy(update={"settings": {**task.settings, "user_simulator": {"model": "m"}}})
    with pytest.raises(UsageError, match=r"tasks/quality/tau2\.yaml, user_simulator"):
        simulator_of(broken)


def test_blanks_are_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL_VARIABLE, "  ")
    assert simulator_url() is None
    monkeypatch.setenv(URL_VARIABLE, " http://h:1/v1 ")
    assert simulator_url() == "http://h:1/v1"


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://localhost:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000/other/v1", "http://LOCALHOST:8000/v1"),
        ("https://Sim.example/v1", "https://sim.example:443/v1"),
    ],
)
def test_the_simulator_is_never_the_server_under_test(simulator: UserSimulator, url: str, asked: str) -> None:
    with pytest.raises(UsageError, match="the user simulator needs a server of its own"):
        refuse_same(simulator, url, Endpoint(asked, "m"), "org/m")


def test_the_simulator_is_never_the_model_under_test(simulator: UserSimulator) -> None:
    far, near = "http://10.0.0.2:8000/v1", Endpoint("http://127.0.0.1:8000/v1", "m")
    refuse_same(simulator, far, near, "org/m")
    refuse_same(simulator, "scripted", near, simulator.model)
    with pytest.raises(UsageError, match="can't be the system under test"):
        refuse_same(simulator, far, near, simulator.model)
    with pytest.raises(UsageError, match="can't be the system under test"):
        refuse_same(simulator, far, Endpoint("http://127.0.0.1:8000/v1", simulator.model), None)


def test_where_it_runs_is_told_as_far_as_the_address_says() -> None:
    assert [where(url) for url in ("scripted", "http://localhost:1/v1", "http://sim:1/v1")] == [
        "scripted",
        "this machine",
        "another machine",
    ]


def opened(simulator: UserSimulator, url: str, folder: Path) -> None:
    async def enter() -> None:
        async with open_user(simulator, url, HEADER, {"airline-7": ITEM}, folder):
            pass

    asyncio.run(enter())


def test_another_model_at_the_simulator_s_address_is_refused(
    scripted: Scripted, simulator: UserSimulator, tmp_path: Path
) -> None:
    scripted.register("some/other", Script(()))
    with pytest.raises(UsageError, match="it serves some/other"):
        opened(simulator, scripted.base_url, tmp_path)
    scripted.register(simulator.model, Script(()))
    opened(simulator, scripted.base_url, tmp_path)
    other = simulator.model_copy(update={"sampling": {"temperature": 1.0}})
    with pytest.raises(UsageError, match="belongs to other conditions"):
        opened(other, scripted.base_url, tmp_path)


def test_an_unreachable_simulator_is_the_environment_s_fault(simulator: UserSimulator, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="can't reach the user simulator"):
        opened(simulator, "http://127.0.0.1:9/v1", tmp_path)


def test_the_simulator_s_journal_names_it(simulator: UserSimulator) -> None:
    header = simulator_header(HEADER, simulator)
    assert header.model == f"{simulator.model}@{simulator.revision}"
    assert (header.cap, header.sampling) == (simulator.cap, {"temperature": 0.0})


def test_domains_that_do_not_fit_a_context_are_named_with_the_reason(task: QualityTask) -> None:
    assert too_long(task, None) == too_long(task, 32_768) == {}
    assert list(too_long(task, 8_192)) == ["telecom"]
    assert "holds 8,192" in too_long(task, 8_192)["telecom"]
    assert not all_too_long(task, 8_192)
    assert all_too_long(task, 4_096)
    assert not all_too_long(Catalog(ROOT).task("smoke-tau2"), 16)


def answer(*, prompt: int | None) -> Script:
    counted = usage(1) if prompt is None else usage(1).replace(b'"prompt_tokens": 16', b'"prompt_tokens": %d' % prompt)
    return Script((Step(1, content("y")), Step(1, finish("length")), Step(1, counted + DONE)))


@pytest.mark.parametrize(("armed", "form"), [(40, "native"), (16, "written")])
def test_a_server_that_drops_tools_in_silence_is_found_out(scripted: Scripted, armed: int, form: str) -> None:
    scripted.register("m", answer(prompt=16), answer(prompt=armed))
    assert asyncio.run(tool_form(Asking(scripted.endpoint("m"), {}, 64, 1))) == form
    bare, with_tool = (emission.request for emission in scripted.log())
    assert "tools" not in bare
    assert with_tool["tools"][0]["function"]["name"] == "tell_time"


def test_a_server_that_refuses_tools_gets_them_in_words(scripted: Scripted) -> None:
    refusal = Script((Step(0, b"{}"),), status=400, content_type="application/json", framing="length")
    scripted.register("m", answer(prompt=16), refusal)
    assert asyncio.run(tool_form(Asking(scripted.endpoint("m"), {}, 64, 1))) == "written"


def test_what_was_left_out_and_a_scripted_user_are_flags() -> None:
    facts = {"user_simulator": "scripted", "excluded": {"telecom": "telecom: too long"}}
    flags = {flag.id: flag for flag in tau2.flags_of(HEADER.model_copy(update={"harness": facts}))}
    assert flags["scripted_user"].severity == "invalid"
    assert flags["left_out"].text == "Left out: telecom: too long."
    assert tau2.flags_of(HEADER.model_copy(update={"harness": {"user_simulator": "x@1", "excluded": {}}})) == []


@pytest.mark.parametrize(
    ("url", "endpoint", "said"),
    [
        ("http://127.0.0.1:9/v1", None, {"simulator_here"}),
        ("http://10.1.2.3:9/v1", None, set()),
        ("http://127.0.0.1:9/v1", "https://api.example.com/v1", set()),
    ],
    ids=["both here", "elsewhere", "the system is elsewhere"],
)
def test_a_simulator_beside_the_engine_that_is_measured_is_told(url: str, endpoint: str | None, said: set[str]) -> None:
    harness = {"user_simulator": "x@1", "excluded": {}, "user_simulator_on": where(url)}
    found = tau2.flags_of(HEADER.model_copy(update={"harness": harness, "endpoint": endpoint}))
    assert {flag.id for flag in found} == said


def test_a_journal_of_another_making_is_refused(task: QualityTask) -> None:
    with pytest.raises(CheckFailed, match="not made by its harness"):
        tau2.items_asked(task, ROOT, HEADER)
    with pytest.raises(UsageError, match="these are not the items that were asked"):
        tau2.items_asked(Catalog(ROOT).task("smoke-tau2"), ROOT, HEADER)


def test_the_lock_holds_the_harness_that_the_task_names(task: QualityTask) -> None:
    name, version = task.settings["harness"].split()
    lock = (ROOT / "envs" / task.settings["environment"] / "requirements.txt").read_text("ascii")
    assert f"{name}=={version} " in lock
    assert set(task.settings["prompt_tokens"]) == set(task.settings["domains"])
