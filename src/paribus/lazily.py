"""Packages whose names are imported when somebody first asks for them.

The rule: the packages on the way to a load (`conditions`, `catalog`, `machine`, `wire`) gather their names for others,
and a measurement needs few of them. Their `__init__.py` imports them under `if TYPE_CHECKING:` only, which type
checkers and the check of the layers read as ever, and ends in `__getattr__ = lazily(__name__)`, under
`if not TYPE_CHECKING:`, since a module with a `__getattr__` has every name for them. A name comes from the module that
this block takes it from. It must not be a module's name too, or who comes first would decide.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def lazily(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package that follows the rule above."""

    @cache
    def places() -> dict[str, str]:
        return table(inspect.getsource(sys.modules[package]))

    def get(name: str) -> Any:
        if name.startswith("__") or name not in places():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Kept nowhere: what a test puts in its place must go when the test does.
        return getattr(importlib.import_module(places()[name]), name)

    return get


def table(source: str) -> dict[str, str]:
    """Where each name is imported from, in the `if TYPE_CHECKING:` blocks of a module's source."""
    blocks = [
        node.body
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom) and node.module]
    return {each.name: str(node.module) for node in imports for each in node.names}
