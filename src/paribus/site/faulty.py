"""Whose fault it is when pages can't be made: every run and every race alone, and a site without those that fail."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

from paribus.conditions import one_line
from paribus.site.content import Content, Run
from paribus.site.page import Page, Site
from paribus.site.pages import all_pages

Make = Callable[[Page, Site], Any]
"""Makes one page of a site; raises where it can't."""


def faulty(site: Site, make: Make) -> dict[str, str]:
    """Runs and races of which no site could be made, each by itself, by path, with the reason.

    A site without any must be possible: where it isn't, nobody's file is to blame, and nothing is returned.
    """
    if _fault(Site(_only(site.content), site.catalog), make):
        return {}
    alone = [(_path(run), _only(site.content, run)) for run in site.content.runs.values()]
    alone += [(race.verdict, replace(_only(site.content), races=(race,))) for race in site.content.races]
    found = ((name, _fault(Site(content, site.catalog), make)) for name, content in alone)
    return {name: fault for name, fault in found if fault}


def without(site: Site, left_out: Container[str]) -> Site:
    """The same site without some of its runs and races, and without what is told of those runs beside others."""
    content = site.content
    runs = {name: run for name, run in content.runs.items() if _path(run) not in left_out}
    runs = {
        name: replace(run, ratios=tuple(f for f in run.ratios if f.other_run_id in runs)) for name, run in runs.items()
    }
    kept = replace(
        content,
        runs=runs,
        races=tuple(race for race in content.races if race.verdict not in left_out),
        pairs=tuple(row for row in content.pairs if {row["left_run_id"], row["right_run_id"]} <= runs.keys()),
    )
    return Site(kept, site.catalog)


def _path(run: Run) -> str:
    return str(run.row["run"])


def _only(content: Content, *runs: Run) -> Content:
    alone = {run.id: replace(run, ratios=()) for run in runs}
    return replace(content, runs=alone, races=(), pairs=())


def _fault(site: Site, make: Make) -> str:
    try:
        for page in all_pages(site):
            make(page, site)
    except OSError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {one_line(' '.join(str(error).split()))[:200]}"
    return ""
