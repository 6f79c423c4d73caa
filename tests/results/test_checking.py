"""`paribus check` believes nothing: whatever is altered in a run, alone or with everything that hides it, is found."""

import dataclasses
import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic_runs import PROMPT_SET, ROOT, STACK, Clone, make_catalog

from paribus.catalog import Catalog
from paribus.conditions import UsageError, hash12
from paribus.results.check import check, check_run, table
from paribus.results.check_start import SYSTEM_CONDITIONS, WHERE_SET, _hashes
from paribus.results.findings import Report, unequal
from paribus.results.run import RunFolder
from paribus.results.seal import seal
from paribus.speed.rows import read_rows, write_rows
from paribus.wire import read_outcomes, write_outcomes


def failures(clone: Clone, run: RunFolder) -> str:
    """What a check says fails, in one text; empty when all holds."""
    report = check(clone.root, [str(run.folder)])
    return "\n".join(f"{f.subject}: {f.text}" for f in report.findings if f.verdict == "fails")


def edit(path: Path, change: Callable[[dict], None]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data, indent=1) + "\n")


def rehash(start: Path) -> None:
    """What a careful forger does: list the altered files in the manifest again."""

    def again(manifest: dict) -> None:
        for entry in manifest["files"]:
            data = (start / entry["name"]).read_bytes()
            entry["bytes"], entry["sha256"] = len(data), hashlib.sha256(data).hexdigest()

    edit(start / "manifest.json", again)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    """Two sealed runs, measured once: one request with a fixed number, sixteen with a window."""
    root = tmp_path_factory.mktemp("honest")
    clone = Clone(root, make_catalog(root))
    runs = {
        "c1-long": clone.run("plain", "c1-long", scale="demo", starts=2, words=35),
        "c16-long": clone.run("plain", "c16-long", scale="full", starts=2, words=35),
    }
    for made in runs.values():
        seal(made, clone.catalog)
    return runs


@pytest.fixture(params=["c1-long", "c16-long"])
def run(request: pytest.FixtureRequest, clone: Clone, honest: dict[str, RunFolder]) -> RunFolder:
    """A copy of one of them, to be tampered with."""
    made = honest[request.param]
    copy = RunFolder(clone.root / "build" / "demo-results" if made.demo else clone.root / "results", made.path)
    shutil.copytree(made.folder, copy.folder)
    return copy


@pytest.mark.parametrize("scale", ["demo", "small", "quick"])
def test_an_honest_run_holds(clone: Clone, scale: str) -> None:
    for decoder in ("plain", "ngram-simple-n4-m4"):
        made = clone.run(decoder, "c1-long", scale=scale, starts=2, drop=1)
        seal(made, clone.catalog)
        assert failures(clone, made) == ""


@pytest.mark.parametrize("scale", ["small", "full"])
def test_an_honest_run_at_sixteen_holds(clone: Clone, scale: str) -> None:
    """A fixed number of requests with its steady part; and a window of whole seconds with soak and tail."""
    made = clone.run("plain", "c16-long", scale=scale)
    summary = seal(made, clone.catalog)
    assert summary.speed is not None
    assert summary.speed.throughput.value is not None
    assert failures(clone, made) == ""


@pytest.mark.parametrize("name", ["requests.parquet", "requests-lite.parquet", "summary.json", "manifest.json"])
def test_a_file_that_is_altered_is_found(clone: Clone, run: RunFolder, name: str) -> None:
    path = run.folder / "start-1" / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert failures(clone, run)


@pytest.mark.parametrize("name", ["requests-lite.parquet", "summary.json"])
def test_a_file_that_is_missing_is_found(clone: Clone, run: RunFolder, name: str) -> None:
    (run.folder / "start-1" / name).unlink()
    assert "missing" in failures(clone, run)


def test_a_file_too_many_is_found(clone: Clone, run: RunFolder) -> None:
    (run.folder / "start-1" / "notes.txt").write_text("x")
    assert "notes.txt" in failures(clone, run)
    (run.folder / "start-1" / "notes.txt").unlink()
    (run.folder / "extra.json").write_text("{}")
    assert "extra.json" in failures(clone, run)


def test_files_of_another_start_are_found(clone: Clone, run: RunFolder) -> None:
    one, two = run.folder / "start-1", run.folder / "start-2"
    for name in ("requests.parquet", "requests-lite.parquet", "summary.json"):
        (one / name).write_bytes((two / name).read_bytes())
    rehash(one)
    seal_anyway(run, clone)
    assert "did not come in the order of this start" in failures(clone, run)


