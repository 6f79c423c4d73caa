"""The quality tasks' files: real ones and stand-ins are kept apart, and our own items are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paribus.catalog import Catalog, QualityTask

ROOT = Path(__file__).parents[2]
TASKS = Catalog(ROOT).tasks
STAND_INS = [t for t in TASKS.values() if t.stand_in]
FAMILIES = {"aime", "mmlu-pro", "livecodebench", "tau2"}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "tasks/quality" / name).read_text("utf-8").splitlines()]


def items(task: str) -> list[dict[str, Any]]:
    return rows(str(TASKS[task].data.file))


def test_each_family_has_a_real_task_and_a_stand_in_of_the_same_shape() -> None:
    real = {t.family: t for t in TASKS.values() if not t.stand_in and not t.on_request}
    smoke = {t.family: t for t in STAND_INS if not t.on_request}
    assert set(real) == set(smoke) == FAMILIES
    for family in FAMILIES:
        assert real[family].data.fields == smoke[family].data.fields
        assert real[family].scorer == smoke[family].scorer
        assert real[family].sandbox == smoke[family].sandbox
        assert smoke[family].task == f"smoke-{family}"


def test_a_real_task_ships_no_items_and_a_stand_in_has_only_its_own() -> None:
    for task in TASKS.values():
        assert task.stand_in == (task.data.file is not None)
        assert not (task.stand_in and (task.data.local or task.data.hub))


def test_the_real_tasks_are_those_of_the_protocol() -> None:
    found = {t.task: (t.data.count, t.repeats_of("standard"), t.repeats_of("full")) for t in TASKS.values()}
    assert {name: found[name] for name in found if not TASKS[name].stand_in} == {
        "aime-2024-2026": (90, 4, 8),
        "mmlu-pro": (1400, 1, 1),
        "mmlu-pro-full": (12_032, 1, 1),
        "canary-mmlu-pro": (200, 1, 1),
        "livecodebench-v6": (454, 1, 4),
        "tau2": (278, 2, 4),
    }


def test_a_scale_never_asks_more_often_than_the_budget() -> None:
    scales = Catalog(ROOT).scales
    aime = TASKS["aime-2024-2026"]
    assert aime.effort(scales["full"], 81_920).repeats == 4
    assert aime.effort(scales["full"], 81_920, "full").repeats == 8
    assert aime.effort(scales["quick"], 81_920, "full").repeats == 1
    assert aime.effort(None, 81_920).repeats == 4


def test_margins_of_no_loss_are_the_protocols() -> None:
    """MMLU-Pro's is for all 12,032 questions only."""
    margins = {t.task: t.settings["margin"] for t in TASKS.values() if "margin" in t.settings}
    assert margins == {"aime-2024-2026": 0.07, "mmlu-pro-full": 0.01, "livecodebench-v6": 0.035, "tau2": 0.055}


def test_texts_are_republished_only_under_a_licence_that_is_named() -> None:
    named = {t.task: t.settings["text_licence"] for t in TASKS.values() if "text_licence" in t.settings}
    ours = {t.task: "CC-BY-4.0" for t in STAND_INS}
    assert named == {"mmlu-pro": "MIT", "mmlu-pro-full": "MIT", "canary-mmlu-pro": "MIT", **ours}


@pytest.mark.parametrize("task", STAND_INS, ids=lambda t: t.task)
def test_a_stand_in_has_the_items_it_declares(task: QualityTask) -> None:
    found = items(task.task)
    assert len(found) == task.data.count >= 8
    assert len({item[task.data.id_field] for item in found}) == len(found)
    for item in found:
        assert set(task.data.fields) <= item.keys()


def test_answers_of_the_maths_are_integers_from_0_to_999() -> None:
    assert all(type(item["answer"]) is int and 0 <= item["answer"] <= 999 for item in items("smoke-aime"))


@pytest.mark.parametrize("name", ["data/smoke-mmlu-pro.jsonl", "data/smoke-mmlu-pro-examples.jsonl"])
def test_questions_have_ten_different_options_and_one_letter(name: str) -> None:
    for item in rows(name):
        assert len(set(item["options"])) == 10
        assert item["answer"] == "ABCDEFGHIJ"[item["answer_index"]]


def test_each_category_has_questions_and_a_worked_example() -> None:
    asked = {item["category"] for item in items("smoke-mmlu-pro")}
    worked = rows("data/smoke-mmlu-pro-examples.jsonl")
    assert len(asked) >= 4
    assert {item["category"] for item in worked} == asked
    assert all(f"The answer is ({item['answer']})." in item["cot_content"] for item in worked)


def cases(item: dict[str, Any]) -> list[dict[str, str]]:
    return json.loads(item["public_test_cases"]) + json.loads(item["private_test_cases"])


@pytest.mark.parametrize("item", items("smoke-livecodebench"), ids=lambda i: i["question_id"])
def test_a_reference_solution_passes_its_tests(item: dict[str, Any]) -> None:
    assert len(json.loads(item["private_test_cases"])) >= 3
    name = json.loads(item["metadata"]).get("func_name")
    for case in cases(item):
        code = item["reference_solution"]
        if case["testtype"] == "functional":
            code += f"\nprint(Solution().{name}({case['input']}))\n"
        done = subprocess.run(
            [sys.executable, "-I", "-c", code],
            check=False,
            input=case["input"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout.strip() == case["output"].strip(), done.stderr


def test_public_examples_stand_in_the_text_of_the_problem() -> None:
    for item in items("smoke-livecodebench"):
        if not item["starter_code"]:
            for case in json.loads(item["public_test_cases"]):
                assert case["input"] in item["question_content"]
                assert case["output"] in item["question_content"]


def domain() -> dict[str, Any]:
    return json.loads((ROOT / "tasks/quality/data/smoke-tau2-library.json").read_text("utf-8"))


def test_every_row_of_the_library_carries_its_key() -> None:
    for table in domain()["database"].values():
        assert all(row["id"] == key for key, row in table.items())


def test_tools_act_on_tables_and_arguments_that_exist() -> None:
    tables = domain()["database"]
    for tool in domain()["tools"]:
        effect, arguments = tool["effect"], tool["parameters"]["properties"]
        assert effect["table"] in tables
        named = [effect["key"]] if "key" in effect else []
        named += list(effect.get("where", {}).values()) + [r["key"] for r in effect.get("requires_rows", [])]
        assert set(named) <= set(arguments)
        assert effect["op"] in {"get", "list", "update", "insert", "delete"}


def test_dialogues_want_calls_that_the_tools_allow_on_rows_that_exist() -> None:
    tools = {tool["name"]: tool for tool in domain()["tools"]}
    known = {key for table in domain()["database"].values() for key in table}
    for item in items("smoke-tau2"):
        for action in item["evaluation_criteria"]["actions"]:
            assert set(action["arguments"]) == set(tools[action["name"]]["parameters"]["required"])
            assert set(action["arguments"].values()) <= known


def test_some_dialogues_want_a_change_some_a_word_and_some_a_refusal() -> None:
    wanted = [item["evaluation_criteria"] for item in items("smoke-tau2")]
    assert sum(bool(w["actions"]) for w in wanted) >= 3
    assert sum(bool(w["communicate_info"]) for w in wanted) >= 1
    assert 1 <= sum(not w["actions"] and not w["communicate_info"] for w in wanted) < len(wanted) / 2
