"""Items: the same hash wherever they come from, subsets named as such, wrong items refused."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.catalog import Catalog, QualityTask
from paribus.conditions import EnvironmentFault, UsageError
from paribus.quality.canonical import examples_hash
from paribus.quality.data import available, item_hash, items_hash, load_items, load_planned, spread, window_of
from paribus.quality.known import read_known
from paribus.quality.rows import read_rows

ROWS = [{"id": f"q{n}", "year": 2020 + n % 3, "problem": f"Café {n}?", "answer": n} for n in range(12)]


def task_of(**data: object) -> QualityTask:
    settings = data.pop("settings", {"group": "year"})
    plain = {"id_field": "id", "fields": ["id", "problem", "answer"], "count": 12, "local": ["a.jsonl", "b.jsonl.gz"]}
    return QualityTask.model_validate(
        {
            "task": "t",
            "title": "T",
            "family": "aime",
            "version": "1",
            "repeats": 1,
            "scorer": "s",
            "settings": settings,
            "data": {**plain, **data},
        }
    )


WHOLE = task_of(items_hash=items_hash(task_of(), ROWS))
"""The task with the hash of all its items."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path))
    return tmp_path


def write(path: Path, rows: list[dict]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@given(st.randoms())
def test_the_hash_is_of_the_items_not_of_the_file(shuffle: random.Random) -> None:
    rows = [dict(shuffle.sample(list(row.items()), len(row))) | {"comment": "not hashed"} for row in ROWS]
    shuffle.shuffle(rows)
    decomposed = [row | {"problem": row["problem"].replace("é", "e\u0301")} for row in rows]
    assert items_hash(task_of(), decomposed) == items_hash(task_of(), ROWS)


@given(st.integers(0, 11), st.sampled_from(["problem", "answer", "id"]))
def test_any_change_of_a_hashed_field_changes_the_hash(n: int, name: str) -> None:
    rows = [dict(row) for row in ROWS]
    rows[n][name] = "other"
    assert items_hash(task_of(), rows) != items_hash(task_of(), ROWS)


def test_files_are_merged_and_a_gap_makes_a_named_part(folder: Path, tmp_path: Path) -> None:
    write(folder / "a.jsonl", ROWS[:6])
    part = load_items(task_of(), tmp_path)
    assert part.partial == f"partial-{part.hash8}"
    assert len(part.items) == 6
    write(folder / "b.jsonl.gz", ROWS[4:])
    whole = load_items(WHOLE, tmp_path)
    assert (whole.partial, len(whole.items), whole.source) == (None, 12, "local")
    assert whole.hash == items_hash(task_of(), ROWS)


def test_as_many_items_that_nothing_vouches_for_are_not_the_whole_task(folder: Path, tmp_path: Path) -> None:
    """Twelve of anything in a file of the right name: nobody knows whether they are the task's."""
    write(folder / "a.jsonl", ROWS)
    found = load_items(task_of(), tmp_path)
    assert (found.part, found.partial) == (True, f"partial-{found.hash8}")
    with pytest.raises(UsageError, match="or items that no hash vouches for"):
        load_planned(task_of(), tmp_path, None, None)
    alone = {"group": "year", "known_hash": items_hash(task_of(), ROWS)}
    assert not load_items(task_of(settings=alone), tmp_path).part
    write(folder / "a.jsonl", [ROWS[0] | {"answer": 999}, *ROWS[1:]])
    with pytest.raises(UsageError, match="not the task's items: expected hash"):
        load_items(task_of(settings=alone), tmp_path)


EXAMPLES = [{"id": f"e{n}", "year": 2020 + n % 3, "cot_content": f"worked {n}"} for n in range(6)]


def test_prompts_have_the_tasks_own_worked_examples_or_none_are_made(folder: Path, tmp_path: Path) -> None:
    settings = {"group": "year", "shots": 2, "examples_local": ["examples.jsonl"]}
    pinned = task_of(settings=settings | {"examples_hash": examples_hash(task_of(), EXAMPLES)})
    write(folder / "a.jsonl", ROWS)
    with pytest.raises(UsageError, match=r"worked examples, and PARIBUS_DATA lacks examples\.jsonl"):
        load_items(pinned, tmp_path)
    write(folder / "examples.jsonl", EXAMPLES)
    assert load_items(pinned, tmp_path).examples == tuple(EXAMPLES)
    write(folder / "examples.jsonl", [*EXAMPLES[:5], EXAMPLES[0] | {"id": "e9"}])
    with pytest.raises(UsageError, match="show 2 worked examples of each year, and there are 1 of '2022'"):
        load_items(pinned, tmp_path)
    other = [row | {"cot_content": "another"} for row in EXAMPLES]
    write(folder / "examples.jsonl", other)
    with pytest.raises(UsageError, match="not its worked examples: expected hash") as fault:
        load_items(pinned, tmp_path)
    assert examples_hash(pinned, other) in str(fault.value)
    write(folder / "a.jsonl", ROWS[:4])
    with pytest.raises(UsageError, match="not its worked examples"):
        load_items(pinned, tmp_path)


@pytest.mark.parametrize("name", ["mmlu-pro", "mmlu-pro-full", "canary-mmlu-pro"])
def test_the_real_questions_are_whole_with_the_real_examples_only(
    catalog: Catalog, local_data: Path, folder: Path, name: str
) -> None:
    task = catalog.task(name)
    for file in (task.data.local[0], *task.settings["examples_local"]):
        shutil.copy(local_data / file, folder)
    assert load_items(task, catalog.root).partial is None
    examples = list(read_rows(local_data / task.settings["examples_local"][0]))
    (folder / task.settings["examples_local"][0]).unlink()
    for wrong, words in ((examples[::2], "there are"), ([e | {"question": "?"} for e in examples], "expected hash")):
        write(folder / task.settings["examples_local"][0], wrong)
        with pytest.raises(UsageError, match=words):
            load_items(task, catalog.root)
        (folder / task.settings["examples_local"][0]).unlink()
    with pytest.raises(UsageError, match="lacks mmlu_pro_validation70"):
        load_items(task, catalog.root)


def test_the_window_is_named_as_the_items_have_it() -> None:
    task = task_of(settings={"window": ["2024-08-01", "2025-05-01"]})
    within, before = {"contest_date": "2024-09-03T00:00:00"}, {"contest_date": "2023-08-21"}
    assert window_of(task, [within]) == "2024-08 to 2025-05"
    assert window_of(task, [within, before]) == "2023-08 to 2025-05"
    assert window_of(task, [within, {}]) == "2024-08 to 2025-05, and of unknown date"
    assert window_of(task_of(), [within]) == ""


def test_wrong_items_are_refused_with_both_hashes(folder: Path, tmp_path: Path) -> None:
    expected = items_hash(task_of(), ROWS)
    wrong = [dict(row) for row in ROWS]
    wrong[3]["answer"] = 999
    write(folder / "a.jsonl", wrong)
    with pytest.raises(UsageError) as fault:
        load_items(task_of(items_hash=expected), tmp_path)
    assert expected in str(fault.value)
    assert items_hash(task_of(), wrong) in str(fault.value)


def test_a_changed_item_is_found_in_a_part_too(folder: Path, tmp_path: Path) -> None:
    known = tmp_path / "tasks" / "quality" / "known.txt"
    known.parent.mkdir(parents=True)
    task = task_of(settings={"group": "year", "known_file": "known.txt"})
    known.write_text("# known\n" + "".join(f"{row['id']} {item_hash(task, row)}\n" for row in ROWS))
    write(folder / "a.jsonl", ROWS[:5])
    assert load_items(task, tmp_path).partial is not None
    changed = ROWS[2] | {"answer": 999}
    write(folder / "a.jsonl", [changed, *ROWS[:2]])
    with pytest.raises(UsageError, match=r"'q2'.*expected hash.*found") as fault:
        load_items(task, tmp_path)
    assert item_hash(task, ROWS[2]) in str(fault.value)
    assert item_hash(task, changed) in str(fault.value)


def test_an_invented_item_of_a_wholly_known_group_is_refused(folder: Path, tmp_path: Path) -> None:
    known = tmp_path / "tasks" / "quality" / "known.txt"
    known.parent.mkdir(parents=True)
    task = task_of(settings={"group": "year", "known_file": "known.txt", "known_whole": [2020]})
    known.write_text("".join(f"{row['id']} {item_hash(task, row)}\n" for row in ROWS[:5]))
    elsewhere = {"id": "new", "year": 2021, "problem": "?", "answer": 1}
    write(folder / "a.jsonl", [*ROWS[:2], elsewhere])
    assert len(load_items(task, tmp_path).items) == 3
    write(folder / "a.jsonl", [*ROWS[:2], elsewhere | {"year": 2020}])
    with pytest.raises(UsageError, match="'new' is not the task's: all items of year 2020 are known"):
        load_items(task, tmp_path)


def test_the_problems_of_two_years_are_wholly_known(catalog: Catalog) -> None:
    task = catalog.task("aime-2024-2026")
    lines = (catalog.root / "tasks" / "quality" / task.settings["known_file"]).read_text().splitlines()
    years = [2000 + int(line[4:6]) for line in lines if not line.startswith("#")]
    assert {year for year in years if years.count(year) == 30} == set(task.settings["known_whole"])


def test_an_emptied_file_is_refused_beside_a_good_one(folder: Path, tmp_path: Path) -> None:
    write(folder / "a.jsonl", ROWS)
    write(folder / "b.jsonl.gz", [])
    with pytest.raises(UsageError, match=r"b\.jsonl\.gz holds no items"):
        load_items(task_of(), tmp_path)


@pytest.mark.parametrize("value", ["1e400", "NaN", r'"\ud800"', "1" + 30 * "0", '{"a": [-1e999]}'])
def test_a_value_without_canonical_json_gets_one_sentence(folder: Path, tmp_path: Path, value: str) -> None:
    (folder / "a.jsonl").write_text(f'{{"id": "x", "problem": "?", "answer": {value}}}\n')
    with pytest.raises(UsageError, match="t: the item 'x' has a value that can't be hashed"):
        load_items(task_of(), tmp_path)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": "a", "problem": "?"}], "no field 'answer'"),
        ([ROWS[0], ROWS[0] | {"answer": 5}], "two different items"),
        ([*ROWS, ROWS[0] | {"id": "more"}], "expected 12 items"),
    ],
)
def test_broken_items_get_one_sentence(folder: Path, tmp_path: Path, rows: list[dict], words: str) -> None:
    write(folder / "a.jsonl", rows)
    with pytest.raises(UsageError, match=words):
        load_items(task_of(), tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{", b"[1]\n", b"\xff\xfe\n", b"[" * 99_999, b"1" * 9_999])
def test_a_broken_file_is_a_usage_error(folder: Path, tmp_path: Path, content: bytes) -> None:
    (folder / "a.jsonl").write_bytes(content)
    with pytest.raises(UsageError):
        load_items(task_of(), tmp_path)


def test_a_broken_compressed_file_is_a_usage_error(folder: Path, tmp_path: Path) -> None:
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1}' * 100)[:-9])
    with pytest.raises(UsageError, match="can't read"):
        load_items(task_of(), tmp_path)


def test_local_names_stay_inside_the_folder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leaves"):
        load_items(task_of(local=["../secret.jsonl"]), tmp_path)


@given(st.integers(1, 12), st.randoms())
def test_a_limit_takes_the_same_even_share_in_any_order(limit: int, shuffle: random.Random) -> None:
    rows = list(ROWS)
    shuffle.shuffle(rows)
    chosen = spread(rows, limit, "id", "year")
    assert chosen == spread(ROWS, limit, "id", "year")
    counts = [sum(row["year"] == year for row in chosen) for year in (2020, 2021, 2022)]
    assert sum(counts) == limit
    assert max(counts) - min(counts) <= 1


def test_without_any_source_the_reason_is_said(tmp_path: Path, no_local_data: None) -> None:
    with pytest.raises(EnvironmentFault, match="PARIBUS_DATA is not set"):
        load_items(task_of(), tmp_path)
    assert "PARIBUS_DATA is not set" in (available(task_of(), tmp_path) or "")


def test_every_shipped_task_has_the_items_its_file_names(catalog: Catalog, no_local_data: None) -> None:
    shipped = [task for task in catalog.tasks.values() if task.data.file is not None]
    assert len(shipped) >= 4
    for task in shipped:
        items = load_items(task, catalog.root)
        assert task.data.items_hash == items.hash
        assert (items.partial, len(items.items)) == (None, task.data.count)


def test_mmlu_pro_is_the_same_1400_questions_100_of_each_category(catalog: Catalog, local_data: Path) -> None:
    task = catalog.task("mmlu-pro")
    items = load_items(task, catalog.root)
    categories = [item["category"] for item in items.items]
    assert len(items.items) == 1400
    assert {categories.count(category) for category in categories} == {100}
    known = (catalog.root / "tasks" / "quality" / task.settings["known_file"]).read_text().split("\n")
    assert {line.split()[0] for line in known if line and line[0] != "#"} == {
        str(i["question_id"]) for i in items.items
    }


def test_a_question_outside_the_1400_is_no_part_of_the_task(
    catalog: Catalog, local_data: Path, folder: Path, tmp_path: Path
) -> None:
    task = catalog.task("mmlu-pro")
    every = list(read_rows(local_data / task.data.local[0]))
    known = read_known(task, catalog.root).hashes
    ours = [row for row in every if str(row["question_id"]) in known][:50]
    for name in task.settings["examples_local"]:
        shutil.copy(local_data / name, folder)
    foreign = next(row for row in every if str(row["question_id"]) not in known)
    write(folder / task.data.local[1], ours)
    assert load_items(task, catalog.root).part
    write(folder / task.data.local[1], [*ours, foreign])
    with pytest.raises(UsageError, match=f"'{foreign['question_id']}' is not the task's: the 1,400 items are known"):
        load_items(task, catalog.root)


def test_out_of_a_larger_set_the_listed_items_are_chosen(folder: Path, tmp_path: Path) -> None:
    known = tmp_path / "tasks" / "quality" / "known.txt"
    known.parent.mkdir(parents=True)
    task = task_of(count=5, settings={"group": "year", "known_file": "known.txt", "known_whole": True})
    known.write_text("".join(f"{row['id']} {item_hash(task, row)}\n" for row in ROWS[3:8]))
    write(folder / "a.jsonl", ROWS)
    whole = load_items(task, tmp_path)
    assert ([row["id"] for row in whole.items], whole.part) == (["q3", "q4", "q5", "q6", "q7"], False)
    write(folder / "a.jsonl", ROWS[4:7])
    assert load_items(task, tmp_path).part
    write(folder / "a.jsonl", ROWS[2:5])
    with pytest.raises(UsageError, match="'q2' is not the task's: the 5 items are known"):
        load_items(task, tmp_path)
    write(folder / "a.jsonl", [ROWS[4] | {"answer": 999}, *ROWS[5:]])
    with pytest.raises(UsageError, match="'q4' is not the task's: expected hash"):
        load_items(task, tmp_path)


def test_a_limit_is_no_part_and_a_part_stays_one_under_a_limit(folder: Path, tmp_path: Path) -> None:
    write(folder / "a.jsonl", ROWS)
    whole, some = load_items(WHOLE, tmp_path), load_items(WHOLE, tmp_path, 3)
    assert (some.part, some.partial, some.whole) == (False, f"partial-{some.hash8}", whole.hash)
    write(folder / "a.jsonl", ROWS[:7])
    part = load_items(task_of(), tmp_path, 3)
    assert (part.part, part.whole) == (True, items_hash(task_of(), ROWS[:7]))


def test_a_plan_for_the_whole_task_is_not_run_with_a_part(folder: Path, tmp_path: Path) -> None:
    write(folder / "a.jsonl", ROWS)
    assert load_planned(WHOLE, tmp_path, 3, None).hash == load_items(task_of(), tmp_path, 3).hash
    write(folder / "a.jsonl", ROWS[:7])
    with pytest.raises(UsageError, match="the plan means the whole task, and only a part of its 12 items is here"):
        load_planned(WHOLE, tmp_path, 3, None)
    part = items_hash(task_of(), ROWS[:7])
    assert load_planned(task_of(), tmp_path, 3, part).whole == part
    write(folder / "a.jsonl", ROWS[:6])
    with pytest.raises(UsageError, match=f"not the items of the plan: expected hash {part}, found"):
        load_planned(task_of(), tmp_path, 3, part)


def test_the_local_aime_problems_are_a_part(catalog: Catalog, local_data: Path) -> None:
    items = load_items(catalog.task("aime-2024-2026"), catalog.root)
    assert items.partial == f"partial-{items.hash8}"
    assert {item["year"] for item in items.items} == {2024, 2025, 2026}
