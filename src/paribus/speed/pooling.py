"""Parts of several starts as one: means, sums, ratios of sums. Where a part is unknown the whole is. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.summary import Acceptance, EngineLoad, Stall


def mean(values: Sequence[float | None]) -> float | None:
    """The mean; None of none, or where any is unknown."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def total(values: Sequence[float | None]) -> float | None:
    """The sum; None of none, or where any is unknown."""
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None


def pooled_stall(starts: Sequence[Stall]) -> Stall:
    """Means of medians and 99th percentiles, the largest gap of all, in milliseconds."""
    return Stall(
        p50=mean([s.p50 for s in starts]),
        p99=mean([s.p99 for s in starts]),
        max=max((s.max for s in starts if s.max is not None), default=None),
    )


def pooled_acceptance(starts: Sequence[Acceptance | None]) -> Acceptance | None:
    """Acceptance over all starts that have one: sums over sums, as a run has more tokens in one than in another."""
    known = [s for s in starts if s is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Acceptance(
        acceptance_length=_pooled_length(known),
        tokens_per_pass=_ratio([(s.counted_tokens, _passes(s)) for s in known]),
        counted_tokens=total([s.counted_tokens for s in known]),
    )


def _passes(start: Acceptance) -> float | None:
    """Forward passes: tokens / tokens a pass."""
    return start.counted_tokens / start.tokens_per_pass if start.counted_tokens and start.tokens_per_pass else None


def _pooled_length(starts: Sequence[Acceptance]) -> float | None:
    """1 + accepted / passes that drafted, both summed over the starts, which keep them only as ratios.

    Accepted = tokens - passes. A start that accepted nothing doesn't tell how often it drafted: then the plain mean.
    """
    sums: list[tuple[float | None, float | None]] = []
    for start in starts:
        passes, length = _passes(start), start.acceptance_length
        if passes is None or start.counted_tokens is None or length is None or length <= 1:
            return mean([s.acceptance_length for s in starts])
        accepted = start.counted_tokens - passes
        sums.append((accepted, accepted / (length - 1)))
    ratio = _ratio(sums)
    return None if ratio is None else 1 + ratio


def _ratio(parts: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Sum over sum; None where any part is unknown."""
    over, under = total([a for a, _ in parts]), total([b for _, b in parts])
    return over / under if over is not None and under else None


def pooled_engine(starts: Sequence[EngineLoad | None]) -> EngineLoad | None:
    """The engine's gauges: means over the starts that were read, the smallest number of readings."""
    known = [s for s in starts if s is not None]
    if not known:
        return None
    return EngineLoad(
        readings=min(s.readings for s in known),
        running_mean=mean([s.running_mean for s in known]),
        waiting_mean=mean([s.waiting_mean for s in known]),
    )
