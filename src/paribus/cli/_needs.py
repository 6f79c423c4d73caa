"""What a plan needs of a machine beside its card, one finding each: for `paribus doctor` and the workflow's proof."""

from __future__ import annotations

import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Literal

from paribus.catalog import Card, Catalog, Plan, System
from paribus.catalog.envs import drafter_marker, weights_marker
from paribus.catalog.offline import hub_forbidden_by
from paribus.catalog.simulator import SCRIPTED, URL_VARIABLE, simulator_url
from paribus.catalog.surroundings import sandbox_works
from paribus.catalog.weights import Weights
from paribus.cli._items import check_items
from paribus.conditions import UsageError
from paribus.machine.proof import APPLE_SHARE, Finding, card_memory_gb

PCI = Path("/sys/bus/pci/devices")
PATIENCE_S = 5


def driver(card: Card, machine: dict[str, Any]) -> list[Finding]:
    """For an NVIDIA card: whether its driver answers; where it doesn't, whether a card is in the machine at all."""
    if card.kind != "nvidia":
        return []
    if machine.get("driver"):
        return [Finding("driver", "good", f"NVIDIA {machine['driver']}")]
    if nvidia_devices():
        return [
            Finding(
                "driver",
                "lacks",
                "an NVIDIA card is in this machine and its driver doesn't answer: install NVIDIA's driver, "
                "or start the container with the card in it (docker run --gpus all)",
            )
        ]
    return [Finding("driver", "note", "no NVIDIA driver, and no NVIDIA card on the PCI bus")]


def nvidia_devices(folder: Path = PCI) -> list[str]:
    """PCI addresses of NVIDIA's graphics devices, whether a driver serves them or not."""
    found = []
    for device in sorted(folder.glob("*")):
        try:
            vendor, kind = (device / "vendor").read_text().strip(), (device / "class").read_text().strip()
        except OSError:
            continue
        if vendor == "0x10de" and kind.startswith("0x03"):
            found.append(device.name)
    return found


def memory(catalog: Catalog, plan: Plan, card: Card, machine: dict[str, Any]) -> list[Finding]:
    """Planned systems that need more memory than this machine's card really has: told before anything is fetched."""
    has = card_memory_gb(card, machine) if card.kind in ("nvidia", "apple", "any") else machine.get("memory_gb")
    if has is None or card.kind == "hosted":
        return []
    has *= card.count * (APPLE_SHARE if card.kind == "apple" else 1)
    needs = {str(s.name): s.memory_gb for s in open_systems(catalog, plan) if s.memory_gb is not None}
    large = {name: gb for name, gb in needs.items() if gb > has}
    if not large:
        return [Finding("memory", "good", f"{has:.0f} GB, and at most {max(needs.values(), default=0):g} GB needed")]
    name, gb = max(large.items(), key=lambda pair: pair[1])
    rest = f", and {len(large) - 1} more don't fit either" if len(large) > 1 else ""
    text = f"{name} needs {gb:g} GB and there are {has:.0f} GB{rest}: choose others with --config systems=GLOB"
    return [Finding("memory", "lacks", text)]


def open_systems(catalog: Catalog, plan: Plan) -> list[System]:
    """The systems that still have something to measure, in the plan's order."""
    return [catalog.system(name) for name in dict.fromkeys(job.system for job in plan.jobs if not job.done)]


def engines(catalog: Catalog, plan: Plan) -> list[Finding]:
    """Which engines' environments are there and which are to be built; container programs where images are used."""
    found = []
    needs = {need for job in plan.jobs if not job.done for need in job.needs if need.startswith("build/envs/")}
    missing = sorted(Path(need).stem.rpartition("-")[0] for need in needs if not (catalog.root / need).is_file())
    if missing:
        found.append(Finding("engines", "note", f"to be built before measuring: {', '.join(missing)}"))
    elif needs:
        found.append(Finding("engines", "good", "all environments are built"))
    if any(system.use.how == "image" for system in open_systems(catalog, plan)):
        program = next((name for name in ("docker", "apptainer") if shutil.which(name)), None)
        text = f"{program} is there" if program else "images are planned and there is neither docker nor apptainer"
        found.append(Finding("containers", "good" if program else "lacks", text))
    return found


def disk(root: Path, plan: Plan) -> Finding:
    """Room for weights and observations."""
    free = shutil.disk_usage(root).free / 1e9
    text = f"{free:.1f} GB free, about {plan.totals.disk_gb:.1f} GB needed"
    return Finding("disk", "lacks" if free < plan.totals.disk_gb else "good", text)


def load() -> Finding:
    """Whether others use the machine now."""
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    if busy > cores / 2:
        return Finding("load", "note", f"{busy:.1f} programs want {cores} cores: runs on a busy machine are flagged")
    return Finding("load", "good", f"{busy:.1f} on {cores} cores")


