"""Runs on disk: their types, where they lie, and reading them.

A run's folder holds `start-<k>/` folders and, once sealed, `summary.json` (a `RunSummary`) and `manifest.json`
(a `RunManifest`, written last). Nothing in it is believed before it has been checked: see `reading`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from paribus.conditions import CheckFailed, Flag, Manifest, RunPath, Timings, UsageError, is_slug, run_id, start_number
from paribus.conditions.manifest import LICENCE_STATEMENT
from paribus.quality.summary import QualitySummary
from paribus.results.declared import forms, names
from paribus.results.reading import parse_model, read_bytes, read_model, shown
from paribus.speed.summary import SpeedSummary

RESULTS_ROOTS = ("results", "build/demo-results")
"""Folders below the repository's root that hold runs; the second is never committed."""

PART = ".partial-"
"""What the name of a part of a task has before the hash of its items."""

UNRANKED = ("preliminary", "partial", "canary")
"""Flags that keep a run out of rankings, though nothing is wrong with it."""

RACE = "race-"
"""What the ids of races' scenarios begin with."""

RunKind = Literal["speed", "race", "quality"]
Trust = Literal["self_reported", "audited", "reproduced", "disputed", "unresolved"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StartRecord(_Frozen):
    """One start inside a run's summary. `sha256` is its manifest's; `log` chains it to the starts before it."""

    start: int = Field(ge=1)
    started_at: str
    ended_at: str
    sha256: str
    log: str
    observed: dict[str, Any]
    versions: dict[str, str]
    timings: Timings
    counters: dict[str, float] = {}
    contributor: str


class RunSummary(_Frozen):
    """A run's `summary.json`: conditions, starts, and the numbers pooled over them."""

    schema_version: Literal[1] = Field(1, alias="schema")
    run: str
    """Path of the run below its results folder."""
    run_id: str
    kind: RunKind
    hardware: str
    machine: str
    system: str
    measure: str
    n: int
    origin: Literal["catalog", "endpoint"]
    declared: dict[str, Any]
    observed: dict[str, Any]
    """What all starts share; a registered condition that varies is a list of its values."""
    hashes: dict[str, str]
    starts: list[StartRecord]
    speed: SpeedSummary | None = None
    quality: QualitySummary | None = None
    flags: list[Flag]
    trust: Trust = "self_reported"

    @property
    def ranked(self) -> bool:
        """Whether the run may stand in a ranking: from the catalog, no invalid flag, whole, no canary, no small scale.

        Where it lies (the demo's folder) and whether a later run replaces it are not known here: see `rows`, `facts`.
        """
        barred = any(flag.severity == "invalid" or flag.id in UNRANKED for flag in self.flags)
        return self.origin == "catalog" and not barred

    @property
    def conditions(self) -> dict[str, Any]:
        """Declared and observed conditions together; what is declared as not known before is what was observed."""
        known = {name: value for name, value in self.declared.items() if value is not None or name not in self.observed}
        return {**self.observed, **known}

    @property
    def part(self) -> bool:
        """Whether it is of a part of a quality task: such runs meet only runs of the very same part."""
        return PART in self.measure


class RunManifest(_Frozen):
    """A run's `manifest.json`: which starts it is made of, the end of their chained log, its summary's sha256."""

    schema_version: Literal[1] = Field(1, alias="schema")
    run: str
    run_id: str
    kind: RunKind
    starts: list[dict[str, str | int]]
    """`start`, `sha256` of its manifest and `log`, the chained log after it."""
    log: str
    summary_sha256: str
    hashes: dict[str, str]
    licence: str = LICENCE_STATEMENT


@dataclass(frozen=True)
class Start:
    """One start as read from disk. `sha256` is of the manifest's bytes."""

    folder: Path
    number: int
    manifest: Manifest
    sha256: str


@dataclass(frozen=True)
class RunFolder:
    """A run's place: the results folder it lies in and its path below."""

    results: Path
    path: RunPath

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.results / str(self.path)

    @property
    def run_id(self) -> str:
        """The run's permanent id."""
        return run_id(str(self.path))

    @property
    def demo(self) -> bool:
        """Whether it lies in the demo's results folder."""
        return self.results.name == "demo-results"


def find_root(start: Path | None = None) -> Path:
    """The repository's root: the nearest folder, from `start` upwards, that holds a catalog or results.

    Raises `UsageError` when there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "tasks").is_dir() or (folder / "systems").is_dir():
            return folder
    raise UsageError("this is not a clone of Paribus: go to its folder (the one with Snakefile, systems/ and tasks/)")


def find_runs(results: Path, inside: tuple[str, ...] = ()) -> list[RunFolder]:
    """Every folder below `results` that lies where a run lies and has a finished start, in path order. No links.

    `inside`: only what lies in this folder below `results`; nothing else is looked at. Raises `UsageError` for a
    folder that can't be read.
    """
    found = [RunFolder(results, path) for path in _walk(results.joinpath(*inside), inside)]
    return sorted((run for run in found if start_folders(run.folder)), key=lambda run: str(run.path))


def find_verdicts(results: Path, inside: tuple[str, ...] = ()) -> list[Path]:
    """Every `race.json` below `results` that lies where one may lie, in path order. `inside`: as for `find_runs`."""
    return find_named(results, "race.json", inside)


def find_named(results: Path, name: str, inside: tuple[str, ...] = ()) -> list[Path]:
    """Every file of a name in a folder where a run may lie, in path order. `inside`: as for `find_runs`."""
    places = [results / str(path) / name for path in _walk(results.joinpath(*inside), inside)]
    return sorted(path for path in places if path.is_file() and not path.is_symlink())


def _walk(folder: Path, parts: tuple[str, ...]) -> list[RunPath]:
    """The runs' paths below a folder; it goes only where the names so far may be the beginning of a run's path."""
    if not RunPath.begins(parts):
        return []
    if len(parts) == 5:
        return [RunPath.parse("/".join(parts))]
    try:
        # Links first: even to ask what one leads to may be refused.
        children = [c for c in folder.iterdir() if not c.is_symlink() and c.is_dir()] if folder.is_dir() else []
    except OSError as error:
        raise UsageError(f"can't read {folder}: {error.strerror}") from error
    return [path for child in children for path in _walk(child, (*parts, child.name))]


def start_folders(folder: Path) -> list[Path]:
    """The finished starts (their manifest is there) of a run folder, by number."""
    found = []
    for child in folder.glob("start-*"):
        try:
            number = start_number(child.name)
        except UsageError:
            continue
        if not child.is_symlink() and (child / "manifest.json").is_file():
            found.append((number, child))
    return [child for _, child in sorted(found)]


def read_start(folder: Path) -> Start:
    """One start's manifest, checked for its form and against its folder's number."""
    data = read_bytes(folder, "manifest.json")
    manifest = parse_model(data, Manifest, shown(folder / "manifest.json"))
    number = start_number(folder.name) if folder.name.startswith("start-") else manifest.start
    if manifest.start != number:
        raise CheckFailed(f"{folder.name}/manifest.json says it is start {manifest.start}")
    for fault in forms(manifest.declared, manifest.observed):
        raise CheckFailed(f"{shown(folder / 'manifest.json')}: {fault}")
    return Start(folder, number, manifest, hashlib.sha256(data).hexdigest())


def read_summary(run: RunFolder) -> RunSummary:
    """A sealed run's summary. Raises `CheckFailed` when it isn't sealed or isn't one."""
    if not (run.folder / "summary.json").is_file():
        raise CheckFailed(f"{run.path} is not sealed yet: `paribus seal {run.path}`")
    summary = read_model(run.folder, "summary.json", RunSummary)
    if summary.run != str(run.path) or summary.run_id != run.run_id:
        raise CheckFailed(f"{run.path}/summary.json belongs to another run: {summary.run}")
    for fault in _unbelievable(summary, run.path):
        raise CheckFailed(f"{run.path}/summary.json: {fault}")
    return summary


def _unbelievable(summary: RunSummary, path: RunPath) -> Iterator[str]:
    """What a summary says that can't be so: of its place, its kind, its starts, or in another form."""
    for name in ("hardware", "machine", "system", "measure", "n"):
        if getattr(summary, name) != getattr(path, name):
            yield f"{name} is not the path's, {getattr(path, name)}"
    yield from forms(summary.declared, summary.observed)
    yield from names(summary.declared, path)
    quality = summary.kind == "quality"
    race = _of_a_race(summary.declared)
    if (summary.quality is None, summary.speed is None) != (not quality, quality) or race != (summary.kind == "race"):
        yield f"its numbers are not those of a {summary.kind} run"
    if quality != (summary.declared.get("task") is not None):
        yield f"a {summary.kind} run is of {'a task' if quality else 'a scenario'}"
    numbers = [start.start for start in summary.starts]
    if not numbers or len(set(numbers)) != len(numbers):
        yield "it has no starts, or one twice"


def locate(root: Path, text: str) -> RunFolder:
    """The run that a person means: a folder (or a file or start in it), a path below a results folder, or a run id.

    Raises `UsageError` when there is no such run.
    """
    if len(text) == 11 and text.startswith("r") and is_slug(text):
        for run in all_runs(root):
            if run.run_id == text:
                return run
        raise UsageError(f"there is no run {text} below {' or '.join(RESULTS_ROOTS)}")
    return run_at(Path(text)) or _below_roots(root, text) or _no_run(text)


def _no_run(text: str) -> RunFolder:
    if Path(text).suffix in (".yaml", ".jsonl") and not Path(text).exists():
        raise UsageError(f"there is no file {text}")
    if Path(text).is_dir():
        raise UsageError(f"{text} is a folder that holds no finished run and no file of the catalog (*.yaml)")
    raise UsageError(
        f"{text!r} is not a run: give its folder, its path below results/, or its id (r and ten characters)"
    )


def run_at(path: Path) -> RunFolder | None:
    """The run that an existing folder or file is, or lies in."""
    if not path.exists():
        return None
    for folder in (path.absolute(), *path.absolute().parents):
        place = _below(folder)
        if place is not None and folder.is_dir():
            return RunFolder(folder.parents[4], place)
    return None


def _below_roots(root: Path, text: str) -> RunFolder | None:
    """The run that a path below one of the results folders is, or lies in."""
    place = _below(Path(*Path(text).parts[:5])) if not Path(text).is_absolute() else None
    for results in RESULTS_ROOTS:
        if place is not None and (root / results / str(place)).is_dir():
            return RunFolder(root / results, place)
    return None


def _below(path: Path) -> RunPath | None:
    """The last five parts of a path, when they are exactly a run's."""
    try:
        return RunPath.parse("/".join(path.parts[-5:]))
    except UsageError:
        return None


def all_runs(root: Path) -> list[RunFolder]:
    """Every run below every results folder of the repository."""
    return [run for results in RESULTS_ROOTS for run in find_runs(root / results)]


def run_kind(manifest: Manifest) -> RunKind:
    """`race` for a candidate of a race (scenario ids of races begin with `race-`), else the manifest's kind."""
    return "race" if manifest.kind == "speed" and _of_a_race(manifest.declared) else manifest.kind


def _of_a_race(declared: Mapping[str, Any]) -> bool:
    return str(declared.get("scenario")).startswith(RACE)
