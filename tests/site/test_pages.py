"""What the pages say, and that every page of every site is sound: structure, links, words, nothing from outside."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from building_sites import build
from synthetic_site import HOSTILE, World, demo_world, figure

from paribus.conditions import CONDITIONS, FLAGS
from paribus.speed.metrics import metrics

# --- every page of every site -------------------------------------------------------------------------------------


def test_every_page_is_whole_html_with_one_heading_a_language_and_a_title(any_site):
    for path, page in any_site.pages.items():
        assert page.source.startswith('<!DOCTYPE html>\n<html lang="en">'), path
        assert page.faults == [], path
        assert len(page.all("h1")) == 1, path
        assert page.all("title")[0].text, path
        assert len(page.all("main")) == 1, path
        assert path in ("method.html", "data.html") or not re.search(r"\b(None|nan|True|False)\b", page.text), path


def test_ids_are_unique_and_labels_refer_to_them(any_site):
    for path, page in any_site.pages.items():
        assert len(page.ids) == len(set(page.ids)), path
        for element in page.elements:
            for name in ("aria-labelledby", "aria-describedby"):
                assert set(element.attributes.get(name, "").split()) <= set(page.ids), path


def test_headings_go_down_one_level_at_a_time(any_site):
    for path, page in any_site.pages.items():
        levels = [int(e.name[1]) for e in page.all("h1", "h2", "h3", "h4")]
        assert levels[0] == 1, path
        assert all(b - a <= 1 for a, b in pairwise(levels)), path


def test_every_chart_has_a_title_and_a_text_alternative_and_every_mark_is_hidden_from_readers_aloud(any_site):
    for path, page in any_site.pages.items():
        for svg in page.all("svg"):
            if svg.attributes.get("aria-hidden") == "true":
                continue
            assert svg.attributes["role"] == "img", path
            assert len(svg.attributes["aria-labelledby"].split()) == 2, path
        for image in page.all("img"):
            assert image.attributes.get("alt"), path


def test_every_link_leads_to_a_file_of_the_site_and_to_a_place_that_exists(any_site):
    seen = 0
    for path, page in any_site.pages.items():
        for element in page.elements:
            for name in ("href", "src"):
                target = element.attributes.get(name)
                if not target or target.startswith("data:"):
                    continue
                seen += 1
                parts = urlsplit(target)
                assert not parts.scheme, (path, target)
                assert not parts.netloc, (path, target)
                assert not parts.path.startswith("/"), (path, target)
                place = _resolve(path, unquote(parts.path))
                assert (any_site.out / place).is_file(), (path, target)
                if parts.fragment and place.endswith(".html"):
                    assert parts.fragment in any_site.pages[place].ids, (path, target)
    assert seen > 100


def _resolve(page: str, target: str) -> str:
    if not target:
        return page
    parts: list[str] = list(PurePosixPath(page).parent.parts)
    for part in PurePosixPath(target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def test_every_page_can_be_reached_from_the_front_page(any_site):
    reached, todo = set(), ["index.html"]
    while todo:
        path = todo.pop()
        if path in reached:
            continue
        reached.add(path)
        links = [e.attributes["href"] for e in any_site.pages[path].all("a") if "href" in e.attributes]
        found = {_resolve(path, urlsplit(link).path) for link in links}
        todo += [f for f in found if f in any_site.pages]
    assert set(any_site.pages) == reached


def test_nothing_is_loaded_from_elsewhere(any_site):
    for path in any_site.out.rglob("*"):
        if path.suffix in (".html", ".css", ".js"):
            source = path.read_text(encoding="utf-8")
            assert not re.search(r"(src|href)=[\"']?(https?:)?//", source), path
            assert not re.search(r"url\(|@import", source), path


def test_tables_can_be_scrolled_with_the_keyboard_and_name_their_rows_and_columns(any_site):
    for path, page in any_site.pages.items():
        for region in page.with_class("scroll"):
            assert region.attributes["tabindex"] == "0", path
            assert region.attributes["role"] == "region", path
            assert region.attributes["aria-label"], path
        for head in page.all("th"):
            assert head.attributes.get("scope") in ("col", "row", "rowgroup"), path
        assert len(page.all("table")) == len(page.with_class("scroll")), path


def test_a_page_needs_no_script(any_site):
    for path, page in any_site.pages.items():
        scripts = page.all("script")
        assert len(scripts) == 1, path
        assert scripts[0].text == "", path
        assert not any(name.startswith("on") for e in page.elements for name in e.attributes), path
        assert not any("style" in e.attributes for e in page.elements), path


def test_words_of_praise_are_not_used(any_site):
    praise = re.compile(
        r"\b(blazing|amazing|impressive|excellent|great|stunning|powerful|revolutionary|best-in-class)\b", re.I
    )
    for path, page in any_site.pages.items():
        assert not praise.search(page.text), path


# --- what the pages say -------------------------------------------------------------------------------------------


def test_the_front_page_says_what_this_is_and_what_was_found_with_its_interval(demo):
    page = demo.page("index.html")
    assert page.all("h1")[0].text.startswith("Paribus measures how fast language models write")
    assert page.with_class("finding")[0].text == (
        "On the cpu track (Example CPU), with one request, until 100 tokens have arrived, the best speculation tried "
        "(ngram-simple-n4-m4) writes 1.17 times as fast as plain decoding [1.08 to 1.29]; with 16 requests at once, "
        "until 100 tokens have arrived, there is no clear difference "
        "(1.03 times as fast [0.94 to 1.13]). Preliminary: demo scale, too small for a ranking."
    )


def test_the_front_page_gives_a_true_reason_for_a_missing_interval_of_several_starts(tmp_path):
    """Three starts and two kinds with one prompt each allow no interval: that is not one start's fault."""
    world = World()
    for measure in ("c1-long", "c16-long"):
        plain, drafts = (world.run(measure=measure, decoder=d, starts=3) for d in ("plain", "ngram-simple-n4-m4"))
        world.ratio(drafts, plain, 1.17, None, None, basis="none")
    said = build(world, tmp_path).page("index.html").with_class("finding")[0].text
    assert said.count("too few starts or prompts for an interval and so without a verdict") == 2
    assert not re.search(r"\b(one|single) start\b", said)


