"""Throughput in summaries: of one start's steady window, and of a run from its starts. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.speed.load import completions
from paribus.speed.metrics.throughput import WindowSpeed
from paribus.speed.pooling import mean
from paribus.speed.statistics import throughput_estimate
from paribus.speed.summary import Throughput
from paribus.speed.window import Window


def start_throughput(speed: WindowSpeed, ends_ns: Sequence[int], window: Window | None, workers: int) -> Throughput:
    """Tokens a second in one start's window, with an interval over its batches; without one only the whole run's."""
    if speed.value is None or window is None:
        return Throughput(value=None, low=None, high=None, raw_arrival=None, whole_run=speed.whole_run)
    inside = completions(ends_ns, window)
    estimate = throughput_estimate([speed.value], [speed.batches], inside / workers)
    return Throughput(
        value=speed.value,
        low=estimate.low,
        high=estimate.high,
        basis=estimate.basis,
        raw_arrival=speed.raw_arrival,
        whole_run=speed.whole_run,
        requests_per_s=inside / window.seconds,
    )


def pooled_throughput(starts: Sequence[Throughput]) -> Throughput:
    """The mean of the starts with t over starts; a single start keeps its own. No value unless all have one."""
    if len(starts) == 1:
        return starts[0]
    values = [s.value for s in starts if s.value is not None]
    others = {
        "raw_arrival": mean([s.raw_arrival for s in starts]),
        "whole_run": mean([s.whole_run for s in starts]),
        "requests_per_s": mean([s.requests_per_s for s in starts]),
    }
    if len(values) < len(starts):
        return Throughput(value=None, low=None, high=None, **others)
    estimate = throughput_estimate(values, [])
    return Throughput(value=estimate.value, low=estimate.low, high=estimate.high, basis=estimate.basis, **others)
