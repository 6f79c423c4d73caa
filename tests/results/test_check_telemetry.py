"""A summary's words on its machine are made again from the telemetry: throttling and energy cannot be invented."""

from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import Clone
from test_checking import edit, failures, rehash

from paribus.conditions import Flag, flag
from paribus.machine import Load
from paribus.machine.load import write_telemetry
from paribus.results.check_telemetry import faults
from paribus.results.run import RunFolder
from paribus.results.seal import seal
from paribus.speed.summary import SpeedSummary

SECOND = 1_000_000_000
WATTS, SECONDS = 300.0, 10


@pytest.fixture
def run(clone: Clone) -> RunFolder:
    return clone.run("plain", "c1-long", scale="demo", words=35)


@pytest.fixture
def summary(run: RunFolder) -> SpeedSummary:
    return SpeedSummary.model_validate_json((run.folder / "start-1" / "summary.json").read_text())


def telling(summary: SpeedSummary, *flags: Flag, **numbers: Any) -> SpeedSummary:
    return summary.model_copy(update={"flags": [*summary.flags, *flags], **numbers})


QUIET = Load(samples=100, busy_share=0.01, throttled_share=0.0, energy_missing="no energy counter could be read")
METERED = Load(samples=100, throttled_share=0.0, energy_j=3000.0, power_integral_j=3010.0, energy_scope="board")
THROTTLED = Load(samples=100, throttled_share=0.46, throttle_reasons=("hardware thermal",))
CAPPED = Load(samples=100, throttled_share=0.46, throttle_reasons=("power cap",), power_cap_only=True)
APART = Load(samples=100, throttled_share=0.0, energy_j=3000.0, power_integral_j=2100.0, energy_scope="board")


def test_a_summary_that_says_what_the_telemetry_says_holds(summary: SpeedSummary) -> None:
    assert list(faults(summary, QUIET)) == []
    assert list(faults(telling(summary, energy_j=3000.0, energy_scope="board"), METERED)) == []
    assert list(faults(telling(summary, flag("throttled", "46%", "invalid")), THROTTLED)) == []
    assert list(faults(telling(summary, flag("throttled", "46%", "note")), CAPPED)) == []
    assert list(faults(telling(summary, flag("energy_disagrees", "3000 J, 2100 J")), APART)) == []


def test_a_throttled_card_cannot_go_without_its_flag_or_with_a_milder_one(summary: SpeedSummary) -> None:
    assert any("throttled is not set" in fault for fault in faults(summary, THROTTLED))
    milder = telling(summary, flag("throttled", "46%", "note"))
    assert any("throttled says note" in fault for fault in faults(milder, THROTTLED))


def test_a_flag_that_the_telemetry_does_not_bear_out_is_found(summary: SpeedSummary) -> None:
    flagged = telling(summary, flag("throttled", "46%", "invalid"), flag("energy_disagrees", "so"), flag("busy", "20%"))
    found = "\n".join(faults(flagged, QUIET))
    assert "throttled says invalid" in found
    assert "energy_disagrees is set" in found
    assert "busy is set" in found


def test_an_energy_cannot_be_invented_left_out_or_changed(summary: SpeedSummary) -> None:
    invented = telling(summary, energy_j=5.0, energy_scope="board")
    for load in (QUIET, APART, Load(samples=0)):
        assert any("the energy is 5.0 J, by the telemetry none" in fault for fault in faults(invented, load))
    assert any("the energy is none, by the telemetry 3000.0 J" in fault for fault in faults(summary, METERED))
    less = telling(summary, energy_j=2700.0, energy_scope="board")
    assert list(faults(less, METERED)) == ["the energy is 2700.0 J, by the telemetry 3000.0 J"]
    elsewhere = telling(summary, energy_j=3000.0, energy_scope="package")
    assert list(faults(elsewhere, METERED)) == ["the energy's scope is package, by the telemetry board"]


def card(second: float, *, falls: bool = False, slow: bool = False) -> dict[str, Any]:
    """One sample of a card that draws 300 W; its counter may fall, and its clock."""
    joules = WATTS * second if not falls or second < SECONDS / 2 else 0.0
    return {
        "t_ns": int(second * SECOND),
        "card_ns": int(second * SECOND),
        "energy_j": joules,
        "power_w": WATTS,
        "clock_mhz": 1200.0 if slow else 1980.0,
        "throttle_bits": 0x40 if slow else 0,
    }


def metered(clone: Clone, run: RunFolder, rows: list[dict[str, Any]]) -> Path:
    """The run with this telemetry over its measured part, sealed with matching hashes."""
    start = run.folder / "start-1"
    write_telemetry(start / "telemetry.parquet", rows, 0)
    edit(start / "manifest.json", lambda manifest: manifest["timings"].update(measuring=float(SECONDS)))
    edit(
        start / "manifest.json",
        lambda manifest: manifest["files"].append({"name": "telemetry.parquet", "bytes": 0, "sha256": ""}),
    )
    rehash(start)
    seal(run, clone.catalog)
    return start


def test_the_check_of_a_run_reads_the_telemetry_beside_it(clone: Clone, run: RunFolder) -> None:
    """46% of the window throttled by heat, a counter that falls; the summary says 5 J and nothing else."""
    start = run.folder / "start-1"
    edit(start / "summary.json", lambda summary: summary.update(energy_j=5.0, energy_scope="board"))
    steps = [second / 10 for second in range(-5, 10 * SECONDS + 6)]
    metered(clone, run, [card(s, falls=True, slow=s > 0.54 * SECONDS) for s in steps])
    found = failures(clone, run)
    assert "the flag throttled is not set" in found
    assert "the energy is 5.0 J, by the telemetry none" in found


def test_an_energy_without_any_telemetry_is_found(clone: Clone, run: RunFolder) -> None:
    edit(
        run.folder / "start-1" / "summary.json",
        lambda summary: summary.update(energy_j=5.0, energy_scope="board"),
    )
    rehash(run.folder / "start-1")
    seal(run, clone.catalog)
    assert "the energy is 5.0 J, by the telemetry none" in failures(clone, run)
