"""What a duel is made of: the two runs that meet under one measure, and a row with both sides' numbers."""

from __future__ import annotations

from dataclasses import dataclass

from paribus.site.content import Figure, Run
from paribus.site.pages.headline import speedup_of
from paribus.site.pages.table import Cell

NOBODY = "nobody has run this yet"
BASE = "../../"


@dataclass(frozen=True)
class Duel:
    """The two runs that meet under one measure; `refused` says why they can't be compared."""

    measure: str
    title: str
    left: Run | None
    right: Run | None
    refused: str
    notes: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        """The sides that exist."""
        return [run for run in (self.left, self.right) if run is not None]

    @property
    def ratio(self) -> Figure | None:
        """How many times as fast the left side is as the right one; none where this pair's rules refuse it."""
        return speedup_of(self.left, self.right) if self.left and self.right and not self.refused else None


@dataclass(frozen=True)
class DuelRow:
    """One row of a duel: what, both sides' numbers, the verdict and its figure's page."""

    title: str
    unit: str
    left: Cell
    right: Cell
    verdict: str = ""
    href: str | None = None