def test_a_run_of_several_starts_without_an_interval_is_not_called_one_measurement(tmp_path):
    world = World()
    name = world.run(starts=3)
    lead = next(f for f in world.rows["figures"] if f["run_id"] == name and f["headline"])
    lead |= {"low": None, "high": None, "basis": "none"}
    page = build(world, tmp_path).page(f"run/{name}.html")
    assert "No interval: too few measurements for one" in page.text
    assert "one measurement" not in page.text


def test_the_front_page_keeps_the_order_of_its_parts(demo):
    headings = [h.text for h in demo.page("index.html").all("h1", "h2")]
    assert headings[1:] == ["One request, long answers", "Duels", "What is missing", "Claims", "To cite, to contribute"]


def test_a_card_with_whole_results_leads_before_the_cpu(wide):
    page = wide.page("index.html")
    assert page.with_class("finding")[0].text.startswith("On the NVIDIA H100 80GB HBM3, with one request")
    assert [c.text for c in page.with_class("c-group")] == ["Diffusionlike 26B A4B", "Gemmalike 26B A4B"]


def test_a_preliminary_scale_of_a_card_never_makes_the_headline(tmp_path):
    world = World()
    card = {"hardware": "h100-test", "card": "NVIDIA H100 80GB HBM3", "scale": "quick", "demo": False}
    stack = "gemmalike-26b--bf16--vllm"
    plain = world.run(stack=stack, **card)
    drafts = world.run(stack=stack, decoder="mtp-n4", speed=160.0, **card)
    world.ratio(drafts, plain, 2.0, 1.9, 2.1)
    page = build(world, tmp_path).page("index.html")
    assert (
        page.with_class("finding")[0].text
        == "There are results, and no comparison that is whole enough for a headline yet."
    )
    assert "Preliminary: measured at a scale too small for a ranking." in page.text


def test_runs_of_other_scales_stand_in_parts_of_their_own(tmp_path):
    world = World()
    for scale, demo in (("demo", True), ("small", False)):
        world.run(scale=scale, demo=demo)
        world.run(scale=scale, demo=demo, decoder="ngram-simple-n4-m4", speed=96.0)
    built = build(world, tmp_path)
    page = built.page("board/cpu/c1-long.html")
    assert [h.text for h in page.all("h2")] == ["Published, small scale", "Demo run, demo scale demo"]
    assert len(page.all("table")) == 2
    front = built.page("index.html")
    assert len(front.with_class("sortable")) == 1
    assert "Not comparable with these, and on a page of their own: demo run, demo scale demo" in front.text


