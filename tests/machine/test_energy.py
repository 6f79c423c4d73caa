"""Energy: from a counter that was checked, over the whole window, in one scope; else none, with the reason."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.machine.apple import AppleChip, open_apple
from paribus.machine.energy import Energy, energy_of, power_integral
from paribus.machine.load import read_telemetry, write_telemetry
from paribus.machine.rapl import Rapl
from paribus.machine.sampler import reading

SECOND = 1_000_000_000
WINDOW = (0, 10 * SECOND)


def card(watts=300.0, factor=1.0, until=10, **more):
    """A reading each second of a card that takes so many watts and whose counter gains `factor` times as much."""
    return [
        {"t_ns": t * SECOND, "power_w": watts, "energy_j": 5e6 + factor * watts * t, "clock_mhz": 1965.0} | more
        for t in range(until + 1)
    ]


def test_a_counter_that_agrees_with_polled_power_is_the_energy():
    assert energy_of(card(), *WINDOW) == Energy(3000.0, "board", 3000.0)
    assert not energy_of(card(factor=1.049), *WINDOW).apart
    assert energy_of(card(factor=1.051), *WINDOW).apart
    assert energy_of(card(factor=0.94), *WINDOW).apart


@pytest.mark.parametrize("fall", [5, 9, 10])
def test_a_counter_that_falls_gives_none(fall):
    rows = card()
    for row in rows[fall:]:
        row["energy_j"] -= 400.0
    assert energy_of(rows, *WINDOW).joules is None
    assert energy_of(rows, *WINDOW).missing == "the energy counter went back"


def test_what_fell_before_the_window_does_not_matter():
    rows = card(until=20)
    rows[2]["energy_j"] += 1000.0
    assert energy_of(rows, 5 * SECOND, 15 * SECOND).joules == pytest.approx(3000.0)


@pytest.mark.parametrize("kept", [slice(0, 6), slice(4, 11), slice(0, 1)])
def test_a_counter_read_over_a_part_of_the_window_gives_none(kept):
    rows = card()
    for row in rows[: kept.start] + rows[kept.stop :]:
        del row["energy_j"]
    found = energy_of(rows, *WINDOW)
    assert found.joules is None
    assert found.missing in ("the energy counter was not read over the whole window", "no energy counter could be read")


def test_a_counter_that_cannot_be_checked_gives_none():
    rows = [{key: value for key, value in row.items() if key != "power_w"} for row in card()]
    assert energy_of(rows, *WINDOW).missing == "the energy counter could not be checked: power was not read"


def test_a_counter_that_stands_still_gives_none():
    assert energy_of(card(factor=0.0), *WINDOW).missing == "the energy counter stood still"


def test_nothing_stands_in_for_a_card_without_a_counter():
    rows = [{key: value for key, value in row.items() if key != "energy_j"} for row in card()]
    for row in rows:
        row["package_j"] = row["t_ns"] / SECOND * 80
    found = energy_of(rows, *WINDOW)
    assert (found.joules, found.scope, found.missing) == (None, None, "no energy counter could be read")


def test_without_a_card_the_chip_comes_before_the_package():
    rows = [{"t_ns": t * SECOND, "package_j": 80.0 * t, "soc_j": 30.0 * t} for t in range(11)]
    assert energy_of(rows, *WINDOW) == Energy(300.0, "soc")
    assert energy_of([row | {"soc_j": None} for row in rows], *WINDOW) == Energy(800.0, "package")
    assert energy_of([], *WINDOW).missing == "no energy counter could be read"


def test_a_sample_from_before_the_window_does_not_count():
    rows = [{"t_ns": -SECOND // 10, "power_w": 9000.0, "clock_mhz": 1965.0}, *card()[1:]]
    assert power_integral(rows, *WINDOW) == pytest.approx(3000.0)


def test_power_with_a_hole_has_no_integral():
    assert power_integral(card()[:4] + card()[7:], *WINDOW) is None
    assert power_integral(card()[:1], *WINDOW) is None


@given(st.floats(50, 700), st.integers(0, 4), st.integers(7, 10))
def test_constant_power_times_the_window_whatever_the_edges(watts, start, end):
    found = energy_of(card(watts), start * SECOND + 7, end * SECOND - 7)
    assert found.joules == pytest.approx(watts * (end - start), rel=1e-6)
    assert found.integral_j == pytest.approx(found.joules, rel=1e-6)


def test_the_card_is_asked_at_its_own_moment():
    rows = [row | {"card_ns": row["t_ns"] - SECOND // 4} for row in card()]
    found = energy_of(rows, *WINDOW)
    assert found.joules == pytest.approx(3000 - 75), "the last quarter of a second was never read"


def test_the_cards_own_moment_comes_back_from_the_file(tmp_path):
    rows = [row | {"card_ns": row["t_ns"] - 7} for row in card()] + [{"t_ns": 11 * SECOND}]
    write_telemetry(tmp_path / "t.parquet", rows, 2 * SECOND)
    told = read_telemetry(tmp_path / "t.parquet")
    assert (told[2]["t_ns"], told[2]["card_ns"], told[-1]["card_ns"]) == (0, -7, None)
    live, again = energy_of(rows, 2 * SECOND, 9 * SECOND), energy_of(told, 0, 7 * SECOND)
    assert live.joules == pytest.approx(again.joules)


class Monitor:
    """Plays zeus-apple-silicon's `AppleEnergyMonitor`: cumulative millijoules of a chip."""

    def __init__(self, *readings):
        self.readings = list(readings)

    def get_cumulative_energy(self):
        told = self.readings.pop(0)
        if isinstance(told, Exception):
            raise told
        return SimpleNamespace(**told)


def chip(*readings):
    return AppleChip(SimpleNamespace(AppleEnergyMonitor=lambda: Monitor(*readings)))


WHOLE = {"cpu_total_mj": 4000, "gpu_mj": 20000, "dram_mj": 1500, "ane_mj": 0, "efficiency_cores_mj": [1, 2]}


def test_an_apple_chip_is_added_up_in_joules():
    assert chip(WHOLE).joules() == pytest.approx(25.5)
    assert chip(WHOLE | {"dram_mj": None, "ane_mj": None}).joules() == pytest.approx(24.0)


def test_a_part_of_an_apple_chip_is_no_energy():
    assert chip(WHOLE | {"gpu_mj": None}).joules() is None
    assert chip({}).joules() is None
    assert chip(RuntimeError("no channel")).joules() is None


def test_an_apple_chip_is_in_the_telemetry(tmp_path, monkeypatch):
    module = SimpleNamespace(AppleEnergyMonitor=lambda: Monitor(WHOLE, WHOLE, WHOLE | {"gpu_mj": 26000}))
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", module)
    opened = open_apple()
    cards = SimpleNamespace(take=dict)
    rows = [reading(1, cards, Rapl(tmp_path), opened) for _ in range(2)]
    assert [row["soc_j"] for row in rows] == [25.5, 31.5]
    assert "package_j" not in rows[0]


def test_without_the_library_or_on_another_machine_there_is_no_chip(monkeypatch):
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", None)
    assert open_apple() is None
    broken = SimpleNamespace(AppleEnergyMonitor=lambda: Monitor(RuntimeError("not an Apple chip")))
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", broken)
    assert open_apple() is None
