"""`paribus check`: every number once more from the raw observations, and everything else that must hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from paribus.catalog import (
    Catalog,
    HardwareFile,
    ModelFile,
    PairsFile,
    PromptSource,
    QualityTask,
    Scale,
    Scenario,
    read_prompt_set,
)
from paribus.catalog import places as yaml_places
from paribus.catalog.claims import Claim
from paribus.conditions import CheckFailed, RunPath, UsageError
from paribus.results.check_endpoint import check_endpoint, is_endpoint_folder
from paribus.results.check_quality import check_quality
from paribus.results.check_race import check_race
from paribus.results.check_speed import check_speed
from paribus.results.check_start import check_conditions, check_files
from paribus.results.check_system import check_system
from paribus.results.findings import SUBJECTS, Report, Verdict
from paribus.results.gate import FILE as GATE
from paribus.results.gate import check_gate
from paribus.results.reading import parse_json, read_bytes
from paribus.results.run import (
    RESULTS_ROOTS,
    RunFolder,
    find_named,
    find_runs,
    find_verdicts,
    locate,
    read_start,
    start_folders,
)
from paribus.results.seal import as_bytes, manifest_of, summarise_run

IN_A_RUN = frozenset({"manifest.json", "summary.json"})


def check(root: Path, paths: Iterable[str], *, grade: bool = False, private: Path | None = None) -> Report:
    """Check runs, folders of runs, races and catalog files. `grade`: run the code graders again (needs the sandbox).

    `private`: a private catalog beside ours, whose engines' code then runs; never one that is only being looked at.
    Raises `UsageError` for a path that is none of them.
    """
    report, catalog = Report(), Catalog(root, private)
    for text in paths:
        try:
            files = _catalog_files(Path(text))
            for file in files:
                check_catalog_file(file, catalog, report)
            if not files:
                _check_path(root, text, catalog, report, grade)
        except OSError as error:
            raise UsageError(f"can't read {error.filename or text}: {error.strerror or error}") from error
    return report


def _check_path(root: Path, text: str, catalog: Catalog, report: Report, grade: bool) -> None:
    path = Path(text)
    if path.is_dir() and is_endpoint_folder(path):
        check_endpoint(path, catalog, report)
        return
    if path.is_dir():
        runs, races, gates = _runs_below(root, path.resolve())
        if runs or races or gates:
            for run in runs:
                check_run(run, catalog, report, grade)
            for results, place in races:
                check_race(results, place, str(place), catalog, report)
            for results, place in gates:
                check_gate(results, place, report)
            return
    if path.is_dir() and any(path.samefile(root / results) for results in RESULTS_ROOTS if (root / results).is_dir()):
        raise UsageError(f"there is nothing to check: {text} holds no finished run yet")
    found = locate(root, text)
    if (found.folder / "race.json").is_file():
        check_race(found.results, found.path, str(found.path), catalog, report)
    elif (found.folder / GATE).is_file():
        check_gate(found.results, found.path, report)
    elif start_folders(found.folder):
        check_run(found, catalog, report, grade)
    else:
        raise UsageError(f"{text!r} holds no finished run: a start is finished when its manifest.json is there")


Places = list[tuple[Path, RunPath]]


def _runs_below(root: Path, folder: Path) -> tuple[list[RunFolder], Places, Places]:
    """Runs, races and lossless gates in a results folder or one of the folders between it and a run.

    Which of the folders above is the results folder is told by names alone: nothing outside `folder` is looked at.
    """
    ours = [root / results for results in RESULTS_ROOTS]
    for results in (folder, *folder.parents[:4]):
        inside = folder.relative_to(results).parts
        runs = find_runs(results, inside)
        races, gates = (
            [(results, RunPath.parse("/".join(p.parent.relative_to(results).parts))) for p in found]
            for found in (find_verdicts(results, inside), find_named(results, GATE, inside))
        )
        if runs or races or gates:
            return runs, races, gates
        if results in ours:
            break
    return [], [], []


def check_run(run: RunFolder, catalog: Catalog, report: Report, grade: bool = False) -> None:
    """One run: each of its starts, then its own files."""
    name = str(run.path)
    folders = start_folders(run.folder)
    for child in sorted(run.folder.iterdir()):
        known = child in folders or child.name in IN_A_RUN
        if not known and not (child.is_dir() and child.name.startswith("start-")):
            report.say("files", name, "fails", f"{child.name!r} does not belong into a run's folder")
    for folder in folders:
        where = f"{name}/{folder.name}"
        with report.looking("files", where):
            start = read_start(folder)
            check_files(start, where, report)
            with report.looking("conditions", where):
                check_conditions(start, run.path, where, catalog, report)
            if start.manifest.kind == "quality":
                check_quality(start, where, catalog, report, grade=grade)
            else:
                check_speed(start, where, catalog, report)
    _check_seal(run, name, catalog, report)


def _check_seal(run: RunFolder, name: str, catalog: Catalog, report: Report) -> None:
    """The run's own two files are what sealing its starts gives, byte by byte."""
    if not any((run.folder / file).exists() for file in IN_A_RUN):
        report.say("log", name, "not checked", "not sealed yet")
        return
    with report.looking("log", name):
        stored = read_bytes(run.folder, "summary.json")
        made = summarise_run(run, catalog)
        body = as_bytes(made)
        if stored != body:
            _say_differences(run, made, name, report)
        else:
            report.say("log", name, "holds")
        manifest = as_bytes(manifest_of(made, body))
        same = read_bytes(run.folder, "manifest.json") == manifest
        report.expect("log", name, same, "manifest.json is not the one that its starts make")
        right = hashlib.sha256(stored).hexdigest().encode() in manifest
        report.expect("log", name, right, "the manifest is of another summary")


