"""What two runs must share before they are compared (PROTOCOL section 5).

The registry of conditions says what each difference does: `always` (never compared), `subject` (compared only when
declared the subject, and then named), `shown`. A few conditions are more than equal or unequal; each has its rule here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paribus.conditions import CONDITIONS, UsageError
from paribus.engines.numbers import NUMBERS, word
from paribus.results.run import RunSummary
from paribus.results.strip import UNKNOWN
from paribus.speed.flags import admits_fewer

SUBJECTS: dict[str, tuple[str, ...]] = {
    "decoder": ("decoder", "decoder_parameters", "drafter"),
    "denoising": ("lossy", "lossy_drafter"),
    "model": ("model", "weights", "weights_artifact", "weights_revision", "kind", "hosted"),
    "engine": ("engine", "engine_build", "engine_version", "attention_backend", "launch"),
    "launch": ("launch", "attention_backend"),
    "number-types": ("kv_cache", "quantization", "dtype", "state_cache", "kernels"),
    "driver": ("driver",),
    "prefix-caching": ("prefix_caching",),
    "cpu": ("cpu", "cpu_count", "memory_gb"),
}
"""What a person may declare as the subject of a comparison, and the conditions that may then differ."""

LOSSLESS = frozenset({None, "none", "rejection", "block", "strict"})
"""Acceptance methods that leave the answers alone: they may meet each other, and nothing else may."""

Conditions = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One condition in which two runs differ, with both values and whether it forbids the comparison."""

    name: str
    label: str
    left: Any
    right: Any
    refused: bool
    remedy: str = ""

    def __str__(self) -> str:
        left, right = self.left, self.right
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            # Of two lists of settings only those that differ.
            left, right = (
                {name: value for name, value in one.items() if name not in other or other[name] != value}
                for one, other in ((left, right), (right, left))
            )
        return f"{self.label}: {_shown(left)} and {_shown(right)}{self.remedy}"


def parse_subjects(text: str | None) -> frozenset[str]:
    """Names of conditions that may differ, from words separated by commas: keys of `SUBJECTS` or conditions' names."""
    allowed: set[str] = set()
    for name in (text or "").replace(" ", ",").split(","):
        if not name:
            continue
        if name in SUBJECTS:
            allowed |= set(SUBJECTS[name])
        elif name in CONDITIONS and CONDITIONS[name].gates == "subject":
            allowed.add(name)
        else:
            raise UsageError(f"{name!r} can't be the subject of a comparison; what can: {', '.join(sorted(SUBJECTS))}")
    return frozenset(allowed)


def differences(left: RunSummary, right: RunSummary, subjects: Iterable[str] = ()) -> list[Difference]:
    """Every gating condition in which two runs differ, refused ones first."""
    allowed = frozenset(subjects)
    a, b = left.conditions, right.conditions
    found = [difference for name in CONDITIONS if (difference := _one(name, a, b, allowed)) is not None]
    found += _limits(left, right)
    return sorted(found, key=lambda difference: not difference.refused)


def refusals(left: RunSummary, right: RunSummary, subjects: Iterable[str] = ()) -> list[Difference]:
    """The differences that forbid comparing two runs; empty when they may be compared."""
    return [difference for difference in differences(left, right, subjects) if difference.refused]


def _one(name: str, a: Conditions, b: Conditions, allowed: frozenset[str]) -> Difference | None:
    condition = CONDITIONS[name]
    if condition.gates in ("shown", "limit") or _same(name, a, b, allowed):
        return None
    refused = condition.gates == "always" or name not in allowed
    remedy = ""
    if refused and condition.gates == "subject":
        subject = min((key for key, names in SUBJECTS.items() if name in names), key=lambda key: len(SUBJECTS[key]))
        remedy = f" (to compare just this: --subject {subject})"
    return Difference(name, condition.label, a.get(name), b.get(name), refused, remedy)


