"""Who shows a system running on a card. Nothing counts as running because nobody said otherwise."""

from __future__ import annotations

import fnmatch
from typing import Annotated

from pydantic import Field

from paribus.catalog.specs import Spec

Globs = list[Annotated[str, Field(pattern=r"^[a-z0-9.*?-]+$")]]
ADDRESS = r"^(https://[^\s/]+/\S+|results/[a-z0-9][a-z0-9./-]*|make [a-z-]+)( \(.+\))?$"
"""A page, a folder of runs in this repository, or a target of its Makefile; then what to look at there, in brackets."""


class Shown(Spec):
    """One source that shows an engine with the model: launched there, or launched so by who publishes the recipe.

    `cards` are those that the source names (hardware profiles; each entry may be a glob). What is left out of the other
    selectors stands for all. A decoder with other numbers of the same settings (draft tokens, steps) counts as shown.
    """

    cards: Globs = Field(min_length=1)
    precisions: Globs = []
    decoders: Globs = []
    source: str = Field(pattern=ADDRESS)

    def covers(self, card: str, precision: str, decoder: str) -> bool:
        """Whether it shows a precision with a decoder on a card."""
        return any_of(card, self.cards) and self.covers_stack(precision, decoder)

    def covers_stack(self, precision: str, decoder: str) -> bool:
        """Whether it shows a precision with a decoder, on whatever card."""
        return all_or_any(precision, self.precisions) and all_or_any(decoder, self.decoders)


def any_of(name: str, globs: list[str]) -> bool:
    """Whether one of the globs names it."""
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def all_or_any(name: str, globs: list[str]) -> bool:
    """Whether there are no globs, or one of them names it."""
    return not globs or any_of(name, globs)


def not_shown(shown: list[Shown], card: str, precision: str, decoder: str) -> str | None:
    """Why a source is missing for a precision with a decoder on a card; None where one shows it."""
    if not shown:
        return "no source is named that shows this engine running it"
    here = [one for one in shown if one.covers_stack(precision, decoder)]
    if not here:
        return "no source is named that shows this precision with this decoder"
    if any(one.covers(card, precision, decoder) for one in here):
        return None
    return f"it is shown on {', '.join(dict.fromkeys(card for one in here for card in one.cards))} alone"
