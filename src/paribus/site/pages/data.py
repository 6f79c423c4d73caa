"""The data page: what can be downloaded, the line that loads it, and what every column means."""

from __future__ import annotations

from collections.abc import Iterator

from paribus.results.tables import TABLES
from paribus.site.exports import data_files
from paribus.site.page import Page, Site, View


def pages(site: Site) -> Iterator[Page]:
    """The data page."""

    def view() -> View:
        files = data_files(site.content.database)
        meta = sorted(site.content.meta.items())
        return View({"files": files, "tables": list(TABLES.values()), "meta": meta})

    yield Page("data.html", "data.html", view)
