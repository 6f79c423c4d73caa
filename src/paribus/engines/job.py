"""One job: one server from start to stop, and every measure that shares its launch configuration."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from paribus.catalog import Catalog, Job, Plan, PlannedMeasure
from paribus.catalog.configuration import catalog_of
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.base import StartRecord
from paribus.engines.deaths import Death, EngineDied, WriteUnasked, is_result, keep_dead, told
from paribus.engines.logs import kept_log
from paribus.engines.opening import engine_log, open_session
from paribus.engines.session import Session
from paribus.engines.starts import Measured, StartFolder, manifest_of, now
from paribus.machine import Hold, Telemetry, card_lock, disk_faults, watch_parent, write_atomic
from paribus.machine.files import is_full
from paribus.machine.nvml import open_nvml
from paribus.machine.parent import arm_last_resort
from paribus.machine.proof import require_card

Measure = Callable[[Session, PlannedMeasure, Path], StartRecord | None]
"""Measures one planned measure into its start folder (no manifest). Returns a record, or fills `session.record`."""

LOCK_WAIT_S = 20.0
"""How long a job waits for the card: an orphan of a killed workflow is gone by then, a working job isn't."""

FINISHING = "writing the start that was just measured, then stopping; once more stops at once, without it"


def run_job(
    root: Path,
    plan: Plan,
    job_id: str,
    measure_one: Measure,
    *,
    catalog: Catalog | None = None,
    tell: bool = True,
    write_unasked: WriteUnasked | None = None,
) -> None:
    """Run one job of the plan: measure what isn't done, each into its start's folder, the lead's last.

    A measure whose manifest exists is not repeated. A speed measure that was interrupted starts anew, but for one whose
    load has ended: a signal waits until that is written. A quality measure continues its journal. Nothing is left
    running or half-written, whatever ends the job: an error, Ctrl-C (exit 130), SIGTERM or the end of its workflow
    (143), a kill.

    `write_unasked`: how a start without requests is written; with it, a race's candidate whose engine dies is kept as a
    result (see `deaths`). Without it, and for all other jobs, that is an error.
    """
    job = find_job(plan, job_id)
    say = _say if tell else _silent
    todo = undone(root, plan, job)
    if not todo:
        say(f"{job.job}: already done")
        return
    catalog = catalog or catalog_of(root, plan)
    cards = card_names(plan, catalog)
    with watch_parent(), ExitStack() as stack:
        locks = [stack.enter_context(card_lock(c, timeout_s=LOCK_WAIT_S, purpose=f"job {job.job}")) for c in cards]
        card = catalog.hardware(plan.hardware).card
        proof = require_card(plan.hardware, card)
        # Somebody else's server runs on a machine that this one's telemetry says nothing of.
        telemetry = None if card.kind == "hosted" else stack.enter_context(Telemetry())
        keep = tuple(lock.handle for lock in locks)
        began, began_ns, log = now(), time.monotonic_ns(), engine_log(root, job)
        try:
            with open_session(root, job, catalog, log=log, keep=keep) as session:
                session.observed |= proof.observed
                if telemetry is not None:
                    telemetry.wait_ready()
                session.telemetry = telemetry
                started = session.timings["engine_start"]
                say(f"{job.job}: {session.system.name} is ready after {started:.1f} s")
                for folder, planned in todo:
                    _measure(session, folder, planned, measure_one, started)
                    say(f"{job.job}: measured {planned.measure}")
                    started = 0.0  # the server started once: its seconds belong to the first measure
        except EngineDied as error:
            if write_unasked is None or not is_result(root, plan, job, catalog.system(job.system)):
                raise
            # A card that is gone is no result of the candidate: then this says so.
            observed = require_card(plan.hardware, card).observed
            seconds = (time.monotonic_ns() - began_ns) / 1e9
            left = [(folder, planned) for folder, planned in todo if not folder.done]
            keep_dead(left, Death(error, log, began, seconds, observed), write_unasked)
            say(told(plan, job, error))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _silent(_text: str) -> None:
    pass


