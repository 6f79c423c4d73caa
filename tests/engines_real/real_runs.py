"""Real engines, measured as contributors measure them: a job of a plan, and `paribus speed` against its server.

Everything happens in a repository in a temporary folder with this one's catalog and environments, a private catalog
beside it and weights of its own: what is measured here, of random weights too, never comes near results.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from paribus.catalog import Catalog, Job, Plan, Totals
from paribus.catalog.configuration import Overrides, configure
from paribus.catalog.declare import Place, declare_scenario
from paribus.catalog.envs import engine_build
from paribus.conditions import SystemName, run_id
from paribus.engines import Session, StartRecord, run_job
from paribus.engines.counters import parse_metrics
from paribus.engines.local import ask
from paribus.engines.weights import find_weights, total_bytes, weights_path
from paribus.machine import scrub
from paribus.results.run import all_runs
from paribus.speed.run import measure_speed_start

ROOT = Path(__file__).parents[2]
SHARED = ROOT / "build" / "engine-tests"
"""Weights that tests make once."""

CODE = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\n"
PROMPTS = [f"Repeat this code exactly, {n} times:\n{CODE * 2}" for n in ("two", "three", "four", "five")] + [
    f"List the first {n} even numbers, one a line." for n in (10, 12, 14, 16)
]
"""On text that repeats itself, whatever drafts at all drafts."""


def made(python: Path, name: str, script: Path, *words: str) -> Path:
    """A model's folder, made once by a script in an environment that has torch: `script WORDS FOLDER`.

    Changed scripts make another folder: weights that an older one made are never taken. Half a model is none.
    """
    scripts = [script, *sorted(Path(__file__).parent.glob("tiny_*.py"))]
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in scripts)).hexdigest()[:12]
    folder = SHARED / digest / name
    if not folder.exists():
        half = folder.with_name(f"{name}.half")
        ran = subprocess.run([python, script, *words, half], capture_output=True, text=True, check=False, timeout=900)
        assert ran.returncode == 0, ran.stderr[-2000:]
        half.rename(folder)
    return folder


def strangers(root: Path, models: Collection[str]) -> list[str]:
    """Runs of some models among a repository's results, or its demo's: none may be there of a test's own models."""
    return [str(run.path) for run in all_runs(root) if SystemName.parse(run.path.system).model in models]


@dataclass
class Start:
    """One measured start of a job: its manifest, its summary, its rows."""

    manifest: dict[str, Any]
    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    log: str

    @property
    def flags(self) -> set[str]:
        return {flag["id"] for flag in self.summary["flags"]}


@dataclass
class Measured:
    """A whole job: its starts by scenario, and what `extra` returned while the server still ran."""

    starts: dict[str, Start] = field(default_factory=dict)
    extra: Any = None


