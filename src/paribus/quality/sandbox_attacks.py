"""Proof that the sandbox holds on this machine: every attack runs, and the host looks for damage afterwards."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import psutil

from paribus.conditions import EnvironmentFault, hash12, sha256_file
from paribus.machine.files import write_json
from paribus.quality import cgroup, sandbox
from paribus.quality.sandbox_programs import ATTACKS, Attack

LIMITS = sandbox.Limits(time_s=4.0, memory=512 << 20, processes=32, files=32 << 20, output=1 << 20)

SLOW = ("stop-the-runner", "cpu-loop", "sleep", "huge-errors", "fork-bomb")
"""Attacks that take their whole time limit: `paribus sandbox test` runs them, the proof before grading doesn't."""

PROOF = "sandbox.json"
"""What was proven of this machine's sandbox, in the build folder."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")

Result = Literal["held", "broke", "unclear"]


@dataclass(frozen=True)
class Finding:
    """What one attack did. `unclear`: the attack didn't get as far as trying, so nothing is proven.

    `limited`: it ran into the very limit that it is for, and not into another one before that.
    """

    attack: Attack
    result: Result
    detail: str
    limited: bool = False


def run_attacks(
    attacks: Sequence[Attack] = ATTACKS,
    seen: Callable[[Finding], None] | None = None,
    weaken: Callable[[dict[str, Any]], list[str]] | None = None,
) -> list[Finding]:
    """Run every attack in a sandbox of its own. Raises `EnvironmentFault` where there is no sandbox at all.

    `weaken` adds bubblewrap options that open a hole (given the facts of the bait): it shows that a hole is found.
    """
    sandbox.require()
    findings: list[Finding] = []
    with _host() as facts:
        for attack in attacks:
            finding = _judge(attack, facts, weaken(facts) if weaken else [])
            findings.append(finding)
            if seen is not None:
                seen(finding)
    return findings


def prove(folder: Path) -> None:
    """Attack the sandbox before a model's programs run in it: once on this machine, kept in `folder/sandbox.json`.

    Raises `EnvironmentFault` where there is no sandbox, or where one of the attacks isn't held.
    """
    sandbox.require()
    path, key = folder / PROOF, _proof_key()
    with suppress(OSError, ValueError, AttributeError):
        if json.loads(path.read_bytes()).get("key") == key:
            return
    quick = [attack for attack in ATTACKS if attack.name not in SLOW]
    findings = run_attacks(quick)
    # One that did not get as far as trying (a busy machine) gets another chance.
    again = run_attacks([f.attack for f in findings if f.result == "unclear"])
    bad = [f.attack.name for f in (*findings, *again) if f.result == "broke"]
    bad += [f.attack.name for f in again if f.result == "unclear"]
    if bad:
        raise EnvironmentFault(
            f"model code must not run here: {', '.join(bad)} was not held (`paribus sandbox test` says more)"
        )
    proof = {"key": key, "sandbox": sandbox.platform(), "attacks": len(findings), "limits": proven(findings)}
    write_json(path, {**proof, "proven_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")})


def _proof_key() -> str:
    """Changes with the sandbox, the user, the kernel, the code that makes and attacks the sandbox, and the machine.

    A build folder may be shared by many machines, and containers of one machine may not contain alike.
    """
    here = Path(__file__).parent
    code = [*here.glob("sandbox*.py"), *(here / f"{name}.py" for name in ("attack", "cgroup"))]
    sources = {path.name: sha256_file(path) for path in code}
    system = os.uname()
    machine = {"boot": _BOOT.read_text().strip() if _BOOT.exists() else "", "name": system.nodename}
    return hash12({"sandbox": sandbox.platform(), "kernel": system.release, "code": sources, "machine": machine})


@contextmanager
def _host() -> Iterator[dict[str, Any]]:
    """Bait on this machine: a secret file, a server, a secret variable, a process; and facts that tell where."""
    with tempfile.TemporaryDirectory(prefix="paribus-bait-") as folder:
        token, expected = secrets.token_hex(16), "EXPECTED-" + secrets.token_hex(16)
        secret = Path(folder) / "secret.txt"
        secret.write_text(token)
        abstract = f"paribus-{secrets.token_hex(8)}"
        with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
            unix.bind("\0" + abstract)
            unix.listen()
            for server in (tcp, unix):
                threading.Thread(target=_serve, args=(server, token.encode()), daemon=True).start()
            bait = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()", f"mark-{token}"],
                stdin=subprocess.PIPE,
                env={"PARIBUS_SECRET": token, "PATH": os.environ.get("PATH", "")},
            )
            try:
                yield {
                    "pid": bait.pid,
                    "port": tcp.getsockname()[1],
                    "abstract": abstract,
                    "secret": str(secret),
                    "folder": folder,
                    "mark": f"mark-{token}",
                    "half": expected[:20],
                    "other_half": expected[20:],
                    "digits": str(secrets.randbelow(9_000_000) + 1_000_000),
                    "host": socket.gethostname(),
                    "session": os.getsid(0),
                    "schedule": [os.getpriority(0, 0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
                    "memory": LIMITS.memory,
                    "processes": LIMITS.processes,
                    "files": LIMITS.files,
                    "_token": token,
                    "_expected": expected,
                }
            finally:
                bait.kill()
                bait.communicate()


def _serve(server: socket.socket, token: bytes) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.sendall(token)


def _judge(attack: Attack, facts: dict[str, Any], extra: list[str]) -> Finding:
    told = {name: value for name, value in facts.items() if not name.startswith("_")}
    if attack.name != "trace":
        told |= {"half": "", "other_half": ""}
    before = Path(facts["secret"]).read_text()
    said = (json.dumps(told) + "\n").encode()
    with sandbox.sandboxed(attack.program, LIMITS, extra=extra) as box:
        runs = [box.run(said)]
        if attack.then and box.fresh:
            box.load(attack.then)
            runs.append(box.run(said))
    texts = [ran.output.decode(errors="replace") for ran in runs]
    for ran, text in zip(runs, texts, strict=True):
        damage = _damage(attack, facts, before, text, ran)
        if damage is not None:
            return Finding(attack, "broke", damage)
    lines = [text.splitlines() for text in texts]
    ran = runs[-1]
    limited = ran.status == _PROVEN_BY.get(attack.name) or "limited" in lines[-1]
    if ran.status in attack.stopped:
        return Finding(attack, "held", f"stopped: {ran.status}", limited)
    if all("tried" in each for each in lines):
        return Finding(attack, "held", "tried, nothing worked", limited)
    return Finding(attack, "unclear", f"{ran.status} {ran.note}".strip())


def _damage(attack: Attack, facts: dict[str, Any], before: str, text: str, ran: sandbox.Ran) -> str | None:
    """What the attack achieved, by its own word or by what the host finds; null when nothing."""
    breach = next((line for line in text.splitlines() if line.startswith("BREACH")), None)
    if breach is not None and not _excused(attack):
        return breach.removeprefix("BREACH ")
    if facts["_token"] in text.replace(facts["mark"], "") or facts["_expected"] in text:
        return "it printed a secret of the host"
    secret = Path(facts["secret"])
    if secret.read_text() != before or len(list(Path(facts["folder"]).iterdir())) != 1:
        return "it changed a file of the host"
    try:
        if psutil.Process(facts["pid"]).status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
            return "it stopped a process of the host"
    except psutil.NoSuchProcess:
        return "it ended a process of the host"
    if attack.name == "daemon" and _left_behind("31" + facts["digits"]):
        return "a process of its own outlived it"
    if ran.seconds > 4 * LIMITS.time_s + 10:
        return f"it ran for {ran.seconds:.0f} s"
    return None


def _excused(attack: Attack) -> bool:
    """Limits over several processes need a control group, which not every user may make: said, not hidden."""
    found = cgroup.support()
    return (attack.name == "memory-of-many" and found.memory is None) or (
        attack.name == "fork-bomb" and found.processes is None
    )


_LIMITS = {
    "cpu-loop": "time of a program that computes",
    "sleep": "time of a program that waits",
    "memory": "memory of one process",
    "memory-of-many": "memory of all processes together",
    "fork-bomb": "number of processes",
    "fill-disk": "size of the temporary folders",
    "huge-output": "size of the output",
}
"""Attacks that run into a limit, and which one."""
_PROVEN_BY = {"cpu-loop": "timeout", "sleep": "timeout", "memory-of-many": "memory", "huge-output": "output"}
"""The status that proves a limit. Another proof is that the attack itself saw the limit and printed `limited`; one that
the clock stopped first proves the clock alone."""

_BY_GROUP = ("memory-of-many", "fork-bomb")


def proven(findings: Sequence[Finding]) -> list[str]:
    """Limits that attacks ran into here, in words; those of a control group with its version."""
    found = cgroup.support()
    met = {f.attack.name for f in findings if f.result == "held" and f.limited and not _excused(f.attack)}
    return [
        words + (f" (control group v{found.version})" if name in _BY_GROUP else "")
        for name, words in _LIMITS.items()
        if name in met
    ]


def unproven() -> list[str]:
    """Limits that this machine can't enforce, in words; the time limit bounds them all the same."""
    found = cgroup.support()
    texts = []
    if found.memory is None:
        texts.append("memory is limited for each process, not for all of them together")
    if found.processes is None:
        texts.append("the number of processes is not limited, only their time")
    return texts


def _left_behind(argument: str) -> bool:
    return any(argument in (process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
