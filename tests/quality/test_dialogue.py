"""Dialogues: the script of the user, tools on the database, rewards, the floor; and the same again from the journal."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quality_journals import ROOT, Sheet, entry

from paribus.catalog import Catalog
from paribus.quality.asking import Question
from paribus.quality.data import load_items
from paribus.quality.dialogue import NullAgent, User, load_domain, play, start_of
from paribus.quality.journal import Entry
from paribus.quality.run import score_start


class Says:
    """An agent that says these things in turn."""

    def __init__(self, *turns: str | dict[str, Any]) -> None:
        self.turns = turns
        self.asked: list[Question] = []

    async def answer(self, question: Question) -> Entry:
        self.asked.append(question)
        said = self.turns[min(question.key.turn, len(self.turns) - 1)]
        fields = said if isinstance(said, dict) else {"text": said}
        return entry(question.key.task, question.key.item, 0, **{"text": "", **fields}, turn=question.key.turn)


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


@pytest.fixture(scope="module")
def task(catalog: Catalog) -> Any:
    return catalog.task("smoke-tau2")


@pytest.fixture(scope="module")
def domain(task: Any) -> Any:
    return load_domain(task, ROOT)


@pytest.fixture(scope="module")
def items(task: Any) -> dict[str, Any]:
    return {item["id"]: item for item in load_items(task, ROOT).items}


def played(item: Any, task: Any, domain: Any, agent: Any) -> Any:
    return asyncio.run(play(item, 0, task, domain, agent))


def test_doing_what_the_user_wants_is_rewarded(task: Any, domain: Any, items: dict[str, Any]) -> None:
    agent = Says("Shall I renew loan L1?", call("renew_loan", loan="L1"), "Done, it is renewed.")
    found = played(items["library-1"], task, domain, agent)
    assert (found.reward, found.turns, found.tools.calls, found.tools.malformed) == (1.0, 3, 1, 0)
    assert [m["content"] for m in agent.asked[1].messages if m["role"] == "user"][-1] == "Yes, please do."
    assert "Result of renew_loan" in agent.asked[2].messages[-1]["content"]


@pytest.mark.parametrize(
    "form",
    [
        "{0}",
        "```json\n{0}\n```",
        "<tool_call>{0}</tool_call>",
        "Sure!\n<tool_call>\n{0}\n</tool_call>",
        "<think>which tool?</think>{0}",
    ],
)
def test_a_tool_call_is_read_in_the_forms_models_write(task: Any, domain: Any, items: Any, form: str) -> None:
    agent = Says(form.format(call("renew_loan", loan="L1")), "It is renewed now.")
    assert played(items["library-1"], task, domain, agent).reward == 1.0


def test_a_native_tool_call_is_used(task: Any, domain: Any, items: Any) -> None:
    native = {"tool_calls": [{"name": "renew_loan", "arguments": '{"loan": "L1"}', "id": "c1"}]}
    found = played(items["library-1"], task, domain, Says(native, "It is renewed now."))
    assert (found.reward, found.tools.calls) == (1.0, 1)


@pytest.mark.parametrize(
    "bad",
    [
        '{"name": "renew_loan", "arguments": {"loan": "L1"',
        call("no_such_tool", loan="L1"),
        call("renew_loan"),
        call("renew_loan", loan=7),
        call("renew_loan", loan="L1", more="x"),
        '{"name": "renew_loan", "arguments": "L1"}',
        "<tool_call>nonsense</tool_call>",
        {"tool_calls": [{"name": "renew_loan", "arguments": "not json", "id": "c1"}]},
    ],
)
def test_a_malformed_call_is_counted_told_and_not_fatal(task: Any, domain: Any, items: Any, bad: Any) -> None:
    agent = Says(bad, call("renew_loan", loan="L1"), "It is renewed now.")
    found = played(items["library-1"], task, domain, agent)
    assert (found.reward, found.tools.calls, found.tools.malformed) == (1.0, 2, 1)
    assert "error" in agent.asked[1].messages[-1]["content"]


@pytest.mark.parametrize("capped_turn", [0, 1])
def test_an_answer_cut_by_the_cap_ends_the_dialogue_and_counts_as_wrong(
    task: Any, domain: Any, items: Any, capped_turn: int
) -> None:
    turns = [{"text": call("renew_loan", loan="L1")}, {"text": "Done, it is renewed."}]
    assert played(items["library-1"], task, domain, Says(*turns)).reward == 1.0
    turns[capped_turn] = {**turns[capped_turn], "finish_reason": "length"}
    found = played(items["library-1"], task, domain, Says(*turns))
    assert (found.reward, found.failed, found.turns) == (0.0, False, capped_turn + 1)
    assert found.why == f"turn {capped_turn}: the token cap cut the answer"


def test_a_wrong_change_costs_the_reward(task: Any, domain: Any, items: Any) -> None:
    agent = Says(call("renew_loan", loan="L1"), call("reserve_book", card="C101", book="B4"), "It is renewed now.")
    assert played(items["library-1"], task, domain, agent).reward == 0.0


def test_information_must_be_said(task: Any, domain: Any, items: Any) -> None:
    assert played(items["library-2"], task, domain, Says("It is due on 2026-03-05.")).reward == 1.0
    found = played(items["library-2"], task, domain, Says("Soon."))
    assert (found.reward, found.why) == (0.0, "'2026-03-05' was not said")


def test_a_failed_request_is_a_failed_dialogue(task: Any, domain: Any, items: Any) -> None:
    found = played(items["library-6"], task, domain, Says({"error": "http_500"}))
    assert (found.reward, found.failed, found.why) == (0.0, True, "turn 0: http_500")


def test_a_dialogue_ends_after_the_steps_it_may_take(task: Any, domain: Any, items: Any) -> None:
    agent = Says(call("find_reader", card="C101"))
    assert played(items["library-1"], task, domain, agent).turns == task.settings["max_steps"]


def test_every_task_can_be_done_and_the_floor_is_what_doing_nothing_gets(task: Any, domain: Any, items: Any) -> None:
    for item in items.values():
        wanted = item["evaluation_criteria"]
        calls = [call(a["name"], **a["arguments"]) for a in wanted["actions"]]
        words = " ".join([*wanted["communicate_info"], "sorry, done"])
        assert played(item, task, domain, Says(*calls, words)).reward == 1.0, item["id"]
    idle = [played(item, task, domain, NullAgent()).reward for item in items.values()]
    nothing = [i for i in items.values() if i["evaluation_criteria"] == {"actions": [], "communicate_info": []}]
    assert sum(idle) == len(nothing) > 0


def test_a_dialogue_starts_from_its_own_copy_of_the_database(task: Any, domain: Any, items: Any) -> None:
    before = domain.model_dump_json()
    database = start_of(items["library-1"], domain)
    domain.call(database, "renew_loan", {"loan": "L1"})
    assert domain.model_dump_json() == before
    assert database != start_of(items["library-1"], domain)


def test_users_follow_their_script() -> None:
    replies = [{"if_any": ["card"], "say": "C1", "ends": False}, {"if_any": [], "say": "Thanks.", "ends": True}]
    user = User({"opening": "Hi", "replies": replies, "otherwise": "Hm?"})
    assert user.opening() == "Hi"
    assert user.reply("Your CARD, please?") == ("C1", False)
    assert user.reply("Your card again?") == ("Thanks.", True)
    lost = User({"opening": "Hi", "replies": [{"if_any": ["card"], "say": "C1"}], "otherwise": "Hm?"})
    assert [lost.reply("?") for _ in range(3)] == [("Hm?", False), ("Hm?", False), (None, True)]


SAID = st.text(max_size=80) | st.just(call("renew_loan", loan="L1"))


@given(st.lists(SAID, min_size=1, max_size=9))
def test_whatever_a_model_says_a_dialogue_ends_with_a_reward(turns: list[str]) -> None:
    catalog = Catalog(ROOT)
    task = catalog.task("smoke-tau2")
    item = load_items(task, ROOT, 1).items[0]
    found = played(item, task, load_domain(task, ROOT), Says(*turns))
    assert found.reward in (0.0, 1.0)
    assert found.turns <= task.settings["max_steps"]


def test_a_journal_of_dialogues_gets_the_known_score(catalog: Catalog, sheet: Sheet, items: dict[str, Any]) -> None:
    answers: dict[Any, Any] = {}
    for item in items.values():
        for repeat in range(2):
            for turn in range(8):
                answers[item["id"], repeat, turn] = "…"
    for repeat, turns in enumerate([[call("renew_loan", loan="L1"), "Now it is done."], ["I did it.", "Done."]]):
        for turn, text in enumerate(turns):
            answers["library-1", repeat, turn] = text
    answers["library-2", 0, 0] = answers["library-2", 1, 0] = "Due 2026-03-05, goodbye."
    summary = score_start(sheet("smoke-tau2", answers, repeats=2), catalog)
    found = {each.name: each.value for each in summary.scores}
    idle = sum(i["evaluation_criteria"] == {"actions": [], "communicate_info": []} for i in items.values())
    n = len(items)
    assert found["pass^1"] == pytest.approx((idle + 1 + 0.5) / n)
    assert found["pass^2"] == pytest.approx((idle + 1) / n)
    assert found["null-agent"] == pytest.approx(idle / n)
