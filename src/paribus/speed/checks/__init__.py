"""Checks of answers that ride along with speed runs: code that accepts right answers in many forms, refuses wrong ones.

No check executes anything from an answer, and none hangs on hostile text: see `paribus.speed.checks.text`.
"""

from paribus.speed.checks.registry import CHECKERS, Checker, passes, validate

__all__ = ["CHECKERS", "Checker", "passes", "validate"]
