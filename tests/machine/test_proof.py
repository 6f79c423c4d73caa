"""A machine is what its profile says, or is refused: played through the real `pynvml`, and by facts alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.catalog import Card, Catalog
from paribus.conditions import EnvironmentFault
from paribus.machine import proof
from paribus.machine.proof import power_limited, prove, sm_count

OURS = Path(__file__).resolve().parents[2]
PCIE = (
    "0 name NVIDIA_H100_PCIe",
    f"0 device {0x2331}",
    "0 cores 14592",
    "0 power_limit 350000",
    "0 power_default 350000",
)
A100 = (
    *("0 name NVIDIA_A100-SXM4-40GB", f"0 device {0x20B0}", "0 cores 6912", "0 memory 42949672960"),
    *("0 major 8", "0 minor 0"),
)


def states(proven, state):
    return [text for found, text in proven["findings"] if found == state]


def facts(profile, variant=0, **other):
    """What a machine with a profile's card would say of itself."""
    card = Catalog(OURS).hardware(profile).card
    one = card.variants[variant]
    told = {"card": one.title, "card_count": 1, "pci_device_id": one.pci_device_ids[0], "cuda_cores": one.cores}
    if not card.unified and one.memory_gb:
        told["card_memory_gb"] = round(one.memory_gb * 1.069, 1)
    return {key: value for key, value in (told | other).items() if value is not None}


def card_of(profile):
    return Catalog(OURS).hardware(profile).card


def test_an_h100_sxm_is_what_the_profile_plans_for(cards):
    proven = cards.prove("h100")
    assert proven["variant"] == "H100 SXM 80 GB"
    assert proven["observed"] == {"card_variant": "H100 SXM 80 GB"}
    assert [state for state, _ in proven["findings"]] == ["good"]


def test_an_h100_pcie_is_accepted_under_its_own_name_and_compared_with_no_sxm(cards):
    cards.say(*PCIE)
    proven = cards.prove("h100")
    assert proven["observed"] == {"card_variant": "H100 PCIe 80 GB"}
    assert states(proven, "lacks") == []
    assert any("runs on H100 SXM 80 GB are never compared with it" in text for text in states(proven, "note"))


def test_another_card_is_refused_naming_expected_and_found(cards):
    cards.say(*A100)
    [text] = states(cards.prove("h100"), "lacks")
    assert "is for NVIDIA H100 (H100 SXM 80 GB; " in text
    assert (
        "1 x NVIDIA A100-SXM4-40GB (PCI 20b0:10de, 6,912 cores, about 108 multiprocessors by its cores, 42.9 GB, "
        "700 W by default, " in text
    )
    assert cards.prove("a100")["variant"] == "A100 SXM 40 GB"


def test_a_card_with_the_right_id_and_other_cores_is_another_card(cards):
    cards.say("0 cores 14592")
    [text] = states(cards.prove("h100"), "lacks")
    assert "14,592 cores" in text


def test_a_power_limited_card_is_measured_and_said(cards):
    cards.say("0 power_limit 450000")
    proven = cards.prove("h100")
    assert proven["variant"] == "H100 SXM 80 GB"
    assert any("450 W of 700 W by default" in text for text in states(proven, "note"))
    assert power_limited(cards.facts()) == "450 W of 700 W by default"


@pytest.mark.parametrize(
    ("count", "words"), [(1, "1 other process is computing"), (3, "3 other processes are computing")]
)
def test_a_card_in_use_is_refused_with_the_number_of_processes_alone(cards, count, words):
    cards.say(f"0 computing {count}")
    [text] = states(cards.prove("h100"), "lacks")
    assert words in text
    assert "10000" not in text


def test_a_desktop_on_the_card_is_said_and_refuses_nothing(cards):
    cards.say("0 drawing 2")
    proven = cards.prove("h100")
    assert states(proven, "lacks") == []
    assert any("draws a desktop (2 processes)" in text for text in states(proven, "note"))