@pytest.mark.parametrize(("by", "said"), [("", "This run was taken back"), ("raaaaaaaaaa", "replaced by raaaaaaaaaa")])
def test_a_superseded_run_keeps_its_page_and_stands_on_no_board(tmp_path, by, said):
    world = World()
    kept, gone = world.run(), world.run(decoder="ngram-simple-n4-m4", speed=96.0)
    next(row for row in world.rows["runs"] if row["run_id"] == gone)["superseded_by"] = by
    built = build(world, tmp_path)
    board = built.page("board/cpu/c1-long.html")
    linked = {link.attributes.get("href", "").rsplit("/")[-1] for link in board.all("a")}
    assert {f"{kept}.html", f"{gone}.html"} & linked == {f"{kept}.html"}
    assert said in built.page(f"run/{gone}.html").text


def test_a_superseded_figure_keeps_its_page_and_leads_to_the_one_in_its_place(tmp_path):
    world = World()
    world.run()
    rows = world.rows["figures"]
    new, old, lost = rows[:3]
    old["superseded_by"], lost["superseded_by"] = new["figure_id"], ""
    built = build(world, tmp_path)
    page = built.page(f"f/{old['figure_id']}.html")
    assert f"Superseded by figure {new['figure_id']}" in page.text
    (link,) = [a for a in page.all("a") if a.text == f"figure {new['figure_id']}"]
    assert link.attributes["href"].endswith(f"f/{new['figure_id']}.html")
    assert "no newer figure takes its place" in built.page(f"f/{lost['figure_id']}.html").text
    assert "Superseded" not in built.page(f"f/{new['figure_id']}.html").text


def test_a_ratio_that_later_runs_replaced_leads_nothing_and_is_marked_on_its_run(tmp_path):
    world = World()
    old, new = world.run(), world.run(n=2)
    fast = world.run(decoder="ngram-simple-n4-m4", speed=96.0)
    metric = ("speedup_time_to_300", "Speed-up over the first 300 standard tokens", "x")
    stale, fresh = figure([fast, old], *metric, 3.33), figure([fast, new], *metric, 1.22)
    stale |= {"superseded_by": fresh["figure_id"], "ranked": False}
    world.rows["figures"] += [stale, fresh]
    built = build(world, tmp_path)
    board = built.page("board/cpu/c1-long.html").text
    assert "1.22" in board
    assert "3.33" not in board
    assert "superseded" in built.page(f"run/{fast}.html").text


def test_a_ratio_over_sound_plain_decoding_leads_though_a_later_plain_run_was_faulty(tmp_path):
    world = World()
    sound, _faulty = world.run(day=3), world.run(n=2, day=4, flags={"throttled": "invalid"})
    fast = world.run(decoder="ngram-simple-n4-m4", speed=96.0)
    world.ratio(fast, sound, 1.23, 1.2, 1.26)
    assert "1.23" in build(world, tmp_path).page("board/cpu/c1-long.html").text


def test_every_choice_of_card_and_scenario_is_a_page(wide):
    links = {e.attributes["href"] for e in wide.page("index.html").all("a")}
    for card in ("cpu", "h100-test"):
        for scenario in ("c1-short", "c1-long", "c16-short", "c16-long"):
            assert f"board/{card}/{scenario}.html" in links
            assert f"board/{card}/{scenario}.html" in wide.pages


def test_a_board_without_runs_says_so_and_gives_the_command(wide):
    page = wide.page("board/h100-test/c16-short.html")
    assert "Nobody has run this yet" in page.text
    assert "snakemake --profile h100-test --config measures=c16-short" in page.text


def test_the_claims_lines_say_that_nobody_has_run_this_yet(demo):
    text = demo.page("index.html").text
    assert "claimed by vendors and reports none on file yet" in text
    assert text.count("nobody has run this yet") >= 2


def test_gaps_in_the_coverage_grid_carry_the_command_that_fills_them(demo):
    gaps = [gap.attributes["title"] for gap in demo.page("index.html").with_class("gap")]
    command = "snakemake --profile cpu --config 'systems=smollm2-135m--q4-1--llamacpp--*' measures="
    assert any(command in title for title in gaps)


