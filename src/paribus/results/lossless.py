"""The join of speed and quality: what is known of a decoder's answers, and what a failed gate cuts off.

Three gates (PROTOCOL rule 5): `greedy` (temperature 0, asked by `paribus lossless`), `served` (the served temperature,
out of speed runs that exist) and `canary` (200 questions, a quality run of the decoder's own). A decoder has its answer
class's quality only when all three passed. One that failed any of them is not lossless: all its runs on that kind of
hardware get the flag `not_lossless`, which bars them from rankings and comparisons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from paribus.catalog import Canary, Catalog
from paribus.conditions import RunPath, SystemName, flag
from paribus.quality.lossless_canary import canary_sentence, difference, judge_canary
from paribus.quality.lossless_served import judge_served, lengths, rightness, served_sentence, shift
from paribus.quality.statistics import question_means
from paribus.results.data import RunData
from paribus.results.facts import replacements, superseded
from paribus.results.gate import gate_rows
from paribus.results.items import graded, grades
from paribus.results.merge import union
from paribus.results.pairing import PLAIN, sound
from paribus.results.rows import TableRow, stack_of
from paribus.results.run import all_runs

Gate = Literal["greedy", "served", "canary"]
GATES: dict[Gate, str] = {"greedy": "T=0", "served": "served temperature", "canary": "canary"}
"""The gates with their names in sentences."""

NOT_LOSSLESS = "not_lossless"
DECLARED = "declared lossless, not proven: no other decoder's score is its own"

Cached = Callable[[Sequence[RunData], str, Callable[[], list[TableRow]]], list[TableRow]]
"""Rows that are made of some runs, and of what else decides them, in words: made, or known from before."""

Key = tuple[bool, str, str, str]
"""Demo or not, hardware, system, answer class: what a verdict is about."""


def lossless_rows(
    root: Path,
    sealed: Sequence[RunData],
    catalog: Catalog,
    cached: Cached,
    wanted: Callable[[RunPath], bool] = lambda _: True,
) -> list[TableRow]:
    """The verdicts of every gate, as rows of the table `lossless`. `wanted`: which of the first gate's are read."""
    return [*gate_rows(root, wanted), *_served_rows(sealed, cached), *_canary_rows(sealed, catalog, cached)]


def marked(runs: Iterable[RunData], rows: Sequence[Mapping[str, Any]]) -> list[RunData]:
    """The same runs; those of a decoder that failed a gate carry `not_lossless`."""
    failed = {key: found for key, found in by_decoder(rows).items() if standing(found) == "failed"}
    return [_mark(data, failed.get(key_of(data))) for data in runs]


def _mark(data: RunData, rows: Sequence[Mapping[str, Any]] | None) -> RunData:
    if rows is None:
        return data
    words = "; ".join(str(row["sentence"]) for row in rows if row["standing"] == "failed")
    flags = union(data.summary.flags, [flag(NOT_LOSSLESS, words)])
    return replace(data, summary=data.summary.model_copy(update={"flags": flags}))


def marked_on_disk(root: Path, runs: Sequence[RunData], catalog: Catalog) -> list[RunData]:
    """The same runs, marked by what the results folders say of their decoders now, without a database.

    What was taken back or replaced decides nothing, as in a build; what is about other stacks isn't looked at.
    """
    stacks = {(data.summary.hardware, SystemName.parse(data.summary.system).stack) for data in runs}
    here = all_runs(root)
    replaced = replacements({str(place.path): place.run_id for place in here}, superseded(root))

    def near(path: RunPath) -> bool:
        return (path.hardware, SystemName.parse(path.system).stack) in stacks

    counting = [
        RunData.read(place)
        for place in here
        if near(place.path) and place.run_id not in replaced and (place.folder / "manifest.json").is_file()
    ]
    return marked(runs, lossless_rows(root, counting, catalog, lambda _runs, _rules, make: make(), near))


def key_of(data: RunData) -> Key:
    """Which verdicts are about a run's decoder."""
    summary = data.summary
    return data.place.demo, summary.hardware, summary.system, str(summary.hashes.get("answer_class"))


