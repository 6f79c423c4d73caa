"""One quality start: answers into `journal.jsonl`; then, without a server, samples and `score.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from paribus.catalog import Catalog, PlannedMeasure, QualityTask
from paribus.catalog.simulator import lacks_simulator, simulator_url
from paribus.conditions import CheckFailed, EnvironmentFault, UsageError
from paribus.machine.files import write_json
from paribus.quality import dialogue, sandbox_attacks, tau2
from paribus.quality.asking import (
    Answerer,
    Asking,
    LiveAnswerer,
    Question,
    ReplayAnswerer,
    Seen,
    answer_all,
    missing,
    side_by_side,
)
from paribus.quality.believed import check_journal
from paribus.quality.data import Item, Items, item_id, load_planned
from paribus.quality.dialogue import Dialogue
from paribus.quality.journal import GREEDY, Entry, Header, Journal, Key, address_hash, read_journal
from paribus.quality.samples import USER, Sample, accounts, counted, write_samples
from paribus.quality.score import summarise
from paribus.quality.summary import QualitySummary
from paribus.quality.tasks import family_of
from paribus.wire import Client, run

if TYPE_CHECKING:
    from paribus.engines import Session, StartRecord

JOURNAL, SCORE = "journal.jsonl", "score.json"

Progress = Callable[[int, int], None]

T = TypeVar("T")


def _quiet(_done: int, _of: int) -> None:
    pass


def _untold(_key: Key) -> None:
    pass


@dataclass(frozen=True)
class Evaluation:
    """A task to be answered: its items, how often, how long, and what is known of the model."""

    task: QualityTask
    items: Items
    repeats: int
    cap: int
    limit: int | None
    scale: str | None
    model: str
    released: str | None
    thinking: bool
    left_out: tuple[str, ...] = ()
    context: int | None = None
    """Tokens that one request may hold; null where that isn't known."""
    repository: str | None = None
    """Where the model's weights are from."""
    profile: str | None = None
    """Sampling profile, as declared: `greedy` or `served`."""
    own_server: bool = False
    """Whether Paribus started the server for this start: its address is then of no account."""
    harness: dict[str, Any] | None = None
    """What another program that plays the dialogues adds to the conditions (Tau2); null elsewhere."""

    def header(self, asking: Asking) -> Header:
        """The journal's first line."""
        return Header(
            task=self.task.task,
            family=self.task.family,
            version=self.task.version,
            items_hash=self.items.hash,
            partial=self.items.partial,
            items=[item_id(self.task, item) for item in self.items.items],
            repeats=self.repeats,
            cap=self.cap,
            scale=self.scale,
            limit=self.limit,
            profile=self.profile,
            sampling=dict(asking.sampling),
            left_out=sorted({*self.left_out, *(() if asking.seeds else ("seed",))}),
            model=self.model,
            released=self.released,
            thinking=self.thinking,
            concurrency=asking.concurrency,
            served_as=asking.endpoint.model,
            api=asking.endpoint.api,
            extra_body=dict(asking.endpoint.extra_body),
            endpoint=None if self.own_server else address_hash(asking.endpoint),
            harness=self.harness,
        )


def generate_start(session: Session, planned: PlannedMeasure, catalog: Catalog, folder: Path) -> StartRecord:
    """Answer every item of a planned quality measure into `folder/journal.jsonl`, continuing what is there.

    Reads `scale`, `repeats`, `cap`, `items_hash` and `sampling_profile` from what was declared. Raises `UsageError`
    when the items are not those of the plan, `CheckFailed` when not one request succeeded.
    """
    evaluation, greedy = _planned(session, planned, catalog)
    accepted = session.accepted
    sampling = {"temperature": 0.0} if greedy and "temperature" in accepted else {} if greedy else session.sampling()
    asking = Asking(
        endpoint=session.endpoint,
        sampling=sampling,
        cap=evaluation.cap,
        concurrency=int(planned.declared.get("requests_at_once") or evaluation.task.concurrency),
        seeds="seed" in accepted,
        alive=session.alive,
    )
    left_out = session.sampling_left_out if not greedy else [] if "temperature" in accepted else ["temperature"]
    evaluation = replace(evaluation, left_out=tuple(left_out))
    with session.measuring():
        evaluation = generate(evaluation, asking, catalog.root, folder)
    session.record.observed |= tau2.observed(evaluation)
    session.record.observed["items_hash"] = evaluation.items.hash
    session.record.observed["items_source"] = evaluation.items.origin
    session.record.observed["sampling_accepted"] = sorted([*sampling, *(["seed"] if asking.seeds else [])])
    return session.record


