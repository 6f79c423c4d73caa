"""Exported records fit the schemas of `every_eval_ever` 0.3.0, read from its wheel, and republish no text unasked."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator
from synthetic_runs import ROOT, Clone, make_catalog
from test_quality_runs import quality_run

from paribus.catalog import Catalog
from paribus.cli import export
from paribus.conditions import CheckFailed, UsageError
from paribus.quality.asking import seed_of
from paribus.quality.journal import Key
from paribus.quality.samples import Sample, read_samples, write_samples
from paribus.quality.summary import BY_EXAM_YEAR, Score
from paribus.results.eee import Answered, Asked, Subject, aggregate, instance, record_uuid
from paribus.results.eee_files import asked_of, write_run
from paribus.results.items import grade
from paribus.results.run import RunFolder, read_summary
from paribus.results.seal import seal

pytest.importorskip("lm_eval", reason="lm-eval is not installed (uv sync --extra quality)")

WHEEL = "every_eval_ever==0.3.0"


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The schemas `eval` and `instance_level_eval` from the wheel, which can be installed on newer Pythons only."""
    folder = tmp_path_factory.mktemp("wheel")
    words = [
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--python-version",
        "3.12",
        "--dest",
        str(folder),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, WHEEL], capture_output=True, text=True, check=False, timeout=120
    )
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        reason = f"can't download {WHEEL}: {done.stderr.strip().splitlines()[-1:]}"
        (pytest.fail if os.environ.get("PARIBUS_REQUIRE") else pytest.skip)(reason)
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = ("eval", "instance_level_eval")
        return {name: json.loads(wheel.read(f"every_eval_ever/schemas/{name}.schema.json")) for name in names}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("eee")
    return Clone(root, make_catalog(root))


@pytest.fixture(scope="module")
def run(clone: Clone) -> RunFolder:
    made = quality_run(clone, right=7)
    seal(made, clone.catalog)
    return made


