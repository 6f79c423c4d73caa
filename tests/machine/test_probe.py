"""The short copy on the card: with a torch that is played, since no card is here."""

import os
import sys

import pytest

from paribus.catalog import Card
from paribus.cli.doctor import judge_probe
from paribus.machine.probe import Probe, probe, torch_python
from paribus.machine.proof import Proof, find_variant


@pytest.fixture
def root(tmp_path):
    """A clone with one built environment that has torch, and a newer one that hasn't."""
    for number, (name, package) in enumerate((("vllm-0123", "torch"), ("other-0123", "numpy"))):
        folder = tmp_path / "build/envs" / name
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/python").symlink_to(sys.executable)
        (folder / "lib/python3.11/site-packages" / package).mkdir(parents=True)
        os.utime(folder / "bin", (1000 + number, 1000 + number))
    return tmp_path


def test_the_environment_that_has_torch_does_it(root):
    assert torch_python(root) == root / "build/envs/vllm-0123/bin/python"
    done = probe(root, 'print("warning"); print(\'{"copy_gb_s": 2900, "matrix_tflops": 650.5}\')')
    assert done == Probe(copy_gb_s=2900, matrix_tflops=650.5)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit('torch sees no card')", "torch sees no card"),
        ("print('nothing')", "printed no figures"),
        ("import time; time.sleep(60)", "did not end in 0.5 s"),
    ],
)
def test_a_failure_is_told_and_is_no_figure(root, program, words):
    done = probe(root, program, limit_s=0.5 if "sleep" in program else 60)
    assert words in done.failed
    assert done.copy_gb_s is None


def test_without_torch_it_is_skipped_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    done = probe(tmp_path)
    assert done == Probe(skipped="no environment here has torch yet")
    assert "no copy and no matrix product: no environment" in judge_probe(done, Proof(None)).text


def test_a_slow_copy_is_noted_and_never_stops_a_run():
    variant = {"title": "C", "pci_device_ids": ["aaaa:10de"], "bandwidth_gb_s": 3000}
    card = Card.model_validate({"kind": "nvidia", "title": "C", "variants": [variant]})
    proof = Proof(find_variant(card, {"pci_device_id": "aaaa:10de"}))
    fast, slow = (judge_probe(Probe(copy, 600.0), proof) for copy in (2800.0, 1200.0))
    assert (fast.state, slow.state) == ("good", "note")
    assert "less than half" in slow.text
    assert judge_probe(Probe(failed="CUDA error"), proof).state == "note"
