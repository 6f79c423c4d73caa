"""Runs a job of a workplace in a process of its own, so that tests can kill it: `job_process.py <root> <plan.json>`."""

import sys
import time
from pathlib import Path

from paribus.catalog import Plan
from paribus.conditions import ParibusError
from paribus.engines import run_job


def measure(session, planned, folder):
    """Write a file, say so, and dawdle as long as there is a file `wait` in the root."""
    (folder / "half.txt").write_text("half")
    with session.measuring():
        print(f"measuring {planned.id} {' '.join(map(str, session.tree.members()))}", flush=True)
        while (root / "wait").exists():
            time.sleep(0.05)
    (folder / "summary.json").write_text("{}")


root = Path(sys.argv[1])
plan = Plan.model_validate_json(Path(sys.argv[2]).read_text())
try:
    run_job(root, plan, plan.jobs[0].job, measure)
except ParibusError as error:
    print(f"paribus: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
