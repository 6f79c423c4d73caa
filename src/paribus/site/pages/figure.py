"""A figure's permanent page: one number, the sentence to cite, its conditions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from paribus.results.lossless import NOT_LOSSLESS
from paribus.results.strip import split_strip, strip_of
from paribus.results.words import BASIS
from paribus.site import words
from paribus.site.content import Figure, Run
from paribus.site.page import Page, Site, View, figure_path
from paribus.site.pages.names import run_words


def pages(site: Site) -> Iterator[Page]:
    """A page for every figure."""
    for figure in site.content.figures.values():

        def view(figure: Figure = figure) -> View:
            return _view(site, figure)

        runs = [site.content.runs[name] for name in _run_ids(site, figure)]
        inputs = [dataclasses.asdict(figure), [run.row for run in runs], _cut(runs)]
        yield Page(figure_path(figure.figure_id), "figure.html", view, inputs)


def _cut(runs: list[Run]) -> list[str]:
    """What a lossless gate found against the decoders."""
    return list(dict.fromkeys(flag.text for run in runs for flag in run.flags if flag.id == NOT_LOSSLESS))


def _run_ids(site: Site, figure: Figure) -> list[str]:
    return [name for name in (figure.run_id, figure.other_run_id) if name in site.content.runs and name is not None]


def _view(site: Site, figure: Figure) -> View:
    runs = [site.content.runs[name] for name in _run_ids(site, figure)]
    shared, differing = split_strip([strip_of(run.summary) for run in runs])
    detail = figure.detail
    kinds = detail.get("kinds") or {}
    values = {
        "figure": figure,
        "number": words.shown(figure.value, figure.low, figure.high, figure.unit),
        "sentence": figure.sentence or figure.title,
        "strip": shared,
        "runs": [(run, site.model_title(str(run.row["model"])), run_words(run)) for run in runs],
        "strips": [[part for part in strip_of(run.summary) if part.name in differing] for run in runs],
        "demo": any(run.demo for run in runs),
        "cut": _cut(runs),
        "kinds": [
            (str(k), words.shown(v, unit=figure.unit)) for k, v in sorted(kinds.items()) if isinstance(v, (int, float))
        ],
        "kind_range": words.range_text(figure.kind_low, figure.kind_high, figure.unit)
        if figure.kind_low is not None
        else "",
        "coverage": "" if figure.coverage is None else str(words.shown(figure.coverage, unit="share")),
        "basis": BASIS.get(figure.basis, figure.basis),
        "cite": f"Paribus, {site.edition.lower()}, figure {figure.figure_id}",
        "date": max((words.date(run.row["started_at"]) for run in runs), default=""),
    }
    return View(values)
