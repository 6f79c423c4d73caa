"""Sealing: one run out of its starts. `summary.json`, then `manifest.json`; the same bytes however often it is done."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel

from paribus.catalog import Catalog
from paribus.conditions import CheckFailed, UsageError
from paribus.machine.files import write_atomic
from paribus.quality.summary import QualitySummary
from paribus.results.data import lite_rows
from paribus.results.merge import (
    check_numbers,
    merge_declared,
    merge_hashes,
    merge_observed,
    records,
    scale_flags,
    union,
)
from paribus.results.reading import read_model
from paribus.results.run import (
    RunFolder,
    RunManifest,
    RunSummary,
    Start,
    read_start,
    run_kind,
    start_folders,
)
from paribus.speed.summarise import StartPart, pool
from paribus.speed.summary import SpeedSummary


def seal(run: RunFolder, catalog: Catalog) -> RunSummary:
    """Write a run's summary and manifest. Raises `CheckFailed` when starts are missing or don't belong together."""
    summary = summarise_run(run, catalog)
    body = as_bytes(summary)
    write_atomic(run.folder / "summary.json", body)
    write_atomic(run.folder / "manifest.json", as_bytes(manifest_of(summary, body)))
    return summary


def summarise_run(run: RunFolder, catalog: Catalog) -> RunSummary:
    """The summary that a run's starts make, without writing anything."""
    starts = [read_start(folder) for folder in start_folders(run.folder)]
    name = str(run.path)
    if not starts:
        raise CheckFailed(f"{name} has no finished start yet (a start is finished when its manifest.json is there)")
    check_numbers(starts, name)
    for start in starts:
        _belongs(start, run)
    _follows(starts, name)
    declared = merge_declared(starts, name)
    kind = run_kind(starts[0].manifest)
    speed = pool_speed(starts, catalog) if kind != "quality" else None
    quality = _score(starts, name) if kind == "quality" else None
    measured = speed.flags if speed is not None else quality.flags if quality is not None else []
    return RunSummary(
        schema_version=1,
        run=name,
        run_id=run.run_id,
        kind=kind,
        hardware=run.path.hardware,
        machine=run.path.machine,
        system=run.path.system,
        measure=run.path.measure,
        n=run.path.n,
        origin=starts[0].manifest.origin,
        declared=declared,
        observed=merge_observed(starts, name),
        hashes=merge_hashes(starts, name),
        starts=records(starts),
        speed=speed,
        quality=quality,
        flags=union(measured, scale_flags(declared, len(starts))),
    )


def manifest_of(summary: RunSummary, body: bytes) -> RunManifest:
    """The run's manifest; `body` is the summary as written."""
    return RunManifest(
        schema_version=1,
        run=summary.run,
        run_id=summary.run_id,
        kind=summary.kind,
        starts=[{"start": s.start, "sha256": s.sha256, "log": s.log} for s in summary.starts],
        log=summary.starts[-1].log,
        summary_sha256=hashlib.sha256(body).hexdigest(),
        hashes=summary.hashes,
    )


def as_bytes(value: BaseModel) -> bytes:
    """A type of ours as the bytes of its file: indented JSON, keys in the order of the type."""
    data = value.model_dump(mode="json", by_alias=True)
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def pool_speed(starts: Sequence[Start], catalog: Catalog) -> SpeedSummary:
    """The pooled summary of a speed run, from the rows and summaries of its starts."""
    parts = [_part(start.folder) for start in starts]
    declared = starts[0].manifest.declared
    cpu = on_cpu(catalog, str(declared.get("hardware")))
    return pool(parts, cpu=cpu, headline=not declared.get("prefix_caching"))


def on_cpu(catalog: Catalog, hardware: str) -> bool:
    """Whether a hardware profile is of the CPU track, where some flags are warnings."""
    try:
        return catalog.hardware(hardware).card.kind == "cpu"
    except UsageError:
        # A profile that this clone doesn't know: its name must tell.
        return hardware == "cpu"


def _part(folder: Path) -> StartPart:
    return StartPart(lite_rows(folder), read_model(folder, "summary.json", SpeedSummary))


def _score(starts: Sequence[Start], run: str) -> QualitySummary:
    if len(starts) > 1:
        raise CheckFailed(f"{run}: a quality run has one start; its repeats are inside it")
    folder = starts[0].folder
    if not (folder / "score.json").is_file():
        raise CheckFailed(f"{run} isn't scored yet: `paribus score {run}`")
    return read_model(folder, "score.json", QualitySummary)


def _belongs(start: Start, run: RunFolder) -> None:
    if start.manifest.path != run.path.start(start.number):
        raise CheckFailed(f"{run.path}/start-{start.number}: its manifest says it belongs to {start.manifest.path}")
    if start.manifest.hashes.get("conditions") != run.path.conditions:
        raise CheckFailed(f"{run.path}/start-{start.number}: its conditions hash is not the one in the path")


def _follows(starts: Sequence[Start], run: str) -> None:
    """A start that names the one before it must name the one that is there."""
    for before, start in pairwise(starts):
        if start.manifest.previous is not None and start.manifest.previous != before.sha256:
            raise CheckFailed(
                f"{run}: start {start.number} was made after another start {before.number} than the one here"
            )
