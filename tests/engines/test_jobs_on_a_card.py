"""A job proves its card before it starts a server, and its manifest carries the variant that was found."""

from types import SimpleNamespace

import pytest

from paribus.conditions import EnvironmentFault, Manifest
from paribus.engines import job, run_job
from paribus.engines.local import ask_json
from paribus.machine import proof

HARDWARE = """
hardware: cpu
card:
  kind: nvidia
  title: NVIDIA H100
  variants:
    - {title: H100 SXM 80 GB, pci_device_ids: ["2330:10de"], cores: 16896, memory_gb: 80}
    - {title: H100 PCIe 80 GB, pci_device_ids: ["2331:10de"], cores: 14592, memory_gb: 80}
speeds: {decode_1: 1, decode_16: 1, prompt: 1, engine_start_s: 1}
"""
PCIE = {
    "card": "NVIDIA H100 PCIe", "card_count": 1, "pci_device_id": "2331:10de", "cuda_cores": 14592,
    "card_memory_gb": 85.5, "power_limit_w": 300.0, "power_default_w": 350.0,
}  # fmt: skip


@pytest.fixture
def card(workplace, monkeypatch):
    """The workplace on a machine with a card that says `facts` of itself and has `users`."""
    (workplace.root / "hardware/cpu/hardware.yaml").write_text(HARDWARE)
    said = SimpleNamespace(facts=dict(PCIE), users=(0, 0))
    monkeypatch.setattr(proof, "observe_machine", lambda: said.facts)
    monkeypatch.setattr(proof, "card_users", lambda: said.users)
    monkeypatch.setattr(job, "open_nvml", lambda: SimpleNamespace(lock_names=lambda: ["gpu-test"]))
    return said


def measure(session, _planned, folder):
    with session.measuring():
        ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})
    (folder / "summary.json").write_text("{}")


def run(workplace):
    plan = workplace.plan(measures=("c1-long",))
    run_job(workplace.root, plan, plan.jobs[0].job, measure, tell=False)


def test_the_manifest_says_which_variant_was_measured(workplace, card):
    run(workplace)
    manifest = Manifest.model_validate_json((workplace.start("c1-long") / "manifest.json").read_text())
    assert manifest.observed["card_variant"] == "H100 PCIe 80 GB"


@pytest.mark.parametrize(
    ("facts", "users", "words"),
    [
        ({"pci_device_id": "20b2:10de", "card": "NVIDIA A100"}, (0, 0), "is for NVIDIA H100 .* has 1 x NVIDIA A100"),
        ({}, (1, 0), "1 other process is computing"),
        ({"mig": True}, (0, 0), "MIG is on"),
    ],
)
def test_nothing_is_started_on_a_card_that_is_not_proven(workplace, card, facts, users, words):
    card.facts |= facts
    card.users = users
    with pytest.raises(EnvironmentFault, match=words):
        run(workplace)
    assert not (workplace.root / "results").exists()
    assert not list((workplace.root / "build").glob("logs/*engine.log"))
