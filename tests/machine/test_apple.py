"""An Apple chip is read from what `sysctl` and `system_profiler` print; their shape is a recorded one, of macOS 14."""

import json
import os
import sys

import pytest

from paribus.machine import apple
from paribus.machine.apple import chip_facts, observe_chip

DISPLAYS = {
    "SPDisplaysDataType": [
        {
            "_name": "kHW_AppleM3MaxItem",
            "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
            "spdisplays_ndrvs": [{"_name": "Color LCD", "spdisplays_resolution": "3456 x 2234"}],
            "spdisplays_vendor": "sppci_vendor_Apple",
            "sppci_bus": "spdisplays_builtin",
            "sppci_cores": "40",
            "sppci_device_type": "spdisplays_gpu",
            "sppci_model": "Apple M3 Max",
        }
    ]
}


def test_a_chip_is_its_name_and_its_gpu_cores():
    assert chip_facts("Apple M3 Max\n", json.dumps(DISPLAYS)) == {
        "card": "Apple M3 Max, 40 GPU cores",
        "chip": "Apple M3 Max",
        "gpu_cores": 40,
    }


@pytest.mark.parametrize("displays", ["", "{", "[]", '{"SPDisplaysDataType": [{"sppci_cores": "?"}]}', '{"x": 1}'])
def test_without_a_number_of_cores_none_is_told(displays):
    assert chip_facts("Apple M4 Pro", displays) == {"card": "Apple M4 Pro", "chip": "Apple M4 Pro"}


def test_another_makers_chip_is_none():
    assert chip_facts("Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz", json.dumps(DISPLAYS)) == {}


def test_the_two_programs_are_asked_on_macos_alone(tmp_path, monkeypatch):
    for name, text in (("sysctl", "Apple M3 Max"), ("system_profiler", json.dumps(DISPLAYS))):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\nprint('''{text}''')\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(apple.platform, "system", lambda: "Linux")
    assert observe_chip() == {}
    monkeypatch.setattr(apple.platform, "system", lambda: "Darwin")
    assert observe_chip()["gpu_cores"] == 40
    (tmp_path / "system_profiler").write_text("#!/bin/sh\nexit 3\n")
    assert observe_chip() == {"card": "Apple M3 Max", "chip": "Apple M3 Max"}
