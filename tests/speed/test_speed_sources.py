"""Adapters for public prompt sets, tried on small files of the same shape with text of our own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paribus.catalog import Catalog, PromptSource, read_prompt_set
from paribus.cli.fetch import command
from paribus.conditions import EnvironmentFault, UsageError
from paribus.speed.sources import convert, fetch_prompts, raw_address
from paribus.wire import standard_tokens
from paribus.wire.tokens import plain_words

ROOT = Path(__file__).parents[2]
SOURCES = Catalog(ROOT).prompt_sources
SPEC, SPEED = SOURCES["spec-bench"], SOURCES["speed-bench-qualitative"]
REFERENCE = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING A SCRIPT"


def spec_row(number: int, category: str, *turns: str) -> dict[str, Any]:
    """A row as Spec-Bench's file has them."""
    return {"question_id": number, "category": category, "turns": list(turns)}


def speed_row(number: int, category: str, *turns: str) -> dict[str, Any]:
    """A row as SPEED-Bench's tables have them."""
    rest = {"sub_category": "ours", "source": "own/text", "src_id": str(number), "difficulty": "easy"}
    id = f"{number:08x}"
    return {"question_id": id, "category": category, "turns": list(turns), **rest, "multiturn": len(turns) > 1}


SPEC_ROWS = [
    spec_row(81, "writing", "Describe a harbour in fog.", "Now without the word fog."),
    spec_row(171, "math_reasoning", "A crate holds 12 pears. How many do 7 crates hold?"),
    spec_row(300, "rag", "Passage: the mill closed in spring.\n\nWhen did it close?"),
]
SPEED_ROWS = [
    speed_row(1, "coding", "Write a function that folds a map.", "And one that unfolds it."),
    speed_row(2, "multilingual", "Übersetze: the tide is out."),
    speed_row(3, "math", REFERENCE),
    speed_row(4, "stem", "Why does ice float?"),
]


@pytest.fixture
def told() -> list[str]:
    return []


def below(folder: Path, source: PromptSource, rows: list[dict[str, Any]], suffix: str = "") -> Path:
    """The rows in a file below a data folder, where the source looks for it."""
    name = next(n for n in source.local if n.endswith(suffix))
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_spec_bench_from_a_local_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    below(tmp_path / "data", SPEC, SPEC_ROWS)
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path / "data"))
    prompts = read_prompt_set(fetch_prompts(tmp_path, SPEC, told.append))
    assert [(p.id, p.kind, p.length, p.split) for p in prompts] == [
        ("spec-bench-81", "writing", "long", "measured"),
        ("spec-bench-171", "math-reasoning", "long", "measured"),
        ("spec-bench-300", "rag", "long", "measured"),
    ]
    assert prompts[0].messages == [{"role": "user", "content": "Describe a harbour in fog."}]
    account = " ".join(told)
    assert "of 1 questions with several turns only the first" in account
    assert "3 rows, and the whole set has 480" in account
    assert SPEC.licence in account


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_speed_bench_from_local_tables_leaves_references_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str], suffix: str
) -> None:
    below(tmp_path / "data", SPEED, SPEED_ROWS, suffix)
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path / "data"))
    path = fetch_prompts(tmp_path, SPEED, told.append)
    assert {p.kind for p in read_prompt_set(path)} == {"coding", "multilingual", "stem"}
    assert "1 rows were left out" in " ".join(told)
    about = json.loads(path.with_suffix(".json").read_text())
    assert (about["rows"], about["prompts"], about["left_out"]) == (4, 3, 1)
    assert not about["pinned"], "a file of the user's has no revision"


def test_what_is_there_is_left_alone_until_its_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    file = below(tmp_path / "data", SPEC, SPEC_ROWS)
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path / "data"))
    path = fetch_prompts(tmp_path, SPEC, told.append)
    before = path.read_bytes()
    file.write_text(json.dumps(spec_row(1, "qa", "Where is the ferry?")))
    fetch_prompts(tmp_path, SPEC, told.append)
    assert path.read_bytes() == before
    assert "already there" in told[-1]
    fetch_prompts(tmp_path, SPEC.model_copy(update={"revision": "unpinned"}), told.append)
    assert path.read_bytes() != before


