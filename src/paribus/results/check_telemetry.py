"""Check of what a start's summary says of its machine against the telemetry beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from paribus.conditions import CheckFailed
from paribus.machine import Load, load_of, read_telemetry
from paribus.results.findings import Report
from paribus.results.reading import open_parquet
from paribus.results.run import Start
from paribus.speed.flags import BUSY, Facts
from paribus.speed.run import THROTTLED, with_machine
from paribus.speed.summarise import Around
from paribus.speed.summary import SpeedSummary

SAMPLE = 0.01
"""The edges of the measured part are kept to a millisecond: a share this near its limit may be flagged or not."""
NEAR = 0.01
"""The same for energies."""


def check_telemetry(start: Start, where: str, summary: SpeedSummary, report: Report) -> None:
    """Others at work, a throttled card and the energy of a start, made again from its telemetry."""
    try:
        load = _load(start)
    except (CheckFailed, OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        report.say("identities", where, "fails", f"telemetry.parquet can't be read: {error}")
        return
    for fault in faults(summary, load):
        report.say("identities", where, "fails", fault)


def faults(summary: SpeedSummary, load: Load) -> Iterator[str]:
    """What a summary says of its machine and the telemetry doesn't, or the other way round."""
    made = with_machine(Around(concurrency=1, facts=Facts(rows=())), load)
    flags = {flag.id: flag for flag in summary.flags}
    others = made.facts.busy_share or 0.0
    if ("busy" in flags) != (others > BUSY) and abs(others - BUSY) > SAMPLE:
        told = "" if "busy" in flags else "not "
        yield f"others took {100 * others:.0f}% of the CPU and the flag busy is {told}set"
    slow = load.throttled_share or 0.0
    if abs(slow - THROTTLED) > SAMPLE:
        flag, due = flags.get("throttled"), made.facts.throttled_severity if slow > THROTTLED else None
        if (flag.severity if flag else None) != due:
            told = f"says {flag.severity}" if flag else "is not set"
            yield f"the card was throttled for {100 * slow:.0f}% of the window and the flag throttled {told}"
    told_j, made_j = summary.energy_j, made.energy_j
    if told_j is None or made_j is None:
        if told_j is not made_j:
            why = made.energy_missing or "it says less than the telemetry does"
            yield f"the energy is {_joules(told_j)}, by the telemetry {_joules(made_j)}: {why}"
    elif abs(told_j - made_j) > NEAR * max(abs(told_j), abs(made_j)):
        yield f"the energy is {_joules(told_j)}, by the telemetry {_joules(made_j)}"
    if told_j is not None and made_j is not None and summary.energy_scope != made.energy_scope:
        yield f"the energy's scope is {summary.energy_scope}, by the telemetry {made.energy_scope}"
    if ("energy_disagrees" in flags) != bool(made.facts.energy_disagrees):
        told = "" if "energy_disagrees" in flags else "not "
        yield f"the flag energy_disagrees is {told}set: {made.facts.energy_disagrees or 'counter and power agree'}"


def _load(start: Start) -> Load:
    """What the telemetry says about the measured part; nothing where there is none, as when it was measured."""
    path: Path = start.folder / "telemetry.parquet"
    if not path.is_file() and not path.is_symlink():
        return load_of([], 0, 0)
    samples = read_telemetry(open_parquet(start.folder, "telemetry.parquet"))
    return load_of(samples, 0, round(start.manifest.timings.measuring * 1e9))


def _joules(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f} J"
