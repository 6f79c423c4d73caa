"""Building a site from a world of rows, and looking at the result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reading_pages import Page, read_page
from synthetic_site import World, clone

from paribus.site import Rendered, render_site


@dataclass(frozen=True)
class Built:
    """A site with what it was made from."""

    root: Path
    database: Path
    out: Path
    first: Rendered

    @cached_property
    def pages(self) -> dict[str, Page]:
        """Every HTML page, parsed, by its path below the site."""
        return {p.relative_to(self.out).as_posix(): read_page(p) for p in sorted(self.out.rglob("*.html"))}

    def page(self, path: str) -> Page:
        """One page."""
        return self.pages[path]


def build(world: World, folder: Path) -> Built:
    """Write a world's database and render its site."""
    root = clone(folder / "clone")
    database = world.write(root / "build" / "paribus.duckdb")
    out = root / "build" / "site"
    return Built(root, database, out, render_site(database, out, root))
