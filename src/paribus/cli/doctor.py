"""`paribus doctor`: whether this machine can run a profile, and what it lacks."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import click

from paribus.catalog import Card, Catalog, Plan
from paribus.catalog.configuration import catalog_of
from paribus.catalog.surroundings import sandbox_works
from paribus.cli._items import check_items
from paribus.cli._options import config_option, profile_option, read_settings, resolve_here
from paribus.cli._planning import read_plan
from paribus.conditions import EnvironmentFault, UsageError
from paribus.machine import observe_machine, write_json
from paribus.results.run import find_root


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `lacks` stops a run; `note` doesn't."""

    subject: str
    state: Literal["good", "note", "lacks"]
    text: str


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
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the findings as JSON.")
def command(profile: str, settings: tuple[str, ...], plan_file: Path | None, out: Path | None) -> None:
    """Say whether this machine can run a profile. Ends with 3 when something is lacking."""
    root = find_root()
    plan = read_plan(plan_file) if plan_file else resolve_here(root, profile, read_settings(settings))
    machine = observe_machine()
    findings = examine(catalog_of(root, plan), plan, machine)
    for finding in findings:
        click.echo(f"{finding.state:5} {finding.subject}: {finding.text}")
    lacking = [finding for finding in findings if finding.state == "lacks"]
    if lacking:
        raise EnvironmentFault(f"{lacking[0].subject}: {lacking[0].text}")
    if out is not None:
        write_json(out, {"profile": plan.hardware, "machine": machine, "findings": [asdict(f) for f in findings]})


def examine(catalog: Catalog, plan: Plan, machine: dict[str, Any]) -> list[Finding]:
    """Everything that a run of the profile needs, looked at."""
    card = catalog.hardware(plan.hardware).card
    return [
        prove_card(plan.hardware, card, machine),
        _disk(catalog.root, plan),
        _load(),
        _sandbox(),
        _data(catalog, plan),
        *(Finding("systems", "note", f"{item.name}: {item.reason}") for item in plan.excluded),
    ]


def prove_card(profile: str, card: Card, machine: dict[str, Any]) -> Finding:
    """Whether the machine's card is the profile's: by kind, PCI device id and number."""
    found = f"{machine.get('card_count', 1)} x {machine.get('card', 'an unknown card')}"
    if card.kind in ("cpu", "any", "hosted"):
        return Finding("card", "good", found)
    ids = {identity.lower() for variant in card.variants for identity in variant.pci_device_ids}
    present = str(machine.get("pci_device_id", "")).lower()
    if card.kind == "nvidia" and (not present or (ids and not any(present.startswith(i) for i in ids))):
        return Finding("card", "lacks", f"the profile {profile} is for {card.title}, and this machine has {found}")
    if int(machine.get("card_count", 0)) < card.count:
        return Finding("card", "lacks", f"the profile {profile} needs {card.count} of them, and there is {found}")
    return Finding("card", "good", found)


def _disk(root: Path, plan: Plan) -> Finding:
    free = shutil.disk_usage(root).free / 1e9
    text = f"{free:.1f} GB free, about {plan.totals.disk_gb:.1f} GB needed"
    return Finding("disk", "lacks" if free < plan.totals.disk_gb else "good", text)


def _load() -> Finding:
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    if busy > cores / 2:
        return Finding("load", "note", f"{busy:.1f} programs want {cores} cores: runs on a busy machine are flagged")
    return Finding("load", "good", f"{busy:.1f} on {cores} cores")


def _sandbox() -> Finding:
    if sandbox_works():
        return Finding("sandbox", "good", "bubblewrap works")
    return Finding(
        "sandbox", "note", "no bubblewrap: tasks that run a model's programs are left out (apt-get install bubblewrap)"
    )


def _data(catalog: Catalog, plan: Plan) -> Finding:
    folder = os.environ.get("PARIBUS_DATA", "").strip()
    if not folder:
        return Finding(
            "data", "note", "PARIBUS_DATA is not set: items come from the hub, or a demo's own stand-ins are used"
        )
    try:
        local = check_items(catalog, plan)
    except UsageError as error:
        return Finding("data", "lacks", str(error))
    if not local:
        return Finding("data", "good", "PARIBUS_DATA is a folder; what is still to measure takes no items from it")
    return Finding("data", "good", f"the items below PARIBUS_DATA are the task's: {', '.join(local)}")
