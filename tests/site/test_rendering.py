"""Rendering as a whole: the same bytes again, only what changed, nothing foreign removed, light pages, clear errors."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

import duckdb
import pytest
from building_sites import build
from click.testing import CliRunner
from synthetic_site import World, clone, demo_world

from paribus.cli import app
from paribus.conditions import EnvironmentFault, UsageError
from paribus.site import render_site
from paribus.site.render import LEDGER


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_same_input_gives_the_same_bytes(demo, tmp_path):
    again = tmp_path / "site"
    render_site(demo.database, again, demo.root)
    assert files_of(again) == files_of(demo.out)


def test_rows_in_another_order_give_the_same_pages(demo, tmp_path):
    world = demo_world()
    for rows in world.rows.values():
        rows.reverse()
    other = build(world, tmp_path)
    mine, theirs = files_of(demo.out), files_of(other.out)
    assert {n for n in mine if mine[n] != theirs.get(n) and not n.startswith("data")} == set()


def test_rendering_again_touches_no_file(tmp_path):
    built = build(demo_world(), tmp_path)
    before = {p: p.stat().st_mtime_ns for p in built.out.rglob("*") if p.is_file() and p.name != LEDGER}
    again = render_site(built.database, built.out, built.root)
    assert again.changed == 0
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_a_new_run_changes_its_own_pages_and_leaves_the_others(tmp_path):
    built = build(demo_world(), tmp_path)
    world = demo_world()
    world.run(measure="c1-long", decoder="ngram-map-k-n4-m4", speed=84.0)
    world.write(built.database)
    again = render_site(built.database, built.out, built.root)
    assert again.pages > built.first.pages
    assert 0 < again.changed < built.first.pages // 3


def test_a_page_lost_from_the_folder_is_made_again(tmp_path):
    built = build(demo_world(), tmp_path)
    lost = next((built.out / "run").glob("*.html"))
    text = lost.read_text()
    lost.unlink()
    render_site(built.database, built.out, built.root)
    assert lost.read_text() == text


def test_pages_of_runs_that_are_gone_are_removed_with_their_charts(tmp_path):
    built = build(demo_world(), tmp_path)
    World().write(built.database)
    again = render_site(built.database, built.out, built.root)
    assert again.removed > 50
    assert not (built.out / "run").exists()
    assert not list(built.out.glob("charts/run-*"))
    fresh = build(World(), tmp_path / "fresh")
    assert files_of(built.out).keys() == files_of(fresh.out).keys()


def test_a_folder_with_somebody_elses_files_is_left_alone(demo, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds files that `paribus site` didn't write"):
        render_site(demo.database, tmp_path, demo.root)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_ledger_that_points_out_of_the_folder_removes_nothing_there(tmp_path):
    built = build(World(), tmp_path)
    victim = tmp_path / "victim.html"
    victim.write_text("keep")
    (built.out / LEDGER).write_text('{"x": {"key": "", "files": ["../../../victim.html"]}}')
    render_site(built.database, built.out, built.root)
    assert victim.read_text() == "keep"


def test_ids_that_are_no_plain_names_are_refused(tmp_path):
    world = demo_world()
    name = world.rows["runs"][0]["run_id"]
    for rows in world.rows.values():
        for row in rows:
            if row.get("run_id") == name:
                row["run_id"] = "../../../evil"
    root = clone(tmp_path / "clone")
    database = world.write(root / "build" / "paribus.duckdb")
    rendered = render_site(database, root / "build" / "site", root)
    assert any("can't be a page" in reason for reason in rendered.left_out.values())
    assert not list(tmp_path.rglob("evil*"))
    assert not [page for page in (root / "build" / "site").rglob("*.html") if "evil" in page.read_text()]


def test_the_front_page_with_everything_it_loads_is_at_most_150_kilobytes_compressed(demo, wide):
    for built in (demo, wide):
        page = (built.out / "index.html").read_bytes()
        loaded = re.findall(rb'(?:href|src)="(assets/[^"]+)"', page)
        assert len(loaded) == 2
        total = sum(
            len(gzip.compress(data)) for data in [page, *((built.out / n.decode()).read_bytes() for n in loaded)]
        )
        assert total <= 150 * 1024


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_a_contrast_of_at_least_four_and_a_half_to_one(demo, scheme):
    css = (demo.out / "assets" / "paribus.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", blocks[0 if scheme == "light" else 1]))
    for name in ("ink", "muted", "accent", "warn", "bad"):
        for ground in ("paper", "soft"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    for name in ("plain", "speculation", "diffusion", "other"):
        assert contrast(colours[name], colours["paper"]) >= 3.0, name


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio of two colours."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_command_says_where_to_look(demo, tmp_path, monkeypatch):
    monkeypatch.chdir(demo.root)
    out = tmp_path / "public"
    result = CliRunner().invoke(app, ["site", "--out", str(out)], standalone_mode=False)
    assert result.exception is None
    assert f"Look at {(out / 'index.html').resolve().as_uri()}" in result.output


def test_a_missing_database_is_one_sentence_with_what_to_do(tmp_path):
    with pytest.raises(UsageError, match=r"run `paribus build` first"):
        render_site(tmp_path / "none.duckdb", tmp_path / "site", clone(tmp_path / "clone"))


def test_a_file_that_is_no_database_is_one_sentence_with_what_to_do(tmp_path):
    broken = tmp_path / "paribus.duckdb"
    broken.write_bytes(b"not a database at all, " * 1000)
    with pytest.raises(EnvironmentFault, match=r"can't read .*run `paribus build` again"):
        render_site(broken, tmp_path / "site", clone(tmp_path / "clone"))


def test_a_database_of_another_version_is_one_sentence_with_what_to_do(tmp_path):
    old = tmp_path / "old.duckdb"
    duckdb.connect(str(old)).execute("CREATE TABLE runs (run_id VARCHAR)").close()
    with pytest.raises(EnvironmentFault, match="run `paribus build` again"):
        render_site(old, tmp_path / "site", clone(tmp_path / "clone"))


def test_a_root_without_templates_is_one_sentence(demo, tmp_path):
    with pytest.raises(UsageError, match="there are no templates"):
        render_site(demo.database, tmp_path / "site", tmp_path)


def test_a_catalog_without_pairs_still_makes_a_site(demo, tmp_path):
    root = clone(tmp_path / "clone")
    (root / "pairs.yaml").unlink()
    shutil.rmtree(root / "hardware" / "h100-test")
    made = render_site(demo.database, root / "build" / "site", root)
    assert made.pages > 50
