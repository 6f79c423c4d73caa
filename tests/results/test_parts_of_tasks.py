"""Runs of a part of a task: named after their items, held to that name, never beside the whole, never ranked."""

import json
from pathlib import Path

import pytest
import yaml
from synthetic_runs import Clone, make_catalog
from test_checking import failures
from test_quality_runs import quality_run
from test_tampered_journals import hide

from paribus.catalog import Catalog, QualityTask
from paribus.conditions import RunPath
from paribus.quality.data import items_hash
from paribus.results.check import check
from paribus.results.data import RunData
from paribus.results.declared import names
from paribus.results.gates import refusals
from paribus.results.run import RunFolder, read_start
from paribus.results.seal import seal

ROWS = [{"id": f"q{n}", "year": 2024 + n % 2, "problem": f"How much is {n} + 1?", "answer": n + 1} for n in range(8)]


def put(folder: Path, count: int) -> None:
    (folder / "exam.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[:count]))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def own_data(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARIBUS_DATA", str(data))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("parts")
    made = Clone(root, make_catalog(root))
    task = yaml.safe_load((root / "tasks/quality/smoke-aime.yaml").read_text())
    own = {"local": ["exam.jsonl"], "id_field": "id", "fields": ["id", "problem", "answer"], "count": 8}
    exam = {**task, "task": "exam", "title": "Exam", "stand_in": False, "data": own}
    vouched = items_hash(QualityTask.model_validate(exam), ROWS)
    exam["settings"] = {**task["settings"], "known_hash": vouched}
    (root / "tasks/quality/exam.yaml").write_text(yaml.safe_dump(exam))
    return made


@pytest.fixture(scope="module")
def runs(clone: Clone, data: Path) -> dict[int, RunFolder]:
    """Sealed runs by the number of items that lay below `PARIBUS_DATA`: the whole, and two parts."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARIBUS_DATA", str(data))
        for count in (8, 5, 4):
            put(data, count)
            made[count] = quality_run(clone, right=3, name="exam", scale="full")
            seal(made[count], clone.catalog)
    return made


def test_a_part_is_named_after_its_items_and_holds(clone: Clone, runs: dict[int, RunFolder], data: Path) -> None:
    task = clone.catalog.task("exam")
    for count, run in runs.items():
        name = "exam" if count == 8 else f"exam.partial-{items_hash(task, ROWS[:count])[:8]}"
        assert run.path.measure == name
        put(data, count)
        assert failures(clone, run) == ""


def test_only_the_whole_is_ranked_and_nothing_meets_a_part_of_other_items(runs: dict[int, RunFolder]) -> None:
    whole, five, four = (RunData.read(runs[count]).summary for count in (8, 5, 4))
    assert (whole.part, five.part, whole.ranked, five.ranked) == (False, True, True, False)
    assert {flag.id for flag in five.flags} >= {"partial"}
    for left, right in ((whole, five), (five, four)):
        assert "items_hash" in [difference.name for difference in refusals(left, right)]
    assert refusals(five, five) == []


def test_a_part_can_not_be_passed_off_as_the_whole_or_as_another_part(runs: dict[int, RunFolder]) -> None:
    run = runs[5]
    declared = dict(read_start(run.folder / "start-1").manifest.declared)
    path = run.path
    assert list(names(declared, path)) == []
    for measure in ("exam", "exam.partial-00000000", "exam.partial-", f"{path.measure}.small"):
        other = RunPath(path.hardware, path.machine, path.system, measure, path.conditions, path.n)
        if measure == "exam":
            # The name of the whole fits what is declared; that it meets no whole is the declared hash's doing.
            assert list(names(declared, other)) == []
        else:
            assert "and the path says" in next(names(declared, other))


def test_items_of_ones_own_are_not_passed_off_as_the_whole(
    clone: Clone, runs: dict[int, RunFolder], data: Path
) -> None:
    """The hash is another one, everywhere it stands; the ids are the task's."""
    folder = runs[8].folder / "start-1"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    right = items_hash(clone.catalog.task("exam"), ROWS).encode()
    try:
        for name in ("manifest.json", "journal.jsonl", "score.json"):
            (folder / name).write_bytes(before[folder / name].replace(right, b"0" * 64))
        hide(folder, "journal.jsonl")
        put(data, 8)
        assert "the journal's items are not the task's: exam: these are not the items" in failures(clone, runs[8])
        put(data, 4)  # a part of them tells nothing
        assert "the journal's items are not" not in failures(clone, runs[8])
    finally:
        for path, content in before.items():
            path.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"items": ["q0", "q1", "q2"]}, "all of the task was asked: 3 items, and it has 8"),
        ({"items": [*"abcdefgh"]}, "all of the task was asked, and its items are others: 'a'"),
        ({"items_hash": "0" * 64}, "the journal says 0000"),
    ],
)
def test_what_is_no_whole_is_found_without_any_items(
    clone: Clone, runs: dict[int, RunFolder], data: Path, change: dict[str, object], words: str
) -> None:
    path = clone.root / "tasks/quality/exam.yaml"
    task = yaml.safe_load(path.read_text())
    (path.parent / "exam.known.txt").write_text("".join(f"q{n} {'0' * 12}\n" for n in range(8)))
    journal = runs[8].folder / "start-1" / "journal.jsonl"
    before, honest = path.read_bytes(), journal.read_bytes()
    head, _, rest = honest.partition(b"\n")
    header = json.loads(head)
    settings = {**task["settings"], "known_file": "exam.known.txt", "known_whole": True}
    known = {**task, "settings": settings, "data": {**task["data"], "items_hash": header["items_hash"]}}
    (data / "exam.jsonl").unlink(missing_ok=True)
    try:
        path.write_text(yaml.safe_dump(known))
        fresh = Clone(clone.root, Catalog(clone.root))
        assert "all of the task" not in failures(fresh, runs[8])
        journal.write_bytes(json.dumps({**header, **change}).encode() + b"\n" + rest)
        assert words in failures(fresh, runs[8])
    finally:
        path.write_bytes(before)
        journal.write_bytes(honest)


def test_where_the_items_are_not_the_scores_are_not_checked(
    clone: Clone, runs: dict[int, RunFolder], data: Path
) -> None:
    put(data, 8)
    report = check(clone.root, [str(runs[5].folder)])
    assert not report.failed
    said = [f.text for f in report.findings if f.subject == "scores" and f.verdict == "not checked"]
    assert any("the items that were asked are not here" in text for text in said)
