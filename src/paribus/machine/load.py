"""What telemetry says about a window: was the machine busy elsewhere, was the card throttled, how much energy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from paribus.machine.energy import energy_of, value_at
from paribus.machine.files import write_atomic
from paribus.machine.nvml import FAULTS, IDLE_REASONS, POWER_CAP, REASONS

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]

_CUMULATIVE = ("cpu_total_s", "cpu_idle_s", "cpu_stolen_s", "cpu_own_s", "energy_j", "package_j", "soc_j")
_MOMENTARY = (
    "power_w",
    "clock_mhz",
    "temperature_c",
    "throttle_bits",
    "power_average_w",
    "power_limit_w",
    "memory_clock_mhz",
    "memory_used_gb",
    "utilisation",
)
USUAL = 0.9
"""The clock that a window is held against is the one that a tenth of its samples pass: a median would be the
throttled clock itself, once a card is throttled for more than half of the window."""
SLOW = 0.95

_TIMES = ("t_ns", "card_ns")

_COLUMNS = (*_TIMES, *_CUMULATIVE, *_MOMENTARY)
"""Columns of `telemetry.parquet`; `*_s` and `*_j` are cumulative since the first row, null where not read.
`t_ns` is when the row was made, `card_ns` when the card's driver was asked for the row's card columns."""


@dataclass(frozen=True)
class Load:
    """Shares of 1 over the window, None where nothing was read.

    `busy_share`: CPU time of others (neither ours, idle nor stolen); `stolen_share`: taken by the hypervisor;
    `own_share`: ours. `throttled_share`: samples with the SM clock under 95% of the window's usual one (90th
    percentile) and a reason other than idle, or with heat or the hardware as the reason: a card that is hot all through
    the window has no other clock to be held against. `energy_j` from the counter, `power_integral_j` from polled power;
    `energy_scope`: board, soc, package; `energy_missing`: why there is no energy.
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
    energy_missing: str = ""
    temperature_max_c: float | None = None
    clock_median_mhz: float | None = None

    @property
    def others_share(self) -> float | None:
        """Others' share of the machine's CPU time, stolen time included; None where nothing was read."""
        return None if self.busy_share is None else min(1.0, self.busy_share + (self.stolen_share or 0.0))


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
    energy = energy_of(rows, since_ns, until_ns)
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
        energy_j=energy.joules,
        power_integral_j=energy.integral_j,
        energy_scope=energy.scope,
        energy_missing=energy.missing,
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
    return value_at(known, until_ns) - value_at(known, since_ns)


def _throttled(rows: list[Row]) -> tuple[float | None, tuple[str, ...], bool]:
    clocked = [row for row in rows if row.get("clock_mhz") is not None]
    if not clocked:
        return None, (), False
    clocks = sorted(float(row["clock_mhz"]) for row in clocked)
    floor = SLOW * clocks[int(USUAL * (len(clocks) - 1))]
    why = [(row["clock_mhz"] < floor, int(row.get("throttle_bits") or 0) & ~IDLE_REASONS) for row in clocked]
    slow = [reasons for below, reasons in why if reasons & FAULTS or (below and reasons)]
    bits = 0
    for each in slow:
        bits |= each
    names = tuple(name for bit, name in REASONS.items() if bits & bit)
    return len(slow) / len(clocked), names, bits == POWER_CAP


def write_telemetry(path: Path, rows: list[Row], zero_ns: int) -> None:
    """`telemetry.parquet`: time counts from `zero_ns`, cumulative columns from their first value (zstd)."""
    first: dict[str, float] = {}
    for row in rows:
        for name in _CUMULATIVE:
            if row.get(name) is not None:
                first.setdefault(name, row[name])
    told = [
        {name: _told(name, row.get(name), first) for name in _COLUMNS}
        | {name: row[name] - zero_ns for name in _TIMES if row.get(name) is not None}
        for row in rows
    ]
    import pyarrow as pa
    import pyarrow.parquet as pq

    from paribus.machine.columns import table_of

    sink = pa.BufferOutputStream()
    pq.write_table(table_of(told, _schema()), sink, compression="zstd")
    write_atomic(path, sink.getvalue().to_pybytes())


def _schema() -> pa.Schema:
    import pyarrow as pa  # here and above: 40 MB that a load generator must not hold while it measures

    whole: list[tuple[str, pa.DataType]] = [(name, pa.int64()) for name in _TIMES]
    return pa.schema(whole + [(name, pa.float64()) for name in _COLUMNS if name not in _TIMES])


def _told(name: str, value: float | None, first: dict[str, float]) -> float | None:
    if value is None:
        return None
    return round(value - first[name], 6) if name in first else value


def read_telemetry(path: Path) -> list[Row]:
    """The rows of a `telemetry.parquet`; time counts from the start of the measured part."""
    import pyarrow.parquet as pq

    rows: list[Row] = pq.read_table(path, schema=_schema()).to_pylist()
    return rows
