"""`paribus doctor`: the machine, whether it can run a profile, and what it lacks. The workflow's proof is this command.

With `--out` it is the job that comes before everything else: the machine is proven, and nothing is fetched, built or
measured when it isn't.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from paribus.catalog import Catalog, Plan
from paribus.catalog.configuration import catalog_of
from paribus.cli import _needs
from paribus.cli._options import config_option, profile_option, read_settings, resolve_here
from paribus.cli._planning import read_plan
from paribus.conditions import CheckFailed
from paribus.machine import observe_machine, write_json
from paribus.machine.probe import SLOW, Probe, probe
from paribus.machine.proof import Finding, Proof, card_users, identity_words, prove
from paribus.results.run import find_root


@click.command(
    epilog="""\b
Examples:
  paribus doctor
  paribus doctor --profile h100
"""
)
@profile_option
@config_option
@click.option("--plan", "plan_file", type=click.Path(path_type=Path, dir_okay=False), help="Examine this plan.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write what was found as JSON.")
def command(profile: str, settings: tuple[str, ...], plan_file: Path | None, out: Path | None) -> None:
    """Say what this machine is and whether it can run a profile. Ends with 1 when something is lacking."""
    root = find_root()
    plan = read_plan(plan_file) if plan_file else resolve_here(root, profile, read_settings(settings))
    catalog, machine = catalog_of(root, plan), observe_machine()
    card = catalog.hardware(plan.hardware).card
    proof = prove(plan.hardware, card, machine, card_users())
    findings = [*look_at(catalog, plan, machine), *examine(catalog, plan, machine, proof)]
    probed = probe(root) if out is not None and proof.refusal is None and machine.get("pci_device_id") else None
    if probed is not None:
        findings.append(judge_probe(probed, proof))
    for finding in findings:
        click.echo(f"{finding.state:5} {finding.subject}: {finding.text}")
    lacking = [finding for finding in findings if finding.state == "lacks"]
    if lacking:
        raise CheckFailed(f"{lacking[0].subject}: {lacking[0].text}")
    if out is not None:
        write_json(out, record(plan, machine, proof, findings, probed))


def record(
    plan: Plan, machine: dict[str, Any], proof: Proof, findings: list[Finding], probed: Probe | None
) -> dict[str, Any]:
    """The proof as a file: what the machine is, which variant, and everything that was looked at."""
    return {
        "profile": plan.hardware,
        "variant": proof.variant.title if proof.variant is not None else None,
        "machine": machine | proof.observed,
        "probe": asdict(probed) if probed is not None else None,
        "findings": [asdict(finding) for finding in findings],
    }


def look_at(catalog: Catalog, plan: Plan, machine: dict[str, Any]) -> list[Finding]:
    """The machine in a line, and which named profiles it is, whatever was asked for."""
    fitting = fitting_profiles(catalog, machine)
    parts = (
        str(machine.get("card", "")) if machine.get("pci_device_id") or machine.get("chip") else "",
        identity_words(machine),
        f"{machine.get('cpu', 'an unknown CPU')}, {machine.get('cpu_count', '?')} cores",
        f"{machine['memory_gb']:g} GB" if "memory_gb" in machine else "",
        str(machine.get("os", "")),
        f"driver {machine['driver']}" if machine.get("driver") else "",
        f"in a container ({machine['container']})" if machine.get("container") else "",
    )
    text = "; ".join(dict.fromkeys(part for part in parts if part))
    found = [Finding("machine", "good", text)]
    if fitting and plan.hardware not in fitting:
        found.append(Finding("profile", "note", f"this machine is what these profiles name: {', '.join(fitting)}"))
    elif plan.hardware in fitting:
        found.append(Finding("profile", "good", f"{plan.hardware} names this machine's card"))
    return found


def fitting_profiles(catalog: Catalog, machine: dict[str, Any]) -> list[str]:
    """The profiles with a named card that this machine has."""
    names = sorted(path.parent.name for path in catalog.root.glob("hardware/*/hardware.yaml"))
    cards = {name: catalog.hardware(name).card for name in names}
    return [name for name, card in cards.items() if card.variants and prove(name, card, machine).variant is not None]


def examine(catalog: Catalog, plan: Plan, machine: dict[str, Any], proof: Proof | None = None) -> list[Finding]:
    """Everything that a run of the profile needs, looked at."""
    card = catalog.hardware(plan.hardware).card
    proven = proof or prove(plan.hardware, card, machine)
    return [
        *proven.findings,
        *_needs.driver(card, machine),
        *_needs.memory(catalog, plan, card, machine),
        *_needs.engines(catalog, plan),
        _needs.disk(catalog.root, plan),
        _needs.load(),
        _needs.sandbox(),
        _needs.data(catalog, plan),
        *_needs.hub(catalog, plan),
        *_needs.keys(catalog, plan),
        *_needs.user_simulator(catalog, plan),
        *_needs.systems(plan),
    ]


def judge_probe(probed: Probe, proof: Proof) -> Finding:
    """What the short copy says. It never stops a run: telemetry and the measurement itself have the last word."""
    if probed.skipped:
        return Finding("probe", "note", f"no copy and no matrix product: {probed.skipped}")
    if probed.failed or probed.copy_gb_s is None:
        return Finding("probe", "note", f"the short copy on the card failed: {probed.failed}")
    text = f"a copy at {probed.copy_gb_s:,.0f} GB/s, a matrix product at {probed.matrix_tflops:,.0f} TFLOP/s"
    usual = proof.variant.bandwidth_gb_s if proof.variant is not None else None
    if usual is not None and probed.copy_gb_s < SLOW * usual:
        return Finding("probe", "note", f"{text}: less than half of the memory's {usual:,.0f} GB/s")
    return Finding("probe", "good", text)
