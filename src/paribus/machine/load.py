"""What telemetry says about a window: was the machine busy elsewhere, was the card throttled, how much energy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.machine.files import write_atomic
from paribus.machine.nvml import IDLE_REASONS, POWER_CAP, REASONS

Row = dict[str, Any]

_CUMULATIVE = ("cpu_total_s", "cpu_idle_s", "cpu_stolen_s", "cpu_own_s", "energy_j", "package_j")
_MOMENTARY = ("power_w", "clock_mhz", "temperature_c", "throttle_bits")

_FIELDS: list[tuple[str, pa.DataType]] = [("t_ns", pa.int64())]
_FIELDS += [(name, pa.float64()) for name in (*_CUMULATIVE, *_MOMENTARY)]

SCHEMA = pa.schema(_FIELDS)
"""Columns of `telemetry.parquet`; `*_s` and `*_j` are cumulative since the first row, null where not read."""


@dataclass(frozen=True)
class Load:
    """Shares of 1 over the window, None where nothing was read.

    `busy_share`: CPU time of others (neither ours, idle nor stolen); `stolen_share`: taken by the hypervisor;
    `own_share`: ours. `throttled_share`: samples with the SM clock under 95% of the window's median and a reason
    other than idle. `energy_j` from the counter, `power_integral_j` from polled power; `energy_scope`: board, package.
    """

    samples: int
    busy_share: float | None = None
    stolen_share: float | None = None
    own_share: float | None = None
    throttled_share: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    power_cap_only: bool = False
    energy_j: float | None = None
    power_integral_j: float | None = None
    energy_scope: str | None = None
    temperature_max_c: float | None = None
    clock_median_mhz: float | None = None


def load_of(rows: list[Row], since_ns: int, until_ns: int) -> Load:
    """The load over `[since_ns, until_ns]` (same clock as `t_ns`); edges are interpolated in cumulative columns."""
    inside = [row for row in rows if since_ns <= row["t_ns"] <= until_ns]
    total = grown(rows, "cpu_total_s", since_ns, until_ns)
    shares: dict[str, float | None] = {"busy_share": None, "stolen_share": None, "own_share": None}
    if total:
        parts = {name: grown(rows, f"cpu_{name}_s", since_ns, until_ns) or 0.0 for name in ("idle", "stolen", "own")}
        others = total - sum(parts.values())
        shares = {
            "busy_share": _share(others, total),
            "stolen_share": _share(parts["stolen"], total),
            "own_share": _share(parts["own"], total),
        }
    throttled, reasons, cap_only = _throttled(inside)
    board, package = (grown(rows, name, since_ns, until_ns) for name in ("energy_j", "package_j"))
    temperatures = [row["temperature_c"] for row in inside if row.get("temperature_c") is not None]
    clocks = [row["clock_mhz"] for row in inside if row.get("clock_mhz") is not None]
    return Load(
        samples=len(inside),
        busy_share=shares["busy_share"],
        stolen_share=shares["stolen_share"],
        own_share=shares["own_share"],
        throttled_share=throttled,
        throttle_reasons=reasons,
        power_cap_only=cap_only,
        energy_j=board if board is not None else package,
        power_integral_j=_integral(inside),
        energy_scope="board" if board is not None else "package" if package is not None else None,
        temperature_max_c=max(temperatures, default=None),
        clock_median_mhz=median(clocks) if clocks else None,
    )


def _share(part: float, whole: float) -> float:
    """A share; ticks of 10 ms and readings at slightly different moments can push it past an edge."""
    return min(1.0, max(0.0, part / whole))


def grown(rows: list[Row], column: str, since_ns: int, until_ns: int) -> float | None:
    """How much a cumulative column grew over a window, linear between samples; None with fewer than two samples."""
    known = [(row["t_ns"], row[column]) for row in rows if row.get(column) is not None]
    if len(known) < 2 or until_ns <= since_ns:
        return None
    return _at(known, until_ns) - _at(known, since_ns)


def _at(known: list[tuple[int, float]], t_ns: int) -> float:
    if t_ns <= known[0][0]:
        return float(known[0][1])
    for (t0, v0), (t1, v1) in pairwise(known):
        if t0 <= t_ns <= t1:
            return float(v0 + (v1 - v0) * (t_ns - t0) / (t1 - t0)) if t1 > t0 else float(v1)
    return float(known[-1][1])


def _throttled(rows: list[Row]) -> tuple[float | None, tuple[str, ...], bool]:
    clocked = [row for row in rows if row.get("clock_mhz") is not None]
    if not clocked:
        return None, (), False
    floor = 0.95 * median(row["clock_mhz"] for row in clocked)
    slow = [
        int(row.get("throttle_bits") or 0) & ~IDLE_REASONS
        for row in clocked
        if row["clock_mhz"] < floor and int(row.get("throttle_bits") or 0) & ~IDLE_REASONS
    ]
    bits = 0
    for each in slow:
        bits |= each
    names = tuple(name for bit, name in REASONS.items() if bits & bit)
    return len(slow) / len(clocked), names, bits == POWER_CAP


def _integral(rows: list[Row]) -> float | None:
    """Trapezoids under polled power, in joules."""
    known = [(row["t_ns"], row["power_w"]) for row in rows if row.get("power_w") is not None]
    if len(known) < 2:
        return None
    return float(sum((t1 - t0) / 1e9 * (w0 + w1) / 2 for (t0, w0), (t1, w1) in pairwise(known)))


def write_telemetry(path: Path, rows: list[Row], zero_ns: int) -> None:
    """`telemetry.parquet`: time counts from `zero_ns`, cumulative columns from their first value (zstd)."""
    first: dict[str, float] = {}
    for row in rows:
        for name in _CUMULATIVE:
            if row.get(name) is not None:
                first.setdefault(name, row[name])
    told = [
        {name: _told(name, row.get(name), first) for name in SCHEMA.names} | {"t_ns": row["t_ns"] - zero_ns}
        for row in rows
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(told, schema=SCHEMA), sink, compression="zstd")
    write_atomic(path, sink.getvalue().to_pybytes())


def _told(name: str, value: float | None, first: dict[str, float]) -> float | None:
    if value is None:
        return None
    return round(value - first[name], 6) if name in first else value


def read_telemetry(path: Path) -> list[Row]:
    """The rows of a `telemetry.parquet`; time counts from the start of the measured part."""
    rows: list[Row] = pq.read_table(path, schema=SCHEMA).to_pylist()
    return rows
