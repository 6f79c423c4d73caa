"""What `paribus speed` brings into memory, and when: nothing that reads answers before the load is over."""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import paribus
from paribus.lazily import table

HEAVY = ("numpy", "pyarrow", "scipy", "pandas", "tokenizers", "bpe_openai", "rich", "yaml", "psutil")
LAZY = ("paribus.conditions", "paribus.catalog", "paribus.machine", "paribus.wire")

COMMAND = """
import json, sys
import paribus.wire.loop as loop
read = loop.LagMeter.read
def noted(meter):  # asked the moment the load is over
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
    return read(meter)
loop.LagMeter.read = noted
from paribus.cli import main
main(sys.argv[1:])
"""


def test_nothing_that_reads_answers_is_imported_before_the_load_is_over(scripted, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"id": "a", "prompt": "tell"}) + "\n")
    command = [
        *(
            sys.executable,
            "-c",
            COMMAND,
            "speed",
            "--base-url",
            scripted.endpoint("x").base_url,
            "--model",
            "f10-n3-i1000",
        ),
        *("--prompts", str(prompts), "--out", str(tmp_path / "out"), "--warmup", "0", "--json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ, check=True)
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert loaded.isdisjoint(HEAVY)
    assert {"paribus", "asyncio", "pydantic"} <= loaded, "the list is of this very process"
    assert json.loads(done.stdout)["requests"]["ok"] == 1


@pytest.mark.parametrize("package", LAZY)
def test_a_lazy_package_gives_every_name_it_promises(package: str) -> None:
    module = importlib.import_module(package)
    places = table(Path(str(module.__file__)).read_text())
    assert sorted(places) == sorted(module.__all__)
    for name, place in places.items():
        assert getattr(module, name) is getattr(importlib.import_module(place), name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("package", LAZY)
def test_what_stands_in_for_a_name_for_a_while_does_not_stay_in_its_package(package: str) -> None:
    module = importlib.import_module(package)
    name, place = next(iter(table(Path(str(module.__file__)).read_text()).items()))
    vars(module).pop(name, None)  # as if nobody had asked for it yet
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module(place), name, "a stand-in")
        assert getattr(module, name) == "a stand-in"
    assert getattr(module, name) is getattr(importlib.import_module(place), name) != "a stand-in"


def test_the_type_checker_sees_a_wrong_name_of_a_lazy_package(tmp_path: Path) -> None:
    """Of the smallest package; the others end in the same way."""
    endings = {Path(str(importlib.import_module(name).__file__)).read_text().split("\n]\n")[1] for name in LAZY}
    assert len(endings) == 1
    command = [
        *(sys.executable, "-m", "mypy", "--config-file", os.devnull, "--follow-imports", "silent"),
        *("--cache-dir", str(tmp_path), "-c", "from paribus.conditions import CheckFailed, CheckFialed"),
    ]
    source = str(Path(str(paribus.__file__)).parents[1])
    told = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"MYPYPATH": source}, check=False
    )
    assert 'Module "paribus.conditions" has no attribute "CheckFialed"' in told.stdout
    assert "Found 1 error" in told.stdout


@pytest.mark.parametrize("package", LAZY)
def test_no_name_of_a_lazy_package_is_a_module_of_it_too(package: str) -> None:
    module = importlib.import_module(package)
    assert {each.name for each in pkgutil.iter_modules(module.__path__)}.isdisjoint(module.__all__)


def test_packages_on_the_way_to_a_load_import_nothing_by_themselves() -> None:
    for package in LAZY:
        source = Path(str(importlib.import_module(package).__file__)).read_text()
        imports = [node.module for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)]
        assert imports == ["__future__", "typing", "paribus.lazily"], package
    assert paribus.__version__
