"""What the site says of decoders beside scores that were not asked of them: every gate, and that a failed one cuts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from building_sites import build
from reading_pages import Page
from synthetic_site import World, demo_world, figure

from paribus.results.lossless import DECLARED

DECODER = "ngram-simple-n4-m4"
STACK = "smollm2-135m--q4-1--llamacpp"
SYSTEM = f"{STACK}--{DECODER}"
SENTENCES = {
    "greedy": "lossless: {} at T=0 on 14 prompts",
    "served": "served temperature: {} over 168 prompts",
    "canary": "canary: {} on 200 questions",
}
PAIR = "pair/cpu/smollm2-plain-speculation.html"


def verdict(world: World, gate: str, standing: str = "passed", **more: Any) -> None:
    row = {
        "gate": gate,
        "path": f"cpu/m-test/s/{gate}",
        "demo": True,
        "hardware": "cpu",
        "machine": "m-test",
        "system": SYSTEM,
        "answer_class": "smollm000000",
        "standing": standing,
        "sentence": SENTENCES[gate].format(standing),
        "measured_at": "2026-12-01T10:00:00Z",
    }
    world.rows["lossless"].append(row | more)


def fail(world: World, system: str = SYSTEM) -> None:
    """What a build does to a decoder that failed: its runs are flagged, unranked and compared with nothing."""
    cut = {run["run_id"] for run in world.rows["runs"] if run["system"] == system}
    assert cut
    text = "This decoder is not lossless, though its file says so; it inherits no quality: it failed."
    for run in world.rows["runs"]:
        if run["run_id"] in cut:
            run["ranked"] = False
            world.rows["flags"].append(
                {"run_id": run["run_id"], "flag": "not_lossless", "severity": "invalid", "text": text}
            )
    world.rows["figures"] = [f for f in world.rows["figures"] if not (f["other_run_id"] and f["run_id"] in cut)]
    for one in world.rows["figures"]:
        one["ranked"] = one["ranked"] and one["run_id"] not in cut


def test_a_decoder_says_which_gates_passed_and_which_were_not_run(tmp_path: Path) -> None:
    world = demo_world()
    verdict(world, "greedy")
    verdict(world, "canary", "undecided")
    site = build(world, tmp_path)
    decoders = {run["decoder"] for run in world.rows["runs"] if run["kind"] == "speed" and run["hardware"] == "cpu"}
    said = f"{DECLARED} (passed at T=0 on 14 prompts; served temperature: not run; canary: undecided on 200 questions)"
    for page in ("quality.html", PAIR):
        assert site.page(page).text.count(said) >= 1
    page = site.page("quality.html").text
    assert page.count(DECLARED) == len(decoders - {"plain"})
    assert "plain decoding, with 16 requests at once" in page


def cells_of(page: Page, title: str) -> list[list[str]]:
    """The cells of each table row that begins so."""
    rows: list[tuple[str, list[str]]] = []
    for element in page.elements:
        if element.name == "tr":
            rows.append((element.text, []))
        elif element.name == "td":
            rows[-1][1].append(element.text)
    return [cells for text, cells in rows if text.startswith(title)]


@pytest.mark.parametrize(
    ("known", "gate", "run"),
    [
        ({}, "T=0, not run yet", f"paribus lossless '{SYSTEM}'"),
        ({"greedy": "undecided"}, "T=0, undecided", f"paribus lossless '{SYSTEM}' --prompts 56"),
        (
            {"greedy": "passed", "served": "undecided", "canary": "passed"},
            "served temperature, undecided",
            f"snakemake --profile cpu speed --config 'systems={STACK}--plain,{SYSTEM}' starts=5",
        ),
        (
            {"greedy": "passed", "served": "passed"},
            "canary, not run yet",
            f"snakemake --profile cpu quality --config 'systems={SYSTEM}' measures=smoke-canary",
        ),
    ],
)
def test_a_decoder_has_no_score_of_another_one_before_all_gates_have_passed(
    tmp_path: Path, known: dict[str, str], gate: str, run: str
) -> None:
    world = demo_world()
    for name, standing in known.items():
        verdict(world, name, standing)
    site = build(world, tmp_path)
    ((left, right, about),) = cells_of(site.page(PAIR), "Integer-answer")
    assert left == f"no score {DECODER}: its lossless gate ({gate}); to run: {run}"
    assert right.startswith("25 [")
    assert about.startswith(f"{DECODER}: {DECLARED} (")

    quality = site.page("quality.html")
    assert [e.text for e in quality.all("th") if "ngram" in e.text] == [], "it stands in no table beside the scores"
    (note,) = [e.text for e in quality.with_class("note") if f"not shown for {DECODER}: " in e.text]
    assert run in note


def test_a_score_that_was_asked_of_an_unproven_decoder_is_its_own_and_nobody_elses(tmp_path: Path) -> None:
    world = demo_world()
    for asked in world.rows["runs"]:
        if asked["kind"] == "quality" and asked["hardware"] == "cpu":
            asked |= {"decoder": DECODER, "system": SYSTEM}
    site = build(world, tmp_path / "unproven")
    ((left, right, _),) = cells_of(site.page(PAIR), "Integer-answer")
    assert left.startswith("25 [")
    assert right.startswith("no score")
    page = site.page("quality.html")
    (row,) = [e.text for e in page.all("th") if DECODER in e.text]
    assert "has the scores that were measured with it, and no others: declared lossless" in row
    assert "The scores are not shown for plain" in page.text

    for gate in SENTENCES:
        verdict(world, gate)
    site = build(world, tmp_path / "proven")
    ((left, right, _),) = cells_of(site.page(PAIR), "Integer-answer")
    assert left == right
    assert "not shown for plain" not in site.page("quality.html").text


def test_only_all_three_gates_together_make_a_decoder_lossless(tmp_path: Path) -> None:
    world = demo_world()
    for gate in SENTENCES:
        verdict(world, gate)
    site = build(world, tmp_path)
    said = (
        "lossless, all three gates passed (passed at T=0 on 14 prompts; served temperature: passed over 168 prompts; "
        "canary: passed on 200 questions)"
    )
    assert said in site.page("quality.html").text
    assert f"{DECODER}: {said}; both scores are of plain decoding" in site.page(PAIR).text
    ((left, right, _),) = cells_of(site.page(PAIR), "Integer-answer")
    assert left == right
    assert left.startswith("25 [")
    assert [e.text for e in site.page("quality.html").all("th") if DECODER in e.text] != []


def test_a_verdict_about_another_build_or_card_says_nothing(tmp_path: Path) -> None:
    world = demo_world()
    verdict(world, "greedy", answer_class="another00000")
    verdict(world, "served", hardware="h100")
    verdict(world, "canary", demo=False)
    assert "all three gates" not in build(world, tmp_path).page("quality.html").text


def test_a_failed_gate_cuts_a_decoder_off_on_every_page(tmp_path: Path) -> None:
    world = demo_world()
    verdict(world, "greedy", measured_at="2026-12-02T10:00:00Z")
    verdict(world, "served", "failed")
    verdict(world, "canary")
    # A later pass of the same gate doesn't undo it.
    verdict(world, "served", path="cpu/m-other/s/served", measured_at="2026-12-09T10:00:00Z")
    fail(world)
    site = build(world, tmp_path)
    said = "not lossless (passed at T=0 on 14 prompts; served temperature: failed over 168 prompts; canary: passed"

    quality = site.page("quality.html")
    assert f"The scores are not those of {DECODER}: {said}" in quality.text
    speeds = [e.text for e in quality.all("th") if DECODER in e.text]
    assert speeds == [], "it stands in no table beside the scores"

    pair = site.page(PAIR)
    assert said in pair.text
    assert pair.text.count("no score") == 4, "a row a task"
    assert "both scores are" not in pair.text

    board = site.page("board/cpu/c1-long.html")
    assert f"{DECODER}: This decoder is not lossless" in board.text
    assert "times as fast as plain" not in board.text, "nothing is said of its speed beside plain decoding's"

    figures = [page for name, page in site.pages.items() if name.startswith("f/") and DECODER in page.text]
    assert figures
    assert all("This decoder is not lossless" in page.text for page in figures)


def test_a_duel_shows_no_score_of_another_answer_class(tmp_path: Path) -> None:
    """A newer quality run of the same stack, at settings that decide other answers, is none of this duel's."""
    world = demo_world()
    before = build(world, tmp_path / "before").page(PAIR).text
    asked = [run for run in world.rows["runs"] if run["kind"] == "quality" and run["hardware"] == "cpu"]
    assert asked
    for run in asked:
        run["answer_class"] = "another00000"
    after = build(world, tmp_path / "after").page(PAIR).text
    assert "% right" in before
    assert "% right" not in after


