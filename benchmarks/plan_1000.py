"""How long a plan of 1,000 jobs takes: resolving it, reading it into Snakemake, and the look-ups in between.

Run by hand: `python benchmarks/plan_1000.py`. It makes a catalog of its own in a temporary folder and starts no engine.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dpath
import yaml

from paribus.catalog import Plan, Surroundings, resolve
from paribus.catalog.workflow import Workflow

ROOT = Path(__file__).resolve().parents[1]
SYSTEMS, STARTS = 200, 5


def make_catalog(root: Path) -> None:
    """200 systems with plain decoding only, 5 starts each, from our cpu files."""
    for name in ("tasks", "envs", "workflows"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copytree(ROOT / "hardware/cpu", root / "hardware/cpu")
    for name in ("Snakefile", "pairs.yaml"):
        shutil.copy(ROOT / name, root / name)
    (root / "systems").mkdir()
    model = yaml.safe_load((ROOT / "systems/smollm2-135m.yaml").read_text())
    use = model["engines"]["llamacpp"]
    use["decoders"] = {"plain": use["decoders"]["plain"]}
    for number in range(SYSTEMS):
        copy = {**model, "model": f"model-{number}"}
        (root / f"systems/model-{number}.yaml").write_text(yaml.safe_dump(copy, sort_keys=False))


def timed(name: str, action):
    """Wall and CPU seconds (children included) of an action; on a busy machine only the second means much."""
    started, before = time.perf_counter(), os.times()
    value = action()
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    print(f"{name:52} {time.perf_counter() - started:7.2f} s, {cpu:6.2f} s of CPU")
    return value


def by_lookup(plan: Plan) -> None:
    table = {job.job: job.priority for job in plan.jobs}
    for job in plan.jobs[:50]:
        dpath.get(table, job.job)


def by_function(flow: Workflow) -> None:
    from types import SimpleNamespace

    for job in flow.plan.jobs[:50]:
        path = job.sentinel.split("/")
        names = ("hardware", "machine", "system", "measure", "conditions")
        flow.order(SimpleNamespace(**dict(zip(names, path, strict=False)), start=str(job.start)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_catalog(root)
        settings = {"systems": "*", "scale": "small", "starts": STARTS, "quality": False}
        around = Surroundings("m-bench", {"llamacpp": "0123456789ab"}, memory_gb=64)
        plan = timed("resolve the plan", lambda: resolve(root, "cpu", settings, around))
        print(f"  {len(plan.jobs)} jobs, {len(plan.runs)} runs")
        flow = Workflow(root, plan, lambda: plan, lambda *_: None)
        timed("50 look-ups by Snakemake's lookup() (dpath)", lambda: by_lookup(plan))
        timed("50 look-ups by functions of the plan", lambda: by_function(flow))
        command = [sys.executable, "-m", "snakemake", "--profile", "hardware/cpu", "-n", "--quiet", "rules", "--config"]
        command += ["systems=*", "scale=small", f"starts={STARTS}", "quality=false"]
        run = timed(
            "snakemake -n, whole process",
            lambda: subprocess.run(command, cwd=root, capture_output=True, text=True, check=False),
        )
        said = run.stdout + run.stderr
        jobs = re.search(r"measure +(\d+)", said)
        print(f"  {jobs[1] if jobs else 0} measuring jobs" if run.returncode == 0 else said)
        empty = [sys.executable, "-c", "import snakemake.cli, paribus.cli._snakefile"]
        timed("  of that, importing Snakemake and Paribus", lambda: subprocess.run(empty, check=True))


if __name__ == "__main__":
    main()
