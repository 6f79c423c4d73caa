"""Quality: items, generation into a journal, scoring from it, the sandbox for model code.

lm-eval is imported only where answers are generated or scored; this package itself is quick to import.
"""

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