def by_decoder(rows: Iterable[Mapping[str, Any]]) -> dict[Key, list[Mapping[str, Any]]]:
    """Verdicts by what they are about, the newest of each gate last."""
    found: dict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    for row in sorted(
        rows, key=lambda row: (list(GATES).index(row["gate"]), str(row["measured_at"]), str(row["path"]))
    ):
        found[bool(row["demo"]), str(row["hardware"]), str(row["system"]), str(row["answer_class"])].append(row)
    return dict(found)


def standing(rows: Iterable[Mapping[str, Any]]) -> Literal["passed", "failed", "declared"]:
    """Of a decoder: failed where any verdict is that; passed where every gate has one that passed."""
    seen = {(str(row["gate"]), str(row["standing"])) for row in rows}
    if any(verdict == "failed" for _, verdict in seen):
        return "failed"
    return "passed" if all((gate, "passed") in seen for gate in GATES) else "declared"


def lossless_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """What a reader is told of a decoder: each gate that passed, failed, couldn't decide or wasn't run."""
    if not rows:
        return f"{DECLARED} (no gate has run)"
    parts = [_newest(gate, rows) for gate in GATES]
    heads = {"passed": "lossless, all three gates passed", "failed": "not lossless", "declared": DECLARED}
    return f"{heads[standing(rows)]} ({'; '.join(parts)})"


def _newest(gate: Gate, rows: Sequence[Mapping[str, Any]]) -> str:
    mine = [row for row in rows if row["gate"] == gate]
    if not mine:
        return f"{GATES[gate]}: not run"
    # One that failed is told, however many came after it.
    told = next((row for row in reversed(mine) if row["standing"] == "failed"), mine[-1])
    return str(told["sentence"]).removeprefix("lossless: ")


def _served_rows(sealed: Sequence[RunData], cached: Cached) -> list[TableRow]:
    """The gate at the served temperature for each decoder that was measured beside plain decoding.

    All repeats count together: a later one doesn't undo what an earlier one found.
    """
    plain: dict[tuple[str, ...], list[RunData]] = defaultdict(list)
    decoders: dict[tuple[Key, str], list[RunData]] = defaultdict(list)
    for data in sealed:
        if _tells(data) and SystemName.parse(data.summary.system).decoder == PLAIN:
            plain[_beside(data)].append(data)
        elif _tells(data):
            decoders[key_of(data), data.summary.machine].append(data)
    found = []
    for _, runs in sorted(decoders.items()):
        own = [data for data in runs if _beside(data) in plain]
        other = [data for measure in dict.fromkeys(map(_beside, own)) for data in plain[measure]]
        if own:
            found += cached([*own, *other], "", partial(_served, own, other))
    return found


def _beside(data: RunData) -> tuple[str, ...]:
    """What a decoder's run shares with plain decoding's answers to the same prompts: all but the decoder."""
    summary, name = data.summary, SystemName.parse(data.summary.system)
    # Another answer class of the same name (another build of the engine) has other answers.
    answers = str(summary.hashes.get("answer_class"))
    return str(data.place.demo), summary.hardware, summary.machine, summary.measure, stack_of(name), answers


def _tells(data: RunData) -> bool:
    """Whether a run's answers can be held against others: sound, one request at once, as served, on natural text.

    With several at once the window's edges cut off long answers, and the more so the slower a decoder is.
    """
    declared = data.summary.declared
    natural = all(one.id != "synthetic" for one in data.summary.flags)
    alone = declared.get("requests_at_once") == 1 and declared.get("sampling_profile") == "served"
    return data.summary.kind == "speed" and sound(data) and alone and natural


def _served(own: Sequence[RunData], other: Sequence[RunData]) -> list[TableRow]:
    sides = [own, other]
    tokens = [lengths(_answers(side, lambda row: row.tokens)) for side in sides]
    checks = [
        _answers(side, lambda row: None if row.check_passed is None else float(row.check_passed)) for side in sides
    ]
    length, score = shift(tokens[1], tokens[0]), rightness(checks[1], checks[0])
    verdict = judge_served(length, score)
    last = max(own, key=lambda data: data.summary.starts[0].started_at)
    plain = other[0].summary.system
    told = served_sentence(length, score, verdict)
    prompts = length.prompts if length else 0
    return [_row("served", last, plain=plain, verdict=verdict, told=told, prompts=prompts)]


