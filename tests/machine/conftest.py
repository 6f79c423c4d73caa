"""A stand-in for NVIDIA's library, built here from C, and the cards that it plays."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nvml_standin.c")
OURS = Path(__file__).resolve().parents[2]
PROOF = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from paribus.catalog import Catalog
from paribus.machine import observe_machine
from paribus.machine.proof import card_users, prove
card = Catalog(Path(sys.argv[1])).hardware(sys.argv[2]).card
proof = prove(sys.argv[2], card, observe_machine(), card_users())
print(json.dumps({"variant": proof.variant.title if proof.variant else None, "observed": proof.observed,
                  "findings": [[f.state, f.text] for f in proof.findings]}))
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Folder with the stand-in `libnvidia-ml.so.1`."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        (pytest.fail if os.environ.get("PARIBUS_REQUIRE") else pytest.skip)("no C compiler for the stand-in library")
    folder = tmp_path_factory.mktemp("nvml")
    target = str(folder / "libnvidia-ml.so.1")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", target, str(SOURCE)], check=True)
    return folder


class Cards:
    """The cards that the stand-in plays."""

    def __init__(self, plan):
        self.plan = plan
        self.lines = []

    def say(self, *lines):
        """Add lines; they hold from the next call of the driver on."""
        self.lines += lines
        partial = self.plan.with_suffix(".partial")
        partial.write_text("\n".join(self.lines) + "\n")
        partial.replace(self.plan)

    def facts(self):
        """What `observe_machine` says, in a process that loads the stand-in."""
        script = "import json; from paribus.machine import observe_machine; print(json.dumps(observe_machine()))"
        return json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)

    def prove(self, profile):
        """What the proof of one of our profiles finds: variant, findings, observed conditions."""
        done = subprocess.run([sys.executable, "-c", PROOF, str(OURS), profile], capture_output=True, check=True)
        return json.loads(done.stdout)


@pytest.fixture
def cards(library, tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    monkeypatch.setenv("NVML_STANDIN", str(tmp_path / "cards"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    played = Cards(tmp_path / "cards")
    played.say("0 card 1")
    return played