def seal_anyway(run: RunFolder, clone: Clone) -> None:
    """Mend the chain of starts after a forgery, then seal."""
    sha = hashlib.sha256((run.folder / "start-1" / "manifest.json").read_bytes()).hexdigest()
    edit(run.folder / "start-2" / "manifest.json", lambda m: m.update(previous=sha))
    seal(run, clone.catalog)


def _numbers(value: object, path: tuple = ()) -> list[tuple]:
    if isinstance(value, dict):
        return [p for key, item in value.items() for p in _numbers(item, (*path, key))]
    return [path] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


NOT_DERIVED = {("client", "lag_ms_p99"), ("client", "cpu_share"), ("schema",)}


def test_every_number_of_a_summary_is_recomputed(clone: Clone) -> None:
    """Each number in turn is raised a little, with every hash mended; only what the client noted can't be told."""
    made = clone.run("plain", "c16-long", scale="small", words=33)
    start = made.folder / "start-1"
    honest = (start / "summary.json").read_text()
    places = _numbers(json.loads(honest))
    assert len(places) > 50
    missed = []
    for place in places:
        data = json.loads(honest)
        holder = data
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = (
            holder[place[-1]] * 1.001 + 1 if isinstance(holder[place[-1]], float) else holder[place[-1]] + 1
        )
        (start / "summary.json").write_text(json.dumps(data))
        rehash(start)
        report = Report()
        check_run(made, clone.catalog, report)
        if not report.failed:
            missed.append(place)
    assert set(missed) <= NOT_DERIVED


def test_a_failed_request_can_not_be_dropped(clone: Clone) -> None:
    """The forger drops it from the raw file, the rows, the summary and every hash, and numbers the others anew."""
    made = clone.run("plain", "c1-long", scale="demo", drop=1)
    start = made.folder / "start-1"
    outcomes = [o for o in read_outcomes(start / "requests.parquet") if o.error is None]
    rows = [r for r in read_rows(start / "requests-lite.parquet") if r.ok]
    for renumber in (False, True):
        kept = [dataclasses.replace(o, index=i) for i, o in enumerate(outcomes)] if renumber else outcomes
        write_outcomes(start / "requests.parquet", kept)
        write_rows(
            start / "requests-lite.parquet",
            [dataclasses.replace(r, index=i) for i, r in enumerate(rows)] if renumber else rows,
        )
        edit(start / "summary.json", lambda s: s["requests"].update(failed=0))
        rehash(start)
        seal(made, clone.catalog)
        text = failures(clone, made)
        assert "did not come in the order" in text
        assert ("gaps" in text) != renumber


def test_a_sealed_number_can_not_be_changed(clone: Clone, run: RunFolder) -> None:
    edit(run.folder / "summary.json", lambda s: s["speed"]["output_speed"].update(value=999.0))
    edit(
        run.folder / "manifest.json",
        lambda m: m.update(summary_sha256=hashlib.sha256((run.folder / "summary.json").read_bytes()).hexdigest()),
    )
    assert "speed.output_speed.value is 999.0" in failures(clone, run)


def test_a_flag_can_not_be_taken_away(clone: Clone) -> None:
    made = clone.run("plain", "c1-long", scale="demo", drop=1)
    start = made.folder / "start-1"
    edit(start / "summary.json", lambda s: s.update(flags=[f for f in s["flags"] if f["id"] != "failures"]))
    rehash(start)
    assert "the flag failures is missing" in failures(clone, made)


def test_a_lowered_power_limit_can_not_go_without_its_flag(clone: Clone, run: RunFolder) -> None:
    limits = {"power_limit_w": 450.0, "power_default_w": 700.0}
    edit(run.folder / "start-1" / "manifest.json", lambda m: m["observed"].update(limits))
    assert "the flag power_limited is missing: The card's power was limited: 450 W of 700 W" in failures(clone, run)


@pytest.mark.parametrize(
    ("name", "value"),
    [("cap", 999), ("decoder", "ngram-simple-n4-m4"), ("precision", "f16"), ("edition", "1999"), ("scale", "quick")],
)
def test_a_declared_condition_can_not_be_edited(clone: Clone, run: RunFolder, name: str, value: object) -> None:
    edit(run.folder / "start-1" / "manifest.json", lambda m: m["declared"].update({name: value}))
    assert "conditions: " in failures(clone, run)