class _Hub:
    """Stands in for the library: notes what was asked, answers with rows or fails."""

    def __init__(self, answer: list[dict[str, Any]] | Exception) -> None:
        self.answer, self.asked = answer, []

    def load_dataset(self, *place: Any, **options: Any) -> list[dict[str, Any]]:
        self.asked.append((place, options))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def hub(monkeypatch: pytest.MonkeyPatch, answer: list[dict[str, Any]] | Exception) -> _Hub:
    stand_in = _Hub(answer)
    module = ModuleType("datasets")
    module.load_dataset = stand_in.load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.delenv("PARIBUS_DATA", raising=False)
    monkeypatch.delenv("PARIBUS_OFFLINE", raising=False)
    return stand_in


def test_the_hub_is_asked_for_the_pinned_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    stand_in = hub(monkeypatch, SPEED_ROWS)
    path = fetch_prompts(tmp_path, SPEED, told.append)
    options = {"revision": SPEED.revision, "split": "test"}
    assert stand_in.asked == [(("nvidia/SPEED-Bench", "qualitative"), options)]
    assert json.loads(path.with_suffix(".json").read_text())["pinned"]
    assert "not pinned" not in " ".join(told)


def test_github_is_asked_for_the_file_of_the_pinned_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    stand_in = hub(monkeypatch, SPEC_ROWS)
    fetch_prompts(tmp_path, SPEC, told.append)
    address = f"https://raw.githubusercontent.com/hemingkx/Spec-Bench/{SPEC.revision}/data/spec_bench/question.jsonl"
    assert stand_in.asked == [(("json",), {"data_files": [address], "split": "train"})]


def test_an_unpinned_revision_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    loose = SPEC.model_copy(update={"revision": "unpinned"})
    hub(monkeypatch, SPEC_ROWS)
    path = fetch_prompts(tmp_path, loose, told.append)
    assert "not pinned" in " ".join(told)
    assert not json.loads(path.with_suffix(".json").read_text())["pinned"]
    assert "/HEAD/" in raw_address(loose)


def test_the_library_reads_a_table_of_that_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    """With the real library, from a folder laid out as the hub's repository is."""
    pytest.importorskip("datasets", reason="the quality extra is not installed")
    repository = tmp_path / "repository"
    (repository / "qualitative").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(SPEED_ROWS), repository / "qualitative" / "test-00000-of-00001.parquet")
    files = "    data_files:\n      - split: test\n        path: qualitative/test-*"
    (repository / "README.md").write_text(f"---\nconfigs:\n  - config_name: qualitative\n{files}\n---\n")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PARIBUS_DATA", raising=False)
    monkeypatch.delenv("PARIBUS_OFFLINE", raising=False)
    here = SPEED.model_copy(update={"repository": str(repository)})
    prompts = read_prompt_set(fetch_prompts(tmp_path, here, told.append))
    assert [p.kind for p in prompts] == ["coding", "multilingual", "stem"]


