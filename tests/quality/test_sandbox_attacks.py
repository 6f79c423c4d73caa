"""The sandbox holds against every attack; and an attack does notice a hole, so that holding means something."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from paribus.cli.sandbox import command
from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.quality import sandbox, sandbox_attacks
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
