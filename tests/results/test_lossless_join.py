"""Speed and quality are joined by gates: verdicts out of runs, and what a failed one cuts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from synthetic_runs import STACK, Clone
from test_gate import SYSTEM, write
from test_quality_runs import quality_run

import paribus
from paribus.cli import compare as compare_command
from paribus.conditions import CheckFailed
from paribus.results.build import DATABASE, build
from paribus.results.cache import CACHE, RowCache
from paribus.results.cite import cite
from paribus.results.data import RunData
from paribus.results.lossless import DECLARED, by_decoder, lossless_sentence, marked, standing
from paribus.results.pairing import latest
from paribus.results.run import RunFolder
from paribus.results.seal import seal

NGRAM, OTHER = "ngram-simple-n4-m4", "ngram-map-k-n4-m4"


def sealed(clone: Clone, decoder: str, **more: Any) -> RunData:
    run = clone.run(decoder, "c1-long", starts=3, **more)
    seal(run, clone.catalog)
    return RunData.read(run)


def table(clone: Clone, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(clone.root / DATABASE), read_only=True) as database:
        return database.execute(query).fetchall()


def compared(clone: Clone, monkeypatch: pytest.MonkeyPatch, *runs: RunData) -> str:
    monkeypatch.chdir(clone.root)
    words = [*(data.summary.run_id for data in runs), "--subject", "decoder"]
    return CliRunner().invoke(compare_command.command, words, catch_exceptions=False).output


def test_longer_answers_than_plains_starts_give_cut_a_decoder_off_everywhere(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, long, same = sealed(clone, "plain"), sealed(clone, NGRAM, words=150), sealed(clone, OTHER)
    build(clone.root)
    rows = table(clone, "SELECT gate, system, plain, standing, answer_class FROM lossless ORDER BY standing")
    answer_class = plain.summary.hashes["answer_class"]
    assert rows == [
        ("served", f"{STACK}--{NGRAM}", f"{STACK}--plain", "failed", answer_class),
        ("served", f"{STACK}--{OTHER}", f"{STACK}--plain", "undecided", answer_class),
    ], "nothing could be checked, so nobody passes"
    assert table(clone, "SELECT DISTINCT run_id FROM flags WHERE flag = 'not_lossless'") == [(long.summary.run_id,)]

    # The leaderboard: no rank, and no ratio to plain decoding; the other decoder's are there.
    assert not table(clone, f"SELECT * FROM figures WHERE run_id = '{long.summary.run_id}' AND ranked")
    ratios = table(clone, "SELECT DISTINCT run_id FROM figures WHERE other_run_id IS NOT NULL")
    assert ratios == [(same.summary.run_id,)]

    # The duel that would be its own is the other decoder's, and says why.
    ((left, refused, notes),) = table(clone, "SELECT left_run_id, refused, notes FROM pairs")
    assert (left, refused) == (same.summary.run_id, None)
    assert f"{OTHER} stands in for {NGRAM}, whose run is not ranked (not_lossless)" in notes

    with pytest.raises(CheckFailed, match="flags that forbid a ranking: not_lossless and none"):
        compared(clone, monkeypatch, long, plain)
    assert "times as fast" in compared(clone, monkeypatch, same, plain)

    said = cite(clone.root, long.summary.run_id, "time_to_100").sentence
    assert said.startswith("This decoder is not lossless, though its file says so; it inherits no quality: served")
    assert "not ranked" in said
    assert "not lossless" not in cite(clone.root, same.summary.run_id, "time_to_100").sentence


def test_the_cache_forgets_what_a_gate_has_changed(clone: Clone) -> None:
    data = sealed(clone, NGRAM)
    sealed(clone, "plain")
    build(clone.root)
    assert table(clone, "SELECT count(*) FROM figures WHERE other_run_id IS NOT NULL") != [(0,)]
    write(clone.root, differing=9, answer_class=data.summary.hashes["answer_class"])
    build(clone.root)
    assert table(clone, "SELECT count(*) FROM figures WHERE other_run_id IS NOT NULL") == [(0,)]
    assert table(clone, "SELECT DISTINCT run_id FROM flags WHERE flag = 'not_lossless'") == [(data.summary.run_id,)]


def test_a_verdict_about_another_answer_class_cuts_nothing(clone: Clone) -> None:
    sealed(clone, NGRAM)
    sealed(clone, "plain")
    write(clone.root, differing=9)
    build(clone.root)
    assert table(clone, "SELECT * FROM flags WHERE flag = 'not_lossless'") == []


def test_one_start_of_plain_gives_no_band(clone: Clone) -> None:
    for decoder in ("plain", NGRAM):
        seal(clone.run(decoder, "c1-long"), clone.catalog)
    build(clone.root)
    ((told, standing),) = table(clone, "SELECT sentence, standing FROM lossless")
    assert standing == "undecided"
    assert "give no band" in told


def test_answers_at_several_requests_say_nothing_of_their_length(clone: Clone) -> None:
    for decoder, words in (("plain", 130), (NGRAM, 150)):
        seal(clone.run(decoder, "c16-long", starts=3, words=words), clone.catalog)
    build(clone.root)
    assert table(clone, "SELECT * FROM lossless") == []


def canary(
    clone: Clone, right: int, decoder: str = NGRAM, name: str = "smoke-canary", sampling: str = "served"
) -> RunFolder:
    run = quality_run(clone, right, decoder=decoder, name=name, sampling=sampling)
    seal(run, clone.catalog)
    return run


@pytest.mark.parametrize(("right", "standing"), [(10, "passed"), (0, "failed"), (9, "undecided")])
def test_the_canary_is_held_against_plain_decodings_answers(clone: Clone, right: int, standing: str) -> None:
    run = canary(clone, right)
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    build(clone.root)
    ((gate, said, told, asked),) = table(clone, "SELECT gate, standing, sentence, prompts FROM lossless")
    assert (gate, said, asked) == ("canary", standing, 10)
    assert f"canary: {standing} on 10 questions" in told
    cut = table(clone, "SELECT DISTINCT run_id FROM flags WHERE flag = 'not_lossless'")
    assert cut == ([(run.run_id,)] if standing == "failed" else [])


@pytest.mark.parametrize("changed", [("margin: 0.08", "margin: 0.2"), ("count: 10", "count: 11")])
def test_a_canary_is_judged_anew_where_its_rule_has_changed(clone: Clone, changed: tuple[str, str]) -> None:
    canary(clone, 9)
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    path = clone.root / "tasks/quality/smoke-canary.yaml"
    build(clone.root)
    before = table(clone, "SELECT standing, sentence FROM lossless")
    assert path.read_text().count(changed[0]) == 1
    path.write_text(path.read_text().replace(*changed))
    build(clone.root)
    kept = table(clone, "SELECT standing, sentence FROM lossless")
    shutil.rmtree(clone.root / CACHE)
    build(clone.root)
    assert kept == table(clone, "SELECT standing, sentence FROM lossless") != before


@pytest.mark.parametrize(("part", "counts"), [("results", True), ("wire", True), ("engines", True), ("site", False)])
def test_rows_are_made_anew_when_the_code_that_makes_them_has_changed(
    part: str, counts: bool, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sealed(clone, "plain")
    shutil.copytree(Path(str(paribus.__file__)).parent, tmp_path / "code", ignore=shutil.ignore_patterns("*.pyc"))
    monkeypatch.setattr(paribus, "__file__", str(tmp_path / "code" / "__init__.py"))
    before = RowCache(clone.root).key_of(data)
    assert before == RowCache(clone.root).key_of(data)
    with (tmp_path / "code" / part / "__init__.py").open("a") as file:
        file.write("# another rule\n")
    assert (before != RowCache(clone.root).key_of(data)) == counts


def test_a_canary_that_was_taken_back_decides_nothing(clone: Clone) -> None:
    run = canary(clone, 0)
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    (clone.root / "results" / "superseded.csv").write_text(
        f"old,new,date,reason\n{run.run_id},,2026-12-04,another model was served\n"
    )
    build(clone.root)
    assert table(clone, "SELECT * FROM lossless") == []
    assert table(clone, "SELECT * FROM flags WHERE flag = 'not_lossless'") == []


def test_a_canary_that_was_asked_otherwise_is_not_mixed_in(clone: Clone) -> None:
    """A greedy one, beside plain decoding's answers at the served temperature."""
    canary(clone, 10, sampling="greedy")
    asked = canary(clone, 10)
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    build(clone.root)
    assert table(clone, "SELECT gate, path, prompts FROM lossless") == [("canary", str(asked.path), 10)]
    (standing,) = table(clone, "SELECT standing FROM lossless")
    assert standing == ("passed",)