def test_beside_scores_stand_numbers_as_served_of_whole_and_sound_runs(tmp_path: Path) -> None:
    """A later run that was greedy, small or faulty takes no place beside a score; a greedy score says what it is."""
    world = demo_world()
    before = build(world, tmp_path / "before").page(PAIR).text.count("% right")
    for scale, speed, day, more in (
        ("full", 111.0, 3, {}),
        ("quick", 222.0, 4, {"preliminary": "note"}),
        ("full", 333.0, 5, {"throttled": "invalid"}),
        ("full", 444.0, 6, {}),
    ):
        world.run(scale=scale, speed=speed, day=day, n=day, flags=more, decoder="ngram-map-k-n4-m4", demo=True)
    for gate in SENTENCES:
        verdict(world, gate, system=SYSTEM.replace(DECODER, "ngram-map-k-n4-m4"))
    world.rows["runs"][-1]["sampling"] = "greedy"
    asked = next(run for run in world.rows["runs"] if run["kind"] == "quality" and run["hardware"] == "cpu")
    asked["sampling"] = "greedy"
    site = build(world, tmp_path / "after")
    page = site.page("quality.html")
    (row,) = [tr.text for tr in page.all("tr") if "ngram-map-k-n4-m4" in tr.text]
    assert "111" in row
    assert not any(number in row for number in ("222", "333", "444"))
    assert page.text.count("plain decoding, with 16 requests at once, greedy sampling") == 1
    assert site.page(PAIR).text.count("% right") == before - 1, "a duel shows no greedy score"