def _planned(session: Session, planned: PlannedMeasure, catalog: Catalog) -> tuple[Evaluation, bool]:
    task, declared, model = runnable(catalog.task(planned.id)), planned.declared, session.system.model
    scale_name = declared.get("scale")
    effort = task.effort(catalog.scale(scale_name) if scale_name else None, model.quality_cap)
    items = load_planned(task, catalog.root, effort.items, declared.get("items_hash"))
    evaluation = Evaluation(
        task=task,
        items=items,
        repeats=int(declared.get("repeats") or effort.repeats),
        cap=int(declared.get("cap") or effort.cap),
        limit=effort.items,
        scale=scale_name,
        model=model.model,
        released=model.released,
        thinking=session.system.name.think,
        context=session.system.context_of(declared.get("launch") or {}),
        repository=session.system.precision.weights.repository,
        profile=declared.get("sampling_profile"),
        own_server=session.system.use.hosted is None,
    )
    return evaluation, evaluation.profile == GREEDY


def runnable(task: QualityTask) -> QualityTask:
    """The task, if it can run; a `UsageError` with the reason otherwise."""
    if task.unsupported is not None:
        raise UsageError(f"{task.task} can't run: {task.unsupported}")
    lacking = lacks_simulator(task, simulator_url())
    if lacking is not None:
        raise UsageError(f"{task.task} can't run: {lacking}")
    return task


def prepare(task: QualityTask, root: Path) -> None:
    """Load the harness ahead of a server's start. Raises `EnvironmentFault` when it isn't installed."""
    if task.family == "tau2":
        if tau2.is_real(task):
            tau2.prepare(task, root)
        return
    _load_harness(task)


def _load_harness(task: QualityTask) -> None:
    try:
        import paribus.quality.harness  # noqa: F401
    except ImportError as error:
        raise EnvironmentFault(
            f"{task.task} needs lm-eval, which is not installed: uv sync --extra quality ({error})"
        ) from error


def generate(
    evaluation: Evaluation, asking: Asking, root: Path, folder: Path, progress: Progress = _quiet
) -> Evaluation:
    """Answer everything that the journal doesn't have yet; returns what was asked in the end.

    Raises `CheckFailed` when not one request succeeded.
    """
    prepare(evaluation.task, root)
    if tau2.is_real(evaluation.task):
        evaluation = tau2.made_ready(evaluation, asking, root)
    path, header = folder / JOURNAL, evaluation.header(asking)
    with Journal(path, header) as journal, _only_with_answers(journal):
        total = len(evaluation.items.items) * evaluation.repeats
        begun = {key[:3] for key in journal.entries}

        def answered(key: Key) -> None:
            begun.add(key[:3])
            progress(len(begun), total)

        def answer_many(questions: Sequence[Question]) -> list[Entry]:
            return run(_with_client(asking, journal, answered, lambda answerer: answer_all(answerer, questions)))

        if tau2.is_real(evaluation.task):
            stage = tau2.Stage(root, folder, header.concurrency, lambda done: progress(done, total))
            live = partial(tau2.play_live, evaluation, stage, header)
            run(_with_client(asking, journal, _untold, live))
        elif evaluation.task.family == "tau2":
            run(_with_client(asking, journal, answered, lambda answerer: _dialogues(evaluation, root, answerer)))
        else:
            from paribus.quality.harness import evaluate

            evaluate(evaluation.task, evaluation.items, evaluation.repeats, answer_many, grade=False)
        entries = journal.entries.values()
        if entries and all(entry.error for entry in entries):
            # Kept for whoever looks for the reason; a journal of failures alone would end every later try at once.
            path.replace(folder / "journal.failed.jsonl")
            words = next(entry.error for entry in entries)
            raise CheckFailed(f"{evaluation.task.task}: all {len(entries)} requests failed ({words}); nothing was kept")
    return evaluation


