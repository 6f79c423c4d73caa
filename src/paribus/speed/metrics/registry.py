"""The registry of metrics: tag, title, unit, what it may be compared across, and the formula (the docstring)."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Across = Literal["yes", "no", "same scope"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """One metric. `across`: whether it may be compared across kinds of model. `formula` is the method page's text."""

    tag: str
    title: str
    unit: str
    better: Literal["higher", "lower", ""]
    across: Across
    formula: str
    compute: Callable[..., Any]


_found: dict[str, Metric] = {}


def metric(
    tag: str, *, title: str, unit: str, better: Literal["higher", "lower", ""], across: Across
) -> Callable[[F], F]:
    """Register a function as a metric. Its docstring is the definition that readers see."""

    def register(function: F) -> F:
        if tag in _found:
            raise ValueError(f"the metric {tag} is defined twice")
        formula = inspect.getdoc(function)
        if not formula:
            raise ValueError(f"the metric {tag} has no formula in its docstring")
        _found[tag] = Metric(tag, title, unit, better, across, formula, function)
        return function

    return register


def metrics() -> dict[str, Metric]:
    """Every metric by its tag, in the order of the alphabet. Walks the modules of this package."""
    package = importlib.import_module("paribus.speed.metrics")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"paribus.speed.metrics.{module.name}")
    return dict(sorted(_found.items()))
