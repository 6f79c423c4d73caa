"""A catalog of one tiny system whose engine is a script: it plays a server, or a way in which servers fail."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from private_catalog import MODEL

from paribus.catalog import Catalog, Job, Plan, PlannedMeasure, Totals
from paribus.conditions import run_id
from paribus.engines import environment_build, weights_marker

SERVER = Path(__file__).with_name("played_server.py")

LLAMACPP = """\
  llamacpp:
    precisions: [q4]
    launch: {context_per_slot: 512, kv_unified: false, poll: 0, cache_prompt: false}
    launch_source: a test
    decoders:
      plain: {method: plain}
      ngram-simple-n3: {method: ngram, acceptance: strict, parameters: {type: ngram-simple, size_n: 3}}
"""

HARDWARE = """
hardware: cpu
card: {kind: cpu, title: a CPU}
speeds: {decode_1: 1, decode_16: 1, prompt: 1, engine_start_s: 1}
"""


@dataclass
class Workplace:
    """A repository of its own, ready to run jobs in."""

    root: Path

    def play(self, behaviour: str) -> None:
        """How the next server behaves."""
        self.weights.parent.mkdir(parents=True, exist_ok=True)
        self.weights.write_text(behaviour.ljust(64))
        self.marker.write_text(json.dumps({"path": "tiny.gguf", "bytes": 64}))

    @property
    def marker(self) -> Path:
        """The marker of the system's weights."""
        return weights_marker(self.root, self.catalog.system("tiny--q4--llamacpp--plain"))

    @property
    def weights(self) -> Path:
        """The fetched file."""
        return self.marker.with_suffix("") / "tiny.gguf"

    @property
    def catalog(self) -> Catalog:
        return Catalog(self.root)

    def plan(self, kind: str = "speed", measures: tuple[str, ...] = ("c1-long", "c16-long"), lead: int = 0) -> Plan:
        """A plan of one job with these measures."""
        system = "tiny--q4--llamacpp--plain"
        planned = []
        for number, measure in enumerate(measures):
            hashes = dict.fromkeys(("answer_class", "system_hash", "measure_hash", "conditions"), f"{number}" * 12)
            run = f"cpu/m-test/{system}/{measure}/{hashes['conditions']}.1"
            planned.append(PlannedMeasure(measure=measure, id=measure, run=run, declared={"cap": 64}, hashes=hashes))
        job = Job(
            job=f"{run_id(planned[lead].run)}-1", kind=kind, system=system, start=1, lead=lead, measures=planned,
            launch={"context_per_slot": 512, "slots": 2}, engine="llamacpp", done=False, needs=[], priority=0,
            seconds=1,
        )  # fmt: skip
        return Plan(
            edition="test", protocol=1, hardware="cpu", machine="m-test", scale="tiny", results="results", races=[],
            jobs=[job], runs=[], excluded=[], waiting=[],
            totals=Totals(jobs=1, jobs_done=0, hours=0, download_gb=0, disk_gb=0),
        )  # fmt: skip

    def start(self, measure: str) -> Path:
        """The folder of the only start of a measure."""
        (run,) = (self.root / "results").glob(f"*/*/*/{measure}/*.1")
        return run / "start-1"


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A workplace whose server answers as it should."""
    root = tmp_path / "repository"
    for name, text in {
        "systems/tiny.yaml": MODEL.format(name="tiny") + LLAMACPP,
        "hardware/cpu/hardware.yaml": HARDWARE,
        "envs/llamacpp/requirements.txt": "tiny==1\n",
        "envs/llamacpp/serve.py": SERVER.read_text(),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    python = root / "build" / "envs" / f"llamacpp-{environment_build(root, 'llamacpp')}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    marker = python.parent.parent.with_name(python.parent.parent.name + ".json")
    marker.write_text(json.dumps({"packages": {"xllamacpp": "0"}, "python": "3.11"}))
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.delenv("PARIBUS_WORKFLOW_PID", raising=False)
    monkeypatch.delenv("PARIBUS_PORT", raising=False)
    place = Workplace(root)
    place.play("well")
    return place
