"""Whether a machine is what a hardware profile says: its card's variant, found and not asserted (PROTOCOL rule 10).

On another card the profile is refused, naming expected and found. Another variant of the right card is accepted under
its own name (the condition `card_variant`), and compared with nothing but itself. A card that others use, or that is
cut into slices, is refused: whatever it measured would be theirs too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from paribus.catalog import Card, Variant
from paribus.catalog.hardware import FoundCard
from paribus.conditions import EnvironmentFault
from paribus.machine.facts import observe_machine
from paribus.machine.nvml import VIRTUALIZATION, open_nvml

State = Literal["good", "note", "lacks"]
MEMORY_LEAST, MEMORY_MOST = 0.95, 1.10
"""A data sheet's 80 GB are 2^30 bytes each, less what the driver keeps: 85.5 as 10^9. Shared memory likewise."""
SHARED = frozenset({VIRTUALIZATION[mode] for mode in (2, 3, 4)})
"""A card that is passed through to one machine is that machine's alone; these are not."""
CORES_AN_SM = {"7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128, "9.0": 128}
"""CUDA cores of a multiprocessor by compute capability; 128 from 10.0 on. NVML tells cores, not multiprocessors.

Sources: the function that turns versions into cores in `Common/helper_cuda.h` of NVIDIA's cuda-samples, up to 9.0; the
RTX 5090's 170 multiprocessors and 21,760 cores for 12.0. For 10 and 11 taken to be the same (unverified).
"""
APPLE_SHARE = 0.75
"""macOS leaves about three quarters of a Mac's memory to its GPU (not verified)."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `lacks` stops a run; `note` doesn't."""

    subject: str
    state: State
    text: str


@dataclass(frozen=True)
class Proof:
    """What a machine was found to be. `observed`: conditions that the proof adds to the machine's facts."""

    variant: Variant | None
    findings: list[Finding] = field(default_factory=list)
    observed: dict[str, Any] = field(default_factory=dict)

    @property
    def refusal(self) -> Finding | None:
        """The first reason why nothing may be measured here."""
        return next((finding for finding in self.findings if finding.state == "lacks"), None)


def prove(profile: str, card: Card, machine: Mapping[str, Any], users: tuple[int, int] = (0, 0)) -> Proof:
    """Hold a machine's facts (`observe_machine`) against a profile's card.

    `users`: processes of others on the cards, (computing, drawing). Pure: reads nothing.
    """
    found = f"{machine.get('card_count', 1)} x {machine.get('card', 'an unknown card')}"
    if card.kind == "hosted":
        return Proof(None, [Finding("card", "good", "none is needed: the systems run elsewhere")])
    if card.kind == "cpu":
        return Proof(None, [Finding("card", "good", found)])
    variant = find_variant(card, machine)
    refusals = _identity(profile, card, machine, variant, found) + _state(machine, users)
    if refusals:
        return Proof(variant, refusals)
    named = variant.title if variant is not None else str(machine.get("card", "unknown"))
    text = f"{named} ({found})" if variant is not None else f"{found}, taken as it is: not ranked with named cards"
    findings = [Finding("card", "good", text), *_notes(card, machine, variant, users)]
    return Proof(variant, findings, {"card_variant": named})


def require_card(profile: str, card: Card) -> Proof:
    """Prove the card of this machine before a job measures on it; `EnvironmentFault` in one sentence when it isn't
    the profile's, is in use by others or is cut into slices. A CPU and somebody else's machines need no proof.
    """
    if card.kind in ("cpu", "hosted"):
        return Proof(None)
    proof = prove(profile, card, observe_machine(), card_users())
    if proof.refusal is not None:
        raise EnvironmentFault(proof.refusal.text)
    return proof


def card_users() -> tuple[int, int]:
    """Others' processes on this machine's visible cards: (computing, drawing)."""
    nvml = open_nvml()
    return nvml.users() if nvml is not None else (0, 0)


def find_variant(card: Card, machine: Mapping[str, Any]) -> Variant | None:
    """The variant that the machine's card is: nothing verified speaks against it, and the most speaks for it."""
    fitting = [(sum(agreed.values()), v) for v in card.variants if (agreed := _agreement(card, v, machine)) is not None]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _agreement(card: Card, variant: Variant, machine: Mapping[str, Any]) -> dict[str, bool] | None:
    """What was compared and whether it agrees; None when something verified differs, or the identity was not read."""
    identity = machine.get("chip") if variant.chip else str(machine.get("pci_device_id", "")).lower()
    if not identity or (identity != variant.chip and identity not in variant.pci_device_ids):
        return None
    agreed: dict[str, bool] = {}
    cores = machine.get("gpu_cores" if card.kind == "apple" else "cuda_cores")
    if cores is not None and variant.cores is not None:
        agreed["cores"] = cores == variant.cores
    multiprocessors = sm_count(machine)
    # Reckoned from the cores: beside them it would speak twice for one thing.
    if "cores" not in agreed and multiprocessors is not None and variant.sm_count is not None:
        agreed["sm_count"] = multiprocessors == variant.sm_count
    memory = card_memory_gb(card, machine)
    if memory is not None and variant.memory_gb is not None:
        agreed["memory_gb"] = MEMORY_LEAST * variant.memory_gb <= memory <= MEMORY_MOST * variant.memory_gb
    if any(not same and name not in variant.unverified for name, same in agreed.items()):
        return None
    return agreed


def sm_count(machine: Mapping[str, Any]) -> int | None:
    """Multiprocessors of an NVIDIA card, out of its cores and its compute capability; None where one wasn't read."""
    cores, capability = machine.get("cuda_cores"), str(machine.get("compute_capability") or "")
    each = CORES_AN_SM.get(capability) or (128 if capability.partition(".")[0] in ("10", "11", "12") else None)
    return int(cores) // each if cores and each and int(cores) % each == 0 else None


def card_memory_gb(card: Card, machine: Mapping[str, Any]) -> float | None:
    """Memory of one card in GB (10^9 bytes), the machine's where they share it; None when it wasn't read."""
    told = machine.get("card_memory_gb")
    if told is None and (card.unified or card.kind == "any"):
        told = machine.get("memory_gb")
    return float(told) if told is not None else None


def found_card(card: Card, machine: Mapping[str, Any]) -> FoundCard | None:
    """The card that a plan for this machine counts with; None on a machine that isn't the profile's, where plans are
    made for the card that it names.
    """
    if card.kind == "any":
        return _whatever(card, machine)
    variant = find_variant(card, machine)
    if variant is None:
        return None
    told = card_memory_gb(card, machine)
    if card.kind == "apple":
        return FoundCard(APPLE_SHARE * told if told is not None else None)
    return FoundCard(variant.memory_gb if variant.memory_gb is not None else told)


def _whatever(card: Card, machine: Mapping[str, Any]) -> FoundCard:
    """What `any` turned out to be."""
    memory, title = card_memory_gb(card, machine), str(machine.get("card", card.title))
    if machine.get("pci_device_id"):
        capability = machine.get("compute_capability")
        return FoundCard(memory, "nvidia", float(capability) if capability is not None else None, title)
    if machine.get("chip"):
        return FoundCard(APPLE_SHARE * memory if memory is not None else None, "apple", title=title)
    return FoundCard(memory, "cpu", title=title)


def _identity(
    profile: str, card: Card, machine: Mapping[str, Any], variant: Variant | None, found: str
) -> list[Finding]:
    """Another card than the profile's, or another number of them."""
    if card.kind != "any" and variant is None:
        known = "; ".join(v.title for v in card.variants) or card.title
        told = identity_words(machine)
        said = f" ({told})" if told else ""
        return [_refused(f"the profile {profile} is for {card.title} ({known}), and this machine has {found}{said}")]
    count = int(machine.get("card_count", 1))
    if count < card.count:
        return [_refused(f"the profile {profile} needs {card.count} of them, and there is {found}")]
    if count > card.count:
        few = ",".join(map(str, range(card.count)))
        return [
            _refused(
                f"the profile {profile} uses {card.count} and {count} can be seen, whose energy and clocks would be "
                f"mixed in: choose with CUDA_VISIBLE_DEVICES={few}"
            )
        ]
    return []


def identity_words(machine: Mapping[str, Any]) -> str:
    """What identifies the found card: for whoever writes its profile, or wonders why it isn't the expected one."""
    parts = [
        (f"PCI {machine['pci_device_id']}" if machine.get("pci_device_id") else ""),
        (f"{machine['cuda_cores']:,} cores" if machine.get("cuda_cores") else ""),
        (f"about {multiprocessors} multiprocessors by its cores" if (multiprocessors := sm_count(machine)) else ""),
        (f"{machine['card_memory_gb']:g} GB" if machine.get("card_memory_gb") else ""),
        (f"{machine['power_default_w']:g} W by default" if machine.get("power_default_w") else ""),
        (f"compute capability {machine['compute_capability']}" if machine.get("compute_capability") else ""),
    ]
    return ", ".join(part for part in parts if part)


def _state(machine: Mapping[str, Any], users: tuple[int, int]) -> list[Finding]:
    """A card of the right kind that can't be measured on as it is."""
    found = []
    if machine.get("mig"):
        found.append(
            _refused("MIG is on: a slice shares power and clocks with the others; turn it off (nvidia-smi -mig 0)")
        )
    if machine.get("virtualization") in SHARED:
        found.append(_refused(f"it is {machine['virtualization']}: others share its power and clocks"))
    if users[0]:
        others = f"{users[0]} other process{'es are' if users[0] > 1 else ' is'}"
        found.append(_refused(f"{others} computing on it: wait until they have ended, or stop them"))
    return found


def _refused(text: str) -> Finding:
    return Finding("card", "lacks", text)


def _notes(card: Card, machine: Mapping[str, Any], variant: Variant | None, users: tuple[int, int]) -> list[Finding]:
    """What a reader of the runs will see: another variant than plans are made for, a lowered limit, doubts."""
    texts = []
    if variant is not None and variant is not card.variants[0]:
        texts.append(
            f"this is the variant {variant.title}; runs on {card.variants[0].title} are never compared with it"
        )
    if text := power_limited(machine):
        texts.append(f"its power is limited: {text}; runs are flagged, and compared with none at another limit")
    if (state := machine.get("clock_state")) not in (None, "default") and machine.get("pci_device_id"):
        texts.append(f"its clocks are set by hand: {state}; runs are compared with none at other clocks")
    if machine.get("persistence") is False:
        texts.append("persistence mode is off: the first start after a pause takes longer (nvidia-smi -pm 1)")
    if " of " in str(machine.get("pcie", "")):
        texts.append(f"it has fewer PCIe lanes than it could: {machine['pcie']}")
    if users[1]:
        texts.append(f"it also draws a desktop ({users[1]} process{'es' if users[1] > 1 else ''})")
    if variant is not None:
        texts += _doubts(card, variant, machine)
    return [Finding("card", "note", text) for text in texts]


def _doubts(card: Card, variant: Variant, machine: Mapping[str, Any]) -> list[str]:
    """Where the machine says something else than the profile, and the profile isn't sure or has no say."""
    differing = [name for name, same in (_agreement(card, variant, machine) or {}).items() if not same]
    said = [
        f"the profile's {name} is in doubt ({variant.unverified[name]}), and this card has another"
        for name in differing
    ]
    default, expected = machine.get("power_default_w"), variant.power_limit_w
    if default is not None and expected is not None and abs(default - expected) > 1:
        said.append(f"its default power limit is {default:g} W, and {expected:g} W is usual")
    return said


def power_limited(machine: Mapping[str, Any]) -> str:
    """`450 W of 700 W by default`, when the present power limit is below the default one; else empty."""
    limit, default = machine.get("power_limit_w"), machine.get("power_default_w")
    if not isinstance(limit, int | float) or not isinstance(default, int | float) or limit >= default - 1:
        return ""
    return f"{limit:g} W of {default:g} W by default"
