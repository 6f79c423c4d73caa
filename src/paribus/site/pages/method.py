"""The method page, generated from the registries' docstrings and the task files: it can't drift from the code."""

from __future__ import annotations

from collections.abc import Iterator

from paribus.catalog import KINDS
from paribus.conditions import CONDITIONS, FLAGS
from paribus.site.page import Page, Site, View
from paribus.speed.metrics import metrics

GATES = {
    "always": "never compared when it differs",
    "subject": "compared only when it is the declared subject, and named",
    "shown": "shown, never in the way",
    "limit": "may differ; never compared when below requests at once - 1",
}
SEVERITIES = {"note": "shown", "warning": "shown, ranked", "invalid": "not ranked"}


def pages(site: Site) -> Iterator[Page]:
    """The method page."""

    def view() -> View:
        values = {
            "metrics": list(metrics().values()),
            "conditions": list(CONDITIONS.values()),
            "gates": GATES,
            "flags": list(FLAGS.values()),
            "severities": SEVERITIES,
            "scenarios": sorted(site.catalog.scenarios.values(), key=lambda s: (s.race, s.requests, s.scenario)),
            "scales": sorted(site.catalog.scales.values(), key=lambda s: (s.preliminary, -s.starts, s.scale)),
            "tasks": list(site.tasks.values()),
            "kinds": KINDS,
        }
        return View(values)

    yield Page("method.html", "method.html", view)
