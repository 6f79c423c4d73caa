"""`paribus quality` and `paribus score`: an endpoint is asked and scored; a mistake is one sentence and a code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from quality_journals import ROOT

from paribus.catalog import Catalog, PlannedMeasure
from paribus.cli import quality, score
from paribus.conditions import CheckFailed, EnvironmentFault, UsageError
from paribus.engines import StartRecord
from paribus.quality.believed import Witness, wrong_seeds
from paribus.quality.journal import read_journal
from paribus.quality.run import generate_start, score_start
from scripted import DONE, Script, Scripted, Step, content, finish, usage


def said(text: str) -> Script:
    return Script((Step(1, content(text)), Step(2, finish()), Step(2, usage(5) + DONE)))


def ask(scripted: Scripted, out: Path, *more: str, task: str = "smoke-aime", model: str = "m") -> Any:
    words = ["--base-url", scripted.base_url, "--model", model, "--task", task, "--out", str(out), *more]
    return CliRunner().invoke(quality.command, words, catch_exceptions=False)


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_an_endpoint_is_asked_and_scored(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", said("The answer is \\boxed{075}."))
    done = ask(scripted, tmp_path / "out", "--repeats", "2")
    assert done.exit_code == 0
    assert "avg@2" in done.output
    assert "0.100" in done.output
    written = json.loads((tmp_path / "out" / "score.json").read_text())
    assert (written["schema"], written["items"], written["repeats"], written["failed"]) == (1, 10, 2, 0)
    assert len(scripted.log()) == 20
    again = CliRunner().invoke(score.command, [str(tmp_path / "out")], catch_exceptions=False)
    assert again.exit_code == 0
    assert "avg@2" in again.output


def test_a_task_of_a_private_catalog_is_scored(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", said("The answer is \\boxed{075}."))
    ask(scripted, tmp_path / "out", "--no-score")
    path = tmp_path / "out" / "journal.jsonl"
    path.write_text(path.read_text().replace('"smoke-aime"', '"own-aime"'))
    (tmp_path / "mine/tasks/quality").mkdir(parents=True)
    text = (ROOT / "tasks/quality/smoke-aime.yaml").read_text().replace("task: smoke-aime", "task: own-aime")
    (tmp_path / "mine/tasks/quality/own-aime.yaml").write_text(text)
    with pytest.raises(UsageError, match="own-aime"):
        CliRunner().invoke(score.command, [str(tmp_path / "out")], catch_exceptions=False)
    words = [str(tmp_path / "out"), "--catalog", str(tmp_path / "mine")]
    assert CliRunner().invoke(score.command, words, catch_exceptions=False).exit_code == 0


def test_an_interrupted_run_is_continued_and_nothing_asked_twice(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", said("\\boxed{75}"))
    ask(scripted, tmp_path / "out")
    path = tmp_path / "out" / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:6]) + b'{"kind":"ans')
    scripted.clear()
    scripted.register("m", said("\\boxed{75}"))
    ask(scripted, tmp_path / "out")
    assert len(scripted.log()) == 5
    assert len(read_journal(path)[1]) == 10


def test_a_run_is_scored_from_any_folder(scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted.register("m", said("The answer is \\boxed{075}."))
    ask(scripted, tmp_path / "out", "--no-score")
    assert not (tmp_path / "out" / "score.json").exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = (tmp_path / "out").rename(elsewhere / "brought")
    monkeypatch.chdir(elsewhere)
    done = CliRunner().invoke(score.command, [str(moved)], catch_exceptions=False)
    assert done.exit_code == 0
    assert json.loads((moved / "score.json").read_text())["scores"][0]["value"] == pytest.approx(0.1)


def test_dialogues_run_against_an_endpoint(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", said("Sorry, I cannot do that."))
    done = ask(scripted, tmp_path / "out", "--limit", "4", task="smoke-tau2")
    assert done.exit_code == 0
    assert "pass^1" in done.output
    assert "null-agent" in done.output
    assert "part of the task only" in done.output.lower()


@pytest.mark.usefixtures("box")
def test_programs_run_against_an_endpoint(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", said("```python\nn = int(input())\nprint(sum(int(x) for x in input().split()[:n]))\n```"))
    done = ask(scripted, tmp_path / "out", task="smoke-livecodebench")
    assert "strict       0.125" in done.output


def test_nothing_but_failures_is_an_error_and_not_kept(scripted: Scripted, tmp_path: Path) -> None:
    scripted.register("m", Script((Step(0, b"{}"),), status=400, content_type="application/json", framing="length"))
    with pytest.raises(CheckFailed, match="all 10 requests failed"):
        ask(scripted, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["journal.failed.jsonl"]


def test_a_wrong_name_is_told_and_leaves_nothing_in_the_way_of_the_right_one(
    scripted: Scripted, tmp_path: Path
) -> None:
    body = b'{"error": {"message": "no model wrong"}}'
    scripted.register("wrong", Script((Step(0, body),), status=404, content_type="application/json", framing="length"))
    scripted.register("m", said("The answer is \\boxed{075}."))
    with pytest.raises(EnvironmentFault, match=r"HTTP 404, saying 'no model wrong'.*the model's name"):
        ask(scripted, tmp_path / "out", model="wrong")
    assert list((tmp_path / "out").iterdir()) == []
    assert ask(scripted, tmp_path / "out").exit_code == 0


@pytest.mark.parametrize("below", [".", "deeper"])
def test_a_file_is_no_folder_for_results(scripted: Scripted, tmp_path: Path, below: str) -> None:
    scripted.register("m", said("The answer is \\boxed{075}."))
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="out is a file: name a folder"):
        ask(scripted, tmp_path / "out" / below)
    assert scripted.log() == []
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give --base-url, --model, --task, --out"),
        (["--job", "x", "--model", "m"], "leave out --model"),
        (["--job", "x", "--plan", "/nowhere/plan.json"], "there is no plan"),
        (["--base-url", "http://h/v1", "--model", "m", "--task", "no-such", "--out", "o"], "no quality task 'no-such'"),
        (["--base-url", "http://h/v1", "--model", "m", "--task", "tau2", "--out", "o"], "tau2 can't run"),
        (
            ["--base-url", "http://h/v1", "--model", "m", "--task", "smoke-aime", "--out", "o", "--extra-body", "{"],
            "--extra-body is not JSON",
        ),
        (
            [
                "--base-url",
                "http://h/v1",
                "--model",
                "m",
                "--task",
                "smoke-aime",
                "--out",
                "o",
                "--api-key-env",
                "NONE_",
            ],
            "no such environment variable",
        ),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as fault:
        CliRunner().invoke(quality.command, words, catch_exceptions=False)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--extra-body", '{"messages": []}'], "can't set 'messages'"),
        (["--extra-body", '{"prompt": "Say yes."}'], "can't set 'prompt'"),
        (["--extra-body", '{"model": "another"}'], "can't set 'model'"),
        (["--extra-body", '{"stream": false}'], "can't set 'stream'"),
        (["--extra-body", '{"max_tokens": 5}'], "use --max-tokens"),
        (["--extra-body", '{"top_p": 1}', "--top-p", "0.9"], "use --top-p"),
        (["--extra-body", '{"top_k": NaN}'], "--extra-body is not JSON"),
        (["--temperature", "nan"], "--temperature nan is not a number"),
        (["--top-p", "nan"], "--top-p nan is not a number"),
    ],
)
def test_what_would_change_what_is_measured_is_refused_before_anything_is_sent(
    scripted: Scripted, tmp_path: Path, more: list[str], sentence: str
) -> None:
    scripted.register("m", said("The answer is \\boxed{075}."))
    with pytest.raises(UsageError, match=sentence):
        ask(scripted, tmp_path / "out", *more)
    assert scripted.log() == []
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_journal_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no journal\.jsonl"):
        CliRunner().invoke(score.command, [str(tmp_path)], catch_exceptions=False)


def test_other_commands_do_not_wait_for_lm_eval() -> None:
    code = "import sys, paribus.quality, paribus.cli.quality, paribus.cli.score; print('lm_eval' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@dataclass
class FakeSession:
    """A session as a quality start sees it."""

    endpoint: Any
    system: Any
    accepted: frozenset[str]
    record: StartRecord = field(default_factory=StartRecord)
    sampling_left_out: tuple[str, ...] = ("top_k",)

    def sampling(self) -> dict[str, float]:
        return {"temperature": 0.2}

    def alive(self) -> bool:
        return True

    @contextmanager
    def measuring(self) -> Iterator[None]:
        yield
        self.record.measuring = 1.0


def session_of(scripted: Scripted, catalog: Catalog, fields: set[str]) -> Any:
    system = next(iter(catalog.systems.values()))
    return FakeSession(scripted.endpoint("m"), system, frozenset(fields))


def planned(catalog: Catalog, **declared: Any) -> PlannedMeasure:
    return PlannedMeasure(
        measure="smoke-aime.demo", id="smoke-aime", run="r", hashes={}, declared={"scale": "demo", **declared}
    )


def test_a_planned_start_asks_as_declared_and_is_scored_from_its_folder(
    scripted: Scripted, catalog: Catalog, tmp_path: Path
) -> None:
    scripted.register("m", said("\\boxed{75}"))
    session = session_of(scripted, catalog, {"temperature", "seed"})
    expected = catalog.task("smoke-aime").data.items_hash
    record = generate_start(
        session, planned(catalog, repeats=1, cap=48, items_hash=expected, sampling_profile="served"), catalog, tmp_path
    )
    assert record.observed["sampling_accepted"] == ["seed", "temperature"]
    assert len(scripted.log()) == catalog.scale("demo").quality_items
    assert {emission.request["max_tokens"] for emission in scripted.log()} == {48}
    summary = score_start(tmp_path, catalog)
    assert (summary.cap, summary.items) == (48, 4)
    assert {flag.id for flag in summary.flags} >= {"stand_in", "sampling_left_out"}


def test_an_engine_without_seeds_gets_none_and_that_is_recorded(
    scripted: Scripted, catalog: Catalog, tmp_path: Path
) -> None:
    scripted.register("m", said("\\boxed{75}"))
    session = session_of(scripted, catalog, {"temperature"})
    record = generate_start(session, planned(catalog, sampling_profile="greedy"), catalog, tmp_path)
    assert record.observed["sampling_accepted"] == ["temperature"]
    assert all("seed" not in emission.request for emission in scripted.log())
    assert {emission.request["temperature"] for emission in scripted.log()} == {0.0}
    assert read_journal(tmp_path / "journal.jsonl")[0].left_out == ["seed"]


def test_greedy_that_an_engine_refuses_is_no_greedy_run(scripted: Scripted, catalog: Catalog, tmp_path: Path) -> None:
    scripted.register("m", said("\\boxed{75}"))
    session = session_of(scripted, catalog, set())
    record = generate_start(session, planned(catalog, sampling_profile="greedy"), catalog, tmp_path)
    assert record.observed["sampling_accepted"] == []
    assert all(not {"temperature", "seed"} & emission.request.keys() for emission in scripted.log())
    header = read_journal(tmp_path / "journal.jsonl")[0]
    assert (header.sampling, header.left_out, header.profile) == ({}, ["seed", "temperature"], "greedy")
    (flag,) = [flag for flag in score_start(tmp_path, catalog).flags if flag.id == "sampling_left_out"]
    assert flag.severity == "invalid"
    assert "seed, temperature: this engine can't be asked for greedy answers" in flag.text


def test_greedy_that_an_engine_takes_is_no_fault(scripted: Scripted, catalog: Catalog, tmp_path: Path) -> None:
    scripted.register("m", said("\\boxed{75}"))
    session = session_of(scripted, catalog, {"temperature"})
    generate_start(session, planned(catalog, sampling_profile="greedy"), catalog, tmp_path)
    (flag,) = [flag for flag in score_start(tmp_path, catalog).flags if flag.id == "sampling_left_out"]
    assert (flag.severity, flag.text) == ("note", "Sampling fields left out: seed.")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--extra-body", '{"temperature": 1}'], "extra_body is"),
        ([], "extra_body is"),
        (["--extra-body", '{"temperature": 0}', "--base-url", "{other}"], "endpoint is"),
    ],
)
def test_a_run_is_not_continued_under_other_conditions(
    scripted: Scripted, tmp_path: Path, more: list[str], words: str
) -> None:
    scripted.register("m", said("The answer is \\boxed{075}."))
    ask(scripted, tmp_path / "out", "--extra-body", '{"temperature": 0}', "--no-score")
    asked = len(scripted.log())
    other = scripted.base_url.replace("127.0.0.1", "localhost")
    again = [word.replace("{other}", other) for word in more]
    with pytest.raises(UsageError, match=f"belongs to other conditions \\({words}"):
        ask(scripted, tmp_path / "out", *again, "--no-score")
    assert len(scripted.log()) == asked


def test_what_was_asked_is_made_again_from_the_journal(scripted: Scripted, catalog: Catalog, tmp_path: Path) -> None:
    """The sha256 of every request that was sent follows from the journal's header and the task."""
    scripted.register("m", said("The answer is \\boxed{075}."))
    words = ["--extra-body", '{"top_k": 4, "stream_options": null}', "--temperature", "0.5"]
    for task in ("smoke-aime", "smoke-tau2", "smoke-mmlu-pro"):
        ask(scripted, tmp_path / task, *words, "--no-score", task=task)
        header, entries = read_journal(tmp_path / task / "journal.jsonl")
        witness = Witness(header)
        score_start(tmp_path / task, catalog, seen=witness)
        assert (witness.wrong, witness.seen) == ([], len(entries))
        assert list(wrong_seeds(header, entries)) == []


def test_items_that_are_not_the_plans_are_refused(scripted: Scripted, catalog: Catalog, tmp_path: Path) -> None:
    session = session_of(scripted, catalog, {"temperature", "seed"})
    with pytest.raises(UsageError, match="expected hash " + "e" * 64):
        generate_start(session, planned(catalog, items_hash="e" * 64), catalog, tmp_path)
    assert scripted.log() == []


def test_the_package_gives_every_public_name_and_imports_none_before_it_is_asked_for() -> None:
    code = (
        "import sys, paribus.results.run, paribus.quality as package; print('paribus.quality.run' in sys.modules);"
        "print(all(callable(getattr(package, name)) for name in package.__all__), hasattr(package, 'nothing'))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["False", "True", "False"]