def test_a_hub_out_of_reach_is_an_environment_fault_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    hub(monkeypatch, ConnectionError("no route\nto host"))
    with pytest.raises(EnvironmentFault, match="set PARIBUS_DATA") as caught:
        fetch_prompts(tmp_path, SPEED, told.append)
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("PARIBUS_OFFLINE", "1")
    with pytest.raises(EnvironmentFault, match="PARIBUS_OFFLINE is set"):
        fetch_prompts(tmp_path, SPEED, told.append)
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"category": "qa", "turns": ["a"]}], "no question_id"),
        ([{"question_id": 1, "turns": ["a"]}], "no category"),
        ([{"question_id": 1, "category": "qa", "turns": []}], "turns must be"),
        ([{"question_id": 1, "category": "qa", "turns": [" "]}], "turns must be"),
        ([{"question_id": 1, "category": "qa", "turns": "a"}], "turns must be"),
        ([{"question_id": 1, "category": "../..", "turns": ["a"]}], "no category"),
        ([{"question_id": "../", "category": "qa", "turns": ["a"]}], "no question_id"),
        ([spec_row(1, "qa", "a"), spec_row(1, "qa", "b")], "comes twice"),
    ],
)
def test_rows_of_another_form_are_refused_with_their_number(rows: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        convert(SPEC, rows)


def test_a_set_of_nothing_but_references_is_refused() -> None:
    with pytest.raises(UsageError, match="only references"):
        convert(SPEED, [speed_row(1, "mixed", REFERENCE)])


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b"[1]"])
def test_a_broken_file_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str], data: bytes
) -> None:
    below(tmp_path / "data", SPEC, []).write_bytes(data)
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path / "data"))
    with pytest.raises(UsageError, match="can't read the prompts"):
        fetch_prompts(tmp_path, SPEC, told.append)


VALUES = st.none() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=8), max_size=3)
ROWS = st.lists(st.dictionaries(st.sampled_from(["question_id", "category", "turns"]), VALUES), max_size=4)


@given(ROWS)
def test_any_rows_become_prompts_or_a_sentence(rows: list[dict[str, Any]]) -> None:
    refusal = ""
    try:
        found = convert(SPEED, rows)
    except UsageError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith(SPEED.set)
    else:
        assert len(found.prompts) + found.left_out == len(rows)
        assert len({p.id for p in found.prompts}) == len(found.prompts)


def test_the_command_fetches_by_name_and_refuses_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below(tmp_path / "data", SPEC, SPEC_ROWS)
    folder = tmp_path / "tasks/speed/prompts"
    folder.mkdir(parents=True)
    (folder / "spec-bench.yaml").write_bytes((ROOT / "tasks/speed/prompts/spec-bench.yaml").read_bytes())
    monkeypatch.setenv("PARIBUS_DATA", str(tmp_path / "data"))
    done = CliRunner().invoke(command, ["prompts", "spec-bench", "--root", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "build/prompts/spec-bench.jsonl").is_file()
    refused = CliRunner().invoke(command, ["prompts", "nope", "--root", str(tmp_path)])
    assert isinstance(refused.exception, UsageError)
    assert "known: spec-bench" in str(refused.exception)


RANDOM = PromptSource.model_validate(
    {
        "set": "random-300",
        "title": "random",
        "about": "made here",
        "licence": "none",
        "host": "random",
        "tokens": 300,
        "rows": 5,
        "warm_up": "own-v1",
    }
)


def test_random_prompts_hold_exactly_as_many_standard_tokens_as_asked_and_are_the_same_everywhere(
    tmp_path: Path, told: list[str]
) -> None:
    path = fetch_prompts(tmp_path, RANDOM, told.append)
    prompts = read_prompt_set(path)
    texts = [str((p.messages or [{}])[0]["content"]) for p in prompts]
    assert len(set(texts)) == 5
    assert [standard_tokens(text) for text in texts] == [300] * 5
    again = fetch_prompts(tmp_path / "elsewhere", RANDOM, told.append)
    assert again.read_bytes() == path.read_bytes()
    other = fetch_prompts(tmp_path / "other", RANDOM.model_copy(update={"seed": 1}), told.append)
    assert other.read_bytes() != path.read_bytes()


@given(st.lists(st.sampled_from(range(20_000)), min_size=1, max_size=60))
def test_plain_words_are_read_back_as_the_very_same_tokens(places: list[int]) -> None:
    words = plain_words()
    chosen = [words[place % len(words)] for place in places]
    assert standard_tokens("".join(chosen)) == len(chosen)


@pytest.mark.parametrize(
    "wrong",
    [{"tokens": None}, {"repository": "a/b"}, {"host": "hub"}, {"file": "x.jsonl"}],
)
def test_a_random_set_has_tokens_and_no_repository(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PromptSource.model_validate({**RANDOM.model_dump(), **wrong})