@contextmanager
def _only_with_answers(journal: Journal) -> Iterator[None]:
    """A journal that a fault left without an answer goes: it would hold the next try to a wrong address or model."""
    try:
        yield
    except EnvironmentFault:
        if not journal.entries:
            journal.path.unlink()
        raise


async def _with_client(
    asking: Asking,
    journal: Journal,
    answered: Callable[[Key], None],
    work: Callable[[Answerer], Coroutine[Any, Any, T]],
) -> T:
    async with Client(
        asking.endpoint, total_timeout_s=asking.total_timeout_s, idle_timeout_s=asking.idle_timeout_s
    ) as client:
        await client.open(asking.concurrency)
        async with LiveAnswerer(client, asking, journal, answered) as answerer:
            return await work(answerer)


async def _dialogues(evaluation: Evaluation, root: Path, answerer: Answerer) -> list[tuple[str, int, Dialogue]]:
    """Every dialogue of a task, side by side: item, repeat, what became of it."""
    task = evaluation.task
    domain = dialogue.load_domain(task, root)
    pairs = [(item, repeat) for item in evaluation.items.items for repeat in range(evaluation.repeats)]
    played = await side_by_side([dialogue.play(item, repeat, task, domain, answerer) for item, repeat in pairs])
    return [(item_id(task, item), repeat, each) for (item, repeat), each in zip(pairs, played, strict=True)]


def score_start(
    folder: Path, catalog: Catalog, progress: Progress = _quiet, seen: Seen | None = None
) -> QualitySummary:
    """Score a start's journal; write its samples, their grades and `score.json` beside it. No server is needed.

    A score by another version of the scorer is kept as `score-<version>.json`. Raises `UsageError` when the items at
    hand are not those that were asked (with both hashes), `CheckFailed` for a journal that contradicts them,
    `EnvironmentFault` where programs can't be contained. `seen` is told of each question and the journal's answer.
    """
    header, entries = read_journal(folder / JOURNAL)
    task = catalog.task(header.task)
    items = tau2.items_asked(task, catalog.root, header)
    check_journal(task, items, header, entries)
    replay = ReplayAnswerer(entries, *([seen] if seen else []))
    if task.sandbox:
        sandbox_attacks.prove(catalog.root / "build")
    evaluation = Evaluation(
        task, items, header.repeats, header.cap, header.limit, header.scale, header.model, None, header.thinking
    )
    floor = grading = None
    beside = tau2.Beside()
    if tau2.is_real(task):
        evaluation = replace(evaluation, harness=header.harness)
        played, idle = tau2.play_again(evaluation, catalog.root, folder, replay, progress)
        samples = _samples(evaluation, played)
        beside = tau2.beside(idle, header)
        floor = beside.floor
    elif task.family == "tau2":
        samples = _dialogue_samples(evaluation, catalog.root, replay)
        silent = _dialogue_samples(evaluation, catalog.root, dialogue.NullAgent())
        floor = sum(sample.correct for sample in silent) / len(silent)
    else:
        samples = _graded(evaluation, entries, replay, progress)
        grading = family_of(task).grading
    summary = beside.added(summarise(task, header, items.items, samples, floor=floor, grading=grading))
    _keep_other_version(folder, summary)
    write_samples(folder, samples)
    write_json(folder / SCORE, summary.model_dump(by_alias=True, mode="json"))
    return summary


