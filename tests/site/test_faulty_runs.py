"""A run or a race that no page can be made of: left out of the site and named, whatever the database let through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from synthetic_site import clone, demo_world

from paribus.cli import app
from paribus.conditions import UsageError
from paribus.site import render_site
from paribus.site.page import Page, Site
from paribus.site.pages import figure, race
from paribus.site.render import LEDGER


def test_a_run_whose_name_is_no_pages_is_left_out_and_the_rest_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = demo_world()
    bad = next(run for run in world.rows["runs"] if run["scenario_or_task"] == "c1-long" and run["decoder"] != "plain")
    bad["scenario_or_task"] = "../../etc"
    root = clone(tmp_path / "clone")
    database = world.write(root / "build" / "paribus.duckdb")
    rendered = render_site(database, root / "build" / "site", root)
    ((name, reason),) = rendered.left_out.items()
    assert name == bad["run"]
    assert "can't be a page of the site" in reason
    pages = {path.stem for path in (root / "build" / "site" / "run").iterdir()}
    assert pages == {run["run_id"] for run in world.rows["runs"]} - {bad["run_id"]}
    assert (
        bad["run_id"] not in (root / "build" / "site" / "pair" / "cpu" / "smollm2-plain-speculation.html").read_text()
    )
    monkeypatch.chdir(root)
    done = CliRunner().invoke(app, ["site"])
    assert f"left out, can't be shown: {bad['run']}: UsageError: " in done.output


def test_a_race_alone_may_be_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = race.pages

    def some(site: Site) -> Iterator[Page]:
        if any(each.first["scenario"] == "race-c1-long" for each in site.content.races):
            raise ValueError("on purpose")
        yield from pages(site)

    monkeypatch.setattr(race, "pages", some)
    world = demo_world()
    root = clone(tmp_path / "clone")
    rendered = render_site(world.write(root / "build" / "paribus.duckdb"), root / "build" / "site", root)
    verdicts = {row["verdict"] for row in world.rows["races"] if row["scenario"] == "race-c1-long"}
    assert rendered.left_out == dict.fromkeys(verdicts, "ValueError: on purpose")
    assert len(list((root / "build" / "site" / "race").iterdir())) == 1


def test_what_was_written_of_a_run_before_it_failed_is_taken_away_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own page comes before the page of its figures, of which none can be made."""
    world = demo_world()
    bad = next(run["run_id"] for run in world.rows["runs"] if run["scenario_or_task"] == "c1-long")
    pages = figure.pages

    def some(site: Site) -> Iterator[Page]:
        if bad in site.content.runs:
            raise ValueError("on purpose")
        yield from pages(site)

    monkeypatch.setattr(figure, "pages", some)
    root = clone(tmp_path / "clone")
    out = root / "build" / "site"
    rendered = render_site(world.write(root / "build" / "paribus.duckdb"), out, root)
    assert list(rendered.left_out.values()) == ["ValueError: on purpose"]
    assert not (out / "run" / f"{bad}.html").exists()
    listed = {name for entry in json.loads((out / LEDGER).read_text()).values() for name in entry["files"]}
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} == {LEDGER, *listed}
    assert rendered.changed == rendered.pages


def test_what_is_nobodys_fault_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site that can't be made without any run either."""

    def broken(_site: object) -> object:
        raise UsageError("on purpose")

    monkeypatch.setattr(figure, "pages", broken)
    world = demo_world()
    root = clone(tmp_path / "clone")
    with pytest.raises(UsageError, match="on purpose"):
        render_site(world.write(root / "build" / "paribus.duckdb"), root / "build" / "site", root)