def faults(schema: Any, record: Any) -> list[str]:
    return [f"{'/'.join(map(str, e.path))}: {e.message}" for e in Draft7Validator(schema).iter_errors(record)]


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The aggregate record and its instances."""
    lines = path.with_name(f"{path.stem}_samples.jsonl").read_text().splitlines()
    return json.loads(path.read_text()), [json.loads(line) for line in lines]


def test_a_run_fits_both_schemas(clone: Clone, run: RunFolder, schemas: dict[str, Any], tmp_path: Path) -> None:
    path, count = write_run(run, clone.catalog, tmp_path)
    record, instances = read(path)
    assert faults(schemas["eval"], record) == []
    assert schemas["eval"]["version"] == record["schema_version"] == "0.3.0"
    assert count == len(instances) == 10
    assert [fault for one in instances for fault in faults(schemas["instance_level_eval"], one)] == []


def test_the_schemas_do_refuse(clone: Clone, run: RunFolder, schemas: dict[str, Any], tmp_path: Path) -> None:
    record, instances = read(write_run(run, clone.catalog, tmp_path)[0])
    assert faults(schemas["eval"], {**record, "surprise": 1})
    assert faults(schemas["instance_level_eval"], {**instances[0], "metadata": {"repeat": 0}})


def test_scores_ends_seeds_and_repeats_are_in_the_records(clone: Clone, run: RunFolder, tmp_path: Path) -> None:
    path, _ = write_run(run, clone.catalog, tmp_path)
    record, instances = read(path)
    summary = read_summary(run)
    assert summary.quality is not None
    scores = {r["evaluation_result_id"]: r["score_details"]["score"] for r in record["evaluation_results"]}
    values = {score.name: score.value for score in summary.quality.scores}
    assert values.pop("answered") == 1.0, "no accuracy of the model's"
    assert scores == {f"{summary.run_id}/{name}": value for name, value in values.items()}
    assert sum(one["evaluation"]["is_correct"] for one in instances) == 7
    assert {one["evaluation_result_id"] for one in instances} == {f"{summary.run_id}/avg@1"}
    assert {one["metadata"]["repeat"] for one in instances} == {"0"}
    seeds = {one["sample_id"]: int(one["metadata"]["seed"]) for one in instances}
    assert seeds == {item: seed_of(Key("smoke-aime", item, 0)) for item in seeds}
    assert {one["metadata"]["finish_reason"] for one in instances} == {"stop"}
    usage = {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30, "reasoning_tokens": 0}
    assert all(one["token_usage"] == usage for one in instances)
    assert instances[0]["performance"] == {"latency_ms": 25.0, "time_to_first_token_ms": 5.0}
    assert record["model_info"]["id"] == "HuggingFaceTB/SmolLM2-135M-Instruct"


def test_what_is_no_accuracy_of_the_models_is_a_detail(
    clone: Clone, run: RunFolder, schemas: dict[str, Any], tmp_path: Path
) -> None:
    """What random guesses and an agent that does nothing would get are told beside the headline only."""
    path = run.folder / "start-1" / "score.json"
    honest = path.read_bytes()
    score = json.loads(honest)
    more = {"title": "none of it is an answer", "low": None, "high": None, "headline": False}
    score["scores"] += [{"name": "null-agent", "value": 0.25, **more}, {"name": "guesses", "value": 0.125, **more}]
    path.write_text(json.dumps(score))
    try:
        seal(run, clone.catalog)
        record, _ = read(write_run(run, clone.catalog, tmp_path)[0])
    finally:
        path.write_bytes(honest)
        seal(run, clone.catalog)
    names = [r["evaluation_result_id"].rpartition("/")[2] for r in record["evaluation_results"]]
    assert "avg@1" in names
    assert not {"null-agent", "guesses", "answered"} & set(names)
    details = {n: r["score_details"]["details"] for n, r in zip(names, record["evaluation_results"], strict=True)}
    assert (details["avg@1"]["null-agent"], details["avg@1"]["guesses"]) == ("0.25", "0.125")
    assert faults(schemas["eval"], record) == []


def test_the_aggregate_names_its_instances_and_their_hash(clone: Clone, run: RunFolder, tmp_path: Path) -> None:
    path, _ = write_run(run, clone.catalog, tmp_path)
    detailed = read(path)[0]["detailed_evaluation_results"]
    assert hashlib.sha256((tmp_path / detailed["file_path"]).read_bytes()).hexdigest() == detailed["checksum"]
    assert path.stem == record_uuid(run.run_id)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", path.stem)


def test_writing_again_gives_the_same_bytes(clone: Clone, run: RunFolder, tmp_path: Path) -> None:
    first, _ = write_run(run, clone.catalog, tmp_path / "a")
    again, _ = write_run(run, clone.catalog, tmp_path / "b")
    assert [one.read_bytes() for one in sorted(first.parent.iterdir())] == [
        one.read_bytes() for one in sorted(again.parent.iterdir())
    ]


def test_texts_stand_in_the_records_where_their_licence_is_named(clone: Clone, run: RunFolder, tmp_path: Path) -> None:
    instances = read(write_run(run, clone.catalog, tmp_path)[0])[1]
    items = {str(row["id"]): row for row in map(json.loads, (ROOT / "tasks/quality/data/smoke-aime.jsonl").open())}
    for one in instances:
        assert one["input"]["raw"] == items[one["sample_id"]]["problem"]
        assert one["input"]["reference"] == [str(items[one["sample_id"]]["answer"])]


SUBJECT = Subject("org/model", "Model", "org", "open_weights")


def sample(**more: Any) -> Sample:
    given = {"item": "q", "repeat": 2, "group": "2025", "correct": 0.0, "answer": "5", "status": "ok", "error": None}
    given |= {"finish_reason": "length", "seed": 9, "prompt_tokens": None, "tokens": 7, "reasoning_tokens": None}
    return Sample(**{**given, "ttft_ms": None, "answer_time_ms": None, **more})


@pytest.mark.parametrize("task", ["aime-2024-2026", "livecodebench-v6"])
def test_a_text_without_a_licence_is_not_republished(run: RunFolder, schemas: dict[str, Any], task: str) -> None:
    asked = Asked("a secret problem", ("204",))
    record = instance(read_summary(run), Catalog(ROOT).task(task), SUBJECT, asked, Answered(sample(), ()))
    written = json.dumps(record)
    assert "secret" not in written
    assert "204" not in record["input"]["reference"]
    assert record["input"]["raw"] == "sha256:" + hashlib.sha256(b"a secret problem").hexdigest()
    assert record["sample_hash"] == hashlib.sha256(b"a secret problem204").hexdigest()
    assert faults(schemas["instance_level_eval"], record) == []
    assert record["token_usage"] is None


def test_a_failed_answer_and_items_that_are_not_at_hand_still_make_a_record(
    run: RunFolder, schemas: dict[str, Any]
) -> None:
    failed = sample(status="failed", error="http_500", answer=None, finish_reason=None, seed=None)
    task = Catalog(ROOT).task("mmlu-pro")
    record = instance(read_summary(run), task, SUBJECT, Asked(None, None), Answered(failed, ()))
    assert (record["error"], record["sample_hash"], record["answer_attribution"]) == ("http_500", None, [])
    assert faults(schemas["instance_level_eval"], record) == []


def test_each_interval_says_how_it_was_made(run: RunFolder) -> None:
    summary = read_summary(run)
    assert summary.quality is not None
    by_year = Score(name=BY_EXAM_YEAR, title="by year", value=0.5, low=0.1, high=0.9)
    both = summary.quality.model_copy(update={"scores": [summary.quality.scores[0], by_year]})
    task = Catalog(ROOT).task("aime-2024-2026")
    found = aggregate(summary.model_copy(update={"quality": both}), task, SUBJECT, "x", b"")["evaluation_results"]
    methods = [one["score_details"]["uncertainty"]["confidence_interval"]["method"] for one in found]
    assert methods == ["Beta at the effective sample size, clustered by question", "Student's t over exam years"]


def test_only_what_was_sent_is_told_of_the_generation(run: RunFolder, schemas: dict[str, Any]) -> None:
    """An engine may refuse sampling fields, as vLLM's diffusion path does; a dialogue has a user."""
    summary, task = read_summary(run), Catalog(ROOT).task("tau2")

    def generation(**conditions: object) -> dict[str, Any]:
        changed = summary.model_copy(update={"declared": {**summary.declared, **conditions}})
        record = aggregate(changed, task, SUBJECT, f"data/t/o/m/{record_uuid('r')}_samples.jsonl", b"")
        assert faults(schemas["eval"], record) == []
        return record["evaluation_results"][0]["generation_config"]

    wanted = {"temperature": 0.6, "top_p": 0.95, "min_p": 0.1}
    some = generation(sampling=wanted, sampling_accepted=["min_p", "seed", "temperature"], user_simulator="u@1")
    assert some["generation_args"].get("temperature") == 0.6
    assert "top_p" not in some["generation_args"]
    assert some["additional_details"]["sampling_sent"] == "temperature 0.6, min_p 0.1"
    assert some["additional_details"]["sampling_left_out"] == "top_p"
    assert some["additional_details"]["seeds"].startswith("one for each item")
    assert some["additional_details"]["user_simulator"] == "u@1"
    none = generation(sampling=wanted, sampling_accepted=[])
    assert set(none["generation_args"]) == {"max_tokens", "reasoning"}
    assert none["additional_details"]["seeds"] == "none: not accepted"
    assert "user_simulator" not in none["additional_details"]


