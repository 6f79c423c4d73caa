"""Checks of a race's verdict: made again from the candidates' runs."""

from __future__ import annotations

from pathlib import Path

from paribus.catalog import Catalog, Race, Verdict
from paribus.conditions import CheckFailed, RunPath, SystemName, UsageError, decoder_method
from paribus.results.data import lite_rows
from paribus.results.findings import Report
from paribus.results.reading import read_model
from paribus.results.run import RunFolder, start_folders
from paribus.results.seal import on_cpu
from paribus.speed.race import Entry, decide
from paribus.speed.summarise import StartPart
from paribus.speed.summary import SpeedSummary


def check_race(results: Path, path: RunPath, where: str, catalog: Catalog, report: Report) -> None:
    """Decide the race once more from its candidates' starts and compare every number."""
    with report.looking("race", where):
        verdict = read_model(results / str(path), "race.json", Verdict)
        try:
            made = decide_again(results, path, verdict, catalog)
        except UsageError as error:
            raise CheckFailed(f"the race can't be decided again: {error}") from error
        report.same("race", where, verdict.model_dump(mode="json"), made.model_dump(mode="json"))


def decide_again(results: Path, path: RunPath, verdict: Verdict, catalog: Catalog) -> Verdict:
    """The verdict that the candidates' runs make."""
    race = Race(
        verdict=f"{path}/race.json",
        stack=verdict.stack,
        scenario=verdict.scenario,
        measure=verdict.measure,
        runs=verdict.runs,
        candidates=[candidate.decoder for candidate in verdict.candidates],
        not_tried=verdict.not_tried,
        decided=True,
    )
    entries = [_entry(results, run, path) for run in verdict.runs]
    return decide(
        race,
        verdict.scenario,
        catalog.scenario(verdict.scenario).requests,
        entries,
        decided_at=verdict.decided_at,
        cpu=on_cpu(catalog, path.hardware),
    )


def _entry(results: Path, run: str, path: RunPath) -> Entry:
    place = RunPath.parse(run)
    if (place.hardware, place.machine, place.measure) != (path.hardware, path.machine, path.measure):
        raise CheckFailed(f"the candidate {run} was not run in this race")
    name = SystemName.parse(place.system)
    folders = start_folders(RunFolder(results, place).folder)
    if not folders:
        raise CheckFailed(f"the candidate's run {run} is not here")
    parts = [StartPart(lite_rows(f), read_model(f, "summary.json", SpeedSummary)) for f in folders]
    return Entry(name.decoder, run, decoder_method(name.decoder) != "plain", parts)