def test_a_duel_that_its_rules_refuse_shows_no_ratio_that_other_rules_allow(tmp_path: Path) -> None:
    world = demo_world()
    assert "1.17 times as fast" in build(world, tmp_path / "before").page(PAIR).text
    for row in world.rows["pairs"]:
        row["refused"] = "They differ in the engine"
    page = build(world, tmp_path / "after").page(PAIR).text
    assert "Not compared: They differ in the engine" in page
    assert "times as fast" not in page


def _asked(world: World, stack: str, share: float, **more: Any) -> str:
    """A run of smoke-aime of this score."""
    name = world.run(stack=stack, measure="smoke-aime", kind="quality", **more)
    world.rows["scores"][-2] |= {"value": share, "low": share - 0.1, "high": share + 0.1}
    return name


LEFT, RIGHT = "clover-35b-a3b-preview--q4-k-m--llamacpp", "qwen3.6-35b-a3b--q4-k-m--llamacpp"


def test_a_duels_score_is_that_of_the_last_sound_run_and_its_difference_one_that_stands(tmp_path: Path) -> None:
    world = demo_world()
    world.pair(world.run(stack=LEFT), world.run(stack=RIGHT), "c1-long.demo")
    world.rows["pairs"][-1]["pair"] = "clover-qwen3.6-gguf"
    left, right = (_asked(world, stack, share, flags={}, day=3) for stack, share in ((LEFT, 0.31), (RIGHT, 0.52)))
    # Later ones: of a small scale, and faulty.
    _asked(world, LEFT, 0.73, day=4, n=2, scale="quick", flags={"preliminary": "note"})
    _asked(world, LEFT, 0.84, day=5, n=3, flags={"failures": "invalid"})
    _asked(world, RIGHT, 0.95, day=5, n=2, flags={"throttled": "invalid"})
    difference = figure([left, right], "difference_avg", "Difference in score", "points", -21.0, low=-30.0, high=-12.0)
    world.rows["figures"].append(difference)
    page = build(world, tmp_path / "stands").page("pair/cpu/clover-qwen3.6-gguf.html").text
    assert "31 [21 to 41]" in page
    assert "52 [42 to 62]" in page
    assert not any(number in page for number in ("73 [", "84 [", "95 ["))
    assert "-21 points" in page

    difference |= {"superseded_by": "", "ranked": False}
    page = build(world, tmp_path / "taken back").page("pair/cpu/clover-qwen3.6-gguf.html").text
    assert "-21 points" not in page
    assert "no paired difference yet" in page
