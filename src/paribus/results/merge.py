"""One run out of its starts: conditions that must agree, conditions that may vary, flags, and the chained log."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from paribus.conditions import CONDITIONS, FLAGS, CheckFailed, Flag, flag
from paribus.results.run import Start, StartRecord

FIRST = frozenset({"started_at"})
LARGEST = frozenset({"cached_tokens", "temperature_c"})
SMALLEST = frozenset({"admitted"})
MAY_GROW = frozenset({"starts"})
"""Declared facts that a later start may raise: more starts continue a run."""

LOST = ("not_started", "died")
"""Observed conditions of a start that had no server, and of one whose server died while it was measured."""
LIMITED_UNDER = 5
SEVERITIES = ("note", "warning", "invalid")


def chain(starts: Sequence[Start]) -> list[str]:
    """The chained log: for each start, sha256 over the previous entry and the start's manifest's sha256."""
    entries: list[str] = []
    previous = ""
    for start in starts:
        previous = hashlib.sha256(f"{previous}{start.sha256}".encode()).hexdigest()
        entries.append(previous)
    return entries


def records(starts: Sequence[Start]) -> list[StartRecord]:
    """What a run's summary keeps of each start."""
    return [
        StartRecord(
            start=start.number,
            started_at=start.manifest.started_at,
            ended_at=start.manifest.ended_at,
            sha256=start.sha256,
            log=log,
            observed=start.manifest.observed,
            versions=start.manifest.versions,
            timings=start.manifest.timings,
            counters=start.manifest.counters,
            contributor=start.manifest.contributor,
        )
        for start, log in zip(starts, chain(starts), strict=True)
    ]


def check_numbers(starts: Sequence[Start], run: str) -> None:
    """Every start that was declared must be there: start-1 up to the largest number declared."""
    have = {start.number for start in starts}
    wanted = max([s.manifest.declared.get("starts") or 1 for s in starts], default=1)
    missing = sorted(set(range(1, max([wanted, *have]) + 1)) - have)
    if missing:
        names = ", ".join(f"start-{k}" for k in missing)
        raise CheckFailed(
            f"{run} isn't whole: {len(have)} of {max([wanted, *have])} starts are there; missing: {names}"
        )


def merge_declared(starts: Sequence[Start], run: str) -> dict[str, Any]:
    """The declared conditions, which all starts must share (the number of starts may have grown)."""
    declared = dict(starts[0].manifest.declared)
    for start in starts[1:]:
        other = start.manifest.declared
        for name in sorted(set(declared) | set(other)):
            if name in MAY_GROW:
                declared[name] = max(declared.get(name) or 1, other.get(name) or 1)
            elif declared.get(name) != other.get(name):
                raise CheckFailed(
                    f"{run}: start {start.number} declares {name} {other.get(name)!r}, "
                    f"start {starts[0].number} {declared.get(name)!r}; the starts of a run share everything declared"
                )
    return declared


def merge_hashes(starts: Sequence[Start], run: str) -> dict[str, str]:
    """The hashes, which all starts must share."""
    for start in starts[1:]:
        if start.manifest.hashes != starts[0].manifest.hashes:
            raise CheckFailed(f"{run}: start {start.number} has other hashes than start {starts[0].number}")
    return dict(starts[0].manifest.hashes)


def merge_observed(starts: Sequence[Start], run: str) -> dict[str, Any]:
    """The observed conditions of a run.

    What all starts share stays. What varies: the first of dates, the worst of counts (cached, admitted), a list of
    the values of other registered conditions; what gates every comparison must not vary. Unregistered facts that vary
    stay with their starts. A start whose server didn't start or died tells nothing, or not all: the others are asked.
    """
    ran = [start for start in starts if not set(LOST) & start.manifest.observed.keys()]
    ran = ran or [start for start in starts if "died" in start.manifest.observed] or list(starts)
    told = {name: ran for start in ran for name in start.manifest.observed}
    told |= {name: list(starts) for name in LOST if any(name in start.manifest.observed for start in starts)}
    merged = {"started_at": starts[0].manifest.started_at, "contributor": starts[0].manifest.contributor}
    return merged | {
        name: value
        for name, asked in told.items()
        if (value := _merged(name, [start.manifest.observed.get(name) for start in asked], run)) is not _VARIES
    }


_VARIES = object()


def _merged(name: str, values: list[Any], run: str) -> Any:
    distinct: list[Any] = []
    for value in values:
        if value not in distinct:
            distinct.append(value)
    if len(distinct) == 1 or name in FIRST:
        return values[0]
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if name in LARGEST and numbers:
        return max(numbers)
    if name in SMALLEST and numbers:
        return min(numbers)
    if name not in CONDITIONS:
        return _VARIES
    if CONDITIONS[name].gates == "always":
        raise CheckFailed(
            f"{run}: its starts differ in {CONDITIONS[name].label} ({', '.join(map(str, distinct))}); "
            "that makes two runs, not one"
        )
    return distinct


def union(*groups: Sequence[Flag]) -> list[Flag]:
    """Flags of several sources, one of each id (the severest, the first of equals), in the table's order."""
    found: dict[str, Flag] = {}
    for one in (one for group in groups for one in group):
        known = found.get(one.id)
        if known is None or SEVERITIES.index(one.severity) > SEVERITIES.index(known.severity):
            found[one.id] = one
    order = list(FLAGS)
    return sorted(found.values(), key=lambda f: (order.index(f.id) if f.id in order else len(order), f.id))


def scale_flags(declared: dict[str, Any], starts: int) -> list[Flag]:
    """`preliminary` below full scale; `limited` with fewer than five starts at full scale (speed only)."""
    scale = declared.get("scale")
    if scale is not None and scale != "full":
        return [flag("preliminary", str(scale))]
    if declared.get("scenario") and starts < LIMITED_UNDER:
        return [flag("limited", str(starts)) if starts >= 3 else flag("preliminary", f"full, with {starts} starts,")]
    return []
