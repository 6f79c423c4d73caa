"""The database holds every sealed run, the same whatever the order of things; figures can be cited."""

import json
import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from synthetic_runs import PROMPT_SET, STACK, Clone, make_catalog

from paribus.catalog import Candidate, Verdict
from paribus.cli import app
from paribus.conditions import CheckFailed, ParibusError, RunPath, UsageError, run_id, sha256_file
from paribus.results.build import build
from paribus.results.check import check
from paribus.results.check_race import decide_again
from paribus.results.cite import cite
from paribus.results.data import RunData
from paribus.results.database import arrow
from paribus.results.run import RunFolder
from paribus.results.seal import seal
from paribus.results.tables import DATA, DATABASE, EXPORTS, TABLES

FAST = "ngram-simple-n4-m4"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone with plain decoding and speculation at 1 and 16 requests, a decided race, and its database."""
    root = tmp_path_factory.mktemp("built")
    clone = Clone(root, make_catalog(root))
    for scenario in ("c1-long", "c16-long"):
        for decoder in ("plain", FAST):
            seal(clone.run(decoder, scenario, starts=2, words=110), clone.catalog)
    race(clone, [clone.run(decoder, "race-c1-long", words=40) for decoder in ("plain", FAST)])
    build(root)
    return clone


def race(clone: Clone, runs: list[RunFolder]) -> Path:
    """Seal the candidates of a race and write its verdict."""
    for run in runs:
        seal(run, clone.catalog)
    place = runs[0].path
    system = place.system.rsplit("--", 1)[0] + "--race"
    folder = runs[0].results / place.hardware / place.machine / system / place.measure / "0123456789ab.1"
    folder.mkdir(parents=True)
    draft = Verdict(
        stack=STACK,
        scenario="race-c1-long",
        measure=place.measure,
        metric="",
        unit="",
        candidates=[Candidate(decoder=run.path.system.split("--")[3], run=str(run.path), value=None) for run in runs],
        winner=FAST,
        plain_is_faster=False,
        not_tried={"ngram-cache-d4": "it keeps state"},
        runs=[str(run.path) for run in runs],
        decided_at="2026-12-01T12:00:00Z",
    )
    path = RunPath.parse("/".join(folder.parts[-5:]))
    verdict = decide_again(runs[0].results, path, draft, clone.catalog)
    (folder / "race.json").write_text(verdict.model_dump_json(indent=1) + "\n")
    return folder / "race.json"


def query(clone: Clone, sql: str) -> list[tuple]:
    connection = duckdb.connect(str(clone.root / DATABASE), read_only=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_every_table_and_column_is_there_and_explained(built: Clone) -> None:
    found = query(built, "SELECT table_name, column_name FROM information_schema.columns ORDER BY ordinal_position")
    for table in TABLES.values():
        assert [column for name, column in found if name == table.name] == table.names
        assert all(column.doc for column in table.columns)
    assert len(found) == query(built, "SELECT count(*) FROM dictionary")[0][0]


def test_runs_starts_and_requests_add_up(built: Clone) -> None:
    assert query(built, "SELECT kind, count(*) FROM runs GROUP BY kind ORDER BY kind") == [("race", 2), ("speed", 4)]
    assert query(built, "SELECT count(*) FROM starts") == [(10,)]
    counts = query(
        built,
        "SELECT r.run_id FROM runs r JOIN requests q USING (run_id) GROUP BY r.run_id, r.summary "
        "HAVING count(*) != (r.summary->'$.speed.requests.ok')::INT + (r.summary->'$.speed.requests.failed')::INT",
    )
    assert counts == []


def test_speculation_is_set_against_plain_decoding_with_a_permanent_id(built: Clone) -> None:
    rows = query(
        built,
        "SELECT metric, value, low, high, figure_id, ranked FROM figures WHERE other_run_id IS NOT NULL ORDER BY 1, 2",
    )
    metrics = {row[0] for row in rows}
    assert "ratio_throughput" in metrics
    assert any(metric.startswith("speedup_time_to_") for metric in metrics)
    for _, value, low, high, figure, ranked in rows:
        assert low < value < high
        assert figure.startswith("f")
        assert len(figure) == 11
        assert not ranked, "the fixture's scale is preliminary"


def test_a_share_in_a_column_of_whole_numbers_is_refused_and_never_cut_off() -> None:
    assert arrow(TABLES["kinds"], [{"run_id": "r", "kind": "chat", "ok": 3.0}]).column("ok").to_pylist() == [3]
    with pytest.raises(ValueError, match=r"2\.5 is no whole number"):
        arrow(TABLES["kinds"], [{"run_id": "r", "kind": "chat", "ok": 2.5}])


def test_the_pair_of_one_stack_is_its_winner_against_plain(built: Clone) -> None:
    rows = query(
        built,
        "SELECT p.measure, l.decoder, r.decoder, p.refused FROM pairs p JOIN runs l ON l.run_id = left_run_id "
        "JOIN runs r ON r.run_id = right_run_id ORDER BY p.measure",
    )
    assert rows == [("c1-long.small", FAST, "plain", None), ("c16-long.small", FAST, "plain", None)]


def test_the_race_keeps_every_candidate_and_what_was_not_tried(built: Clone) -> None:
    rows = query(built, "SELECT decoder, winner, run_id IS NULL, left_out FROM races ORDER BY position")
    assert rows == [
        ("plain", False, False, None),
        (FAST, True, False, None),
        ("ngram-cache-d4", False, True, "it keeps state"),
    ]


def test_a_verdict_is_checked_against_its_runs(built: Clone) -> None:
    path = next((built.root / "results").rglob("race.json"))
    assert not check(built.root, [str(path.parent)]).failed
    honest = path.read_text()
    data = json.loads(honest)
    data["winner"] = "plain"
    data["candidates"][0]["value"] += 1
    path.write_text(json.dumps(data))
    try:
        texts = [f.text for f in check(built.root, [str(path.parent)]).findings if f.verdict == "fails"]
    finally:
        path.write_text(honest)
    assert any("winner is 'plain'" in text for text in texts)
    assert any("candidates[0].value" in text for text in texts)


def test_a_second_build_knows_every_run_and_gives_the_same(built: Clone) -> None:
    before = {p.name: p.read_bytes() for p in (built.root / DATA).iterdir()}
    content = query(built, "SELECT value FROM meta WHERE key = 'content'")
    again = build(built.root)
    assert again.reused == again.runs + 2
    assert query(built, "SELECT value FROM meta WHERE key = 'content'") == content
    assert {p.name: p.read_bytes() for p in (built.root / DATA).iterdir()} == before


def test_rows_made_anew_are_those_that_were_kept(built: Clone) -> None:
    content = query(built, "SELECT value FROM meta WHERE key = 'content'")
    for path in (built.root / "build" / "rows").iterdir():
        path.unlink()
    assert build(built.root).reused == 0
    assert query(built, "SELECT value FROM meta WHERE key = 'content'") == content


def test_the_data_files_load_with_one_line_and_name_no_place(built: Clone) -> None:
    for name in EXPORTS:
        rows = query(built, f'SELECT count(*) FROM "{name}"')[0][0]
        assert pq.read_table(built.root / DATA / f"{name}.parquet").num_rows == rows
        assert duckdb.sql(f"SELECT count(*) FROM '{built.root / DATA / name}.csv'").fetchall() == [(rows,)]
    for path in (built.root / DATA).iterdir():
        assert str(built.root).encode() not in path.read_bytes()
    assert "CC-BY-4.0" in (built.root / DATA / "LICENCE.txt").read_text()


def test_a_figure_is_cited_with_all_its_conditions(built: Clone) -> None:
    run, figure = query(
        built, "SELECT run_id, figure_id FROM figures WHERE headline AND metric = 'output_speed_standard'"
    )[0]
    citation = cite(built.root, figure)
    for part in ("Test CPU", "q4-1", "llamacpp 1.0", "1 request", PROMPT_SET, "temperature 0.2", "2026-12-01", figure):
        assert part in citation.sentence
    assert "tokens/s [" in citation.sentence
    assert citation.bibtex.startswith("@misc{paribus-" + figure)
    assert cite(built.root, run).figure_id == figure
    assert cite(built.root, run, "ttft").sentence.startswith("Time to first text")
    with pytest.raises(UsageError, match="ttft"):
        cite(built.root, run, "nonsense")


def test_a_ratio_is_cited_with_both_sides(built: Clone) -> None:
    figure = query(built, "SELECT figure_id FROM figures WHERE metric = 'ratio_throughput'")[0][0]
    sentence = cite(built.root, figure).sentence
    assert "times as fast as plain" in sentence
    assert f"{FAST} against plain" in sentence
    assert sentence.count("16 requests at once") == 1


def test_an_unknown_figure_is_a_usage_error(built: Clone) -> None:
    with pytest.raises(UsageError, match="figure id"):
        cite(built.root, "faaaaaaaaaa")


def test_without_a_database_cite_says_what_to_run(clone: Clone) -> None:
    with pytest.raises(UsageError, match="paribus build"):
        cite(clone.root, "faaaaaaaaaa")


def test_an_empty_clone_builds(clone: Clone) -> None:
    assert build(clone.root).runs == 0
    assert query(clone, "SELECT count(*) FROM models") == [(len(list(clone.root.glob("systems/*.yaml"))),)]
    assert query(clone, "SELECT count(*) FROM runs") == [(0,)]


def test_unsealed_runs_are_named_and_left_out(clone: Clone) -> None:
    run = clone.run(words=20)
    found = build(clone.root)
    assert found.unsealed == [str(run.path)]
    assert found.runs == 0


def test_superseded_runs_stay_and_are_not_ranked(clone: Clone) -> None:
    old, new = (clone.run(words=20, n=n, scale="full", starts=3) for n in (1, 2))
    for run in (old, new):
        seal(run, clone.catalog)
    line = f"{old.path},{new.run_id},2026-12-02,the engine was misconfigured\n"
    (clone.root / "results" / "superseded.csv").write_text("old,new,date,reason\n" + line)
    build(clone.root)
    rows = {r[0]: r[1:] for r in query(clone, "SELECT run_id, ranked, superseded_by FROM runs")}
    assert rows == {old.run_id: (False, new.run_id), new.run_id: (True, None)}
    assert query(clone, f"SELECT DISTINCT ranked FROM figures WHERE run_id = '{old.run_id}'") == [(False,)]
    assert query(
        clone,
        "SELECT count(*) FROM figures o LEFT JOIN figures w ON w.figure_id = o.superseded_by AND w.metric = o.metric "
        f"AND w.run_id = '{new.run_id}' WHERE o.run_id = '{old.run_id}' AND w.figure_id IS NULL",
    ) == [(0,)]


def test_a_run_that_was_taken_back_stands_in_no_duel_and_the_one_before_it_does(clone: Clone) -> None:
    plain = clone.run(words=20, scale="full", starts=3)
    older, newer = (clone.run(FAST, words=20, n=n, day=n, scale="full", starts=3) for n in (1, 2))
    for run in (plain, older, newer):
        seal(run, clone.catalog)
    path = clone.root / "results" / "superseded.csv"
    path.write_text(f"old,new,date,reason\n{newer.run_id},,2026-12-04,another program was running\n")
    build(clone.root)
    assert query(clone, "SELECT left_run_id, right_run_id FROM pairs") == [(older.run_id, plain.run_id)]
    rows = {r[0]: r[1:] for r in query(clone, "SELECT run_id, ranked, superseded_by FROM runs")}
    assert rows[newer.run_id] == (False, "")
    ratios = "SELECT DISTINCT run_id, ranked, superseded_by FROM figures WHERE other_run_id IS NOT NULL ORDER BY ranked"
    assert query(clone, ratios) == [(newer.run_id, False, ""), (older.run_id, True, None)]


@pytest.mark.parametrize("faulty", ["plain", FAST])
def test_a_later_faulty_repeat_takes_no_sound_ratio_away_and_a_later_sound_one_does(clone: Clone, faulty: str) -> None:
    first = {decoder: clone.run(decoder, words=20, scale="full", starts=3) for decoder in ("plain", FAST)}
    bad = clone.run(faulty, words=20, n=2, day=2, scale="full", starts=3, drop=1)
    for run in (*first.values(), bad):
        seal(run, clone.catalog)
    assert any(flag.severity == "invalid" for flag in RunData.read(bad).summary.flags)
    build(clone.root)
    sound = (first[FAST].run_id, first["plain"].run_id)
    duels = "SELECT left_run_id, right_run_id, refused FROM pairs"
    ratios = "SELECT DISTINCT run_id, other_run_id, ranked, superseded_by IS NULL FROM figures WHERE other_run_id "
    assert query(clone, duels) == [(*sound, None)]
    assert query(clone, f"{ratios} IS NOT NULL") == [(*sound, True, True)]

    last = clone.run(faulty, words=20, n=3, day=3, scale="full", starts=3)
    seal(last, clone.catalog)
    build(clone.root)
    now = tuple((first | {faulty: last})[decoder].run_id for decoder in (FAST, "plain"))
    assert query(clone, duels) == [(*now, None)]
    found = query(clone, f"{ratios} IS NOT NULL ORDER BY ranked")
    assert found == [(*sound, False, False), (*now, True, True)]


RATIOS = "SELECT figure_id, run_id, other_run_id, metric, value, ranked, superseded_by FROM figures WHERE other_run_id "


def test_a_build_reads_each_file_of_a_run_once_however_many_comparisons_it_is_in(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    for decoder in ("plain", FAST, "ngram-map-k-n4-m4"):
        seal(clone.run(decoder, words=20), clone.catalog)
    read: list[Path] = []

    def counted(path: Path) -> str:
        read.append(path)
        return sha256_file(path)

    monkeypatch.setattr("paribus.results.cache.sha256_file", counted)
    build(clone.root)
    assert query(clone, "SELECT count(DISTINCT run_id) FROM figures WHERE other_run_id IS NOT NULL") == [(2,)]
    assert len([path for path in read if path.name == "manifest.json"]) == 6
    assert len(read) == len(set(read))


@pytest.mark.parametrize("side", ["plain", FAST])
def test_a_cited_ratio_goes_on_resolving_when_a_side_is_measured_again(clone: Clone, side: str) -> None:
    for decoder in ("plain", FAST):
        seal(clone.run(decoder, words=110, scale="full", starts=3), clone.catalog)
    build(clone.root)
    before = {row[0]: row for row in query(clone, RATIOS + "IS NOT NULL")}
    assert before
    assert all(row[5] and row[6] is None for row in before.values())
    again = clone.run(side, words=110, n=2, day=2, scale="full", starts=3)
    seal(again, clone.catalog)
    build(clone.root)
    after = {row[0]: row for row in query(clone, RATIOS + "IS NOT NULL")}
    for figure, old in before.items():
        assert after[figure][:5] == old[:5]
        ranked, by = after[figure][5:]
        assert not ranked
        assert again.run_id in after[by][1:3]
        assert (after[by][3], after[by][5], after[by][6]) == (old[3], True, None)
        said = cite(clone.root, figure)
        assert f"figure {figure}, superseded by figure {by}, not ranked" in said.sentence
        assert f"superseded by figure {by}" in said.plain
    assert query(clone, "SELECT DISTINCT ranked, superseded_by FROM figures WHERE other_run_id IS NULL") == [
        (True, None)
    ]


def test_a_duel_is_compared_under_its_own_rules_not_those_of_another_that_its_runs_are_in(clone: Clone) -> None:
    """Denoising settings may differ in this pair, and in no comparison of a speculation with plain decoding."""
    path = clone.root / "pairs.yaml"
    mine = f"""
  - pair: blocks-tokens
    title: In blocks and token by token
    kind: controlled
    left: {STACK}
    left_decoder: {FAST}
    right: {STACK}
    right_decoder: plain
