"""A wrong file gets one sentence that names the file and the place in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from paribus.catalog import Catalog, matches, read_prompt_set, read_prompts
from paribus.conditions import UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("systems", "tasks", "hardware"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pairs.yaml", tmp_path)
    return tmp_path


def refused(act: Callable[[], object], *words: str) -> None:
    with pytest.raises(UsageError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text


def change(path: Path, **values: object) -> None:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(data | values), encoding="utf-8")


def test_an_unknown_key_is_named_with_its_file(copy: Path) -> None:
    change(copy / "tasks/speed/c1-long.yaml", capp=3)
    refused(lambda: Catalog(copy).scenarios, "c1-long.yaml", "capp")


def test_a_wrong_value_is_named_with_its_place(copy: Path) -> None:
    change(copy / "tasks/scales/demo.yaml", caps={"short": "many"})
    refused(lambda: Catalog(copy).scales, "demo.yaml", "caps.short")


def test_a_missing_key_and_how_many_more(copy: Path) -> None:
    (copy / "systems/smollm2-135m.yaml").write_text("model: smollm2-135m\n", encoding="utf-8")
    refused(lambda: Catalog(copy).models, "smollm2-135m.yaml", "title", "more)")


def test_broken_yaml(copy: Path) -> None:
    (copy / "tasks/quality/smoke-aime.yaml").write_text("task: [\n", encoding="utf-8")
    refused(lambda: Catalog(copy).tasks, "smoke-aime.yaml", "line 2")


def test_a_file_that_is_no_text(copy: Path) -> None:
    (copy / "pairs.yaml").write_bytes(b"\xff\xfe\x00")
    refused(lambda: Catalog(copy).pairs, "pairs.yaml")


def test_a_missing_file(copy: Path) -> None:
    (copy / "pairs.yaml").unlink()
    refused(lambda: Catalog(copy).pairs, "pairs.yaml")


def test_a_system_file_is_named_after_its_model(copy: Path) -> None:
    (copy / "systems/smollm2-135m.yaml").rename(copy / "systems/other.yaml")
    refused(lambda: Catalog(copy).models, "other.yaml", "smollm2-135m.yaml")


def test_a_model_may_not_be_in_the_catalog_twice(copy: Path) -> None:
    refused(lambda: Catalog(copy, extra=ROOT).models, "already in the catalog")


def test_names_that_are_not_there_come_with_those_that_are() -> None:
    catalog = Catalog(ROOT)
    refused(lambda: catalog.scenario("c2-long"), "c2-long", "c1-long, c1-short")
    refused(lambda: catalog.hardware("h200-mini"), "h200-mini", "cpu")
    refused(lambda: catalog.hardware("../cpu"), "hardware profile")
    refused(lambda: catalog.prompt_set("../own-v1"), "prompt set")
    refused(lambda: catalog.prompt_set("own-v99"), "own-v99.jsonl")
    refused(lambda: catalog.system("smollm2-135m--q8--llamacpp--plain"), "near it: smollm2-135m--q4-1")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "a", "messages": [], "promt": "x"}', "promt"),
        ('{"id": "a"}', "either messages or prompt"),
        ('{"id": "a", "prompt": "x", "messages": []}', "either messages or prompt"),
        ('{"id": "", "prompt": "x"}', "id"),
        ('{"id": "a", "prompt": "x"', "delimiter"),
        ('{"id": "a", "prompt": "x", "max_tokens": 0}', "max_tokens"),
        ("[1]", "keys with their values belong here"),
    ],
)
def test_a_wrong_prompt_is_named_with_its_line(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "ok", "prompt": "fine"}\n\n' + line + "\n", encoding="utf-8")
    refused(lambda: read_prompts(path), "mine.jsonl, line 3", says)


def test_an_empty_prompt_file_and_a_prompt_without_kind(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("\n", encoding="utf-8")
    refused(lambda: read_prompts(path), "holds no prompts")
    path.write_text('{"id": "ok", "prompt": "fine"}\n', encoding="utf-8")
    refused(lambda: read_prompt_set(path), "line 1", "kind")


def test_line_separators_inside_a_prompt_do_not_split_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "ok", "prompt": "one\u2028two\u0085three"}\n', encoding="utf-8")
    assert [p.prompt for p in read_prompts(path)] == ["one\u2028two\u0085three"]


@pytest.mark.parametrize(
    ("name", "globs", "found"),
    [
        ("smollm2-135m--q4-1--llamacpp--plain", "smollm2-135m--*", True),
        ("smollm2-135m--q4-1--llamacpp--plain", "*--vllm--*, *--plain", True),
        ("smollm2-135m--q4-1--llamacpp--plain", "*--vllm--*", False),
        ("c1-long", "c1-*,smoke-*", True),
        ("c16-long", "c1-* smoke-*", False),
        ("C1-long", "c1-*", False),
        ("c1-long", "", False),
    ],
)
def test_globs_match_whole_names_and_several_are_separated_by_commas_or_blanks(
    name: str, globs: str, found: bool
) -> None:
    assert matches(name, globs) is found