def ask_again(folder: Path, catalog: Catalog, seen: Seen) -> None:
    """Tell `seen` of each question and the journal's answer, without grading any (tasks with one question an item)."""
    header, entries = read_journal(folder / JOURNAL)
    task = catalog.task(header.task)
    items = tau2.items_asked(task, catalog.root, header)
    check_journal(task, items, header, entries)
    _load_harness(task)
    from paribus.quality.harness import evaluate

    def answer_many(questions: Sequence[Question]) -> list[Entry]:
        return run(answer_all(ReplayAnswerer(entries, seen), questions))

    evaluate(task, items, header.repeats, answer_many, grade=False)


def _graded(
    evaluation: Evaluation, entries: Mapping[Key, Entry], answerer: Answerer, progress: Progress
) -> list[Sample]:
    """Samples of a task with one question an item, graded in lm-eval's loop from the journal."""
    _load_harness(evaluation.task)
    from paribus.quality.harness import evaluate

    task = evaluation.task

    def answer_many(questions: Sequence[Question]) -> list[Entry]:
        return run(answer_all(answerer, questions))

    grades, _ = evaluate(task, evaluation.items, evaluation.repeats, answer_many, grade=True, progress=progress)
    samples = []
    for item in evaluation.items.items:
        for repeat in range(evaluation.repeats):
            key = Key(task.task, item_id(task, item), repeat)
            grade = grades[key.item, repeat]
            account = accounts((entries.get(key) or missing(key),))
            correct, marks = counted(grade.correct, grade.marks, account["status"])
            samples.append(Sample(key.item, repeat, _group(task, item), correct, grade.answer, marks=marks, **account))
    return samples


def _dialogue_samples(evaluation: Evaluation, root: Path, answerer: Answerer) -> list[Sample]:
    return _samples(evaluation, run(_dialogues(evaluation, root, answerer)))


def _samples(evaluation: Evaluation, played: Sequence[tuple[str, int, Dialogue]]) -> list[Sample]:
    groups = {item_id(evaluation.task, item): _group(evaluation.task, item) for item in evaluation.items.items}
    return [
        Sample(
            item,
            repeat,
            groups[item],
            each.reward,
            each.why,
            tool_calls=each.tools.calls,
            malformed_calls=each.tools.malformed,
            marks={"answered": float(not each.failed)},
            **_account(each, Key(evaluation.task.task, item, repeat)),
        )
        for item, repeat, each in played
    ]


def _account(each: Dialogue, key: Key) -> dict[str, Any]:
    """The account of a dialogue's answers. One may fail without a failed answer: by its user, or by the harness."""
    account = accounts(each.entries or (missing(key),))
    if each.users:
        return account | {"status": USER, "error": USER}
    return account | {"status": "failed", "error": account["error"] or "dialogue"} if each.failed else account


def _group(task: QualityTask, item: Item) -> str | None:
    name = task.settings.get("group")
    return None if name is None or item.get(name) is None else str(item[name])


def _keep_other_version(folder: Path, summary: QualitySummary) -> None:
    path = folder / SCORE
    if not path.exists():
        return
    before = read_score(folder)
    if before.scorer != summary.scorer:
        path.replace(folder / f"score-{before.scorer.rsplit('-', 1)[-1]}.json")


def read_score(folder: Path) -> QualitySummary:
    """The score that a start's folder holds. Raises `UsageError` when there is none or it can't be read."""
    path = folder / SCORE
    try:
        return QualitySummary.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise UsageError(f"{folder} holds no {SCORE}: run `paribus score` first") from error
    except (OSError, ValueError, ValidationError) as error:
        raise UsageError(f"can't read {path}: {str(error).splitlines()[0]}") from error
