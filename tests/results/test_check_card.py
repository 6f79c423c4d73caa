"""A submitted start's card is proven again from what its manifest says was observed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paribus.catalog import Catalog
from paribus.results.check_card import check_card
from paribus.results.findings import Report

OURS = Path(__file__).resolve().parents[2]
SXM: dict[str, Any] = {
    "card": "NVIDIA H100 80GB HBM3", "card_variant": "H100 SXM 80 GB", "card_count": 1, "pci_device_id": "2330:10de",
    "cuda_cores": 16896, "card_memory_gb": 85.5, "mig": False,
}  # fmt: skip


def verdicts(hardware: str = "h100", **changes: Any) -> list[tuple[str, str]]:
    start = SimpleNamespace(manifest=SimpleNamespace(declared={"hardware": hardware}, observed=SXM | changes))
    report = Report()
    check_card(start, "start-1", Catalog(OURS), report)
    return [(finding.verdict, finding.text) for finding in report.findings if finding.verdict != "holds"]


def test_a_card_that_is_the_profiles_holds() -> None:
    assert verdicts() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pci_device_id": "20b2:10de", "card": "NVIDIA A100"}, "is for NVIDIA H100"),
        ({"pci_device_id": "2331:10de", "cuda_cores": 14592}, "makes it 'H100 PCIe 80 GB'"),
        ({"card_variant": None}, "card_variant is None"),
        ({"cuda_cores": 14592}, "is for NVIDIA H100"),
        ({"mig": True}, "MIG is on"),
        ({"card_count": 8}, "8 can be seen"),
    ],
)
def test_what_does_not_hold_together_fails(changes: dict[str, Any], words: str) -> None:
    [(verdict, text)] = verdicts(**changes)
    assert verdict == "fails"
    assert words in text


def test_a_cpu_needs_no_proof_and_an_unknown_profile_is_not_checked() -> None:
    assert verdicts("cpu") == []
    assert [verdict for verdict, _ in verdicts("h999")] == ["not checked"]
