"""Every page of the site: one file a kind of page, each with a function `pages(site)`."""

from __future__ import annotations

from collections.abc import Iterator

from paribus.conditions import UsageError
from paribus.site.page import Page, Site
from paribus.site.pages import board, claims, data, figure, front, method, pair, quality, race, run, systems

KINDS = (front, board, pair, quality, claims, systems, method, data, race, run, figure)
"""Modules in the order their pages are rendered."""


def all_pages(site: Site) -> Iterator[Page]:
    """Every page of the site. Raises `UsageError` where two want to be one."""
    seen: set[str] = set()
    for kind in KINDS:
        for page in kind.pages(site):
            if page.path in seen:
                raise UsageError(f"two pages of the site want to be {page.path}: ids in the database clash")
            seen.add(page.path)
            yield page