def test_answers_of_two_answer_classes_are_two_verdicts(clone: Clone) -> None:
    """Long answers were measured on another build of the engine: they say nothing of this one."""
    for decoder, words in (("plain", 130), (NGRAM, 130)):
        seal(clone.run(decoder, "c1-short", starts=3, words=words), clone.catalog)
    old = replace(clone, build="fedcba543210")
    for decoder, words in (("plain", 130), (NGRAM, 150)):
        seal(old.run(decoder, "c1-long", starts=3, words=words), clone.catalog)
    build(clone.root)
    found = dict(table(clone, "SELECT answer_class, standing FROM lossless"))
    assert sorted(found.values()) == ["failed", "undecided"]
    cut = table(
        clone, "SELECT DISTINCT scenario_or_task FROM runs JOIN flags USING (run_id) WHERE flag = 'not_lossless'"
    )
    assert cut == [("c1-long",)]


def test_a_later_repeat_does_not_undo_a_failure(clone: Clone) -> None:
    sealed(clone, "plain")
    sealed(clone, NGRAM, words=150)
    sealed(clone, NGRAM, n=2, day=2)
    build(clone.root)
    ((standing, told),) = table(clone, "SELECT standing, sentence FROM lossless")
    assert standing == "failed"
    assert "length +7." in told, "half of the answers are 15% longer"


