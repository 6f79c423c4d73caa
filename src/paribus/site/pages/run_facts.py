"""What a run's page says about machine, load, answers and gaps: short lists of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.conditions import CONDITIONS, Flag
from paribus.results.accounts import account_facts
from paribus.site import words
from paribus.site.content import Run, parsed

MACHINE_FLAGS = (
    "busy",
    "throttled",
    "client_bound",
    "late",
    "energy_disagrees",
    "not_stationary",
    "short_window",
    "admits",
)
ANSWER_FLAGS = (
    "not_started",
    "died",
    "failures",
    "degenerate",
    "capped",
    "cached",
    "cached_answers",
    "usage_mismatch",
    "usage_missing",
    "usage_unverified",
    "hidden_tokens",
    "thinking_mismatch",
    "no_done",
    "no_finish_reason",
    "revised",
    "unread_text",
    "synthetic",
    "counters_disagree",
    "sampler_mismatch",
    "sampler_unverified",
    "possibly_seen",
)
"""Which question each flag answers; all others say what was left out."""

QUALITY_ONLY = ("task", "repeats", "items_hash", "scorer", "user_simulator")
SPEED_ONLY = ("scenario", "prompts", "prompts_hash", "window", "streaming_interval")
"""Conditions that the other kind of run doesn't have."""


@dataclass(frozen=True)
class Fact:
    """One line of a list of facts."""

    label: str
    value: str

    @property
    def long(self) -> bool:
        """Whether the value needs a line of its own."""
        return len(self.value) > 44


def flags_among(run: Run, names: Sequence[str]) -> list[Flag]:
    """The run's flags of those names."""
    return [flag for flag in run.flags if flag.id in names]


def observed_facts(run: Run) -> list[Fact]:
    """Conditions read from the machine and the engine, in the registry's order, then what isn't in it."""
    found = run.summary.observed
    known = [name for name, c in CONDITIONS.items() if c.how == "observed" and name in found]
    rest = sorted(name for name in found if name not in known)
    facts = [Fact(CONDITIONS[n].label, _value(found[n], CONDITIONS[n].unit)) for n in known]
    return facts + [_other_fact(name, found[name]) for name in rest]


_UNITS = {"s": "s", "ms": "ms", "gb": "GB", "w": "W", "c": "C"}


def _other_fact(name: str, value: Any) -> Fact:
    """A fact that the registry doesn't know: its name says label and unit, as in `engine_memory_gb`."""
    stem, _, last = name.rpartition("_")
    if stem and last in _UNITS:
        return Fact(stem.replace("_", " "), _value(value, _UNITS[last]))
    return Fact(name.replace("_", " "), _value(value))


def differing_facts(run: Run) -> list[Fact]:
    """Observed conditions that differed between starts."""
    names: dict[str, set[str]] = {}
    for start in run.starts:
        for name, value in parsed(start["observed"]).items():
            names.setdefault(name, set()).add(_value(value))
    skip = ("started_at",)
    return [
        Fact(n.replace("_", " "), ", ".join(sorted(v)))
        for n, v in sorted(names.items())
        if len(v) > 1 and n not in skip
    ]


def _value(value: Any, unit: str = "") -> str:
    if value is None or value in ("", {}, []):
        return "could not be read"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        text = f"{value:,.6g}"
    elif isinstance(value, int):
        text = f"{value:,}"
    elif isinstance(value, Mapping):
        text = ", ".join(f"{key} {_value(item)}" for key, item in sorted(value.items()))
    elif isinstance(value, (list, tuple)):
        text = ", ".join(_value(item) for item in value)
    else:
        text = str(value)
    return f"{text} {unit}".strip()


def load_facts(run: Run) -> list[Fact]:
    """The load generator's own lag, and how punctual it was."""
    speed = run.summary.speed
    if speed is None:
        return []
    found = [
        ("the load generator's scheduling lag, 99th percentile", speed.client.lag_ms_p99, "ms"),
        ("requests left late by, 99th percentile", speed.late_ms.p99, "ms"),
        ("time to connect, 99th percentile", speed.connect_ms.p99, "ms"),
    ]
    facts = [Fact(label, str(words.shown(value, unit=unit))) for label, value, unit in found if value is not None]
    if speed.client.cpu_share is not None:
        facts.append(
            Fact("the load generator's share of one CPU", str(words.shown(speed.client.cpu_share, unit="share")))
        )
    facts.append(Fact("requests seen at once", f"{speed.concurrency_seen:,}"))
    return facts


def answer_facts(run: Run) -> list[Fact]:
    """How the requests ended, and whether what could be verified was right."""
    speed, quality = run.summary.speed, run.summary.quality
    if speed is not None:
        c = speed.requests
        facts = [
            ("answered", c.ok),
            ("failed", c.failed),
            ("cut off by a broken connection", c.cut),
            ("ended by the token cap", c.capped),
            ("empty", c.unanswered),
            ("loops", c.degenerate),
        ]
        found = [Fact(label, f"{number:,}") for label, number in facts]
        right = f"{c.check_passed} of {c.checked}" if c.checked else "none could be verified"
        tokens = words.shown(speed.tokens.mean, unit="tokens")
        return [
            *found,
            Fact("right, of those that can be verified", right),
            Fact("mean length", str(tokens)),
            Fact("tokens counted by", speed.tokens_method),
        ]
    if quality is not None:
        return [
            Fact("questions", f"{quality.items:,}"),
            Fact("repeats of each", f"{quality.repeats:,}"),
            Fact("answered", f"{quality.answered:,}"),
            Fact("failed", f"{quality.failed:,}"),
            *([Fact("broken off by the user simulator", f"{quality.user_failed:,}")] if quality.user_failed else []),
            Fact(
                f"ended by the cap of {quality.cap:,} tokens",
                f"{quality.capped:,} ({words.shown(quality.capped_share, unit='share')})",
            ),
            Fact("scorer", quality.scorer),
            *(Fact(label, value) for label, value in account_facts(quality)),
        ]
    return []


def gaps(run: Run) -> list[str]:
    """What this run does not say: withheld metrics and conditions that nobody disclosed."""
    said = []
    speed = run.summary.speed
    if speed is not None and not {"not_started", "died"} & run.summary.observed.keys():
        reach = [k for k, v in speed.time_to_k_ms.items() if v is None]
        if reach:
            said.append(
                f"Time to token {words.listed(sorted(reach, key=int))}: under half of the requests got that far."
            )
        withheld = [(speed.decode_speed.value, "Decode speed: under 90% of the answers came in two or more arrivals.")]
        if (run.requests or 1) > 1:
            withheld.append((speed.throughput.value, "Throughput: no steady window."))
        withheld.append((speed.energy_j, f"Energy: {speed.energy_missing or 'no counter could be read'}."))
        said += [text for value, text in withheld if value is None]
    conditions = run.summary.conditions
    other: tuple[str, ...] = QUALITY_ONLY if speed is not None else SPEED_ONLY
    if (run.requests or 1) == 1:
        other = (*other, "window")
    if "tau2" not in str(run.row["scenario_or_task"]):
        other = (*other, "user_simulator")
    unknown = [
        CONDITIONS[name].label
        for name, value in conditions.items()
        if value is None and name in CONDITIONS and CONDITIONS[name].gates == "always" and name not in other
    ]
    if unknown:
        said.append(f"Not disclosed, or could not be read: {words.listed(unknown)}.")
    if run.superseded:
        by = run.row["superseded_by"]
        fate = f"replaced by {by}" if by else "taken back"
        said.append(f"This run was {fate}; it stays readable and is not ranked.")
    return said