def test_every_task_at_hand_has_an_aggregate(run: RunFolder, schemas: dict[str, Any]) -> None:
    catalog, stem = Catalog(ROOT), f"data/t/o/m/{record_uuid('r')}_samples.jsonl"
    for task in catalog.tasks.values():
        assert faults(schemas["eval"], aggregate(read_summary(run), task, SUBJECT, stem, b"")) == []


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("math-ai/aime24@" + "a" * 40, "math-ai/aime24"),
        ("math-ai/aime24@" + "a" * 40 + ", math-ai/aime25@" + "b" * 40, None),
        ("PARIBUS_DATA", None),
        (None, None),
        (["math-ai/aime24"], None),
    ],
)
def test_a_data_set_is_named_where_the_items_came_from_it_alone(
    run: RunFolder, schemas: dict[str, Any], source: Any, named: str | None
) -> None:
    task, stem = Catalog(ROOT).task("aime-2024-2026"), f"data/t/o/m/{record_uuid('r')}_samples.jsonl"
    record = aggregate(read_summary(run), task, SUBJECT, stem, b"", source=source)
    assert faults(schemas["eval"], record) == []
    for result in record["evaluation_results"]:
        told = result["source_data"]
        assert told.get("hf_repo") == named
        assert told["additional_details"].get("items_source") == (source if isinstance(source, str) else None)


