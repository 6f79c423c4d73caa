"""`paribus show systems` in words: the matrix of systems and cards, and every reason beside one card."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from paribus.catalog import Catalog, HardwareFile, Surroundings, System, matches
from paribus.catalog.fit import VERDICTS, Fit, Verdict, fit
from paribus.catalog.select import stack_name
from paribus.conditions import UsageError

WIDTH = 100
MARKS: dict[Verdict, str] = {"runs": "+", "unverified": "?", "doesn't fit": ".", "not supported": "-"}
MEANINGS: dict[Verdict, str] = {
    "runs": "fits, and a source that its file names shows it there: not that it was measured here",
    "unverified": "fits; that it runs there, or something about it, is confirmed by no source",
    "doesn't fit": "needs more memory than the card has",
    "not supported": "can't run there, whatever the memory",
}


@dataclass(frozen=True)
class Row:
    """One system on one card."""

    system: System
    card: str
    fit: Fit

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        model = self.system.model
        return {
            "system": str(self.system.name),
            "stack": stack_name(self.system),
            "title": model.title,
            "kind": model.kind,
            "track": model.track,
            "card": self.card,
            "verdict": self.fit.verdict,
            "reason": self.fit.reason or None,
            "memory_gb": self.system.memory_gb,
            "pinned": self.system.precision.weights.pinned,
            "not_tried": self.system.decoder.not_tried,
        }


def rows_of(catalog: Catalog, around: Surroundings, globs: str, cards: str) -> list[Row]:
    """Every system and card whose names match. A card that is as found has this machine's memory."""
    names = sorted(path.parent.name for path in catalog.root.glob("hardware/*/hardware.yaml"))
    profiles: list[HardwareFile] = [catalog.hardware(name) for name in names if matches(name, cards)]
    systems = [s for name, s in catalog.systems.items() if matches(name, globs) or matches(s.name.model, globs)]
    if not profiles:
        raise UsageError(f"--card {cards!r} names no hardware profile; known: {', '.join(names)}")
    if not systems:
        raise UsageError(f"{globs!r} names no system; `paribus show systems` lists all of them")
    return [Row(s, p.hardware, fit(s, p, around.memory_gb, around.builds)) for s in systems for p in profiles]


def matrix(rows: Sequence[Row]) -> Iterator[str]:
    """Stacks down, cards across, one mark each: that of the decoder that gets furthest; then what the marks mean."""
    cards = list(dict.fromkeys(row.card for row in rows))
    letters = dict(zip(cards, ascii_lowercase, strict=False))
    stacks: dict[str, list[Row]] = {}
    for row in rows:
        stacks.setdefault(stack_name(row.system).removesuffix("--think"), []).append(row)
    wide = max(len(name) for name in stacks)
    yield f"{'model--precision--engine':<{wide}}  {' '.join(letters.values())}  decoders"
    for name, here in stacks.items():
        marks = " ".join(MARKS[best(row.fit.verdict for row in here if row.card == card)] for card in cards)
        decoders = dict.fromkeys(row.system.name.decoder for row in here)
        yield f"{name:<{wide}}  {marks}  {len(decoders)}"
    yield ""
    yield from textwrap.wrap("   ".join(f"{letter} {card}" for card, letter in letters.items()), WIDTH)
    yield from (f"{MARKS[verdict]}  {verdict}: {MEANINGS[verdict]}" for verdict in VERDICTS)
    yield "`--card NAME` tells every system's reason on a card; `--all` every decoder; a glob chooses systems."


def best(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that gets furthest."""
    return min(verdicts, key=VERDICTS.index)


def reasons(rows: Sequence[Row], *, every: bool) -> Iterator[str]:
    """Systems by card and verdict, each reason once with all it applies to; `every`: one line a system."""
    for card in dict.fromkeys(row.card for row in rows):
        yield f"{card}:"
        here = [row for row in rows if row.card == card]
        for verdict in VERDICTS:
            found = [row for row in here if row.fit.verdict == verdict]
            if found:
                yield f"  {verdict} ({len(found)})"
                yield from _listed(found) if every else _grouped(found)


def _listed(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield f"    {row.system.name}"
        said = [row.fit.reason, row.system.decoder.not_tried and f"not tried: {row.system.decoder.not_tried}"]
        yield from _wrapped("; ".join(part for part in said if part))


def _grouped(rows: Sequence[Row]) -> Iterator[str]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((stack_name(row.system).removesuffix("--think"), row.fit.reason), []).append(row)
    by_reason: dict[str, list[str]] = {}
    for (stack, reason), group in groups.items():
        decoders = ", ".join(dict.fromkeys(row.system.name.decoder for row in group))
        by_reason.setdefault(reason, []).append(f"{stack}: {decoders}")
    for reason, stacks in by_reason.items():
        for stack in stacks:
            yield from textwrap.wrap(stack, WIDTH, initial_indent="    ", subsequent_indent="      ")
        yield from _wrapped(reason)


def _wrapped(reason: str) -> list[str]:
    return textwrap.wrap(reason, WIDTH, initial_indent="        ", subsequent_indent="        ") if reason else []
