"""What a machine is: read from it, and nothing that says whose it is."""

import getpass
import json
import socket
from types import SimpleNamespace

import pytest

from paribus.conditions import CONDITIONS
from paribus.machine import facts, memory_gb, observe_machine
from paribus.machine.cpu import cpu_model
from paribus.machine.nvml import Nvml, visible_devices


class Fault(Exception):
    """NVML's error."""


class Library:
    """A stand-in for pynvml that plays given cards; what a card lacks raises, as NVML does."""

    NVMLError = Fault
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, *cards):
        self.cards = cards

    def nvmlInit(self):  # noqa: N802 (NVML's name)
        return None

    def nvmlDeviceGetCount(self):  # noqa: N802 (NVML's name)
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802 (NVML's name)
        return self.cards[index]

    def nvmlSystemGetDriverVersion(self):  # noqa: N802 (NVML's name)
        return b"570.124.06"

    def __getattr__(self, name):
        def call(card, *_rest):
            if name not in card:
                raise Fault(name)
            return card[name]

        return call


H100 = {
    "nvmlDeviceGetUUID": "GPU-8d6f2c1e-1234-4abc-9def-0123456789ab",
    "nvmlDeviceGetName": b"NVIDIA H100 PCIe",
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=85_520_809_984),
    "nvmlDeviceGetPowerManagementLimit": 300_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 350_000,
    "nvmlDeviceGetPciInfo": SimpleNamespace(pciDeviceId=0x233110DE),
    "nvmlDeviceGetEccMode": (1, 1),
    "nvmlDeviceGetMigMode": (0, 0),
    "nvmlDeviceGetApplicationsClock": 1755,
    "nvmlDeviceGetDefaultApplicationsClock": 1755,
    "nvmlDeviceGetTotalEnergyConsumption": 5_000_000,
    "nvmlDeviceGetPowerUsage": 240_000,
    "nvmlDeviceGetClockInfo": 1755,
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4,
    "nvmlDeviceGetSerial": "1650923004711",
}


@pytest.fixture(autouse=True)
def all_visible(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_this_machine_is_described_without_its_owner():
    facts = observe_machine()
    for name in ("card", "card_count", "cpu", "cpu_count", "memory_gb", "os"):
        assert facts[name], name
        assert CONDITIONS[name].how == "observed"
    told = json.dumps(facts)
    host, user = socket.gethostname(), getpass.getuser()
    assert len(host) < 4 or host not in told
    assert user == "root" or user not in told


def test_a_card_is_read_with_its_limit_and_its_kind():
    facts = Nvml(Library(H100)).facts()
    assert facts == {
        "card": "NVIDIA H100 PCIe",
        "card_count": 1,
        "card_memory_gb": 85.5,
        "power_limit_w": 300.0,
        "power_default_w": 350.0,
        "clock_state": "default",
        "pci_device_id": "2331:10de",
        "ecc": True,
        "mig": False,
        "temperature_c": 61,
        "driver": "570.124.06",
    }


def test_neither_serial_nor_id_of_a_card_is_told():
    nvml = Nvml(Library(H100))
    told = json.dumps([nvml.facts(), nvml.sample(), nvml.lock_names()])
    assert "1650923004711" not in told
    assert "8d6f2c1e" not in told


def test_a_changed_clock_and_unlike_cards_are_said():
    other = H100 | {"nvmlDeviceGetName": "NVIDIA A100", "nvmlDeviceGetUUID": "GPU-2"}
    changed = H100 | {"nvmlDeviceGetApplicationsClock": 1200}
    assert Nvml(Library(changed)).facts()["clock_state"] == "applications clock 1200 MHz (default 1755 MHz)"
    facts = Nvml(Library(H100, other)).facts()
    assert (facts["card"], facts["card_count"]) == ("NVIDIA A100 + NVIDIA H100 PCIe", 2)


def test_a_sample_adds_up_energy_and_keeps_the_worst_of_the_rest():
    hot = H100 | {"nvmlDeviceGetTemperature": 83, "nvmlDeviceGetClockInfo": 1500, "nvmlDeviceGetUUID": "GPU-2"}
    assert Nvml(Library(H100, hot)).sample() == {
        "energy_j": 10_000.0,
        "power_w": 480.0,
        "power_average_w": 480.0,
        "power_limit_w": 600.0,
        "clock_mhz": 1500.0,
        "memory_clock_mhz": 1500.0,
        "temperature_c": 83.0,
        "throttle_bits": 4.0,
    }


def test_energy_of_a_part_of_the_cards_is_no_energy():
    old = {k: v for k, v in H100.items() if k != "nvmlDeviceGetTotalEnergyConsumption"}
    assert "energy_j" not in Nvml(Library(H100, old)).sample()


@pytest.mark.parametrize(
    ("variable", "indexes"),
    [(None, [0, 1, 2]), ("", []), ("1", [1]), ("2,0", [2, 0]), ("GPU-b", [1]), ("0,7,1", [0]), ("-1", [])],
)
def test_cards_are_those_that_are_visible(monkeypatch, variable, indexes):
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert visible_devices(3, ["GPU-a1", "GPU-b2", "GPU-c3"]) == indexes


def test_locks_are_one_a_card_and_the_same_each_time():
    other = H100 | {"nvmlDeviceGetUUID": "GPU-2"}
    names = Nvml(Library(H100, other)).lock_names()
    assert len(set(names)) == 2
    assert names == Nvml(Library(H100, other)).lock_names()


def test_a_cpu_names_itself_in_several_spellings():
    assert cpu_model("processor\t: 0\nmodel name\t: AMD  EPYC 9654\n") == "AMD EPYC 9654"
    assert cpu_model("processor : 0\nBogoMIPS : 108\nModel\t\t: Raspberry Pi 5\n") == "Raspberry Pi 5"
    assert cpu_model("nothing here") is None


GROUPS_1 = "7:pids:/\n4:memory:/docker/abc\n0::/\n"


@pytest.mark.parametrize(
    ("files", "own", "gb"),
    [
        # A container of version 2 sees its own group as the root.
        ({"memory.max": "3000000000"}, "0::/\n", 3.0),
        ({"memory.max": "max"}, "0::/\n", 1000.0),
        # A service's or a job's group lies further down, and one above it may be the tighter.
        ({"system.slice/job/memory.max": "3000000000"}, "0::/system.slice/job\n", 3.0),
        ({"slurm/memory.max": "2000000000", "slurm/step/memory.max": "max"}, "0::/slurm/step\n", 2.0),
        # Version 1: at the path that the machine knows, or mounted as the root; "none" is a huge number.
        ({"memory/docker/abc/memory.limit_in_bytes": "4000000000"}, GROUPS_1, 4.0),
        ({"memory/memory.limit_in_bytes": "4000000000"}, GROUPS_1, 4.0),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, GROUPS_1, 1000.0),
        # Both at once, version 2 beside the others.
        ({"unified/job/memory.max": "3000000000"}, "4:memory:/\n0::/job\n", 3.0),
        # Another group's limit is not ours.
        ({"other/memory.max": "1"}, "0::/job\n", 1000.0),
        ({}, None, 1000.0),
    ],
)
def test_the_memory_of_a_container_is_its_limit(tmp_path, monkeypatch, files, own, gb):
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    if own is not None:
        (tmp_path / "own").write_text(own)
    monkeypatch.setattr(facts, "_CONTROL_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(facts, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(facts.os, "sysconf", {"SC_PAGE_SIZE": 4000, "SC_PHYS_PAGES": 250_000_000}.__getitem__)
    assert memory_gb() == gb