@pytest.mark.parametrize("name", ["journal.jsonl", "samples.parquet", "both"])
def test_a_run_whose_answers_were_changed_is_not_exported(
    clone: Clone, run: RunFolder, tmp_path: Path, name: str
) -> None:
    folder = run.folder / "start-1"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    journal, samples = folder / "journal.jsonl", folder / "samples.parquet"
    read = read_samples(samples)
    if name == "journal.jsonl":
        journal.write_bytes(journal.read_bytes().replace(b"999", b"998"))
        words = r"journal\.jsonl is not the file that the manifest lists"
    elif name == "samples.parquet":
        write_samples(samples.parent, read[:3])
        words = r"samples\.parquet is not of this journal's answers"
    else:
        journal.unlink()
        write_samples(samples.parent, read[:3])
        words = r"samples\.parquet holds 3 answers and the score is of 10"
    try:
        with pytest.raises(CheckFailed, match=words):
            write_run(run, clone.catalog, tmp_path)
        assert list(tmp_path.rglob("*.json*")) == []
    finally:
        for path, data in before.items():
            path.write_bytes(data)


@pytest.mark.parametrize(
    ("column", "values"),
    [("marks", ["{"] * 10), ("repeat", ["x"] * 10), ("marks", [None] * 10), ("tokens", [[1]] * 10)],
)
def test_samples_of_another_form_are_refused_in_one_sentence(
    clone: Clone, run: RunFolder, tmp_path: Path, column: str, values: list[Any]
) -> None:
    path = run.folder / "start-1" / "samples.parquet"
    before = path.read_bytes()
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, pa.array(values)), path)
    try:
        with pytest.raises(CheckFailed, match=r"start-1/samples\.parquet holds no samples"):
            write_run(run, clone.catalog, tmp_path)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("value", [float("nan"), 1e6, -0.5, "1", True])
def test_grades_are_shares(value: Any) -> None:
    with pytest.raises(CheckFailed, match="grades lie between 0 and 1"):
        grade({"item": "a", "correct": value})


@pytest.mark.parametrize("change", [{"tokens": 7}, {"finish_reason": "length"}, {"item": "nobody"}, {"repeat": 1}])
def test_a_sample_of_no_answer_is_not_exported(clone: Clone, run: RunFolder, tmp_path: Path, change: dict) -> None:
    samples = run.folder / "start-1" / "samples.parquet"
    before = samples.read_bytes()
    first, *rest = read_samples(samples)
    write_samples(samples.parent, [replace(first, **change), *rest])
    try:
        with pytest.raises(CheckFailed, match="is not of this journal's answers"):
            write_run(run, clone.catalog, tmp_path)
    finally:
        samples.write_bytes(before)


def test_a_dialogue_has_its_messages(run: RunFolder, schemas: dict[str, Any]) -> None:
    task = Catalog(ROOT).task("smoke-tau2")
    talk = ({"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"})
    one = Answered(sample(turns=2, tool_calls=1), (), (*talk, {"role": "assistant", "content": "hi"}))
    record = instance(read_summary(run), task, SUBJECT, Asked("{}", ("{}",)), one)
    assert [message["role"] for message in record["messages"]] == ["system", "user", "assistant"]
    assert (record["interaction_type"], record["output"]) == ("agentic", None)
    assert (record["evaluation"]["num_turns"], record["evaluation"]["tool_calls_count"]) == (2, 1)
    assert faults(schemas["instance_level_eval"], record) == []


def test_items_of_each_family_have_a_text_and_right_answers() -> None:
    catalog = Catalog(ROOT)
    for name in ("smoke-aime", "smoke-mmlu-pro", "smoke-livecodebench", "smoke-tau2"):
        task = catalog.task(name)
        row = json.loads((ROOT / "tasks/quality" / str(task.data.file)).open().readline())
        asked = asked_of(task, row)
        assert asked.text
        assert (asked.reference == ()) == (task.family == "livecodebench")


def test_the_command(clone: Clone, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone.root)
    out = str(tmp_path / "out")
    done = CliRunner().invoke(export.command, ["eee", run.run_id, "--out", out], catch_exceptions=False)
    assert "10 answers" in done.output
    again = CliRunner().invoke(export.command, ["eee", "--all", "--out", out], catch_exceptions=False)
    assert again.output == done.output
    for words in (["eee", "--out", out], ["eee", "--all", run.run_id, "--out", out]):
        with pytest.raises(UsageError, match="or --all"):
            CliRunner().invoke(export.command, words, catch_exceptions=False)
    speed = clone.run()
    seal(speed, clone.catalog)
    with pytest.raises(UsageError, match="only quality runs"):
        CliRunner().invoke(export.command, ["eee", speed.run_id, "--out", out], catch_exceptions=False)