@dataclass(frozen=True)
class Repository:
    """A repository in a temporary folder, with a private catalog."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Repository:
        (root / "build" / "weights").mkdir(parents=True)
        (ROOT / "build" / "cache").mkdir(parents=True, exist_ok=True)  # what engines keep from start to start
        for name in ("systems", "tasks", "hardware", "envs", "pairs.yaml", "claims", "build/envs", "build/cache"):
            (root / name).symlink_to(ROOT / name)
        (root / "private" / "systems").mkdir(parents=True)
        return cls(root)

    @property
    def catalog(self) -> Catalog:
        return Catalog(self.root, self.root / "private")

    def system_file(self, name: str, text: str) -> None:
        """Add a model to the private catalog."""
        (self.root / "private" / "systems" / f"{name}.yaml").write_text(text)

    def weights(self, name: str, files: Path) -> None:
        """Put weights in place, as if they had been fetched by that name (of a system's file that is there already)."""
        _, name, _ = find_weights(self.catalog, name)
        place = self.root / "build" / "weights" / name
        place.mkdir(exist_ok=True)
        (place / files.name).symlink_to(files)
        marker = {"schema": 1, "weights": name, "path": files.name, "bytes": total_bytes(files)}
        place.with_name(f"{name}.json").write_text(json.dumps(marker))

    def tokenizer(self, session: Session) -> tuple[str, str]:
        """The option that gives `paribus speed` the model's own tokenizer: what a model of random weights writes says
        nothing in standard tokens."""
        return "--tokenizer", str(weights_path(self.root, session.system))

    def plan(self, system: str, scenarios: tuple[str, ...], slots: int, sampling: str = "served") -> Plan:
        """A plan of one job that measures one system in some scenarios, at the tiny scale."""
        catalog = self.catalog
        found = catalog.system(system)
        engine = found.name.engine
        config = configure(catalog, catalog.hardware("cpu"), Overrides(scale="tiny", systems=system, sampling=sampling))
        launch = {**found.launch_on("cpu"), "slots": slots}
        build = engine_build(self.root, engine) or ""
        measures = [
            declare_scenario(catalog, config, catalog.scenario(name), 1).planned(
                found, build, launch, Place("cpu", "m-test", 1)
            )
            for name in scenarios
        ]
        job = Job(
            job=f"{run_id(measures[0].run)}-1", kind="speed", system=system, start=1, lead=0, measures=measures,
            launch=launch, engine=engine, done=False, needs=[], priority=0, seconds=1,
        )  # fmt: skip
        return Plan(
            edition="test", protocol=1, hardware="cpu", machine="m-test", scale="tiny", results="build/demo-results",
            races=[], jobs=[job], runs=[], excluded=[], waiting=[], catalog=str(self.root / "private"),
            totals=Totals(jobs=1, jobs_done=0, hours=0, download_gb=0, disk_gb=0),
        )  # fmt: skip

    def measure(
        self,
        system: str,
        scenarios: tuple[str, ...] = ("c1-short",),
        slots: int = 4,
        extra: Callable[[Session], Any] | None = None,
        sampling: str = "served",
    ) -> Measured:
        """Run the job as `paribus speed --job` does; `extra` is called with the running server at the end."""
        plan, catalog, done = self.plan(system, scenarios, slots, sampling), self.catalog, Measured()

        def one(session: Session, planned: Any, folder: Path) -> StartRecord:
            record = measure_speed_start(session, planned, catalog, folder)
            if planned is plan.jobs[0].measures[0] and extra is not None:  # the lead is measured last
                done.extra = extra(session)
            return record

        run_job(self.root, plan, plan.jobs[0].job, one, catalog=catalog, tell=False)
        for planned in plan.jobs[0].measures:
            folder = self.root / plan.results / planned.run / "start-1"
            done.starts[planned.id] = Start(
                manifest=json.loads((folder / "manifest.json").read_text()),
                summary=json.loads((folder / "summary.json").read_text()),
                rows=pq.read_table(folder / "requests-lite.parquet").to_pylist(),
                log=(folder / "engine.log").read_text(),
            )
        return done


@dataclass(frozen=True)
class Asked:
    """What `paribus speed --base-url` measured, and how the server's own counters grew meanwhile."""

    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    grown: dict[str, float]


def speed(session: Session, folder: Path, *options: str, requests: int = 8, at_once: int = 4, cap: int = 48) -> Asked:
    """`paribus speed` against a session's server, with a page of its counters from before and after."""
    folder.mkdir(parents=True)
    prompts = folder / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"id": f"p{i}", "prompt": text}) + "\n" for i, text in enumerate(PROMPTS)))
    before = page(session)
    ran = subprocess.run(
        [
            str(Path(sys.executable).with_name("paribus")), "speed", "--base-url", session.endpoint.base_url,
            "--model", session.endpoint.model, "--out", str(folder / "out"), "--prompts", str(prompts),
            "--requests", str(requests), "--concurrency", str(at_once), "--max-tokens", str(cap), "--warmup", "0",
            "--json", *options,
        ],
        capture_output=True, text=True, check=False, timeout=900, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    after = page(session)
    grown = {name: after[name] - before.get(name, 0.0) for name in after}
    return Asked(json.loads(ran.stdout), pq.read_table(folder / "out" / "requests-lite.parquet").to_pylist(), grown)


def page(session: Session) -> dict[str, float]:
    """The server's own metrics, under its own names."""
    return parse_metrics(ask(f"{session.base}/metrics", timeout_s=60).decode())


def within(share: float, one: float, two: float) -> bool:
    """Whether two counts agree."""
    return abs(one - two) <= share * max(one, two)


RECORD = "PARIBUS_RECORD"
"""Environment variable: a folder for pages of real servers, which other tests read back (`tests/engines/recorded`)."""


def record(session: Session, name: str) -> None:
    """Keep a server's pages, a stream and the beginning of its log, scrubbed, where `PARIBUS_RECORD` names a folder."""
    wanted = os.environ.get(RECORD)
    if not wanted:
        return
    folder = Path(wanted) / name
    folder.mkdir(parents=True, exist_ok=True)
    body = {
        "model": session.endpoint.model, "messages": [{"role": "user", "content": PROMPTS[0]}], "max_tokens": 40,
        "stream": True, "stream_options": {"include_usage": True},
        **({"temperature": 0} if session.system.decoder.speculates else session.sampling()),
    }  # fmt: skip
    stream = ask(f"{session.base}/v1/chat/completions", body, timeout_s=120).decode()
    (folder / "stream.txt").write_text(stream)
    lines = ask(f"{session.base}/metrics").decode().splitlines()
    kept = [line for line in lines if line.startswith(session.engine.name.split("-")[0] + ":")]
    dull = ("_created", "_bucket", "_info")
    (folder / "metrics.txt").write_text("\n".join(k for k in kept if not any(d in k for d in dull)) + "\n")
    (folder / "models.json").write_bytes(scrubbed(ask(f"{session.base}/v1/models")))
    log = session.log.read_bytes()
    (folder / "log.txt").write_bytes(scrubbed(b"\n".join(each for each in log.splitlines() if b"Route:" not in each)))


def scrubbed(text: bytes) -> bytes:
    """Without this machine's names, paths and addresses; temporary folders have random names."""
    plain = scrub(text.decode(errors="replace"), root=ROOT)
    plain = re.sub(r"(?:[\w.<>~-]*/)+(?=(?:site-packages|build/weights|smollm2-wide|tiny-diffusion)\b)", "/", plain)
    return re.sub(re.escape(tempfile.gettempdir()) + r"/[\w./-]+", "/somewhere", plain).encode()
