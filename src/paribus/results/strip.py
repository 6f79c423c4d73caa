"""The conditions strip: every condition that moves a number, in one line, always in the same order.

card · model and precision · engine and version · decoder · requests · answers · prompts · sampling · date · n, trials ·
flags. What nobody disclosed is printed as such. The site, `compare` and `cite` all use this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.conditions import Flag, one_line
from paribus.results.run import RunSummary
from paribus.speed.flags import admits_fewer

UNKNOWN = "not disclosed"
SEPARATOR = " · "
ORDER = (
    "card",
    "model",
    "engine",
    "decoder",
    "requests",
    "answers",
    "prompts",
    "sampling",
    "date",
    "trials",
    "flags",
)
"""The strip's parts, in order; each is also the `strip` of the conditions that belong to it."""


@dataclass(frozen=True)
class Part:
    """One part of the strip: its name (one of `ORDER`), its heading for a table, and its text."""

    name: str
    heading: str
    text: str


def strip(conditions: Mapping[str, Any], flags: Sequence[Flag], count: int | None = None) -> list[Part]:
    """The strip of one run.

    `conditions`: declared and observed together (keys of the registry). `count`: requests or answers measured.
    """
    texts = {
        "card": ("card", _card(conditions)),
        "model": ("model and precision", _model(conditions)),
        "engine": ("engine and version", _engine(conditions)),
        "decoder": ("decoder", _decoder(conditions)),
        "requests": ("requests", _requests(conditions)),
        "answers": ("answers", _answers(conditions)),
        "prompts": ("prompts", _prompts(conditions)),
        "sampling": ("sampling", _sampling(conditions)),
        "date": ("date", _date(conditions)),
        "trials": ("n, trials", _trials(conditions, count)),
        "flags": ("flags", _flags(flags)),
    }
    return [Part(name, heading, one_line(text)) for name, (heading, text) in ((n, texts[n]) for n in ORDER)]


def strip_of(summary: RunSummary) -> list[Part]:
    """The strip of a sealed run."""
    return strip(summary.conditions, summary.flags, measured_count(summary))


def strip_line(parts: Iterable[Part]) -> str:
    """The strip as one line of text."""
    # Text from a stranger must not look like two parts.
    return SEPARATOR.join(part.text.replace(SEPARATOR.strip(), "/") for part in parts)


def split_strip(strips: Sequence[Sequence[Part]]) -> tuple[list[Part], list[str]]:
    """Several strips at once: the parts that all share, and the names of the parts that differ (table columns)."""
    if not strips:
        return [], []
    columns = list(zip(*strips, strict=True))
    shared = [column[0] for column in columns if len({part.text for part in column}) == 1]
    return shared, [column[0].name for column in columns if len({part.text for part in column}) > 1]


def measured_count(summary: RunSummary) -> int | None:
    """How many requests (speed) or answers (quality) a run rests on."""
    if summary.speed is not None:
        return summary.speed.requests.ok + summary.speed.requests.failed
    if summary.quality is not None:
        return summary.quality.items * summary.quality.repeats
    return None


def _text(value: Any) -> str:
    """A value in words; lists and dictionaries without brackets."""
    if value is None or value == "":
        return UNKNOWN
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return " / ".join(_text(item) for item in value) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _card(conditions: Mapping[str, Any]) -> str:
    card = conditions.get("card_variant") or conditions.get("card") or conditions.get("cpu")
    parts = [_text(card) if card else f"card: {UNKNOWN}"]
    count = conditions.get("card_count")
    if isinstance(count, int) and count > 1:
        parts[0] = f"{count} × {parts[0]}"
    cores = conditions.get("cpu_count")
    if conditions.get("hardware") == "cpu" and cores is not None and "cores" not in parts[0]:
        parts.append(f"{_text(cores)} cores")
    if conditions.get("power_limit_w") is not None:
        parts.append(f"{_text(conditions['power_limit_w'])} W")
    return ", ".join(parts)


def _model(conditions: Mapping[str, Any]) -> str:
    model = conditions.get("model")
    precision = conditions.get("precision")
    parts = [_text(model) if model else f"model: {UNKNOWN}", str(precision) if precision else f"precision: {UNKNOWN}"]
    thinking = conditions.get("thinking")
    parts.append(f"thinking: {UNKNOWN}" if thinking is None else f"thinking {_text(thinking)}")
    return ", ".join(parts)


def _engine(conditions: Mapping[str, Any]) -> str:
    engine = conditions.get("engine")
    version = conditions.get("engine_version")
    if not engine:
        return f"engine: {UNKNOWN}"
    return f"{_text(engine)} {_text(version)}" if version else f"{_text(engine)}, version: {UNKNOWN}"


def _decoder(conditions: Mapping[str, Any]) -> str:
    decoder = conditions.get("decoder")
    if not decoder:
        return f"decoder: {UNKNOWN}"
    lossy = conditions.get("lossy")
    return f"{_text(decoder)} ({_text(lossy)})" if lossy else _text(decoder)


def _requests(conditions: Mapping[str, Any]) -> str:
    asked = conditions.get("requests_at_once")
    if not isinstance(asked, int):
        return f"requests at once: {UNKNOWN}"
    text = "1 request" if asked == 1 else f"{asked:,} requests at once"
    admitted = conditions.get("admitted")
    return f"{text}, {admitted} admitted" if isinstance(admitted, int) and admits_fewer(admitted, asked) else text


def _answers(conditions: Mapping[str, Any]) -> str:
    cap = conditions.get("cap")
    return f"answers up to {_text(cap)} tokens" if cap is not None else f"answers' cap: {UNKNOWN}"


def _prompts(conditions: Mapping[str, Any]) -> str:
    if conditions.get("task"):
        items = conditions.get("items_hash")
        return f"{conditions['task']} ({str(items)[:12] if items else f'items: {UNKNOWN}'})"
    name = conditions.get("prompts")
    if not name:
        return f"prompts: {UNKNOWN}"
    digest = conditions.get("prompts_hash")
    return f"{_text(name)} ({digest if digest else f'hash: {UNKNOWN}'})"


def _sampling(conditions: Mapping[str, Any]) -> str:
    profile = conditions.get("sampling_profile")
    values = conditions.get("sampling")
    if profile is None and values is None:
        return f"sampling: {UNKNOWN}"
    words = "sampling" if profile is None else f"{profile} sampling"
    return f"{words}: {_text(values)}" if values else words


def _date(conditions: Mapping[str, Any]) -> str:
    started = conditions.get("started_at")
    if isinstance(started, list):
        started = started[0] if started else None
    return str(started)[:10] if started else f"date: {UNKNOWN}"


def _trials(conditions: Mapping[str, Any], count: int | None) -> str:
    starts = conditions.get("starts")
    parts = [f"n = {count:,}" if count is not None else f"n: {UNKNOWN}"]
    if isinstance(starts, int):
        parts.append(f"{starts} start{'' if starts == 1 else 's'}")
    repeats = conditions.get("repeats")
    if conditions.get("task") and isinstance(repeats, int):
        parts.append(f"{repeats} repeat{'' if repeats == 1 else 's'}")
    if conditions.get("scale"):
        parts.append(f"{conditions['scale']} scale")
    return ", ".join(parts)


def _flags(flags: Sequence[Flag]) -> str:
    return "flags: " + ", ".join(dict.fromkeys(flag.id for flag in flags)) if flags else "no flags"