def _answers(side: Sequence[RunData], value: Callable[[Any], float | None]) -> dict[str, list[float]]:
    """The values of all whole answers, by measure and prompt."""
    found: dict[str, list[float]] = defaultdict(list)
    for data in side:
        for row in (row for start in data.rows for row in start if row.counted and row.ok):
            if (one := value(row)) is not None:
                found[f"{data.summary.measure}/{row.prompt_id}"].append(one)
    return found


def _canary_rows(sealed: Sequence[RunData], catalog: Catalog, cached: Cached) -> list[TableRow]:
    """The canary of each decoder that was asked one as served; all its repeats together, other caps apart."""
    groups: dict[tuple[Key, str, str], list[RunData]] = defaultdict(list)
    for data in sealed:
        task = catalog.tasks.get(data.summary.quality.task) if data.summary.quality else None
        if task is not None and task.canary is not None and _speculates(data) and _asked_as(data)[1] == "served":
            groups[key_of(data), task.task, repr(_asked_as(data))].append(data)
    found = []
    for (key, task_id, _), asked in sorted(groups.items()):
        task = catalog.task(task_id)
        assert task.canary is not None
        plain = [data for data in sealed if _answers_too(data, key, task.canary, asked[-1])]
        rules = f"{len(asked)} asked, {task.data.count} questions, {task.canary!r}"
        found += cached([*asked, *plain], rules, partial(_canary, asked, plain, task.canary, task.data.count))
    return found


def _speculates(data: RunData) -> bool:
    return data.summary.declared.get("acceptance_method") not in (None, "none")


def _answers_too(data: RunData, key: Key, canary: Canary, asked: RunData) -> bool:
    """Whether a run holds plain decoding's answers to a canary's questions, asked in the same way."""
    quality, demo = data.summary.quality, data.place.demo
    if quality is None or quality.task != canary.of or _speculates(data):
        return False
    same = _asked_as(data) == _asked_as(asked)
    return same and (demo, data.summary.hardware, key_of(data)[3]) == (key[0], key[1], key[3])


def _asked_as(data: RunData) -> tuple[Any, Any, str | None]:
    """What two runs on the same questions must share to be held against each other: the version of scores too."""
    declared, quality = data.summary.declared, data.summary.quality
    return declared.get("cap"), declared.get("sampling_profile"), quality.scorer if quality is not None else None


def _canary(asked: Sequence[RunData], plain: Sequence[RunData], canary: Canary, count: int) -> list[TableRow]:
    # What a broken server or network left unanswered says nothing of the decoder, on whichever side.
    here = [[data for data in side if sound(data) and graded(data)] for side in (asked, plain)]
    own, other = (question_means(pair for data in side for pair in grades(data, came=True)) for side in here)
    found = difference(own, other)
    verdict = judge_canary(found, canary.margin, count)
    last = max(asked, key=lambda data: data.summary.starts[0].started_at)
    told = canary_sentence(found, verdict, canary.margin, count)
    if not plain:
        told += f": plain decoding hasn't answered them here ({canary.of})"
    if unsound := [data.summary.run_id for data in (*asked, *plain) if not sound(data)]:
        told += f": without the answers of {', '.join(unsound)}, whose flags say that they are no measurement"
    if lacking := [data.summary.run_id for data in (*asked, *plain) if not graded(data)]:
        told += f": without the answers of {', '.join(lacking)}, whose grades are not here"
    name = plain[0].summary.system if plain else ""
    return [_row("canary", last, plain=name, verdict=verdict, told=told, prompts=found.gap.questions)]


def _row(gate: Gate, about: RunData, *, plain: str, verdict: str, told: str, prompts: int) -> TableRow:
    place = RunPath.parse(about.summary.run)
    return {
        "gate": gate,
        "path": about.summary.run,
        "demo": about.place.demo,
        "hardware": place.hardware,
        "machine": place.machine,
        "system": about.summary.system,
        "plain": plain,
        "answer_class": about.summary.hashes.get("answer_class"),
        "prompts": prompts,
        "differ": None,
        "control_differ": None,
        "standing": verdict,
        "sentence": told,
        "measured_at": about.summary.starts[0].started_at,
    }
