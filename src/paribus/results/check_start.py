"""Checks of one start's folder that need no numbers: its files, its conditions, its hashes, its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paribus.catalog import Catalog, System
from paribus.catalog.declare import NOT_HASHED
from paribus.conditions import CheckFailed, RunPath, SystemName, UsageError, conditions_hash, hash12, sha256_file
from paribus.results.check_card import check_card
from paribus.results.check_numbers import check_numbers
from paribus.results.declared import names
from paribus.results.findings import Report
from paribus.results.reading import JOURNAL_BYTES, plain_file
from paribus.results.run import Start

SYSTEM_CONDITIONS = (
    "model",
    "kind",
    "weights",
    "precision",
    "thinking",
    "engine",
    "engine_build",
    "decoder",
    "decoder_parameters",
    "acceptance_method",
    "lossy",
    "launch",
    "prefix_caching",
)
"""The declared conditions that `system_hash` is over (the keys of `System.declared`)."""

WHERE_SET = (
    "track",
    "drafter",
    "effort",
    "trust_remote_code",
    "weights_artifact",
    "number_types",
    "model_sampling",
    "lossy_drafter",
    "hosted",
)
"""Those of them that came later: they are in the hash where they are declared, so that earlier hashes stand."""

MADE_LATER = re.compile(r"samples(-lite)?\.parquet|score(-[0-9a-f]{8})?\.json")
"""Files that scoring writes beside a finished quality start: made again by the check, not hashed by the manifest."""
NEEDED = {
    "speed": ("requests.parquet", "requests-lite.parquet", "summary.json"),
    "quality": ("journal.jsonl",),
}


def check_files(start: Start, where: str, report: Report) -> None:
    """Every listed file is there with its size and hash (raw ones may lie elsewhere); no other file is."""
    manifest = start.manifest
    listed = {entry.name: entry for entry in manifest.files}
    report.expect("files", where, len(listed) == len(manifest.files), "the manifest lists a file twice")
    for name in NEEDED[manifest.kind]:
        report.expect("files", where, name in listed, f"the manifest lists no {name}")
    for entry in manifest.files:
        if entry.raw and not (start.folder / entry.name).exists():
            report.say("files", where, "not checked", f"{entry.name} is not here (raw files may be in the raw store)")
            continue
        with report.looking("files", where):
            path = plain_file(start.folder, entry.name, JOURNAL_BYTES)
            right = path.stat().st_size == entry.bytes and sha256_file(path) == entry.sha256
            report.expect("files", where, right, f"{entry.name} is not the file that the manifest lists")
    for path in sorted(start.folder.iterdir()):
        later = manifest.kind == "quality" and MADE_LATER.fullmatch(path.name) is not None
        if path.name != "manifest.json" and path.name not in listed and not later:
            report.say("files", where, "fails", f"{path.name!r} is in the folder and not in the manifest")


def check_conditions(start: Start, path: RunPath | None, where: str, catalog: Catalog, report: Report) -> None:
    """Path, names and hashes follow from what is declared."""
    manifest = start.manifest
    declared, hashes = manifest.declared, manifest.hashes
    for name, made in _hashes(declared).items():
        report.expect("conditions", where, hashes.get(name) == made, f"{name} is {hashes.get(name)}, not {made}")
    if path is not None:
        report.expect("conditions", where, manifest.path == path.start(start.number), f"it says {manifest.path}")
        same = hashes.get("conditions") == path.conditions
        report.expect("conditions", where, same, "the conditions hash is not the one in the path")
        for fault in names(declared, path):
            report.say("conditions", where, "fails", fault)
    _against_catalog(start, where, catalog, report)
    check_card(start, where, catalog, report)


def _hashes(declared: dict[str, Any]) -> dict[str, str]:
    try:
        later = {name: declared[name] for name in WHERE_SET if name in declared}
        system = hash12({name: declared.get(name) for name in SYSTEM_CONDITIONS} | later)
        apart = {*SYSTEM_CONDITIONS, *WHERE_SET, *NOT_HASHED}
        about = {name: value for name, value in declared.items() if name not in apart}
        measure = hash12(about)
    except ValueError as error:
        raise CheckFailed(f"the declared conditions are no canonical JSON: {error}") from error
    return {"system_hash": system, "measure_hash": measure, "conditions": conditions_hash(system, measure)}


def _against_catalog(start: Start, where: str, catalog: Catalog, report: Report) -> None:
    """This clone's catalog, where it knows the system: a difference may be the catalog's own progress."""
    declared = start.manifest.declared
    try:
        name = _system_name(declared)
        system = catalog.system(name)
        build, launch = str(declared.get("engine_build")), dict(declared.get("launch") or {})
        made, answer_class = system.declared(build, launch), system.answer_class_hash(build, launch)
    except UsageError:
        report.say("conditions", where, "warning", "this clone's catalog has no such system")
        return
    check_numbers(start, system, where, catalog, report)
    made |= {key: None for key in WHERE_SET if key not in made}
    changed = [key for key, value in made.items() if declared.get(key) != value]
    if changed:
        report.say("conditions", where, "warning", f"the catalog now says otherwise about: {', '.join(changed)}")
    elif start.manifest.hashes.get("answer_class") != answer_class:
        report.say("conditions", where, "fails", f"answer_class is not {answer_class}, as the catalog makes it")
    else:
        report.say("conditions", where, "holds")


def _system_name(declared: Mapping[str, Any]) -> SystemName:
    parts = [str(declared.get(part)) for part in ("model", "precision", "engine", "decoder")]
    return SystemName.parse("--".join(parts) + ("--think" if declared.get("thinking") else ""))


def system_of(start: Start, catalog: Catalog) -> System | None:
    """The start's system in this clone's catalog, or None."""
    return system_declared(start.manifest.declared, catalog)


def system_declared(declared: Mapping[str, Any], catalog: Catalog) -> System | None:
    """The system that declared conditions name, in this clone's catalog, or None."""
    try:
        return catalog.system(_system_name(declared))
    except UsageError:
        return None