def _same(name: str, a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:
    if name in _RULES:
        return _RULES[name](a, b, allowed)
    return bool(a.get(name) == b.get(name))


def _acceptance(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:  # noqa: ARG001 (a rule's signature)
    left, right = a.get("acceptance_method"), b.get("acceptance_method")
    return left == right or (left in LOSSLESS and right in LOSSLESS)


def _cached(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:  # noqa: ARG001
    # An engine without this counter is taken at its word that prefix caching is off; a positive count never is.
    if a.get("prefix_caching") and b.get("prefix_caching"):
        return True
    return not a.get("cached_tokens") and not b.get("cached_tokens")


def _artifact(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:  # noqa: ARG001
    # Of two weights by name it says nothing new.
    return bool(a.get("weights") != b.get("weights") or a.get("weights_artifact") == b.get("weights_artifact"))


def _sampling_accepted(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:
    # Two models have their own cards' fields; what gates is which of its own fields an engine left out.
    if "model" in allowed and a.get("model") != b.get("model"):
        return _left_out(a) == _left_out(b)
    return bool(_accepted(a) == _accepted(b))


def _accepted(conditions: Conditions) -> Any:
    accepted = conditions.get("sampling_accepted")
    return sorted(accepted) if isinstance(accepted, (list, dict)) else accepted


def _left_out(conditions: Conditions) -> frozenset[str] | None:
    wanted, accepted = conditions.get("sampling"), conditions.get("sampling_accepted")
    if not isinstance(wanted, dict) or not isinstance(accepted, (list, dict)):
        return None
    return frozenset(wanted) - frozenset(map(str, accepted))


def _sampling_defaults(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:
    # It decides what a request leaves open. Engines tell it in words of their own, and diffusion has a schedule.
    if any(name in allowed and a.get(name) != b.get(name) for name in ("model", "engine")):
        return True
    return bool(a.get("sampling_defaults") == b.get("sampling_defaults"))


def _fingerprint(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:
    # Only diffusion models have one; two models have two. A mismatch with the reference is a flag of its own.
    if "model" in allowed and a.get("model") != b.get("model"):
        return True
    return bool(a.get("sampler_fingerprint") == b.get("sampler_fingerprint"))


def _energy(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:  # noqa: ARG001
    # It gates figures of energy alone, and there are no ratios of those.
    return True


def _number_type(name: str) -> Callable[[Conditions, Conditions, frozenset[str]], bool]:
    def same(a: Conditions, b: Conditions, allowed: frozenset[str]) -> bool:  # noqa: ARG001
        # Each engine has its own word for one type; what was not read is none of them, not even "none".
        left, right = a.get(name), b.get(name)
        return left is right if None in (left, right) else word(left) == word(right)

    return same


_RULES: dict[str, Callable[[Conditions, Conditions, frozenset[str]], bool]] = {
    "acceptance_method": _acceptance,
    "cached_tokens": _cached,
    "weights_artifact": _artifact,
    "sampling_accepted": _sampling_accepted,
    "sampling_defaults": _sampling_defaults,
    "sampler_fingerprint": _fingerprint,
    "energy_scope": _energy,
    **{name: _number_type(name) for name in NUMBERS},
}


def _limits(left: RunSummary, right: RunSummary) -> list[Difference]:
    """What each side must be by itself: of one kind and version of scores, enough admitted, no invalid flag."""
    found = []
    if left.kind != right.kind:
        found.append(Difference("kind_of_run", "kind of run", left.kind, right.kind, True))
    if left.origin != right.origin:
        found.append(Difference("origin", "origin", left.origin, right.origin, True))
    versions = [side.quality.scorer if side.quality is not None else None for side in (left, right)]
    if None not in versions and versions[0] != versions[1]:
        remedy = " (score both again: `paribus score RUN`)"
        found.append(Difference("score_version", "version of the scores", versions[0], versions[1], True, remedy))
    admitted = [_admitted(side) for side in (left, right)]
    if any(admits_fewer(*side) for side in admitted):
        one, two = (_said(*side) for side in admitted)
        found.append(Difference("admitted", "requests admitted", one, two, True))
    flagged = [invalid(side) for side in (left, right)]
    if any(flagged):
        one, two = (side or "none" for side in flagged)
        found.append(Difference("flags", "flags that forbid a ranking", one, two, True))
    return found


def _admitted(run: RunSummary) -> tuple[int | None, int]:
    """Requests admitted (None: not read) and asked for; quality has no such limit."""
    admitted, asked = run.conditions.get("admitted"), run.conditions.get("requests_at_once")
    read = run.kind != "quality" and isinstance(admitted, int)
    return admitted if read else None, asked if isinstance(asked, int) else 1


def _said(admitted: int | None, asked: int) -> str:
    return "not read" if admitted is None else f"{admitted} of {asked}"


def invalid(run: RunSummary) -> str:
    """Ids of a run's invalid flags, in words; empty without any."""
    return ", ".join(dict.fromkeys(flag.id for flag in run.flags if flag.severity == "invalid"))


def _shown(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in sorted(value.items())) or "none"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return str(value)
