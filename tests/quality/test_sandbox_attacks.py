"""The sandbox holds against every attack; and an attack does notice a hole, so that holding means something."""

from __future__ import annotations

import ast
import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from quality_journals import ROOT, Sheet

import paribus
from paribus.catalog import Catalog
from paribus.cli.sandbox import command
from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.quality import cgroup, sandbox, sandbox_attacks
from paribus.quality.data import load_items
from paribus.quality.run import score_start
from paribus.quality.sandbox_programs import ATTACKS

BY_NAME = {attack.name: attack for attack in ATTACKS}
QUICK = [attack for attack in ATTACKS if "timeout" not in attack.stopped]


@pytest.mark.usefixtures("box")
def test_every_quick_attack_is_held() -> None:
    findings = sandbox_attacks.run_attacks(QUICK)
    assert [(f.attack.name, f.result, f.detail) for f in findings if f.result != "held"] == []


@pytest.mark.system
@pytest.mark.usefixtures("box")
def test_every_attack_is_held() -> None:
    findings = sandbox_attacks.run_attacks()
    assert len(findings) >= 20
    assert [(f.attack.name, f.result, f.detail) for f in findings if f.result != "held"] == []


AS_ANYBODY = """
import sys
sys.path[:0] = {paths!r}
from paribus.cli import main
main(["sandbox", "test"])
"""


IMPORTED = """
import sys
from paribus.cli import main
try:
    main(["sandbox", "test", "--help"])
except SystemExit:
    pass
import paribus.quality.sandbox_attacks
print([f for m in list(sys.modules.values()) if (f := getattr(m, "__file__", None))])
"""


@pytest.mark.system
@pytest.mark.usefixtures("box")
def test_every_attack_is_held_for_an_ordinary_user_too() -> None:
    """Started by root, this runs the suite as `nobody`: no control groups, another way into the namespaces."""
    if os.geteuid() != 0:
        pytest.skip("the whole suite runs as an ordinary user already")
    python = Path("/usr/bin/python3")
    with open_to_all() as folder:
        paths = [str(folder)]
        reach = f"import sys; sys.path[:0] = {paths!r}; import paribus.quality.sandbox"
        if sys.version_info[:2] != system_python(python) or as_nobody(python, reach).returncode != 0:
            lacking = (
                f"an ordinary user can't run this Python ({sys.version_info[0]}.{sys.version_info[1]}) as {python}"
            )
            (pytest.fail if os.environ.get("PARIBUS_REQUIRE") else pytest.skip)(lacking)
        done = as_nobody(python, AS_ANYBODY.format(paths=paths))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ATTACKS)} attacks, all held, started as an ordinary user" in done.stdout
    assert "memory of one process" in done.stdout


