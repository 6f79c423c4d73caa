"""Words and numbers: every sentence and every figure of the site is made here, from data.

Numbers are rounded to what their interval supports; units are always there; "faster" needs a ratio whose interval
excludes 1, and a ratio whose interval includes 1 is "no clear difference".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from paribus.results import rounding
from paribus.results import words as told

NOT_MEASURED = "not measured"
NO_INTERVAL = "too few starts or prompts for an interval"
"""A single start, kinds of one prompt each and few of them, or few answers in a window: a ratio doesn't say which."""

NO_DIFFERENCE, decimals_for, fixed = told.NO_DIFFERENCE, rounding.decimals_for, rounding.fixed

_UNITS = {"": "", "x": "times", "share": "%", "tok/s": "tokens/s", "points": "points", "tokens": "tokens"}
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Shown:
    """A number as it is printed: value, interval (empty when there is none) and unit, apart and together."""

    value: str
    interval: str
    unit: str

    @property
    def amount(self) -> str:
        """Value and unit: `83 tokens/s`."""
        if self.unit in ("%", "×"):
            return f"{self.value}{self.unit}"
        return f"{self.value} {self.unit}".strip()

    def __str__(self) -> str:
        return f"{self.amount} {self.interval}".strip()


def shown(value: float | None, low: float | None = None, high: float | None = None, unit: str = "") -> Shown:
    """A number with its interval and unit, ready to be printed. Milliseconds from 1,000 on become seconds."""
    if value is None or not math.isfinite(value):
        return Shown(NOT_MEASURED, "", "")
    scale, word = _unit(value, unit)
    value *= scale
    bounds = (low * scale, high * scale) if low is not None and high is not None else (None, None)
    places = decimals_for(value, *bounds)
    interval = ""
    if bounds[0] is not None and bounds[1] is not None:
        interval = f"[{fixed(bounds[0], places)} to {fixed(bounds[1], places)}]"
    return Shown(fixed(value, places), interval, word)


def _unit(value: float, unit: str) -> tuple[float, str]:
    if unit == "ms" and abs(value) >= 1000:
        return 0.001, "s"
    if unit == "share":
        return 100.0, "%"
    return 1.0, _UNITS.get(unit, unit)


def short(number: Shown) -> str:
    """A number for a chart's row: the kind of token stands in the chart's title and axis already."""
    return str(number).replace("standard tokens", "tokens")


def range_text(low: float | None, high: float | None, unit: str = "") -> str:
    """A range without a value: `0.9 to 1.4 times`."""
    if low is None or high is None:
        return NOT_MEASURED
    text = shown((low + high) / 2, low, high, unit)
    return f"{text.interval[1:-1]} {text.unit}".strip()


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 request`, `16 requests`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def spelled(number: int) -> str:
    """Small numbers as words, others as digits."""
    return _COUNTS[number] if 0 <= number < len(_COUNTS) else f"{number:,}"


def date(moment: str | None) -> str:
    """The day of a moment: `2026-12-03`."""
    return moment[:10] if moment else "no date"


def listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def requests_at_once(number: int | None) -> str:
    """`with one request`, `with 16 requests at once`."""
    if number is None:
        return "with an undisclosed number of requests"
    return "with one request" if number == 1 else f"with {number} requests at once"


def clear(low: float | None, high: float | None) -> bool | None:
    """Whether the interval of a ratio excludes 1; None when there is no interval."""
    if low is None or high is None:
        return None
    return low > 1 or high < 1


def ratio_verdict(value: float | None, low: float | None, high: float | None) -> str:
    """The verdict on a speed-up in a few words."""
    if value is None:
        return "nobody has run this yet"
    number = shown(value, low, high, "x")
    distinct = clear(low, high)
    if distinct is None:
        return f"{number.value} times as fast ({NO_INTERVAL})"
    if not distinct:
        return f"{NO_DIFFERENCE} ({number.value} times as fast {number.interval})"
    return f"{number.value} times as fast {number.interval}"


Ratio = tuple[float, float | None, float | None]
"""A ratio with the bounds of its interval."""


def measure_of(metric: str) -> str:
    """What a ratio is of, as a part of a sentence: `until 100 tokens have arrived`."""
    if metric.startswith("speedup_time_to_"):
        return f"until {count(int(metric.removeprefix('speedup_time_to_')), 'token')} have arrived"
    known = {
        "speedup_answer_time": "over whole answers",
        "ratio_throughput": "in tokens/s of all requests together",
        "ratio_throughput_whole_run": "in tokens/s of the whole run, all requests together",
    }
    return known.get(metric, f"by {metric}")


def speedup_sentence(subject: str, other: str, *, requests: int | None, ratio: Ratio, measure: str) -> str:
    """One side of a duel in a sentence that names its measure, without capital and full stop."""
    number = shown(*ratio, "x")
    load = f"{requests_at_once(requests)}, {measure},"
    distinct = clear(ratio[1], ratio[2])
    if distinct is None:
        return (
            f"{load} {subject} wrote {number.value} times as fast as {other}, "
            f"with {NO_INTERVAL} and so without a verdict"
        )
    if not distinct:
        return (
            f"{load} there is {NO_DIFFERENCE} between {subject} and {other} "
            f"({number.value} times as fast {number.interval})"
        )
    return f"{load} {subject} writes {number.value} times as fast as {other} {number.interval}"


def opening(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]
