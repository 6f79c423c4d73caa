"""Sealed quality runs as files of `every_eval_ever`: what they are read from, and where they go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paribus.catalog import Catalog, QualityTask
from paribus.conditions import CheckFailed, ParibusError, UsageError
from paribus.machine.files import write_atomic
from paribus.quality import dialogue
from paribus.quality.asking import Question, ReplayAnswerer
from paribus.quality.data import Item, Items, item_id
from paribus.quality.journal import Entry, Header, Key, read_journal
from paribus.quality.samples import Sample, read_samples
from paribus.quality.tau2 import items_asked
from paribus.results.data import RunData
from paribus.results.eee import Answered, Asked, Subject, aggregate, folder_of, instance, licensed, record_uuid
from paribus.results.reading import JOURNAL_BYTES, plain_file
from paribus.results.run import RunFolder, RunSummary
from paribus.wire import run as run_async

_HUB = re.compile(r"^(?:https://huggingface\.co/)?([\w.-]+)/([\w.-]+)$")


def write_run(place: RunFolder, catalog: Catalog, out: Path) -> tuple[Path, int]:
    """Write one sealed quality run below `out`; returns its aggregate file and the number of instances.

    Raises `UsageError` for a run of another kind, `CheckFailed` when its samples aren't here.
    """
    data = RunData.read(place)
    summary = data.summary
    if summary.quality is None:
        raise UsageError(f"{summary.run_id} is a {summary.kind} run: only quality runs can be exported as evaluations")
    task, subject = catalog.task(summary.quality.task), subject_of(summary, catalog)
    lines = [
        json.dumps(record, ensure_ascii=False, sort_keys=True) for record in _instances(data, task, subject, catalog)
    ]
    samples = "".join(f"{line}\n" for line in lines).encode()
    stem = f"{folder_of(task, subject)}/{record_uuid(summary.run_id)}"
    record = aggregate(summary, task, subject, f"{stem}_samples.jsonl", samples)
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
    items = _items(task, catalog, header)
    asked = {item_id(task, item): asked_of(task, item) for item in items.items} if items is not None else {}
    for sample in read_samples(folder / "samples.parquet"):
        turns = _turns(entries, task.task, sample)
        spoken = _spoken(task, catalog.root, items, sample, entries)
        yield instance(
            data.summary, task, subject, asked.get(sample.item, Asked(None, None)), Answered(sample, turns, spoken)
        )


def _journal(folder: Path) -> tuple[Header | None, Mapping[Key, Entry]]:
    """The journal, which may lie in the raw store only: then there are no texts."""
    if not (folder / "journal.jsonl").is_file():
        return None, {}
    return read_journal(plain_file(folder, "journal.jsonl", JOURNAL_BYTES))


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