"""
    path.write_text(path.read_text().rstrip() + mine)
    plain, fast = clone.run(words=110), clone.run(FAST, words=110)
    manifest = fast.folder / "start-1" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["declared"]["lossy"] = {"block_length": 32}
    manifest.write_text(json.dumps(content))
    for run in (plain, fast):
        seal(run, clone.catalog)
    build(clone.root)
    refused = dict(query(clone, "SELECT pair, refused FROM pairs"))
    assert "denoising and other lossy settings" in refused["smollm2-plain-speculation"]
    assert refused["blocks-tokens"] is None
    figures = query(clone, RATIOS + f"= '{plain.run_id}'")
    assert figures
    assert len({row[0] for row in figures}) == len(figures), "one set of figures of two runs"


def test_a_repeat_that_arrives_late_but_was_measured_between_takes_no_page_away(clone: Clone) -> None:
    fast = clone.run(FAST, words=20, day=1)
    plain = clone.run(words=20, day=3)
    for run in (fast, plain):
        seal(run, clone.catalog)
    build(clone.root)
    before = query(clone, "SELECT figure_id FROM figures")
    seal(clone.run(FAST, words=20, n=2, day=2), clone.catalog)
    build(clone.root)
    assert set(before) <= set(query(clone, "SELECT figure_id FROM figures"))


def test_a_duel_keeps_its_pages_when_another_decoder_becomes_the_best(clone: Clone) -> None:
    for decoder in ("plain", FAST):
        seal(clone.run(decoder, words=20), clone.catalog)
    build(clone.root)
    before = query(clone, "SELECT figure_id FROM figures")
    seal(clone.run("ngram-map-k-n4-m4", words=20, pace=4), clone.catalog)
    build(clone.root)
    assert set(before) <= set(query(clone, "SELECT figure_id FROM figures"))


@pytest.mark.parametrize("old", ["raaaaaaaaaa", "cpu/m-test/no-such-run"])
def test_a_line_of_superseded_about_no_run_is_refused(clone: Clone, old: str) -> None:
    (clone.root / "results" / "superseded.csv").write_text(f"old,new,date,reason\n{old},,2026-12-02,a slip\n")
    with pytest.raises(UsageError, match=old):
        build(clone.root)


def test_what_the_last_plan_left_out_is_kept_with_its_reason(clone: Clone) -> None:
    plan = {
        **{"edition": "2026.12", "protocol": 1, "hardware": "cpu", "machine": "m-a", "scale": "demo"},
        **{"results": "build/demo-results", "races": [], "jobs": [], "runs": [], "waiting": []},
        "excluded": [{"name": "smoke-livecodebench", "reason": "there is no sandbox"}],
        "totals": {"jobs": 0, "jobs_done": 0, "hours": 0, "download_gb": 0, "disk_gb": 0},
    }
    (clone.root / "build").mkdir(exist_ok=True)
    (clone.root / "build" / "plan.json").write_text(json.dumps(plan))
    build(clone.root)
    kept = query(clone, "SELECT name, hardware, scale, reason FROM left_out")
    assert kept == [("smoke-livecodebench", "cpu", "demo", "there is no sandbox")]


def test_a_line_of_superseded_without_a_reason_is_refused(clone: Clone) -> None:
    (clone.root / "results" / "superseded.csv").write_text("old,new,date,reason\nrabc,,2026-12-02,\n")
    with pytest.raises(UsageError, match="line 2"):
        build(clone.root)


def test_the_same_path_in_two_results_folders_is_a_clash(clone: Clone) -> None:
    run = clone.run(words=20)
    seal(run, clone.catalog)
    twin = clone.root / "build" / "demo-results" / str(run.path)
    twin.parent.mkdir(parents=True)
    shutil.copytree(run.folder, twin)
    with pytest.raises(CheckFailed, match=run_id(str(run.path))):
        build(clone.root)


def invoke(root: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    """A command in a clone, as a person types it: its exit code and what it prints."""
    monkeypatch.chdir(root)
    result = CliRunner().invoke(app, words)
    if isinstance(result.exception, ParibusError):
        return result.exception.exit_code, f"{result.output}{result.exception}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_commands_do_what_their_help_says(built: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    fast, plain = (
        query(built, f"SELECT run_id FROM runs WHERE decoder = '{d}' AND measure = 'c1-long.small'")[0][0]
        for d in (FAST, "plain")
    )
    assert invoke(built.root, monkeypatch, "check", fast)[0] == 0
    assert invoke(built.root, monkeypatch, "seal", fast)[0] == 0
    code, text = invoke(built.root, monkeypatch, "compare", fast, plain)
    assert code == 1
    assert f"decoder: {FAST} and plain" in text
    code, text = invoke(built.root, monkeypatch, "compare", fast, plain, "--subject", "decoder")
    assert code == 0
    assert f"{FAST} is" in text
    code, text = invoke(built.root, monkeypatch, "compare", fast, plain, "--subject", "decoder", "--json")
    assert json.loads(text)["ratios"]
    code, text = invoke(built.root, monkeypatch, "cite", fast, "--form", "bibtex")
    assert code == 0
    assert text.startswith("@misc")
    code, text = invoke(built.root, monkeypatch, "build")
    assert code == 0
    assert "6 runs" in text
    assert invoke(built.root, monkeypatch, "check", "nowhere")[0] == 2


@pytest.mark.parametrize("command", ["check", "compare", "cite", "seal", "build", "schemas"])
def test_help_has_examples(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"paribus {command}" in result.output


@pytest.mark.parametrize(
    ("scale", "starts", "demo", "ranked"),
    [("full", 3, False, True), ("small", 1, False, False), ("full", 3, True, False)],
)
def test_only_a_published_run_of_a_whole_scale_is_ranked(
    clone: Clone, scale: str, starts: int, demo: bool, ranked: bool
) -> None:
    run = clone.run(words=20, scale=scale, starts=starts)
    seal(run, clone.catalog)
    if demo:
        twin = clone.root / "build" / "demo-results" / str(run.path)
        twin.parent.mkdir(parents=True)
        run.folder.rename(twin)
    build(clone.root)
    assert query(clone, "SELECT DISTINCT ranked FROM runs") == [(ranked,)]
    assert query(clone, "SELECT DISTINCT ranked FROM figures") == [(ranked,)]


def test_a_demo_figure_is_never_cited_without_saying_so(clone: Clone) -> None:
    run = clone.run(words=20)
    seal(run, clone.catalog)
    twin = clone.root / "build" / "demo-results" / str(run.path)
    twin.parent.mkdir(parents=True)
    run.folder.rename(twin)
    build(clone.root)
    citation = cite(clone.root, run.run_id)
    assert all("A demo figure, not for citing" in s for s in (citation.sentence, citation.plain, citation.bibtex))
