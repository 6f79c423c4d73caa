"""What runs where: whether a system can run on a card, and if not, why. `plan`, `doctor` and `show systems` agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from paribus.catalog.hardware import Card, HardwareFile
from paribus.catalog.load import matches
from paribus.catalog.models import Needs, System

Verdict = Literal["runs", "unverified", "doesn't fit", "not supported"]
VERDICTS: tuple[Verdict, ...] = ("runs", "unverified", "doesn't fit", "not supported")
"""From what gets furthest."""
_SHARES = ("gpu_memory_utilization", "mem_fraction_static")
"""Launch settings that say which part of the card's memory an engine may use: vLLM's, SGLang's."""
_SHARE = 0.9
"""The part where a launch doesn't say."""
_BINARY = 1.0684
"""10^9 bytes to a data sheet's GB: an RTX 5090 of 32 GB has 32,607 MiB, as its driver tells."""


@dataclass(frozen=True)
class Fit:
    """A system on a card. `reason`: why it can't run, or what no source confirms; empty where there is nothing."""

    verdict: Verdict
    reason: str = ""

    @property
    def can_run(self) -> bool:
        """Whether it can be planned there."""
        return self.verdict in ("runs", "unverified")


def fit(
    system: System, profile: HardwareFile, memory_gb: float | None = None, builds: Mapping[str, str] | None = None
) -> Fit:
    """Whether a system can run on a profile's card. `memory_gb`: what the machine has, where the profile leaves it.

    `builds`: the locks of the engines that have one; given, an engine without one isn't supported. A program on the
    path is this machine's affair, and no card's: it isn't asked for here.
    """
    refused = _refused(system, profile)
    if refused is None and builds is not None and system.use.how != "binary" and _buildless(system, profile, builds):
        refused = _no_build(system)
    if refused:
        return Fit("not supported", refused)
    too_big = _too_big(system, profile, memory_gb)
    if too_big:
        return Fit("doesn't fit", too_big)
    doubts = system.unverified_on(profile.hardware)
    doubts += _doubtful_drafter(system, profile)
    if profile.card.kind == "any" and profile.card.memory_gb is None:
        doubts.append("the card and its memory are known only where it is")
    return Fit("unverified", "; ".join(doubts)) if doubts else Fit("runs")


def unfit(
    system: System, profile: HardwareFile, builds: Mapping[str, str], memory_gb: float | None = None
) -> str | None:
    """Why a system can't be planned on a profile; None when it can. `builds`: locks of the engines that have one."""
    found = fit(system, profile, memory_gb)
    if not found.can_run:
        return found.reason
    return _no_build(system) if _buildless(system, profile, builds) else None


def _buildless(system: System, profile: HardwareFile, builds: Mapping[str, str]) -> bool:
    return system.build_of(builds, profile.hardware) is None


def _refused(system: System, profile: HardwareFile) -> str | None:
    """Why it can't run on such a card at all, whatever the memory."""
    for exclusion in profile.exclusions:
        if matches(str(system.name), exclusion.systems):
            return exclusion.reason
    card, hosted = profile.card, system.use.hosted is not None
    if reason := system.unsupported_on(profile.hardware):
        return reason
    if hosted and card.kind != "hosted":
        return "it is served by somebody else: use the profile hosted"
    if card.kind == "hosted" and not hosted:
        return "the profile hosted measures only what somebody else serves"
    return next((why for needs in (system.use.needs, system.precision.needs) if (why := _lacks(needs, card))), None)


def _lacks(needs: Needs, card: Card) -> str | None:
    kind = card.found or card.kind
    if needs.cards and kind != "any" and kind not in needs.cards:
        return f"it runs on {' or '.join(needs.cards)} and {card.title} is {kind}"
    has = card.compute_capability
    if needs.compute_capability is not None and has is not None and has < needs.compute_capability:
        return f"it needs compute capability {needs.compute_capability:g} and {card.title} has {has:g}"
    return None


def _too_big(system: System, profile: HardwareFile, memory_gb: float | None) -> str | None:
    """Why it doesn't fit: the class of card that its precision needs, then the arithmetic with its drafter."""
    card, own = profile.card, system.precision.memory_gb
    per_card = card.memory_gb or (memory_gb if card.kind == "cpu" else None)
    if per_card is None or own is None or system.memory_gb is None:
        return None
    has = per_card * card.count
    if own > has:
        return f"it needs {own:.4g} GB and {card.title} has {has:.0f} GB"
    draft = system.drafter.needs_gb if system.drafter else 0.0
    if system.precision.cache_gb is None:
        sum_of = f"it needs {system.memory_gb:.4g} GB ({own:g} + {draft:.2g} for its drafter)"
        return f"{sum_of} and {card.title} has {has:.0f} GB" if system.memory_gb > has else None
    usable = _usable(system, profile, has)
    return f"{_arithmetic(system, usable)} of {card.title}" if system.memory_gb > usable else None


def _usable(system: System, profile: HardwareFile, has: float) -> float:
    """Gigabytes (10^9) that the engine may use. A discrete card's data sheet counts in 2^30."""
    launch = system.launch_on(profile.hardware)
    told = (launch[name] for name in _SHARES if isinstance(launch.get(name), int | float))
    share = float(next(told, _SHARE))
    binary = profile.card.kind == "nvidia" and not profile.card.unified
    return has * share * (_BINARY if binary else 1.0)


def _arithmetic(system: System, usable: float) -> str:
    weights, cache = system.precision.weights.bytes / 1e9, system.precision.cache_gb or 0.0
    parts = [f"{weights:.3g} of weights", f"{cache:.2g} of cache"]
    parts += [f"{system.drafter.needs_gb:.2g} of its drafter"] if system.drafter else []
    return f"it needs {system.memory_gb:.4g} GB ({', '.join(parts)}) and may use {usable:.4g} GB"


def _doubtful_drafter(system: System, profile: HardwareFile) -> list[str]:
    """What is not known of a drafter's place on the card."""
    drafter, own, has = system.drafter, system.precision.memory_gb, profile.card.memory_gb
    if drafter is None:
        return []
    if not drafter.sized:
        return ["the size of its drafter is not known, and none is counted"]
    if own is None or has is None or own + drafter.needs_gb <= has * profile.card.count:
        return []
    usable = _usable(system, profile, has * profile.card.count)
    return [f"the {own:g} GB of its source are without a drafter; by arithmetic {_arithmetic(system, usable)}"]


def _no_build(system: System) -> str:
    engine = system.name.engine
    if system.use.how == "image":
        return f"the digest of the container image of {engine} is not known: pin it in the model's file"
    if system.use.how == "binary":
        return f"the program {system.use.program} is not on the path of this machine"
    return f"the engine {engine} has no locked environment (envs/{engine}/requirements.txt)"