def find_job(plan: Plan, job_id: str) -> Job:
    """The job of that id; a `UsageError` names some that there are."""
    for job in plan.jobs:
        if job.job == job_id:
            return job
    known = ", ".join(job.job for job in plan.jobs[:5])
    raise UsageError(f"the plan has no job {job_id!r}; its first ones: {known or 'it has none'}")


def undone(root: Path, plan: Plan, job: Job) -> list[tuple[StartFolder, PlannedMeasure]]:
    """The measures of a job that have no manifest, the lead last: its manifest stands for the whole job."""
    order = [m for i, m in enumerate(job.measures) if i != job.lead] + [job.measures[job.lead]]
    folders = [(StartFolder.of(root, plan, job, planned), planned) for planned in order]
    return [(folder, planned) for folder, planned in folders if not folder.done]


def card_names(plan: Plan, catalog: Catalog) -> list[str]:
    """Locks that a job of this plan needs: one a visible NVIDIA card, else one for the machine's only card."""
    kind = catalog.hardware(plan.hardware).card.kind
    if kind == "hosted":
        return []
    if kind == "cpu":
        return ["cpu"]
    nvml = open_nvml()
    if nvml is not None:
        return sorted(nvml.lock_names())
    if kind == "nvidia":
        raise EnvironmentFault(
            f"the profile {plan.hardware} is for an NVIDIA card, and this machine shows none: check `nvidia-smi`"
        )
    return ["cpu"]


@contextmanager
def _watched(session: Session) -> Iterator[None]:
    """An error that a dead engine caused is told as what it is: the engine's death."""
    try:
        yield
    except EnvironmentFault:
        raise
    except Exception as error:
        if not is_full(error) and session.dead():
            raise session.death() from error
        raise
    if not session.alive():
        raise session.death()


def _bounded(number: int) -> None:
    """A person may wait as long as they like; whoever else ends a job, or a workflow that is gone, is not kept."""
    if number != signal.SIGINT:
        arm_last_resort(143)


def _measure(
    session: Session, folder: StartFolder, planned: PlannedMeasure, measure_one: Measure, engine_start: float
) -> None:
    folder.prepare()
    session.record = StartRecord()
    started_at, began_ns = now(), time.monotonic_ns()
    hold = session.hold = Hold(FINISHING, on_held=_bounded)
    with hold, disk_faults(folder.path), _remembered(session, folder, began_ns), _watched(session):
        returned = measure_one(session, planned, folder.path)
        record = returned or session.record
        _keep(session, folder, record, began_ns)
        peak = session.peak_memory_gb()
        measured = Measured(
            planned=planned,
            record=record,
            observed=session.observed | ({"engine_memory_gb": peak} if peak is not None else {}),
            versions=session.versions,
            started_at=started_at,
            ended_at=now(),
            engine_start=engine_start,
            elapsed=(time.monotonic_ns() - began_ns) / 1e9,
            hosted=session.hosted,
        )
        folder.seal(manifest_of(folder, measured))


@contextmanager
def _remembered(session: Session, folder: StartFolder, began_ns: int) -> Iterator[None]:
    """An engine's death carries what is known of it, and what was recorded of the machine until then."""
    try:
        yield
    except EngineDied as error:
        _keep(session, folder, session.record, began_ns)
        error.versions, error.observed, error.folder = session.versions, session.observed, folder.path
        spent = session.record
        error.record = StartRecord(observed=spent.observed, warm_up=spent.warm_up, measuring=spent.measuring)
        raise


def _keep(session: Session, folder: StartFolder, record: StartRecord, began_ns: int) -> None:
    """Telemetry of the whole measure, and what is kept of the engine's log."""
    zero = (record.window_ns or session.record.window_ns or (began_ns, 0))[0]
    if session.telemetry is not None:
        session.telemetry.write(folder.path / "telemetry.parquet", began_ns, time.monotonic_ns(), zero)
    if not session.hosted:
        write_atomic(folder.path / "engine.log", kept_log(session.log, folder.root).encode())
