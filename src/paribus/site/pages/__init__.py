"""Every page of the site: one file a kind of page, each with a function `pages(site)`."""

from __future__ import annotations

from collections.abc import Iterator

from paribus.site.page import Page, Site
from paribus.site.pages import board, claims, data, figure, front, method, pair, quality, race, run, systems

KINDS = (front, board, pair, quality, claims, systems, method, data, race, run, figure)
"""Modules in the order their pages are rendered."""


def all_pages(site: Site) -> Iterator[Page]:
    """Every page of the site."""
    for kind in KINDS:
        yield from kind.pages(site)
