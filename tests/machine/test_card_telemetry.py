"""Cards through the real `pynvml`, against a stand-in for NVIDIA's library that is built here from C."""

import time

import pytest

from paribus.machine import Telemetry
from paribus.speed.run import with_machine
from paribus.speed.summarise import Around

HERTZ = 25


def until(telemetry, enough):
    """Wait for readings that are enough; returns all."""
    end = time.monotonic() + 60
    while not enough(telemetry.rows()):
        assert time.monotonic() < end, "these readings never came"
        time.sleep(0.02)
    return telemetry.rows()


def new_rows(telemetry, count, card=True):
    """Wait for so many more readings (of the card); returns the time of the first and the last."""
    before = len(telemetry.rows())
    rows = until(telemetry, lambda rows: sum((not card) or "card_ns" in row for row in rows[before:]) >= count)
    return rows[before]["t_ns"], rows[-1]["t_ns"]


def judged(load):
    return with_machine(Around(1), load)


def test_an_h100_is_read_as_what_it_is(cards):
    facts = cards.facts()
    told = {name: facts[name] for name in ("card", "card_count", "card_memory_gb", "pci_device_id", "driver", "ecc")}
    assert told == {
        "card": "NVIDIA H100 80GB HBM3",
        "card_count": 1,
        "card_memory_gb": 85.5,
        "pci_device_id": "2330:10de",
        "driver": "580.95.05",
        "ecc": True,
    }
    assert (facts["power_limit_w"], facts["power_default_w"], facts["clock_state"]) == (700, 700, "default")
    assert (facts["mig"], facts["cuda_cores"], facts["pcie"]) == (False, 16896, "generation 5, 16 lanes")


def test_what_a_card_lacks_is_left_out_not_made_up(cards):
    cards.say("0 lacks nvmlDeviceGetEccMode", "0 lacks nvmlDeviceGetNumGpuCores", "0 lacks nvmlDeviceGetMigMode")
    facts = cards.facts()
    assert not {"ecc", "cuda_cores", "mig"} & set(facts)
    assert facts["card"] == "NVIDIA H100 80GB HBM3"


def test_two_cards_are_one_set_and_a_lost_one_is_not_counted(cards, monkeypatch):
    cards.say("1 card 1")
    assert cards.facts()["card_count"] == 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert cards.facts()["card_count"] == 1
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    cards.say("0 lost 1")
    assert cards.facts()["card_count"] == 1
    cards.say("1 lost 1")
    assert cards.facts()["card"] == cards.facts()["cpu"] + ", " + cards.facts()["card"].rpartition(", ")[2]


def test_a_slice_of_a_card_is_told_as_one(cards, monkeypatch):
    cards.say("0 mig 1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a1-0000")
    facts = cards.facts()
    assert (facts["card"], facts["card_memory_gb"]) == ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", 42.0)
    assert (facts["mig"], facts["pci_device_id"]) == (True, "2330:10de")


def test_every_reading_arrives(cards):
    cards.say("0 power 512000", "0 power_average 480000")
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 3)
        row = next(row for row in reversed(telemetry.rows()) if "card_ns" in row)
    told = {
        "power_w": 512.0,
        "power_average_w": 480.0,
        "power_limit_w": 700.0,
        "clock_mhz": 1965.0,
        "memory_clock_mhz": 2619.0,
        "memory_used_gb": 70.0,
        "utilisation": 0.97,
        "temperature_c": 61.0,
        "throttle_bits": 0.0,
    }
    assert {name: row[name] for name in told} == pytest.approx(told)
    assert row["energy_j"] > 0


def test_energy_of_the_counter_agrees_with_polled_power(cards):
    cards.say("1 card 1", "1 power 300000")
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        window = new_rows(telemetry, 30)
        load = telemetry.load(*window)
    around = judged(load)
    assert around.energy_scope == "board"
    assert around.energy_j == pytest.approx(800 * (window[1] - window[0]) / 1e9, rel=0.05)
    assert around.facts.energy_disagrees == ""
    assert around.energy_missing is None