def test_what_was_left_out_is_said_with_its_reason(demo):
    text = demo.page("index.html").text
    assert "Left out of the last run here" in text
    assert "smoke-livecodebench: there is no <sandbox> here" in text


def test_demo_results_are_marked_wherever_they_stand(demo):
    for path, page in demo.pages.items():
        kind = path.split("/")[0]
        if kind in ("run", "race", "f", "pair") or (kind == "board" and page.all("table")):
            assert "demo" in page.text, path
    assert "demo" not in demo.page("method.html").with_class("tag")[0].text


def test_published_results_are_not_marked_as_demo_beside_demo_ones(wide):
    marked = [t.text for t in wide.page("board/h100-test/c1-long.html").with_class("tag")]
    assert "demo" not in marked
    assert "· demo" in wide.page("board/cpu/c1-long.html").text


def test_the_cpu_track_says_what_it_is(demo):
    for path in ("index.html", "board/cpu/c1-long.html", "quality.html"):
        assert "shows the method on any machine. Its model is small and loops on long answers" in demo.page(path).text


def test_what_all_rows_share_stands_in_the_strip_and_what_differs_is_a_column(wide):
    page = wide.page("board/h100-test/c1-long.html")
    strip = page.with_class("strip")[0].text
    assert "NVIDIA H100 80GB HBM3" in strip
    assert "bf16, thinking off" in strip
    headings = [h.text for h in page.all("th") if h.attributes["scope"] == "col"]
    assert "Flags" in headings
    assert "Card" not in headings
    assert "n, trials" in headings


def test_undisclosed_conditions_are_printed_as_such(wide):
    assert "not disclosed" in wide.page("board/h100-test/c1-short.html").with_class("strip")[0].text


def test_a_run_without_numbers_stays_visible_and_unranked(wide):
    rows = [r.text for r in wide.page("board/h100-test/c1-long.html").all("tr")]
    failed = next(r for r in rows if "eagle3-n3" in r)
    assert "not ranked" in failed
    assert "failures" in failed


def test_ranks_need_published_whole_results_with_intervals_apart(wide, demo):
    ranked = [r.text for r in wide.page("board/h100-test/c1-long.html").all("tr")]
    assert re.search(r"block-diffusion-d48.* 1 305", next(r for r in ranked if "block-diffusion" in r))
    assert not any(h.text == "Rank" for h in demo.page("board/cpu/c1-long.html").all("th"))


def test_a_run_page_answers_a_sceptic_in_order(demo):
    path = next(p for p, page in demo.pages.items() if p.startswith("run/") and "c1-long" in page.source)
    page = demo.page(path)
    assert [h.text for h in page.all("h2")] == [
        "Was it the machine it claims?",
        "Was it throttled or busy?",
        "Did the answers come out whole and sane?",
        "How spread were the requests and the starts?",
        "What was left out?",
        "How do I run it, and check it?",
        "Where is the raw file?",
        "All numbers of this run",
    ]
    assert "requests.parquet" in page.text
    assert "ab" * 32 in page.text
    assert "paribus check build/demo-results/cpu/m-test/" in page.text
    assert re.search(r"\d tokens/s", page.with_class("big")[0].text)
    assert "2 of 6" in page.text


def test_a_run_at_temperature_zero_says_so_in_the_command_that_runs_it_again(tmp_path):
    world = World()
    served, greedy = world.run(), world.run(decoder="ngram-simple-n4-m4")
    next(row for row in world.rows["runs"] if row["run_id"] == greedy)["sampling"] = "greedy"
    built = build(world, tmp_path)
    assert "sampling=greedy" in built.page(f"run/{greedy}.html").text
    assert "sampling=" not in built.page(f"run/{served}.html").text


def test_a_run_page_shows_every_start_when_there_are_several(wide):
    page = next(
        p
        for n, p in wide.pages.items()
        if n.startswith("run/") and "block-diffusion" in p.source and "c1-long" in p.source
    )
    labels = [t.text for t in page.with_class("c-label")]
    assert [f"start {k}" for k in range(1, 6)] == [label for label in labels if label.startswith("start ")]


def test_the_page_of_a_quality_run_shows_every_answer(demo):
    page = next(p for n, p in demo.pages.items() if n.startswith("run/") and "smoke-aime" in p.source)
    labels = {
        label.text: value.text
        for label, value in zip(page.with_class("c-label"), page.with_class("c-value"), strict=True)
    }
    assert labels == {"right": "median 90 tokens · n = 1", "wrong or unfinished": "median 150 tokens · n = 3"}
    assert "95% interval over questions" in page.with_class("sentence")[0].text