def test_a_measurement_that_was_taken_back_forbids_no_comparison(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, same, long = sealed(clone, "plain"), sealed(clone, NGRAM), sealed(clone, NGRAM, words=150, n=2, day=2)
    assert "not_lossless" in compared_or_refused(clone, monkeypatch, same, plain)
    (clone.root / "results" / "superseded.csv").write_text(
        f"old,new,date,reason\n{long.summary.run_id},{same.summary.run_id},2026-12-04,another model was served\n"
    )
    assert "times as fast" in compared(clone, monkeypatch, same, plain)


def compared_or_refused(clone: Clone, monkeypatch: pytest.MonkeyPatch, *runs: RunData) -> str:
    with pytest.raises(CheckFailed) as refused:
        compared(clone, monkeypatch, *runs)
    return str(refused.value)


def test_a_broken_verdict_about_another_stack_ends_no_comparison(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, same = sealed(clone, "plain"), sealed(clone, NGRAM)
    path = clone.root / "results/cpu/m-test/other--q4--llamacpp--mtp-n4/lossless/0123456789ab.1/lossless.json"
    path.parent.mkdir(parents=True)
    path.write_text("7")
    assert "times as fast" in compared(clone, monkeypatch, same, plain)


def test_a_broken_verdict_is_left_out_of_a_build_and_named(clone: Clone) -> None:
    sealed(clone, NGRAM)
    sealed(clone, "plain")
    path = write(clone.root)
    path.write_text(path.read_text().replace('"differ":0', '"differ":3'))
    built = build(clone.root)
    ((name, reason),) = built.unreadable.items()
    assert name == str(path.parent.relative_to(clone.root / "results"))
    assert "its answers make another verdict" in reason
    assert table(clone, "SELECT count(*) FROM runs") == [(2,)]
    assert table(clone, "SELECT gate FROM lossless") == [("served",)]


def test_a_canary_is_never_a_ranked_score(clone: Clone) -> None:
    run = quality_run(clone, 10, decoder=NGRAM, name="smoke-canary", scale="full")
    seal(run, clone.catalog)
    summary = RunData.read(run).summary
    assert "canary" in {flag.id for flag in summary.flags}
    assert not summary.ranked
    build(clone.root)
    assert table(clone, "SELECT DISTINCT ranked FROM figures") == [(False,)]


def test_a_canary_without_plain_decodings_answers_decides_nothing(clone: Clone) -> None:
    canary(clone, 10)
    canary(clone, 10, OTHER, "smoke-mmlu-pro")
    build(clone.root)
    ((standing, told),) = table(clone, "SELECT standing, sentence FROM lossless")
    assert standing == "undecided"
    assert told.endswith("plain decoding hasn't answered them here (smoke-mmlu-pro)")


def row(gate: str, standing: str, day: int = 1, **more: Any) -> dict[str, Any]:
    about = {"demo": False, "hardware": "h", "system": SYSTEM, "answer_class": "a" * 12, "path": "p"}
    return {
        **about,
        "gate": gate,
        "standing": standing,
        "sentence": f"{gate} {standing}",
        "measured_at": str(day),
        **more,
    }


def test_a_decoder_is_lossless_only_when_all_three_gates_passed() -> None:
    passed = [row(gate, "passed") for gate in ("greedy", "served", "canary")]
    assert standing(passed) == "passed"
    assert all(standing(passed[:n] + passed[n + 1 :]) == "declared" for n in range(3))
    assert standing([*passed[:2], row("canary", "undecided")]) == "declared"
    assert standing([*passed, row("served", "failed")]) == "failed"
    assert standing([]) == "declared"
    assert lossless_sentence([]) == f"{DECLARED} (no gate has run)"
    assert lossless_sentence(passed[:1]) == f"{DECLARED} (greedy passed; served temperature: not run; canary: not run)"


def test_a_failure_is_told_whatever_came_after_it() -> None:
    rows = [row("served", "passed", 9), row("served", "failed", 1), row("served", "undecided", 3, hardware="other")]
    ((_, found),) = [one for one in by_decoder(rows).items() if one[0][1] == "h"]
    assert [one["measured_at"] for one in found] == ["1", "9"]
    assert "served failed" in lossless_sentence(found)
    assert standing(found) == "failed"


def test_marking_leaves_other_decoders_and_plain_alone(clone: Clone) -> None:
    runs = [sealed(clone, decoder) for decoder in ("plain", NGRAM, OTHER)]
    answer_class = runs[0].summary.hashes["answer_class"]
    verdict = row("greedy", "failed", hardware="cpu", answer_class=answer_class)
    found = marked(runs, [verdict])
    assert [[f.id for f in data.summary.flags if f.id == "not_lossless"] for data in found] == [
        [],
        ["not_lossless"],
        [],
    ]
    assert found[0] is runs[0]
    assert not found[1].summary.ranked
    assert (
        Path(found[1].place.folder / "summary.json").read_text() == (runs[1].place.folder / "summary.json").read_text()
    )


def test_a_canary_is_no_record_for_others_and_meets_no_other_run(clone: Clone, tmp_path: Path) -> None:
    from paribus.cli import export

    score, asked = canary(clone, 10, "plain", "smoke-mmlu-pro"), canary(clone, 10)
    assert [data.summary.run_id for data in latest([RunData.read(score), RunData.read(asked)])] == [score.run_id]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(clone.root)
        words = ["eee", "--all", "--out", str(tmp_path / "out")]
        done = CliRunner().invoke(export.command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    text = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.json"))
    assert "smoke-mmlu-pro" in text
    assert "canary" not in text
