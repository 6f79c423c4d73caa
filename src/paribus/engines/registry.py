"""Which engines there are: one module of `paribus.engines.adapters` each. Adding an engine is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from paribus.conditions import UsageError
from paribus.engines import adapters
from paribus.engines.base import Engine


@cache
def engines() -> dict[str, Engine]:
    """Every engine by name. A module without `ENGINE`, or two of one name, is a fault of the source."""
    found: dict[str, Engine] = {}
    for module in pkgutil.iter_modules(adapters.__path__):
        engine = importlib.import_module(f"{adapters.__name__}.{module.name}").ENGINE
        if not isinstance(engine, Engine) or engine.name in found:
            raise TypeError(f"{module.name} does not hold one new engine")
        found[engine.name] = engine
    return found


def engine(name: str) -> Engine:
    """One engine by its name in the catalog."""
    known = engines()
    if name not in known:
        raise UsageError(f"there is no adapter for the engine {name!r}; known: {', '.join(sorted(known))}")
    return known[name]