def test_a_card_cut_into_slices_is_refused(cards, monkeypatch):
    cards.say("0 mig 1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a1-0000")
    assert any("MIG is on" in text for text in states(cards.prove("h100"), "lacks"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert states(cards.prove("h100"), "lacks") != []


def test_a_virtual_card_is_refused_and_one_passed_through_is_not(cards):
    cards.say("0 virtual 2")
    [text] = states(cards.prove("h100"), "lacks")
    assert "a virtual card: others share" in text
    cards.say("0 virtual 1")
    assert states(cards.prove("h100"), "lacks") == []
    assert cards.facts()["virtualization"] == "passed through whole"


def test_more_cards_than_the_profile_uses_are_refused_with_the_way_out(cards, monkeypatch):
    cards.say("1 card 1")
    [text] = states(cards.prove("h100"), "lacks")
    assert "CUDA_VISIBLE_DEVICES=0" in text
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert states(cards.prove("h100"), "lacks") == []


def test_clocks_set_by_hand_lanes_and_persistence_are_said(cards):
    cards.say("0 offset 150", "0 lanes 8", "0 persistence 0")
    told = cards.facts()
    assert told["clock_state"] == "graphics clock offset +150 MHz"
    assert told["pcie"] == "generation 5, 8 of 16 lanes"
    notes = " ".join(states(cards.prove("h100"), "note"))
    assert "graphics clock offset +150 MHz" in notes
    assert "8 of 16 lanes" in notes
    assert "persistence mode is off" in notes


def test_any_takes_what_is_there_and_says_that_it_is_not_ranked_with_named_cards(cards):
    cards.say(*A100)
    proven = cards.prove("any")
    assert proven["observed"] == {"card_variant": "NVIDIA A100-SXM4-40GB"}
    assert any("not ranked with named cards" in text for text in states(proven, "good"))


def doctor(*arguments):
    kept = {k: v for k, v in os.environ.items() if k not in ("PARIBUS_DATA", "PARIBUS_USER_SIM_URL")}
    environment = {**kept, "PARIBUS_MACHINE": "m-test", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", "from paribus.cli import main; main()", "doctor", *arguments]
    return subprocess.run(command, cwd=OURS, env=environment, capture_output=True, text=True, check=False)


def test_doctor_ends_with_1_on_another_card_and_names_the_profile_that_fits(cards):
    cards.say(*A100)
    done = doctor("--profile", "h100")
    assert done.returncode == 1
    assert "lacks card: the profile h100 is for NVIDIA H100" in done.stdout
    assert "this machine is what these profiles name: a100" in done.stdout
    assert "driver: NVIDIA 580.95.05" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_job_refuses_the_card_that_a_proof_would_refuse(monkeypatch):
    monkeypatch.setattr(proof, "observe_machine", lambda: facts("a100"))
    monkeypatch.setattr(proof, "card_users", lambda: (0, 0))
    with pytest.raises(EnvironmentFault, match="the profile h100 is for NVIDIA H100"):
        proof.require_card("h100", card_of("h100"))
    assert proof.require_card("a100", card_of("a100")).observed == {"card_variant": "A100 SXM 80 GB"}
    monkeypatch.setattr(proof, "card_users", lambda: (2, 0))
    with pytest.raises(EnvironmentFault, match="2 other processes"):
        proof.require_card("a100", card_of("a100"))
    assert proof.require_card("cpu", card_of("cpu")).findings == []


NAMED = sorted(
    (path.parent.name, index)
    for path in OURS.glob("hardware/*/hardware.yaml")
    for index in range(len(Catalog(OURS).hardware(path.parent.name).card.variants))
    if Catalog(OURS).hardware(path.parent.name).card.kind == "nvidia"
)


@pytest.mark.parametrize(("profile", "index"), NAMED)
def test_every_variant_of_every_card_is_told_from_all_others(profile, index):
    machine = facts(profile, index)
    for other in {name for name, _ in NAMED}:
        found = prove(other, card_of(other), machine).variant
        if other == profile:
            assert found == card_of(profile).variants[index]
        else:
            assert found is None, other


def test_two_machines_of_one_chip_are_told_apart_by_their_memory():
    spark = prove("dgx-spark", card_of("dgx-spark"), facts("dgx-spark", memory_gb=128.5))
    assert spark.observed == {"card_variant": "DGX Spark GB10 128 GB"}
    rack = facts("gb300")
    assert prove("gb300", card_of("gb300"), rack).variant is not None
    assert prove("dgx-station", card_of("dgx-station"), rack).variant is None


APPLE = {"card": "Apple M3 Max, 30 GPU cores", "chip": "Apple M3 Max", "gpu_cores": 30, "memory_gb": 38.7}


def test_an_apple_chip_is_proven_by_its_name_and_its_cores():
    assert prove("m3-max", card_of("m3-max"), APPLE).observed == {"card_variant": "M3 Max 30 GPU cores"}
    assert prove("m3-max", card_of("m3-max"), APPLE | {"gpu_cores": 40}).observed == {
        "card_variant": "M3 Max 40 GPU cores"
    }
    refused = prove("m4-pro", card_of("m4-pro"), APPLE).refusal
    assert refused is not None
    assert "Apple M4 Pro" in refused.text


def test_what_the_profile_is_not_sure_of_refuses_nothing():
    sure = {"title": "C 10 GB", "pci_device_ids": ["aaaa:10de"], "cores": 100}
    machine = {"card": "C", "card_count": 1, "pci_device_id": "aaaa:10de", "cuda_cores": 90}

    def card(**more):
        return Card.model_validate({"kind": "nvidia", "title": "C", "variants": [sure | more]})

    assert prove("c", card(), machine).refusal is not None
    doubted = prove("c", card(unverified={"cores": "a rumour"}), machine)
    assert doubted.refusal is None
    assert any("cores is in doubt (a rumour)" in finding.text for finding in doubted.findings)


def test_a_proof_is_complete_only_with_an_identity():
    for machine in ({"card": "a CPU, 2 cores"}, {"card": "H100", "card_count": 1}):
        assert prove("h100", card_of("h100"), machine).refusal is not None
    assert json.dumps(prove("cpu", card_of("cpu"), {"card": "a CPU, 2 cores"}).observed) == "{}"


def test_cores_are_those_of_the_sms():
    """NVML tells cores and the rule names SMs: 64 cores an SM on an A100, 128 on the others."""
    for profile, index in NAMED:
        variant = card_of(profile).variants[index]
        if variant.sm_count is not None and variant.cores is not None:
            told = {"cuda_cores": variant.cores, "compute_capability": f"{card_of(profile).compute_capability:.1f}"}
            assert sm_count(told) == variant.sm_count, variant.title


def test_the_multiprocessors_are_held_against_the_profile():
    """Of a variant whose profile names no cores; and where they are in doubt, nothing is refused."""
    sure = {"title": "C 10 GB", "pci_device_ids": ["aaaa:10de"], "sm_count": 100}
    machine = {"card": "C", "card_count": 1, "pci_device_id": "aaaa:10de", "compute_capability": "8.9"}

    def found(cores, **more):
        card = Card.model_validate({"kind": "nvidia", "title": "C", "variants": [sure | more]})
        return prove("c", card, machine | {"cuda_cores": cores})

    assert found(12_800).refusal is None
    assert "11,520 cores, about 90 multiprocessors by its cores" in found(11_520).refusal.text
    doubted = found(11_520, unverified={"sm_count": "a rumour"})
    assert doubted.refusal is None
    assert any("sm_count is in doubt (a rumour)" in finding.text for finding in doubted.findings)


def test_multiprocessors_reckoned_from_cores_are_no_second_vote_beside_them():
    """The first variant has the right cores and multiprocessors, the second the right cores and memory alone."""
    both = {"pci_device_ids": ["aaaa:10de"], "cores": 12_800}
    variants = [
        both | {"title": "C 80 GB", "sm_count": 100, "memory_gb": 80, "unverified": {"memory_gb": "a rumour"}},
        both | {"title": "C 10 GB", "memory_gb": 10},
    ]
    machine = {"card": "C", "card_count": 1, "pci_device_id": "aaaa:10de", "compute_capability": "8.9"}
    machine |= {"cuda_cores": 12_800, "card_memory_gb": 10.7}
    found = prove("c", Card.model_validate({"kind": "nvidia", "title": "C", "variants": variants}), machine)
    assert found.variant.title == "C 10 GB"


@pytest.mark.parametrize(
    ("told", "count"),
    [
        ({"cuda_cores": 6912, "compute_capability": "8.0"}, 108),
        ({"cuda_cores": 16896, "compute_capability": "9.0"}, 132),
        ({"cuda_cores": 6144, "compute_capability": "12.1"}, 48),
        ({"cuda_cores": 6912, "compute_capability": "3.5"}, None),
        ({"cuda_cores": 6912, "compute_capability": "99.0"}, None),
        ({"cuda_cores": 100, "compute_capability": "9.0"}, None),
        ({"cuda_cores": 6912}, None),
        ({"compute_capability": "9.0"}, None),
        ({}, None),
    ],
)
def test_multiprocessors_are_reckoned_only_where_their_size_is_known(told, count):
    assert sm_count(told) == count