def _say_differences(run: RunFolder, made: BaseModel, name: str, report: Report) -> None:
    stored = parse_json(read_bytes(run.folder, "summary.json"), f"{name}/summary.json")
    if report.same("log", name, stored, made.model_dump(mode="json", by_alias=True)):
        report.say("log", name, "fails", "summary.json was not written by `paribus seal`: seal the run again")


def _catalog_files(path: Path) -> list[Path]:
    """A file that is to be one of the catalog; of a folder (`systems`), those that lie in it."""
    if path.is_file():
        if path.suffix == ".yml":
            raise UsageError(
                f"{path}: files of the catalog end in .yaml, and no other is read: call it {path.stem}.yaml"
            )
        return [path] if path.suffix in (".yaml", ".jsonl") else []
    patterns = [pattern for pattern, _ in CATALOG_FILES if "/" in pattern] + ["prompts/*.jsonl"]
    inside = sorted(path.iterdir()) if path.is_dir() else []
    return [p for p in inside if p.is_file() and any(p.absolute().match(pattern) for pattern in patterns)]


CATALOG_FILES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("systems/*.yaml", ModelFile),
    ("hardware/*/hardware.yaml", HardwareFile),
    ("tasks/speed/*.yaml", Scenario),
    ("tasks/speed/prompts/*.yaml", PromptSource),
    ("tasks/scales/*.yaml", Scale),
    ("tasks/quality/*.yaml", QualityTask),
    ("pairs.yaml", PairsFile),
    ("claims/*.yaml", Claim),
)


def check_catalog_file(path: Path, catalog: Catalog, report: Report) -> None:
    """One file of the catalog: its form, and what its name promises."""
    with report.looking("catalog", str(path)):
        if path.absolute().match("systems/*.yaml"):
            check_system(path, catalog, report)
            return
        if path.suffix == ".jsonl":
            prompts = read_prompt_set(path)
            twice = len({prompt.id for prompt in prompts}) != len(prompts)
            report.expect("catalog", str(path), not twice, "two prompts have the same id")
            return
        kind = next((kind for pattern, kind in CATALOG_FILES if path.absolute().match(pattern)), None)
        if kind is None:
            known = ", ".join(pattern for pattern, _ in CATALOG_FILES)
            raise UsageError(f"{path} is no file of the catalog: those are {known}")
        places = yaml_places.Places(path)
        try:
            file = kind.model_validate(places.data)
        except ValidationError as error:
            for line, text in yaml_places.faults(places, error, kind):
                report.say("catalog", str(path), "fails", f"line {line}: {text}")
            return
        _named(path, file)
        report.say("catalog", str(path), "holds")


def _named(path: Path, file: BaseModel) -> None:
    """A file carries the name of what it describes."""
    names = {
        Scenario: "scenario",
        PromptSource: "set",
        Scale: "scale",
        QualityTask: "task",
        Claim: "claim",
    }
    field = names.get(type(file))
    if field is not None and getattr(file, field) != path.stem:
        raise CheckFailed(f"{path.name} must be named after what it describes: {getattr(file, field)}.yaml")
    if isinstance(file, HardwareFile) and file.hardware != path.parent.name:
        raise CheckFailed(f"{path} must lie in hardware/{file.hardware}/")
    if isinstance(file, HardwareFile) and file.card.kind == "nvidia":
        ids = [each for variant in file.card.variants for each in variant.pci_device_ids]
        if wrong := [each for each in ids if not each.endswith(":10de")]:
            raise CheckFailed(f"{wrong[0]} is no card of NVIDIA's: the device comes first, then the vendor (2330:10de)")


def table(report: Report) -> list[tuple[str, int, int, int, int, str]]:
    """Subject, holds, fails, warnings, not checked, what it means: the subjects that were looked at."""
    rows: list[tuple[str, int, int, int, int, str]] = []
    verdicts: tuple[Verdict, ...] = ("holds", "fails", "warning", "not checked")
    for subject, meaning in SUBJECTS.items():
        counts = [report.count(verdict, subject) for verdict in verdicts]
        if any(counts):
            rows.append((subject, counts[0], counts[1], counts[2], counts[3], meaning))
    return rows
