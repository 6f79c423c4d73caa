"""Bounds of numbers in a system's file: launch settings, a decoder's parameters and its lossy settings.

An engine would take some senseless numbers without a word and die of others an hour later; a file is told at once.
Each adapter has a table (`Adapter.bounds`); every number that isn't in it is finite and at least 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.catalog import Scalar
from paribus.conditions import UsageError

if TYPE_CHECKING:
    from paribus.engines.base import Engine, Launch


@dataclass(frozen=True)
class Bound:
    """The least and the most that a number may be, and whether it is a whole one."""

    low: float = 0.0
    high: float = math.inf
    whole: bool = False
    words: tuple[str | bool, ...] = ()
    """Words, or true and false, that may stand in place of a number."""
    size: bool = False
    """Whether text such as `25G` is a number (`size_of`)."""

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        said = f"{kind} of at least {self.low:g}" + (f" and at most {self.high:,.15g}" if self.high < math.inf else "")
        numbers = [] if self.low > self.high else [said, *(["a size such as 25G"] if self.size else [])]
        return " or ".join([*numbers, *(str(w).lower() if isinstance(w, bool) else w for w in self.words)])

    def allows(self, value: Scalar) -> bool:
        """Whether a value may stand. True and false are no numbers here, nor is text that only looks like one."""
        if isinstance(value, str):
            read = size_of(value) if self.size else None
            return value in self.words or (read is not None and self.low <= read <= self.high)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return any(value is word for word in self.words)
        if isinstance(value, float) and (not math.isfinite(value) or (self.whole and not value.is_integer())):
            return False
        return self.low <= value <= self.high


COUNT = Bound(1, 2**24, whole=True)
"""Tokens of a cache, a batch or a piece of a prompt. The largest that is in use has a few million."""
FEW = Bound(1, 4096, whole=True)
"""Requests, cards, threads, steps, tokens of a draft or a block: more is a slip."""
SHARE = Bound(0.01, 1)
"""A part of a card's memory."""
RATE = Bound(0, 1)
"""A probability, or a threshold of one."""
OFF = Bound(-1, 2**24, whole=True)
"""A count that -1 turns off or leaves to the engine."""
ANY = Bound()
SIZE = Bound(1, 2**44, whole=True, size=True)
"""Bytes or tokens, which vLLM also takes as `25G`."""


def words(*allowed: str | bool) -> Bound:
    """One of some words, or of true and false, and no number."""
    return Bound(0, -1, words=allowed)


SWITCH = words(True, False)
"""On or off. Text such as `"false"` would be taken for on."""

_SIZE = re.compile(
    r"(?P<decimal>\d{1,12}(?:\.\d{1,12})?)(?P<thousands>[kmgt])|(?P<whole>\d{1,12})(?P<binary>[KMGT])", re.ASCII
)


def size_of(text: str) -> int | None:
    """The number that a size stands for: `25.6k` is 25,600, `1K` is 1,024; None for any other text.

    vllm/utils/argparse_utils.py, `human_readable_int`: small letters are powers of 1,000 and may follow a fraction,
    capitals are powers of 1,024 and may not.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    if found["binary"]:
        return int(found["whole"]) << 10 * (1 + "KMGT".index(found["binary"]))
    return int(float(found["decimal"]) * 1000 ** (1 + "kmgt".index(found["thousands"])))


def counts(*names: str) -> dict[str, Bound]:
    """A table in which each name is a whole number of at least 1, and as many as a batch or a cache has tokens."""
    return dict.fromkeys(names, COUNT)


def few(*names: str) -> dict[str, Bound]:
    """A table in which each name is a whole number of at least 1, and no more than there are requests or cards."""
    return dict.fromkeys(names, FEW)


def check_bounds(engine: Engine, launch: Launch) -> None:
    """Raise `UsageError` for the first number that is out of its bounds, or is none where one must be."""
    decoder = launch.system.decoder
    groups: dict[str, Mapping[str, Scalar]] = {
        "the launch setting": launch.settings,
        "the parameter": decoder.parameters,
        "the lossy setting": decoder.lossy,
    }
    for what, name, value in ((w, n, v) for w, given in groups.items() for n, v in sorted(given.items())):
        if isinstance(value, str) and value.startswith("-"):
            raise UsageError(f"{launch.system.name}: {what} {name}: {value!r} would be read as a flag")
        bound = engine.bounds.get(name)
        if bound is None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            continue
        if not (bound or ANY).allows(value):
            raise UsageError(f"{launch.system.name}: {what} {name} must be {bound or ANY}, not {value!r}")
