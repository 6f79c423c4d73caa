"""The batch means of a single start's window: read from the raw file, where it is at hand."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.conditions import CheckFailed
from paribus.results.data import RunData
from paribus.results.recompute import raw_traces
from paribus.speed.metrics.throughput import steps, throughput
from paribus.speed.summarise import rows_of, wall_of
from paribus.speed.window import Window


def answers_a_worker(data: RunData) -> float | None:
    """Mean answers that a worker wrote in the first start's window; None without a window."""
    first, workers = data.starts[0], data.summary.declared.get("requests_at_once") or 1
    if first.window_s is None or first.throughput.requests_per_s is None:
        return None
    return float(first.window_s * first.throughput.requests_per_s / workers)


def window_batches(data: RunData) -> Sequence[float]:
    """Standard tokens a second in each tenth of the first start's window; empty without its raw file or a window."""
    folder, summary = data.folders[0], data.starts[0]
    if summary.window_ns is None or not (folder / "requests.parquet").is_file():
        return ()
    try:
        load = [t for t in raw_traces(folder, {}) if t.phase != "warm-up"]
    except CheckFailed:
        return ()
    window = Window(*summary.window_ns)
    return throughput(steps([(t, t.standard) for t in load]), window, wall_of(rows_of(load))).batches
