"""Sealed quality runs as files of `every_eval_ever`: what they are read from, and where they go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.catalog import Catalog, QualityTask
from paribus.conditions import CheckFailed, ParibusError, UsageError, sha256_file
from paribus.machine.files import write_atomic
from paribus.quality import dialogue
from paribus.quality.asking import Question, ReplayAnswerer
from paribus.quality.data import Item, Items, item_id
from paribus.quality.journal import Entry, Header, Key, read_journal
from paribus.quality.samples import UNDONE, Sample, accounts, read_samples
from paribus.quality.tau2 import items_asked
from paribus.results.data import RunData
from paribus.results.eee import Answered, Asked, Subject, aggregate, folder_of, instance, licensed, record_uuid
from paribus.results.reading import JOURNAL_BYTES, open_parquet, plain_file, shown
from paribus.results.run import RunFolder, RunSummary, read_start
from paribus.wire import run as run_async

JOURNAL = "journal.jsonl"
_HUB = re.compile(r"^(?:https://huggingface\.co/)?([\w.-]+)/([\w.-]+)$")


def write_run(place: RunFolder, catalog: Catalog, out: Path) -> tuple[Path, int]:
    """Write one sealed quality run below `out`; returns its aggregate file and the number of instances.

    Raises `UsageError` for a run of another kind, `CheckFailed` when its samples aren't here, or when a file isn't the
    one that its manifest or its score speaks of.
    """
    data = RunData.read(place)
    summary = data.summary
    if summary.quality is None:
        raise UsageError(f"{summary.run_id} is a {summary.kind} run: only quality runs can be exported as evaluations")
    task, subject = catalog.task(summary.quality.task), subject_of(summary, catalog)
    lines = [
        json.dumps(record, ensure_ascii=False, sort_keys=True) for record in _instances(data, task, subject, catalog)
    ]
    expected = summary.quality.items * summary.quality.repeats
    if len(lines) != expected:
        raise CheckFailed(
            f"{data.place.path}: samples.parquet holds {len(lines)} answers and the score is of {expected}: "
            "`paribus score` makes it again from the journal"
        )
    samples = "".join(f"{line}\n" for line in lines).encode()
    stem = f"{folder_of(task, subject)}/{record_uuid(summary.run_id)}"
    source = read_start(data.folders[0]).manifest.observed.get("items_source")
    record = aggregate(summary, task, subject, f"{stem}_samples.jsonl", samples, source=source)
    path = out / f"{stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out / f"{stem}_samples.jsonl", samples)
    write_atomic(path, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    return path, len(lines)


def subject_of(summary: RunSummary, catalog: Catalog) -> Subject:
    """The model's name on the hub: from its weights, else from the address of its card, else our own."""
    name = str(summary.conditions.get("model"))
    model = catalog.models.get(name)
    weights = str(summary.conditions.get("weights") or "").partition("@")[0]
    found = next((m for text in (weights, model.source if model else "") if (m := _HUB.match(text))), None)
    developer, short = (found[1], found[2]) if found else ("unknown", name)
    hosted = summary.origin != "catalog" or weights in ("", "None")
    return Subject(
        id=f"{developer}/{short}",
        title=model.title if model else name,
        developer=developer,
        availability="unknown" if hosted else "open_weights",
    )


def _instances(data: RunData, task: QualityTask, subject: Subject, catalog: Catalog) -> Iterator[dict[str, Any]]:
    (folder,) = data.folders
    if not (folder / "samples.parquet").is_file():
        raise CheckFailed(f"{data.place.path}: samples.parquet is not here; `paribus score` makes it from the journal")
    header, entries = _journal(folder)
    read = read_samples(open_parquet(folder, "samples.parquet"))
    _same_answers(data, read, entries)
    items = _items(task, catalog, header)
    asked = {item_id(task, item): asked_of(task, item) for item in items.items} if items is not None else {}
    for sample in read:
        turns = _turns(entries, task.task, sample)
        spoken = _spoken(task, catalog.root, items, sample, entries)
        yield instance(
            data.summary, task, subject, asked.get(sample.item, Asked(None, None)), Answered(sample, turns, spoken)
        )