def sandbox() -> Finding:
    """The sandbox for programs that models write."""
    if sandbox_works():
        return Finding("sandbox", "good", "bubblewrap works")
    return Finding(
        "sandbox", "note", "no bubblewrap: tasks that run a model's programs are left out (apt-get install bubblewrap)"
    )


def data(catalog: Catalog, plan: Plan) -> Finding:
    """Items of quality tasks below `PARIBUS_DATA`."""
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


def hub(catalog: Catalog, plan: Plan) -> list[Finding]:
    """What must still come from the hub: can it be reached, and is a token there? Never the token itself."""
    wanted = from_hub(catalog, plan)
    if not wanted:
        return []
    try:
        import huggingface_hub as client
    except ImportError:
        return [
            Finding("hub", "lacks", f"{wanted[0]} comes from the hub, whose client isn't here: uv sync --extra quality")
        ]
    token = "a token is there" if client.get_token() else "no token is set (HF_TOKEN): gated weights are refused"
    found = [Finding("hub token", "good" if client.get_token() else "note", token)]
    offline = hub_forbidden_by()
    what = f"{len(wanted)} to fetch ({', '.join(wanted[:2])}{', ...' if len(wanted) > 2 else ''})"
    if offline is not None:
        return [Finding("hub", "lacks", f"{what}, and {offline} forbids it"), *found]
    if not answers(client.constants.ENDPOINT):
        return [Finding("hub", "lacks", f"{what}, and the hub can't be reached: check the network and proxies"), *found]
    return [Finding("hub", "good", f"{what}; the hub answers"), *found]


def from_hub(catalog: Catalog, plan: Plan) -> list[str]:
    """Weights, drafters and items of tasks that open jobs need from the hub and that aren't here yet."""
    sources: dict[str, Weights] = {}
    for system in open_systems(catalog, plan):
        sources[weights_marker(system)] = system.precision.weights
        if system.drafter is not None:
            sources[drafter_marker(system.drafter)] = system.drafter
    missing = {n for job in plan.jobs if not job.done for n in job.needs if not (catalog.root / n).is_file()}
    weights = {sources[n].repository for n in missing if n in sources and sources[n].source == "hub"}
    items = {f"items of {Path(n).stem.rpartition('-')[0]}" for n in missing if n.startswith("build/items/")}
    return [*sorted(weights), *sorted(items)]


def keys(catalog: Catalog, plan: Plan) -> list[Finding]:
    """Keys and addresses of hosted systems: which of their variables are set. Never their values."""
    hosted = [s.use.hosted for s in open_systems(catalog, plan) if s.use.hosted is not None]
    names = dict.fromkeys(name for one in hosted for name in (one.url_env, one.api_key_env) if name)
    unset = [name for name in names if not os.environ.get(name, "").strip()]
    if not names:
        return []
    if not unset:
        return [Finding("keys", "good", f"{', '.join(names)}: set")]
    state: Literal["lacks", "note"] = "lacks" if len(unset) == len(names) else "note"
    return [Finding("keys", state, f"{', '.join(unset)}: not set, and the hosted systems that need them can't run")]


def answers(url: str, patience_s: float = PATIENCE_S) -> bool:
    """Whether a web address answers at all, be it with an error."""
    if not url.startswith(("http://", "https://")):
        return False
    try:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 (the scheme is checked above)
        with urllib.request.urlopen(request, timeout=patience_s):  # noqa: S310 (likewise)
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False


def user_simulator(catalog: Catalog, plan: Plan) -> list[Finding]:
    """Tau2 talks to a simulated user, another model's server: is it named, and does it answer?"""
    planned = {m.id for job in plan.jobs if job.kind == "quality" and not job.done for m in job.measures}
    real = [t.task for t in catalog.tasks.values() if t.family == "tau2" and not t.stand_in]
    if not real:
        return []
    url = simulator_url()
    if url is None:
        needed = planned & set(real)
        text = f"{URL_VARIABLE} is not set: {', '.join(real)} needs a simulated user"
        return [Finding("user simulator", "lacks" if needed else "note", text)]
    if url == SCRIPTED:
        return [
            Finding("user simulator", "note", "a script stands in for it: what is measured with it is never ranked")
        ]
    if answers(url):
        return [Finding("user simulator", "good", f"{URL_VARIABLE} is set and answers")]
    return [Finding("user simulator", "note", f"{URL_VARIABLE} is set and doesn't answer now")]


def systems(plan: Plan) -> list[Finding]:
    """How many systems will run, and why others won't."""
    names = list(dict.fromkeys(job.system for job in plan.jobs))
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    if names:
        first = Finding("systems", "good", f"{len(names)} are planned: {listed}")
    else:
        first = Finding("systems", "lacks", "none that was asked for can run here; each with its reason below")
    return [first, *(Finding("left out", "note", f"{item.name}: {item.reason}") for item in plan.excluded)]
