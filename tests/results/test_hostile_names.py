"""Whatever a stranger's run folder says: it is named with its reason, left out, and the site of all others is made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from synthetic_runs import Clone, make_catalog

from paribus.cli import app
from paribus.results.check import check
from paribus.results.run import RunFolder

ROOT = Path(__file__).parents[2]
HTML = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    root = tmp_path_factory.mktemp("hostile")
    clone = Clone(root, make_catalog(root))
    (root / "site").symlink_to(ROOT / "site")
    return clone


@pytest.fixture(scope="module")
def runs(clone: Clone) -> tuple[RunFolder, RunFolder]:
    return clone.sealed_run("plain", words=20), clone.sealed_run("ngram-simple-n4-m4", words=20)


@pytest.fixture
def hostile(clone: Clone, runs: tuple[RunFolder, RunFolder]) -> Iterator[RunFolder]:
    whole = clone.root.with_name(f"{clone.root.name}-whole")
    shutil.copytree(clone.root / "results", whole, dirs_exist_ok=True)
    yield runs[0]
    shutil.rmtree(clone.root / "results")
    shutil.move(whole, clone.root / "results")


Change = Callable[[RunFolder], None]


def told(change: Callable[[dict[str, Any]], object], *names: str) -> Change:
    """The JSON files of a run, changed."""

    def made(run: RunFolder) -> None:
        for name in names or ("summary.json", "start-1/manifest.json"):
            path = run.folder / name
            value = json.loads(path.read_text())
            change(value)
            path.write_text(json.dumps(value))

    return made


def declared(**values: Any) -> Change:
    return told(lambda file: file["declared"].update(values))


def observed(**values: Any) -> Change:
    return told(lambda file: file["observed"].update(values))


def summary(**values: Any) -> Change:
    return told(lambda file: file.update(values), "summary.json")


def text(name: str, what: str) -> Change:
    return lambda run: (run.folder / name).write_text(what) and None


def gone(name: str) -> Change:
    return lambda run: (run.folder / name).unlink()


def linked(run: RunFolder) -> None:
    (run.folder / "summary.json").unlink()
    (run.folder / "summary.json").symlink_to("/etc/hostname")


def folder(run: RunFolder) -> None:
    (run.folder / "summary.json").unlink()
    (run.folder / "summary.json").mkdir()


def renamed(part: str) -> Change:
    def made(run: RunFolder) -> None:
        run.folder.parents[1].rename(run.folder.parents[1].with_name(part))

    return made


def not_a_number(run: RunFolder) -> None:
    path = run.folder / "start-1" / "requests-lite.parquet"
    table = pq.read_table(path)
    for place, one in enumerate(table.schema):
        if pa.types.is_floating(one.type):
            table = table.set_column(place, one.name, pa.array([float("nan")] * len(table)))
    pq.write_table(table, path)


DEEP = json.loads("[" * 40 + "]" * 40)
REFUSED: dict[str, Change] = {
    "a scenario with parts of a path": declared(scenario="../../../etc/passwd"),
    "a scenario of HTML": declared(scenario=HTML),
    "a scenario that is a list": declared(scenario=["c1-long"]),
    "a scenario that is another": declared(scenario="c16-long"),
    "a scenario and a task": declared(task="smoke-aime"),
    "no scenario": declared(scenario=None),
    "a huge scenario": declared(scenario="a" * 5_000_000),
    "a system with parts of a path": summary(system="../x--y--z--plain"),
    "another system": summary(system="a--b--c--plain"),
    "no system's name": summary(system=HTML),
    "hardware with parts of a path": told(
        lambda file: (file.update(hardware="../.."), file["declared"].update(hardware="../..")), "summary.json"
    ),
    "a machine with parts of a path": summary(machine="../../.."),
    "a measure of HTML": summary(measure=HTML),
    "a model that is a dictionary": declared(model={"a": 1}),
    "an engine of HTML": declared(engine=HTML),
    "a decoder with parts of a path": declared(decoder="../plain"),
    "a decoder that is a number": declared(decoder=7),
    "a scale that is a list": declared(scale=[HTML]),
    "requests at once that are none": declared(requests_at_once="1"),
    "more requests than there are": declared(requests_at_once=10**30),
    "a cap that is a list": declared(cap=[1]),
    "launch settings that are a text": declared(launch="--fast"),
    "sampling that is a list": declared(sampling=[1, "a"]),
    "an acceptance method that is a list": declared(acceptance_method=[]),
    "fields of several kinds": observed(sampling_accepted=[1, "a", None]),
    "admitted requests of HTML": observed(admitted=HTML),
    "a sampling profile of a dictionary": declared(sampling_profile={}),
    "another kind": summary(kind="race"),
    "a quality run without a score": summary(kind="quality"),
    "no numbers": summary(speed=None),
    "no starts": summary(starts=[]),
    "another run's id": summary(run_id="raaaaaaaaaa"),
    "not a number": text("summary.json", '{"schema": NaN}'),
    "an infinite number": told(lambda file: file["speed"].update(wall_s=1e999), "summary.json"),
    "times to tokens that are none": told(lambda file: file["speed"].update(time_to_k_ms={HTML: None}), "summary.json"),
    "JSON deeper than any file of ours": observed(card=[[[[[[[[[[DEEP]]]]]]]]]]),
    "deeper JSON": text("summary.json", "[" * 100_000 + "]" * 100_000),
    "a key twice": text("summary.json", '{"schema": 1, "schema": 1}'),
    "bytes that are no text": lambda run: (run.folder / "summary.json").write_bytes(b"\xff\xfe\x00") and None,
    "a lone surrogate as a name": text("summary.json", '{"\\ud800": 1}'),
    "an empty summary": text("summary.json", ""),
    "a huge text": observed(card="x" * 100_000),
    "no summary": gone("summary.json"),
    "a summary that is a link": linked,
    "a summary that is a folder": folder,
    "no rows": gone("start-1/requests-lite.parquet"),
    "no start's summary": gone("start-1/summary.json"),
    "rows that are no numbers": not_a_number,
}
"""What is wrong with the first run."""

SHOWN: dict[str, Change] = {
    "numbers that no axis holds": told(
        lambda file: file["speed"]["output_speed_standard"].update(value=-1e308, low=-1e308, high=-1e308),
        "summary.json",
    ),
    "deep JSON": observed(card=[DEEP] * 2),
    "a card of HTML": observed(card=HTML, cpu=HTML),
    "a card that is a list of lists": observed(card=[["a"], {"b": [HTML]}]),
    "a contributor of HTML": told(lambda file: file["starts"][0].update(contributor=HTML), "summary.json"),
    "a flag of another world": told(
        lambda file: file["flags"].append({"id": f"../{HTML}", "severity": "note", "text": HTML}), "summary.json"
    ),
    "times that are none": told(
        lambda file: file["starts"][0].update(started_at=HTML, ended_at="\u202e"), "summary.json"
    ),
    "numbers below nothing": told(
        lambda file: file["speed"]["output_speed"].update(value=-1.0, low=-9.0, high=1e300), "summary.json"
    ),
    "a folder with another's name": renamed("a..b--c--d--plain"),
}
"""What is odd and ends nothing: whether it is refused or shown, as text, is the same to the site."""


def left(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> str:
    """What building and rendering say; both must end well."""
    monkeypatch.chdir(clone.root)
    said = ""
    for command in ("build", "site"):
        done = CliRunner().invoke(app, [command])
        assert done.exit_code == 0, (done.output, done.exception)
        said += done.output
    return said


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_run_is_refused_with_its_reason_and_ends_no_site(
    clone: Clone, runs: tuple[RunFolder, RunFolder], hostile: RunFolder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    REFUSED[name](hostile)
    said = left(clone, monkeypatch)
    (line,) = [line for line in said.splitlines() if line.startswith("left out, can't be")]
    assert str(hostile.path) in line
    assert len(line) < 1000
    pages = {path.name for path in (clone.root / "build" / "site" / "run").iterdir()}
    assert pages == {f"{runs[1].run_id}.html"}
    report = check(clone.root, [str(clone.root / "results")])
    fails = [finding for finding in report.findings if finding.verdict == "fails"]
    assert fails
    assert all(finding.where.startswith(str(hostile.path)) for finding in fails)


@pytest.mark.parametrize("name", SHOWN)
def test_an_odd_run_ends_neither_check_nor_build_nor_site(
    clone: Clone, runs: tuple[RunFolder, RunFolder], hostile: RunFolder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    SHOWN[name](hostile)
    left(clone, monkeypatch)
    check(clone.root, [str(clone.root / "results")])
    pages = {path.name: path.read_text() for path in (clone.root / "build" / "site" / "run").iterdir()}
    assert f"{runs[1].run_id}.html" in pages
    assert not any(HTML in page for page in pages.values())
    assert HTML not in (clone.root / "build" / "site" / "index.html").read_text()