def _journal(folder: Path) -> tuple[Header | None, Mapping[Key, Entry]]:
    """The journal, which may lie in the raw store only: then there are no texts. It is the one that was measured."""
    if not (folder / JOURNAL).is_file():
        return None, {}
    path = plain_file(folder, JOURNAL, JOURNAL_BYTES)
    listed = {entry.name: entry.sha256 for entry in read_start(folder).manifest.files}
    if listed.get(JOURNAL) != sha256_file(path):
        raise CheckFailed(f"{shown(path)} is not the file that the manifest lists: `paribus check` says more")
    return read_journal(path)


def _same_answers(data: RunData, samples: Sequence[Sample], entries: Mapping[Key, Entry]) -> None:
    """One sample an answer: each once, with the ends and tokens of the journal where that is here."""
    keys = [(sample.item, sample.repeat) for sample in samples]
    twice = len(set(keys)) != len(keys)
    answered = {key[1:3] for key in entries if key.repeat >= 0}
    strange = next((s for s in samples if _other_than(s, entries)), None) if entries else None
    if twice or not answered <= set(keys) or strange is not None:
        raise CheckFailed(
            f"{data.place.path}: samples.parquet is not of this journal's answers: `paribus score` makes it again"
        )


def _other_than(sample: Sample, entries: Mapping[Key, Entry]) -> bool:
    """Whether a sample's account is another than its requests give."""
    task = next(iter(entries)).task
    turns = _turns(entries, task, sample)
    if not turns:
        return sample.status not in UNDONE
    made = accounts(turns)
    names = ("finish_reason", "seed", "prompt_tokens", "tokens")
    return any(getattr(sample, name) != made[name] for name in names)


def _items(task: QualityTask, catalog: Catalog, header: Header | None) -> Items | None:
    """The items that were asked, where they can be had; without them records carry ids only."""
    if header is None:
        return None
    try:
        return items_asked(task, catalog.root, header)
    except ParibusError:
        return None


def asked_of(task: QualityTask, item: Item) -> Asked:
    """An item's text, right answers and options, by family."""
    if task.family == "aime":
        return Asked(str(item["problem"]), (str(int(item["answer"])),))
    if task.family == "mmlu-pro":
        return Asked(str(item["question"]), (str(item["answer"]),), tuple(map(str, item["options"])))
    if task.family == "livecodebench":
        return Asked(str(item["question_content"]), ())
    scenario = json.dumps(item["user_scenario"], ensure_ascii=False, sort_keys=True)
    return Asked(scenario, (json.dumps(item["evaluation_criteria"], ensure_ascii=False, sort_keys=True),))


def _turns(entries: Mapping[Key, Entry], task: str, sample: Sample) -> tuple[Entry, ...]:
    keys = (Key(task, sample.item, sample.repeat, turn) for turn in range(max(1, sample.turns)))
    return tuple(entries[key] for key in keys if key in entries)


class _Listening:
    """Answers from the journal and keeps what was said before the last answer, and that answer."""

    def __init__(self, entries: Mapping[Key, Entry]) -> None:
        self._replay = ReplayAnswerer(entries)
        self.messages: tuple[Mapping[str, Any], ...] = ()

    async def answer(self, question: Question) -> Entry:
        """The journal's answer."""
        entry = await self._replay.answer(question)
        self.messages = (*question.messages, {"role": "assistant", "content": entry.text})
        return entry


def _spoken(
    task: QualityTask, root: Path, items: Items | None, sample: Sample, entries: Mapping[Key, Entry]
) -> tuple[Mapping[str, Any], ...] | None:
    """All messages of a dialogue with our own domain, played again; null where that can't be done or republished."""
    if task.family != "tau2" or not task.settings.get("domain_file") or items is None or not licensed(task):
        return None
    item = next((each for each in items.items if item_id(task, each) == sample.item), None)
    if item is None:
        return None
    listening = _Listening(entries)
    run_async(dialogue.play(item, sample.repeat, task, dialogue.load_domain(task, root), listening))
    return listening.messages


__all__ = ["asked_of", "subject_of", "write_run"]
