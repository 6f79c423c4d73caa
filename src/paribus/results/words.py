"""Numbers in words: as many digits as their interval supports, always with unit; "faster" only with an interval."""

from __future__ import annotations

from paribus.results.rounding import decimals_for, fixed
from paribus.speed.statistics import Estimate

NO_DIFFERENCE = "no clear difference"

BASIS = {
    "starts and prompts": "over starts and prompts",
    "starts": "over starts, for these prompts only",
    "prompts": "over prompts of one start, so it knows nothing of what differs between starts",
    "kinds": "over kinds of text of one start, so it knows nothing of what differs between starts",
    "batches": "over parts of one start's window, so it knows nothing of what differs between starts or prompts",
    "questions": "over questions",
    "exam years": "over exam years, of which there are few",
    "none": "no interval",
}
"""What an interval rests on, in words."""


def with_interval(estimate: Estimate, unit: str = "") -> str:
    """`1.12 x [1.05 to 1.20]`; without bounds it says that there is no interval."""
    places = decimals_for(estimate.value, estimate.low, estimate.high)
    words = f" {unit}" if unit else ""
    if estimate.low is None or estimate.high is None:
        return f"{fixed(estimate.value, places)}{words} (no interval)"
    bounds = f"[{fixed(estimate.low, places)} to {fixed(estimate.high, places)}]"
    return f"{fixed(estimate.value, places)}{words} {bounds}"


def upside_down(ratio: Estimate) -> Estimate:
    """The ratio seen from the other side."""
    low = None if ratio.high is None or ratio.high == 0 else 1 / ratio.high
    high = None if ratio.low is None or ratio.low == 0 else 1 / ratio.low
    return Estimate(1 / ratio.value, low, high, ratio.basis)


def ratio_sentence(names: tuple[str, str], what: str, ratio: Estimate) -> str:
    """How fast the first of two is beside the second. A direction is claimed only when the interval leaves 1 out."""
    first, second = names
    if ratio.low is None or ratio.high is None:
        return f"{what}: {first} against {second} {with_interval(ratio)}: without an interval it shows no difference"
    if ratio.low <= 1 <= ratio.high:
        return f"{what}: {NO_DIFFERENCE} between {first} and {second}, ratio {with_interval(ratio)}"
    if ratio.value < 1 and ratio.value > 0:
        first, second, ratio = second, first, upside_down(ratio)
    return f"{what}: {first} is {with_interval(ratio)} times as fast as {second}"


def difference_sentence(names: tuple[str, str], what: str, shares: Estimate) -> str:
    """A paired difference of scores (first minus second, shares of 1), in points (hundredths)."""
    first, second = names
    if shares.low is None or shares.high is None or shares.low <= 0 <= shares.high:
        return f"{what}: {NO_DIFFERENCE} between {first} and {second}, {with_interval(points(shares), 'points')}"
    if shares.value < 0:
        first, second = second, first
        shares = Estimate(-shares.value, -shares.high, -shares.low, shares.basis)
    return f"{what}: {first} scores {with_interval(points(shares), 'points')} more than {second}"


def points(shares: Estimate) -> Estimate:
    """Shares of 1 in points (hundredths)."""
    low = None if shares.low is None else shares.low * 100
    high = None if shares.high is None else shares.high * 100
    return Estimate(shares.value * 100, low, high, shares.basis)