def test_a_counter_that_runs_40_percent_ahead_gives_no_energy(cards):
    cards.say("0 energy_factor 1.4")
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        around = judged(telemetry.load(*new_rows(telemetry, 30)))
    assert around.energy_j is None
    assert around.facts.energy_disagrees
    assert around.energy_missing == around.facts.energy_disagrees


def test_a_counter_that_falls_gives_no_energy(cards):
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        start, _ = new_rows(telemetry, 8)
        cards.say("0 energy_offset 0")
        _, end = new_rows(telemetry, 8)
        around = judged(telemetry.load(start, end))
    assert (around.energy_j, around.energy_missing) == (None, "the energy counter went back")


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("nvmlDeviceGetTotalEnergyConsumption", "no energy counter could be read"),
        ("nvmlDeviceGetPowerUsage", None),
        ("nvmlDeviceGetFieldValues", None),
    ],
)
def test_energy_needs_the_counter_and_one_kind_of_power(cards, call, missing):
    # The average of the plain reading stands in for the instantaneous one: on older cards it is that.
    cards.say(f"0 lacks {call}", "0 power_average 500000")
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        around = judged(telemetry.load(*new_rows(telemetry, 30)))
    assert around.energy_missing == missing
    assert (around.energy_j is None) == (missing is not None)


def test_a_slice_has_no_energy_of_its_own(cards):
    cards.say("0 mig 1")
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        load = telemetry.load(*new_rows(telemetry, 8))
    assert (load.energy_j, load.energy_missing) == (None, "no energy counter could be read")
    assert load.clock_median_mhz == 1965.0


@pytest.mark.parametrize(("bits", "reasons", "severity"), [(0x4, "power cap", "note"), (0x44, "hardware", "invalid")])
@pytest.mark.parametrize("slow", [10, 40])
def test_a_card_throttled_in_mid_run_is_flagged_whether_for_a_part_or_for_most_of_it(
    cards, bits, reasons, severity, slow
):
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        start, _ = new_rows(telemetry, 20)
        cards.say("0 clock 1580", f"0 reasons {bits}")
        _, end = new_rows(telemetry, slow)
        around = judged(telemetry.load(start, end))
    assert reasons in around.facts.throttled
    assert around.facts.throttled_severity == severity


def test_what_happened_before_the_window_is_not_the_windows(cards):
    cards.say("0 clock 1200", "0 reasons 64", "0 power 900000")
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 10)
        cards.say("0 clock 1965", "0 reasons 0", "0 power 400000")
        new_rows(telemetry, 3)
        window = new_rows(telemetry, 30)
        around = judged(telemetry.load(*window))
    assert around.facts.throttled == ""
    assert around.energy_j == pytest.approx(400 * (window[1] - window[0]) / 1e9, rel=0.05)


def test_a_card_that_falls_off_the_bus_is_missing_not_idle(cards):
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        start, _ = new_rows(telemetry, 10)
        cards.say("0 lost 1")
        time.sleep(0.7)
        _, end = new_rows(telemetry, 10, card=False)
        load = telemetry.load(start, end)
        last = telemetry.rows()[-1]
    assert "cpu_total_s" in last
    assert not {"throttle_bits", "power_w", "clock_mhz", "card_ns"} & set(last)
    assert (load.energy_j, load.energy_missing) == (None, "the energy counter was not read over the whole window")
    assert load.busy_share is not None


def test_a_driver_that_blocks_in_mid_run_costs_its_own_readings_only(cards):
    with Telemetry(HERTZ) as telemetry:
        new_rows(telemetry, 2)
        start, _ = new_rows(telemetry, 10)
        cards.say("0 block 1")
        time.sleep(0.7)
        _, end = new_rows(telemetry, 10, card=False)
        load = telemetry.load(start, end)
        assert "card_ns" not in telemetry.rows()[-1]
        assert load.energy_missing == "the energy counter was not read over the whole window"
        cards.say("0 block 0")
        new_rows(telemetry, 2)
