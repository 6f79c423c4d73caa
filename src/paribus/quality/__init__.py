"""Quality: items, generation into a journal, scoring from it, the sandbox for model code.

The package itself is quick to import: a module of it is imported when one of its names is asked for, and SciPy and
lm-eval only where answers are generated or scored.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus.quality.data import Items, available, load_items
    from paribus.quality.run import generate_start, read_score, score_start
    from paribus.quality.summary import Grading, GroupScore, QualitySummary, Score, TokenAccount

__all__ = [
    "Grading",
    "GroupScore",
    "Items",
    "QualitySummary",
    "Score",
    "TokenAccount",
    "available",
    "generate_start",
    "load_items",
    "read_score",
    "score_start",
]

_HOMES = {
    "data": ("Items", "available", "load_items"),
    "run": ("generate_start", "read_score", "score_start"),
    "summary": ("Grading", "GroupScore", "QualitySummary", "Score", "TokenAccount"),
}


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
