"""Whatever a run declares or observes stands in the table of conditions: what isn't there gates nothing, unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.catalog import Catalog, Surroundings, resolve
from paribus.conditions import CONDITIONS
from paribus.machine import observe_machine

ROOT = Path(__file__).resolve().parents[2]
OBSERVERS = re.compile(r"_?observed?(_\w+)?|drafted|read_back|verify_sampler")
"""Functions that return observed conditions."""
CONSUMED = {"settings"}
"""What an adapter's `observe` tells the session, which turns it into conditions."""


def keys_of(node: ast.AST | None) -> Iterator[str]:
    """Keys of a dict in an expression: a literal, a union of such, one of two."""
    if isinstance(node, ast.Dict):
        yield from (k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from keys_of(value)
    elif isinstance(node, ast.BinOp):
        yield from keys_of(node.left)
        yield from keys_of(node.right)
    elif isinstance(node, ast.IfExp):
        yield from keys_of(node.body)
        yield from keys_of(node.orelse)


def is_observed(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "observed") or (
        isinstance(node, ast.Attribute) and node.attr == "observed"
    )


def written(source: str) -> set[str]:
    """Names of conditions that a module writes into what was observed."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if is_observed(target):
                    found |= set(keys_of(node.value))
                if isinstance(target, ast.Subscript) and is_observed(target.value):
                    found |= {target.slice.value} if isinstance(target.slice, ast.Constant) else set()
        elif isinstance(node, ast.keyword) and node.arg == "observed":
            found |= set(keys_of(node.value))
        elif isinstance(node, ast.FunctionDef) and OBSERVERS.fullmatch(node.name):
            for part in ast.walk(node):
                if isinstance(part, ast.Return):
                    found |= set(keys_of(part.value))
    return found


def test_what_a_module_writes_is_seen_by_this_test() -> None:
    text = "def observe(x):\n return {'a': 1} | ({'b': 2} if x else {})\n"
    text += "s.observed['c'] = 1\nobserved |= {'d': 1, **{'e': 2}}"
    assert written(text) == {"a", "b", "c", "d", "e"}
    assert written("f(observed={'f': {'not this': 1}})") == {"f"}


@pytest.mark.parametrize("part", ["engines", "speed", "quality"])
def test_everything_observed_is_registered(part: str) -> None:
    found = {
        name: path.name
        for path in sorted((ROOT / "src" / "paribus" / part).rglob("*.py"))
        for name in written(path.read_text(encoding="utf-8"))
    }
    assert found
    assert {name: where for name, where in found.items() if name not in CONDITIONS and name not in CONSUMED} == {}


def test_everything_that_the_machine_tells_is_registered() -> None:
    assert set(observe_machine()) - set(CONDITIONS) == set()


def test_everything_declared_is_registered() -> None:
    catalog = Catalog(ROOT)
    declared = {name for system in catalog.systems.values() for name in system.declared("build", {})}
    around = Surroundings("m-test", {"llamacpp": "0123456789ab"}, sandbox=True, memory_gb=16)
    for job in resolve(ROOT, "cpu", {}, around).jobs:
        declared |= {name for measure in job.measures for name in measure.declared}
    assert len(declared) > 20
    assert declared - set(CONDITIONS) == set()