def test_a_race_shows_every_candidate_the_best_of_how_many_and_what_was_not_tried_and_why(demo):
    page = next(p for n, p in demo.pages.items() if n.startswith("race/") and "Best of three tried" in p.text)
    assert "ngram-simple-n4-m4, 97 tokens/s [87 to 107]" in page.with_class("finding")[0].text
    rows = [r.text for r in page.all("tr")][1:]
    assert len(rows) == 6
    assert any("ngram-cache-d4" in r and "it keeps the n-grams of earlier requests" in r for r in rows)
    assert any("best speculation" in r for r in rows)


def test_a_figure_page_gives_the_sentence_to_cite_and_its_conditions(demo):
    page = next(p for n, p in demo.pages.items() if n.startswith("f/") and "speedup_time_to_100" in p.source)
    assert "Speed-up over the first 100 standard tokens" in page.all("blockquote")[0].text
    assert "edition 2026.12" in page.with_class("cite")[0].text
    assert "it knows nothing of what differs between starts" in page.text or "over starts and prompts" in page.text
    assert "not for citing" in page.text
    assert "A demo figure, not for citing" in page.text
    assert "no, a demo figure" in page.text


def test_a_throughput_says_that_its_interval_is_of_these_prompts_wherever_it_leads(demo, wide):
    said = "the intervals hold for these prompts; how other prompts would do isn't in them"
    for site, board, alone in (
        (demo, "board/cpu/c16-long.html", "board/cpu/c1-long.html"),
        (wide, "board/h100-test/c16-long.html", "board/h100-test/c1-long.html"),
    ):
        assert said in site.page(board).text
        assert said not in site.page(alone).text
    duel = demo.page("pair/cpu/smollm2-plain-speculation.html")
    assert duel.text.count(said) == 1
    pages = [p.text for n, p in wide.pages.items() if n.startswith("f/") and "Text of all requests a second" in p.text]
    assert pages
    leaves_out = ("over starts, for these prompts only", "nothing of what differs between starts or prompts")
    assert all(any(words in text for words in leaves_out) for text in pages)


def test_the_duel_gives_both_sides_and_who_wins_or_no_clear_difference(demo):
    page = demo.page("pair/cpu/smollm2-plain-speculation.html")
    verdicts = [e.text for e in page.all("dd")]
    assert (
        "With one request, until 100 tokens have arrived, n-gram speculation (ngram-simple-n4-m4) writes 1.17 times "
        "as fast as plain decoding "
        "[1.08 to 1.29]." in verdicts
    )
    assert sum("no clear difference" in v for v in verdicts) == 3
    assert "declared lossless, not proven: no other decoder's score is its own (no gate has run)" in page.text
    assert "Crossover" in page.text


def test_quality_says_with_which_decoder_and_how_many_requests_it_was_measured(demo):
    page = demo.page("quality.html")
    assert "plain decoding, with 16 requests at once" in page.text
    assert "within 192 tokens: the cap cut 25%" in page.text
    assert "stand-in of our own, not the public benchmark" in page.text
    assert "25%" in page.text


def test_the_chart_names_a_scores_budget_and_leaves_out_what_is_no_measurement(tmp_path):
    world = demo_world()
    faulty, *_ = [row["run_id"] for row in world.rows["runs"] if row["scenario_or_task"] == "smoke-mmlu-pro"]
    world.rows["flags"].append({"run_id": faulty, "flag": "failures", "severity": "invalid", "text": "half of them"})
    site = build(world, tmp_path)
    svg = (site.out / "charts" / "quality-cpu.svg").read_text()
    table = (site.out / "charts" / "quality-cpu.csv").read_text()
    assert "Within 192 tokens: Integer-answer maths" in svg
    assert "Within 192 tokens: Integer-answer maths (a stand-in for AIME, own text)" in table
    assert "Ten-option" not in table
    assert any("Ten-option" in e.text for e in site.page("quality.html").all("th")), "the table has it, with its flag"


def test_the_method_page_comes_from_the_registries(demo):
    page = demo.page("method.html")
    text = page.text
    for metric in metrics().values():
        assert metric.title in text
        assert " ".join(metric.formula.split("\n\n")[0].replace("`", "").split()) in text
    for flag in FLAGS.values():
        assert flag.rule in text
    for condition in CONDITIONS.values():
        assert condition.label in text


