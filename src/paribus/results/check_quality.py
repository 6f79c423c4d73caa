"""Checks of a quality start: scores made again from the answers in its journal."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paribus.catalog import Catalog, QualityTask
from paribus.conditions import CheckFailed, Manifest, ParibusError
from paribus.engines.envs import environment_marker
from paribus.quality.believed import Witness, wrong_seeds
from paribus.quality.data import load_items
from paribus.quality.journal import Header, read_journal
from paribus.quality.known import read_known
from paribus.quality.samples import LITE, LITE_COLUMNS, SAMPLES
from paribus.quality.sandbox import available, runs_on
from paribus.quality.score import GRADED_ELSEWHERE, grading_flags
from paribus.quality.statistics import mean_interval, question_means
from paribus.quality.summary import QualitySummary
from paribus.quality.tau2 import items_asked
from paribus.results.check_start import system_declared
from paribus.results.findings import Report
from paribus.results.items import grade
from paribus.results.reading import JOURNAL_BYTES, plain_file, read_model, read_rows
from paribus.results.run import Start

_ELSEWHERE = {"grading"}
COPIED = ("manifest.json", "journal.jsonl")
WHERE_THERE = ("simulator.jsonl",)
"""Copied too, where a start has it: what the user simulator of a dialogue task said."""


def check_quality(start: Start, where: str, catalog: Catalog, report: Report, *, grade: bool) -> None:
    """Score the journal again in a folder of its own and compare every score and every graded answer."""
    if not (start.folder / "score.json").is_file():
        report.say("scores", where, "not checked", "not scored yet")
        return
    with report.looking("scores", where):
        stored = read_model(start.folder, "score.json", QualitySummary)
        _sane(stored, where, report)
        _grades(start, stored, where, report)
        if not (start.folder / "journal.jsonl").is_file():
            report.say("scores", where, "not checked", "journal.jsonl is not here: the scores are taken as they are")
            return
        header, entries = read_journal(plain_file(start.folder, "journal.jsonl", JOURNAL_BYTES))
        for fault in (*_strange(header, start.manifest, catalog), *wrong_seeds(header, entries)):
            report.say("conditions", where, "fails", fault)
        report.expect("conditions", where, not (said := _not_the_tasks(header, catalog)), said)
        lacking = _lacks_harness(stored.task, catalog) or _lacks_items(header, start.manifest, catalog)
        if lacking is not None:
            report.say("scores", where, "not checked", lacking)
            return
        witness = Witness(header)
        with tempfile.TemporaryDirectory(prefix="paribus-check-") as temporary:
            folder = Path(temporary) / start.folder.name
            folder.mkdir()
            for name in (*COPIED, *(name for name in WHERE_THERE if (start.folder / name).exists())):
                shutil.copyfile(plain_file(start.folder, name, JOURNAL_BYTES), folder / name)
            if _needs_sandbox(stored.task, catalog) and (why := _not_run_again(stored, grade=grade)):
                _only_asked(folder, catalog, witness)
                report.say("scores", where, "not checked", why)
            else:
                for subject in _again(start, folder, stored, catalog, witness):
                    report.same("scores", where, *subject)
        faults = list(witness.faults())
        report.expect("requests", where, not faults, "; ".join(faults))


def _not_run_again(stored: QualitySummary, *, grade: bool) -> str | None:
    """Why the programs of a task's answers aren't run again; None where they are."""
    if not grade:
        return "this task runs code: --grade runs it again in the sandbox"
    if (missing := available()) is not None:
        return f"this task runs code, and there is no sandbox here: {missing}"
    ran_on = stored.grading.interpreter if stored.grading is not None else None
    if ran_on not in (None, runs_on()):
        return f"its programs were graded on {ran_on}; here they would run on {runs_on()}, which takes other programs"
    return None


def _only_asked(folder: Path, catalog: Catalog, witness: Witness) -> None:
    from paribus.quality.run import ask_again

    try:
        ask_again(folder, catalog, witness)
    except ParibusError as error:
        raise CheckFailed(f"the journal can't be scored: {error}") from error


def _again(
    start: Start, folder: Path, stored: QualitySummary, catalog: Catalog, witness: Witness
) -> Iterator[tuple[Any, Any]]:
    """What is stored and what scoring again gives: the summary, then the graded answers."""
    # Loads the harness: only who scores again waits for it.
    from paribus.quality.run import score_start

    try:
        made = score_start(folder, catalog, seen=witness)
    except ParibusError as error:
        raise CheckFailed(f"the journal can't be scored again: {error}") from error
    yield _anywhere(stored), _anywhere(made)
    for name in (SAMPLES, LITE):
        if (start.folder / name).exists():
            yield read_rows(start.folder, name), read_rows(folder, name)


def _anywhere(score: QualitySummary) -> dict[str, Any]:
    """A score without what is said of the machine that graded: how fast it is is no part of the score."""
    said = score.model_dump(mode="json", exclude=_ELSEWHERE)
    return said | {"flags": [each for each in said["flags"] if each["id"] not in GRADED_ELSEWHERE]}


def _lacks_items(header: Header, manifest: Manifest, catalog: Catalog) -> str | None:
    """Why the items that were asked aren't here; None where they are, or should be as they are shipped.

    Raises `CheckFailed` where all of the task is here, and a journal that says it asked all of it has other items.
    """
    task = catalog.tasks.get(header.task)
    if task is None or task.data.file is not None:
        return None
    try:
        items_asked(task, catalog.root, header)
    except ParibusError as error:
        if header.partial is None and _from_here(task, manifest, catalog):
            raise CheckFailed(f"the journal's items are not the task's: {error}") from error
        return f"the items that were asked are not here: {error}"
    return None


def _not_the_tasks(header: Header, catalog: Catalog) -> str:
    """Why the items of a journal that says that it asked all of a task can't be the task's; empty where they can.

    It needs no items: a journal of questions of one's own must not pass where nobody has the real ones.
    """
    task = catalog.tasks.get(header.task)
    if task is None or header.partial is not None:
        return ""
    known, said = read_known(task, catalog.root), "the journal says that all of the task was asked"
    if len(header.items) != task.data.count:
        return f"{said}: {len(header.items)} items, and it has {task.data.count}"
    if known.whole and (strange := set(header.items) ^ known.hashes.keys()):
        return f"{said}, and its items are others: {min(strange)!r}"
    if task.data.items_hash not in (None, header.items_hash):
        return f"the task's items have the hash {task.data.items_hash}, and the journal says {header.items_hash}"
    return ""


def _from_here(task: QualityTask, manifest: Manifest, catalog: Catalog) -> bool:
    """Whether all of a task lies here, from the source that a start names: a source has one hash of it, while another
    may word some questions otherwise."""
    try:
        here = load_items(task, catalog.root)
    except ParibusError:
        return False
    return not here.part and manifest.observed.get("items_source") in (None, here.origin)


def _needs_sandbox(task: str, catalog: Catalog) -> bool:
    known = catalog.tasks.get(task)
    return known is not None and known.sandbox


def _lacks_harness(task: str, catalog: Catalog) -> str | None:
    """Why dialogues can't be played again here: their harness isn't built; None when they can, or for other tasks."""
    known = catalog.tasks.get(task)
    name = known.settings.get("environment") if known is not None else None
    if name is None or environment_marker(catalog.root, name).is_file():
        return None
    return f"its dialogues are played again by its harness, which isn't built: run `paribus fetch env {name}`"


def _strange(header: Header, manifest: Manifest, catalog: Catalog) -> Iterator[str]:
    """Where the journal was made for something else than is declared, observed, and in the catalog."""
    declared, observed = manifest.declared, manifest.observed
    asked = observed.get("items_hash")
    if asked is not None and asked != header.items_hash:
        yield f"items_hash is observed {asked!r} and the journal was made for {header.items_hash!r}"
    names = {"task": header.task, "repeats": header.repeats, "cap": header.cap, "model": header.model}
    names |= {"scale": header.scale, "thinking": header.thinking, "requests_at_once": header.concurrency}
    names |= {"sampling_profile": header.profile}
    if header.harness is not None:
        names["user_simulator"] = header.harness.get("user_simulator")
    for name, value in names.items():
        if declared.get(name) is not None and declared[name] != value:
            yield f"{name} is declared {declared[name]!r} and the journal was made for {value!r}"
    yield from _sampled(header, declared.get("sampling"), observed.get("sampling_accepted"))
    if manifest.origin == "catalog":
        yield from _against_catalog(header, declared, catalog)


def _sampled(header: Header, wanted: Any, accepted: Any) -> Iterator[str]:
    """What was sent is what is declared, as far as the engine was observed to accept it; the rest was left out."""
    if not isinstance(wanted, Mapping) or not isinstance(accepted, list):
        return
    sent = {name: value for name, value in wanted.items() if name in accepted}
    if header.sampling != sent:
        yield f"the sampling declared and accepted is {sent!r} and the journal was made with {header.sampling!r}"
    left_out = sorted({*wanted, "seed"} - {str(name) for name in accepted})
    if header.left_out != left_out:
        yield f"what the engine doesn't accept is {left_out!r} and the journal says {header.left_out!r}"


def _against_catalog(header: Header, declared: Mapping[str, Any], catalog: Catalog) -> Iterator[str]:
    """What only the catalog knows: the task's version, the model's date, the switch for thinking."""
    task, model = catalog.tasks.get(header.task), catalog.models.get(header.model)
    if task is not None and (header.family, header.version) != (task.family, task.version):
        yield (
            f"the journal was made for version {header.version!r} of the task ({header.family}), and the catalog has "
            f"{task.version!r} ({task.family})"
        )
    if model is not None and header.released != model.released:
        yield f"the model was released {model.released!r} and the journal says {header.released!r}"
    system = system_declared(declared, catalog)
    if system is None:
        return
    for name, value in system.thinking_settings.items():
        if header.extra_body.get(name) != value:
            yield f"requests should carry {name} {value!r} and the journal's carry {header.extra_body.get(name)!r}"
    if system.use.hosted is None and header.endpoint is not None:
        yield "the journal was made at somebody else's server"


def _grades(start: Start, score: QualitySummary, where: str, report: Report) -> None:
    """The grades that are kept are there, are those of the samples, and give the score that is published."""
    kept = read_rows(start.folder, LITE)
    if (start.folder / SAMPLES).exists():
        whole = [{name: row.get(name) for name in LITE_COLUMNS} for row in read_rows(start.folder, SAMPLES)]
        report.expect("scores", where, kept == whole, f"{LITE} has other grades than {SAMPLES}")
    twice = len({(row.get("item"), row.get("repeat")) for row in kept}) != len(kept)
    right = not twice and len(kept) == score.items * score.repeats
    report.expect("scores", where, right, f"{LITE} has {len(kept)} answers, or one twice, and the score is of others")
    headline = next((one for one in score.scores if one.headline), None)
    if headline is None or not right:
        return
    ended_well = score.family == "tau2"  # a dialogue's reward counts when it is whole
    values = ((str(row.get("item")), grade(row)) for row in kept)
    made = mean_interval(list(question_means((i, float(g >= 1) if ended_well else g) for i, g in values).values()))
    report.same("scores", where, [headline.value, headline.low, headline.high], [made.value, made.low, made.high])


def _sane(score: QualitySummary, where: str, report: Report) -> None:
    """What can't be, whatever was answered."""
    total = score.items * score.repeats
    counts = score.answered + score.failed + score.user_failed <= total and score.capped <= total
    report.expect("identities", where, counts, f"more answers than the {total} that were asked for")
    graded = [flag for flag in score.flags if flag.id in GRADED_ELSEWHERE]
    same = graded == grading_flags(score.grading, total)
    report.expect("identities", where, same, "its flags say something else of the grading machine than was measured")
    for one in score.scores:
        low, high = (0.0 if one.low is None else one.low), (1.0 if one.high is None else one.high)
        inside = 0.0 <= low <= one.value <= high <= 1.0
        report.expect("identities", where, inside, f"the score {one.name} lies outside 0 to 1 or its own interval")
