"""Which engines there are: one module of `paribus.engines.adapters` each. Adding an engine is adding a file.

A private catalog (`--config catalog=DIR`) may bring engines of its own in `DIR/engines/*.py`. Such a file is program
code of whoever owns that folder, and it runs as the person who names the folder: name only one you trust.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType

from paribus.conditions import UsageError
from paribus.engines import adapters
from paribus.engines.base import Engine


@cache
def _ours() -> dict[str, Engine]:
    """The engines of this package. A module without `ENGINE`, or two of one name, is a fault of the source."""
    found: dict[str, Engine] = {}
    for module in pkgutil.iter_modules(adapters.__path__):
        engine = importlib.import_module(f"{adapters.__name__}.{module.name}").ENGINE
        if not isinstance(engine, Engine) or engine.name in found:
            raise TypeError(f"{module.name} does not hold one new engine")
        found[engine.name] = engine
    return found


@cache
def _private(folder: Path) -> dict[str, Engine]:
    """The engines of a private catalog. A file that holds none, or one of a name that is taken, is a user's mistake."""
    found: dict[str, Engine] = {}
    for path in sorted(folder.glob("engines/*.py")):
        engine = getattr(_load(path), "ENGINE", None)
        if not isinstance(engine, Engine):
            raise UsageError(f"{path}: it holds no ENGINE with the methods of paribus.engines.Engine")
        if engine.name in _ours() or engine.name in found:
            raise UsageError(f"{path}: there is an engine {engine.name!r} already: give yours another name")
        found[engine.name] = engine
    return found


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"paribus_private_engine_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} can't be read as a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # somebody else's code may raise anything
        raise UsageError(f"{path} can't be loaded: {type(error).__name__}: {error}") from error
    return module


def engines(private: Path | None = None) -> dict[str, Engine]:
    """Every engine by name; `private`: the folder of a private catalog, whose `engines/*.py` come to ours."""
    return _ours() | (_private(private.resolve()) if private else {})


def engine(name: str, private: Path | None = None) -> Engine:
    """One engine by its name in the catalog."""
    known = engines(private)
    if name not in known:
        raise UsageError(f"there is no adapter for the engine {name!r}; known: {', '.join(sorted(known))}")
    return known[name]