def test_what_a_manifest_says_of_itself_steers_no_terminal_and_looks_like_no_finding(
    clone: Clone, run: RunFolder
) -> None:
    def forge(manifest: dict) -> None:
        manifest["path"] = "\x1b[1A\x1b[2K\nfiles holds"
        manifest["hashes"]["conditions"] = "\u202e0"

    edit(run.folder / "start-1" / "manifest.json", forge)
    report = Report()
    check_run(run, clone.catalog, report)
    assert report.failed
    assert all(f.text.isprintable() and f.where.isprintable() for f in report.findings)
    assert any("[2K files holds" in f.text for f in report.findings)


def test_a_run_can_not_be_moved(clone: Clone) -> None:
    made = clone.run("plain", "c1-long", scale="demo")
    other = made.folder.parents[2] / f"{STACK}--ngram-simple-n4-m4" / made.path.measure / made.folder.name
    other.parent.mkdir(parents=True)
    made.folder.rename(other)
    report = check(clone.root, [str(other)])
    assert any("the path says" in f.text for f in report.findings if f.verdict == "fails")


def test_links_and_paths_that_leave_the_folder_are_refused(clone: Clone, run: RunFolder, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.json"
    summary = run.folder / "start-1" / "summary.json"
    target.write_bytes(summary.read_bytes())
    summary.unlink()
    summary.symlink_to(target)
    assert "is a link" in failures(clone, run)


def test_without_the_raw_file_the_summary_is_made_from_the_rows(clone: Clone, run: RunFolder) -> None:
    start = run.folder / "start-1"
    (start / "requests.parquet").unlink()
    assert failures(clone, run) == ""
    report = check(clone.root, [str(run.folder)])
    assert any("no raw file here" in f.text for f in report.findings if f.verdict == "not checked")
    edit(start / "summary.json", lambda s: s["requests"].update(ok=99))
    rehash_small = json.loads((start / "manifest.json").read_text())
    for entry in rehash_small["files"]:
        if entry["name"] == "summary.json":
            data = (start / "summary.json").read_bytes()
            entry["bytes"], entry["sha256"] = len(data), hashlib.sha256(data).hexdigest()
    (start / "manifest.json").write_text(json.dumps(rehash_small))
    assert "requests.ok is 99" in failures(clone, run)


def two_a_word(text: str) -> int:
    """As the usage of these runs counts."""
    return 2 * len(re.findall(r"[^ ]+ [^ ]+ ?", text))


def test_what_the_tokenizer_counted_is_kept_where_it_is_not_at_hand(clone: Clone) -> None:
    made = dataclasses.replace(clone, tokenizer=two_a_word).run("plain", "c1-long", scale="demo")
    start = made.folder / "start-1"
    seal(made, clone.catalog)
    assert failures(clone, made) == ""
    flags = {flag["id"] for flag in json.loads((start / "summary.json").read_text())["flags"]}
    assert not flags & {"usage_mismatch", "usage_unverified"}
    rows = read_rows(start / "requests-lite.parquet")
    for count, said in ((None, "usage_unverified"), (9, "usage_mismatch")):
        write_rows(start / "requests-lite.parquet", [dataclasses.replace(row, text_tokens=count) for row in rows])
        rehash(start)
        assert f"the flag {said} is missing" in failures(clone, made), "counts can't be changed without their flag"


def test_only_what_rests_on_the_tokenizers_offsets_is_taken_as_it_is(clone: Clone) -> None:
    def ends(text: str) -> list[int]:
        return [len(text) * (i + 1) // two_a_word(text) for i in range(two_a_word(text))]

    made = dataclasses.replace(clone, tokenizer=ends).run("plain", "c1-long", scale="demo")
    start = made.folder / "start-1"
    seal(made, clone.catalog)
    findings = check(clone.root, [str(made.folder)]).findings
    assert [f.text for f in findings if f.verdict == "fails"] == []
    assert any("the model's tokenizer is not here" in f.text for f in findings if f.verdict == "not checked")
    rows = read_rows(start / "requests-lite.parquet")
    write_rows(start / "requests-lite.parquet", [dataclasses.replace(row, t32_ns=1) for row in rows])
    rehash(start)
    assert "t32_ns" in failures(clone, made)


def test_other_prompts_than_those_measured_are_named(clone: Clone, run: RunFolder) -> None:
    prompts = clone.root / "tasks" / "speed" / "prompts" / f"{PROMPT_SET}.jsonl"
    prompts.write_text(prompts.read_text().replace("Say something", "Say nothing"))
    assert "prompts have the hash" in failures(clone, run)


def test_the_hash_is_over_what_the_catalog_declares() -> None:
    for system in Catalog(ROOT).systems.values():
        declared = system.declared("build", {})
        assert set(SYSTEM_CONDITIONS) <= set(declared) <= {*SYSTEM_CONDITIONS, *WHERE_SET}
        assert _hashes({**declared, "scenario": "s"})["system_hash"] == hash12(declared)


def test_folders_of_runs_and_ids_are_checked(clone: Clone) -> None:
    runs = [clone.run(decoder, "c1-long", scale="demo") for decoder in ("plain", "ngram-simple-n4-m4")]
    demo = clone.root / "build" / "demo-results"
    for path in (demo, demo / "cpu", demo / "cpu" / "m-test"):
        report = check(clone.root, [str(path)])
        assert {f.where.rsplit("/", 1)[0] for f in report.findings if "start-1" in f.where} == {
            str(made.path) for made in runs
        }
        assert not report.failed
    assert not check(clone.root, [runs[0].run_id]).failed
    with pytest.raises(UsageError):
        check(clone.root, [str(clone.root / "tasks")])


def test_results_without_a_run_are_said_to_hold_none(clone: Clone) -> None:
    (clone.root / "results").mkdir(exist_ok=True)
    with pytest.raises(UsageError, match="results holds no finished run yet"):
        check(clone.root, [str(clone.root / "results")])
    run = clone.run("plain", "c1-long", scale="full")
    with pytest.raises(UsageError, match="is a folder that holds no finished run"):
        check(clone.root, [str(clone.root)])
    assert check(clone.root, [str(run.folder.parents[2])]).findings


def test_only_the_folder_itself_is_looked_at(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = clone.root / "elsewhere" / "some"
    (folder / "cpu" / "not-a-system" / "Neither" / "here").mkdir(parents=True)
    seen: list[Path] = []
    look = Path.iterdir

    def iterdir(path: Path) -> object:
        seen.append(path)
        return look(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(UsageError, match="is a folder that holds no finished run"):
        check(clone.root, [str(folder)])
    assert all(path.is_relative_to(folder) for path in seen)
    assert folder / "cpu" / "not-a-system" / "Neither" not in seen


def test_what_can_not_be_read_is_said_and_links_are_not_followed(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    run = clone.run("plain", "c1-long", scale="full")
    closed = clone.root / "results" / "closed"
    link = clone.root / "results" / "link"
    link.symlink_to(closed)
    is_dir, iterdir = Path.is_dir, Path.iterdir

    def refuse(path: Path) -> bool:
        if path in (closed, link):
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert check(clone.root, [str(clone.root / "results")]).findings
    with pytest.raises(UsageError, match=r"can't read .*closed: Permission denied"):
        check(clone.root, [str(closed)])
    monkeypatch.setattr(Path, "is_dir", is_dir)

    def shut(path: Path) -> object:
        if path == run.folder.parent:
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", shut)
    with pytest.raises(UsageError, match=r"can't read .*: Permission denied"):
        check(clone.root, [str(clone.root / "results")])


def test_files_of_the_catalog_are_checked(clone: Clone) -> None:
    system = clone.root / "systems" / "smollm2-135m.yaml"
    assert not check(clone.root, [str(system), str(clone.root / "pairs.yaml")]).failed
    wrong = clone.root / "systems" / "another.yaml"
    wrong.write_text(system.read_text())
    assert check(clone.root, [str(wrong)]).failed
    wrong.write_text(system.read_text() + "\nunknown: 1\n")
    report = check(clone.root, [str(wrong)])
    assert "unknown" in report.findings[0].text


def test_the_table_counts_every_finding(clone: Clone, run: RunFolder) -> None:
    report = check(clone.root, [str(run.folder)])
    assert sum(sum(row[1:5]) for row in table(report)) == len(report.findings)


def test_differences_are_named_to_the_last_digit() -> None:
    assert list(unequal({"a": 1.0}, {"a": 1.0 + 1e-12})) == []
    assert list(unequal({"a": 1.0}, {"a": 1.0001})) == ["a is 1.0 and should be 1.0001"]
    assert list(unequal({"a": None}, {"a": 0})) == ["a is None and should be 0"]
    assert list(unequal({"a": True}, {"a": 1})) == ["a is True and should be 1"]
    assert list(unequal([1], [1, 2])) == [" has 1 entries and should have 2"]