def test_the_data_page_offers_the_database_with_a_line_that_loads_it(demo):
    page = demo.page("data.html")
    assert "data/paribus.duckdb" in [e.attributes.get("href") for e in page.all("a")]
    assert 'duckdb.connect("paribus.duckdb", read_only=True)' in page.text
    assert (demo.out / "data" / "paribus.duckdb").read_bytes() == demo.database.read_bytes()


def test_an_empty_database_makes_a_site_that_says_nothing_has_been_measured(empty):
    assert "Nothing has been measured yet." in empty.page("index.html").text
    assert "No quality has been measured yet." in empty.page("quality.html").text
    assert "Nobody has run this yet" in empty.page("board/cpu/c1-long.html").text


# --- hostile text --------------------------------------------------------------------------------------------------


def test_hostile_text_stays_text_on_every_page(hostile):
    shown = 0
    for path, page in hostile.pages.items():
        assert len(page.all("script")) == 1, path
        assert not page.all("img"), path
        assert "49" not in page.with_class("kicker")[0].text, path
        assert not set(page.source) & set("\x00\x1b\u202e"), path
        shown += "<script>alert(1)</script>" in page.text
    assert shown > 20


def test_hostile_text_stays_text_in_chart_files(hostile):
    for path in hostile.out.glob("charts/*.svg"):
        names = {e.tag.split("}")[1] for e in ElementTree.parse(path).getroot().iter()}
        assert "script" not in names
        assert "img" not in names


def test_the_hostile_text_really_was_in_the_data(hostile):
    assert "<script>" in HOSTILE
    assert any("alert(1)" in page.text for page in hostile.pages.values())


@pytest.mark.parametrize("name", ["index.html", "board/cpu/c1-long.html"])
def test_a_text_browser_finds_the_numbers_in_the_order_of_reading(demo, name):
    text = demo.page(name).text
    assert text.index("1.17 times as fast") < text.index("ngram-simple-n4-m4 · demo") < text.index("[79 to 85]")


# --- claims -------------------------------------------------------------------------------------------------------


def claim_cells(site, name):
    """The cells of a claim's row, as text."""
    elements = site.page("claims.html").elements
    place = next(i for i, e in enumerate(elements) if e.name == "tr" and e.attributes.get("id") == name)
    row = takewhile(lambda e: e.name != "tr", elements[place + 1 :])
    return [cell.text for cell in row if cell.name in ("th", "td")]


def test_a_claim_stands_with_its_conditions_and_with_what_was_left_out(wide):
    said, by, disclosed, undisclosed, *_ = claim_cells(wide, "c001")
    assert "over 1,000 tokens/s" in said
    assert "A vendor" in by
    assert "date not known" in by
    assert "seen in copies or reports only: a copy" in by
    assert "1,024 random tokens" in disclosed
    assert undisclosed == "precision, length of answers"


def test_a_claim_that_nobody_has_run_says_so_and_gives_the_command(wide):
    replica, ours = claim_cells(wide, "c002")[4:6]
    assert "nobody has run this yet" in replica
    assert "snakemake --profile h100-test" in replica
    assert "measures=claim-random" in replica
    assert "305" in ours


def test_a_claim_that_was_run_says_how_it_stands_and_why_it_may_differ(wide):
    replica, _, why = claim_cells(wide, "c003")[4:7]
    assert "not reproduced under this run's conditions: 40 tokens/s" in replica
    assert "not disclosed: precision" in why
    assert "Reply: We ran it with other prompts." in why
    assert "false" not in why.lower()


def test_the_front_page_counts_the_claims(wide, empty):
    text = wide.page("index.html").text
    assert "4 on file" in text
    assert "0 replicated, 0 approximated, 1 not reproduced" in text
    assert "none on file yet" in empty.page("index.html").text


def test_a_hostile_glob_gives_no_command(hostile):
    assert "rm -rf" not in hostile.page("claims.html").text


def test_a_quality_runs_page_has_the_account_of_tokens_and_times(demo):
    page = next(p for p in demo.pages.values() if "What did it score?" in p.text)
    for words in ("measured at", "16 requests at once", "prompt unknown, reasoning 0, answer 120 tokens", "ended by"):
        assert words in page.text
