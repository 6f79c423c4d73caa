"""What the Snakefile calls: opening the plan, announcing it, starting. A mistake is one sentence and an exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from snakemake.logging import logger

from paribus.catalog import Plan, resolve
from paribus.catalog.configuration import open_catalog, read_overrides, refuse_empty
from paribus.catalog.workflow import PLAN_FILE, Workflow, check_profile
from paribus.cli._items import LocalItems
from paribus.cli._options import check_plan, look_around
from paribus.cli._planning import announcement, read_plan, write_plan
from paribus.cli._progress import show_steps
from paribus.conditions import ParibusError, UsageError

CLAIMS = "claims"
"""The target that runs claims under their own conditions."""
SWEEP = "sweep"
"""The protocol's target that has no scenario yet: asking for it must not look like success."""

P = ParamSpec("P")
R = TypeVar("R")


def _plainly(function: Callable[P, R]) -> Callable[P, R]:
    """Print a user's mistake as one sentence and exit with its code, where Snakemake would print a traceback."""

    @wraps(function)
    def plain(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ParibusError as error:
            print(f"paribus: {error}", file=sys.stderr)
            sys.exit(error.exit_code)

    return plain


@_plainly
def open_workflow(workflow: Any, config: dict[str, Any], checkpoints: Any) -> Workflow:
    """The plan for a Snakemake process. `workflow`, `config`, `checkpoints` are Snakemake's.

    The main process resolves it and says what it will cost; a process that Snakemake started for one job reads
    `build/plan.json`, so that all of them mean the same jobs.
    """
    root = Path(workflow.basedir)
    if Path.cwd().resolve() != root.resolve():
        raise UsageError(f"run snakemake in the repository's folder: cd {root}")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if not workflow.is_main_process:
        if workflow.remote_exec:  # on another machine: the job's Snakemake there is the one to watch
            os.environ["PARIBUS_WORKFLOW_PID"] = str(os.getpid())
        plan = read_plan(root / PLAN_FILE)
        return Workflow(root, plan, lambda: plan, write_plan, checkpoints)
    os.environ["PARIBUS_WORKFLOW_PID"] = str(os.getpid())
    if SWEEP in sys.argv[1:]:
        raise UsageError(
            "the target sweep is not there yet: no scenario measures 1 to 64 requests at once "
            "(`paribus show scenarios` lists those that exist)"
        )
    show_steps(workflow, logger)
    refuse_empty(workflow.config_settings.config)
    # Claims are never planned unasked; the target names them. Snakemake knows its targets only after this.
    if CLAIMS in sys.argv[1:] and "measures" not in workflow.config_settings.config:
        config["measures"] = "claim-*"
    overrides = read_overrides(config)
    catalog = open_catalog(root, overrides)
    hardware = check_profile(root, catalog.extra, config, [Path(str(file)) for file in workflow.configfiles])
    local = LocalItems(catalog)
    around = look_around(root, catalog, hardware, local)

    @_plainly
    def again() -> Plan:
        return resolve(root, hardware, config, around, catalog)

    plan = again()
    check_plan(catalog, plan, local)
    card = catalog.hardware(hardware).card
    flow = Workflow(root, plan, again, write_plan, checkpoints, 0 if card.kind in ("cpu", "hosted") else card.count)
    print(announcement(flow.plan), file=sys.stderr)
    return flow


@_plainly
def start(flow: Workflow) -> float:
    """Take this clone's workflow lock and put the plan on disk. Returns the time, for the closing account."""
    flow.start()
    return time.time()