@contextmanager
def open_to_all() -> Iterator[Path]:
    """A folder with our package and what its sandbox imports: a clone may lie where only its owner can look."""
    said = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, cwd="/")
    files = [Path(name) for name in ast.literal_eval(said.stdout.splitlines()[-1])]
    sources = {Path(paribus.__file__).parent}
    for packages in map(Path, site.getsitepackages()):
        sources |= {packages / f.relative_to(packages).parts[0] for f in files if f.is_relative_to(packages)}
    with tempfile.TemporaryDirectory(prefix="paribus-anybody-") as made:
        for source in sources:
            to = Path(made) / source.name
            if source.is_dir():
                shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, to)
        for path in (Path(made), *Path(made).rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield Path(made)


def as_nobody(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-c", code],
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


def system_python(python: Path) -> tuple[int, ...]:
    if not python.exists():
        return ()
    words = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True
    )
    return tuple(map(int, words.stdout.split()))


def test_limits_are_named_by_the_attacks_that_ran_into_them(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("sleep", "fork-bomb", "memory-of-many")
    findings = [sandbox_attacks.Finding(BY_NAME[name], "held", "", limited=True) for name in names]
    findings.append(sandbox_attacks.Finding(BY_NAME["huge-output"], "broke", "", limited=True))
    findings.append(sandbox_attacks.Finding(BY_NAME["memory"], "held", "stopped: timeout"))
    monkeypatch.setattr(cgroup, "support", lambda: cgroup.Support(2, Path("/g"), Path("/g")))
    assert sandbox_attacks.proven(findings) == [
        "time of a program that waits",
        "memory of all processes together (control group v2)",
        "number of processes (control group v2)",
    ]
    assert sandbox_attacks.unproven() == []
    monkeypatch.setattr(cgroup, "support", lambda: cgroup.Support(0, None, None))
    assert sandbox_attacks.proven(findings) == ["time of a program that waits"]
    assert len(sandbox_attacks.unproven()) == 2


LIMITED = {"memory": "memory of one process", "fill-disk": "size of the temporary folders"}
LIMITED |= {"huge-output": "size of the output", "cpu-loop": "time of a program that computes"}


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize("name", LIMITED)
def test_an_attack_that_runs_into_its_limit_proves_it(name: str) -> None:
    assert sandbox_attacks.proven(sandbox_attacks.run_attacks([BY_NAME[name]])) == [LIMITED[name]]


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(
    ("name", "wider"),
    [
        ("huge-output", {"output": 1 << 31, "time_s": 0.5}),
        ("memory", {"memory": 64 << 30, "time_s": 0.3}),
        ("memory-of-many", {"time_s": 0.05}),
        ("fill-disk", {"files": 4 << 30, "time_s": 0.05}),
    ],
)
def test_an_attack_that_the_clock_stops_first_proves_no_other_limit(
    monkeypatch: pytest.MonkeyPatch, name: str, wider: dict[str, Any]
) -> None:
    monkeypatch.setattr(sandbox_attacks, "LIMITS", replace(sandbox_attacks.LIMITS, **wider))
    findings = sandbox_attacks.run_attacks([BY_NAME[name]])
    assert sandbox_attacks.proven(findings) == []


@pytest.mark.usefixtures("box")
def test_another_machine_with_the_same_build_folder_proves_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = sandbox_attacks._proof_key()
    assert sandbox_attacks._proof_key() == here
    boot = tmp_path / "boot_id"
    boot.write_text("another machine\n")
    monkeypatch.setattr(sandbox_attacks, "_BOOT", boot)
    elsewhere = sandbox_attacks._proof_key()
    assert elsewhere != here
    names = SimpleNamespace(release=os.uname().release, nodename="another-container")
    monkeypatch.setattr(sandbox_attacks.os, "uname", lambda: names)
    assert sandbox_attacks._proof_key() not in (here, elsewhere)


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(
    ("name", "hole"),
    [
        ("host-read", lambda facts: ["--ro-bind", facts["folder"], facts["folder"]]),
        ("host-write", lambda facts: ["--bind", facts["folder"], facts["folder"]]),
        ("links", lambda facts: ["--ro-bind", facts["folder"], facts["folder"]]),
        ("secrets-environment", lambda facts: ["--setenv", "PARIBUS_SECRET", facts["_token"]]),
        ("network-loopback", lambda facts: ["--share-net"]),
        ("devices", lambda facts: ["--dev-bind", "/dev", "/dev"]),
    ],
)
def test_an_attack_finds_the_hole_it_looks_for(name: str, hole: Any) -> None:
    (finding,) = sandbox_attacks.run_attacks([BY_NAME[name]], weaken=hole)
    assert finding.result == "broke"


@pytest.mark.usefixtures("box")
def test_an_attack_that_never_tried_proves_nothing() -> None:
    broken = sandbox_attacks.Attack("broken", "fails before it tries", "raise SystemExit(1)")
    (finding,) = sandbox_attacks.run_attacks([broken])
    assert finding.result == "unclear"


@pytest.mark.usefixtures("box")
def test_the_command_says_what_held_and_fails_when_something_breaks_out(monkeypatch: pytest.MonkeyPatch) -> None:
    few = (BY_NAME["mount"], BY_NAME["become-root"])
    monkeypatch.setattr(sandbox_attacks, "run_attacks", lambda seen: _shown(few, seen, "held"))
    done = CliRunner().invoke(command, ["test"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "held    mount" in done.output
    assert "2 attacks, all held" in done.output
    monkeypatch.setattr(sandbox_attacks, "run_attacks", lambda seen: _shown(few, seen, "broke"))
    with pytest.raises(CheckFailed, match="2 of 2 attacks were not held: mount, become-root"):
        CliRunner().invoke(command, ["test"], catch_exceptions=False)


def _shown(attacks: tuple, seen: Any, result: Any) -> list[sandbox_attacks.Finding]:
    findings = [sandbox_attacks.Finding(attack, result, "as told") for attack in attacks]
    for finding in findings:
        seen(finding)
    return findings


@pytest.mark.usefixtures("box")
def test_programs_run_only_after_a_proof_that_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox_attacks.prove(tmp_path)
    proof = json.loads((tmp_path / "sandbox.json").read_text())
    assert proof["attacks"] >= 20
    assert proof["sandbox"] == sandbox.platform()

    def never(*_: Any) -> list[sandbox_attacks.Finding]:
        raise AssertionError("proven already")

    monkeypatch.setattr(sandbox_attacks, "run_attacks", never)
    sandbox_attacks.prove(tmp_path)
    (tmp_path / "sandbox.json").write_text(json.dumps({**proof, "key": "another machine"}))
    with pytest.raises(AssertionError, match="proven already"):
        sandbox_attacks.prove(tmp_path)


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize("results", [("broke",), ("unclear", "unclear"), ("unclear", "broke")])
def test_where_an_attack_is_not_held_nothing_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: tuple[Any, ...]
) -> None:
    said = iter(results)
    found = lambda attacks: [sandbox_attacks.Finding(BY_NAME["mount"], next(said), "")] if attacks else []  # noqa: E731
    monkeypatch.setattr(sandbox_attacks, "run_attacks", found)
    with pytest.raises(EnvironmentFault, match="must not run here: mount was not held"):
        sandbox_attacks.prove(tmp_path)
    assert not (tmp_path / "sandbox.json").exists()


def test_no_program_runs_before_the_sandbox_is_proven(
    catalog: Catalog, sheet: Sheet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring proves the sandbox first; where that fails, no program of a model has run and no score is written."""
    item = load_items(catalog.task("smoke-livecodebench"), ROOT).items[0]
    folder = sheet("smoke-livecodebench", {(item["question_id"], 0): "```python\nprint(1)\n```"})
    asked = []

    def refuse(place: Path) -> None:
        asked.append(place)
        raise EnvironmentFault("model code must not run here: mount was not held")

    def run(*_: Any, **__: Any) -> None:
        raise AssertionError("a program ran")

    monkeypatch.setattr(sandbox_attacks, "prove", refuse)
    monkeypatch.setattr("paribus.quality.tasks.grader.opened", run)
    monkeypatch.setattr("paribus.quality.calibration.sandboxed", run)
    with pytest.raises(EnvironmentFault, match="must not run here"):
        score_start(folder, catalog)
    assert asked == [catalog.root / "build"]
    assert sorted(path.name for path in folder.iterdir()) == ["journal.jsonl"]


def test_without_bubblewrap_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.available.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    try:
        assert "bubblewrap (bwrap) is not installed" in (sandbox.available() or "")
        with pytest.raises(EnvironmentFault, match="apt-get install bubblewrap"):
            sandbox.require()
    finally:
        sandbox.available.cache_clear()


@pytest.mark.usefixtures("box")
def test_a_sandbox_that_cannot_start_is_a_fault_of_the_machine_not_of_the_program() -> None:
    with (
        pytest.raises(EnvironmentFault, match="can't be started"),
        sandbox.sandboxed("print(1)", sandbox.Limits(start_s=5), extra=["--ro-bind", "/does/not/exist", "/x"]),
    ):
        raise AssertionError("it started")
