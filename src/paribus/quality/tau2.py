"""Tau2: dialogues between the system under test and a simulated user, with tools on a database.

The benchmark's own code plays and rewards them (`envs/tau2/play.py`), through the recording proxy. Generation plays
with live answerers and fills two journals: `journal.jsonl` (the system under test) and `simulator.jsonl` (the user).
Scoring plays the same dialogues again from the journals, without any server, and takes the benchmark's rewards.

Method and pass^k: S. Yao et al., tau-bench (arXiv 2406.12045), section 4: the share of ways to draw k of n trials that
all succeeded, averaged over the tasks. Domains and rewards: V. Barres et al., tau2-bench (arXiv 2506.07982).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.catalog import QualityTask
from paribus.catalog.domains import too_long
from paribus.catalog.envs import lock_hash
from paribus.catalog.simulator import (
    SCRIPTED,
    UserSimulator,
    simulator_condition,
    simulator_of,
    simulator_url,
)
from paribus.conditions import CheckFailed, EnvironmentFault, Flag, UsageError, flag
from paribus.quality.asking import Answerer, Asking, Question, ReplayAnswerer
from paribus.quality.data import Item, Items, item_id, load_asked
from paribus.quality.dialogue import Dialogue
from paribus.quality.journal import Entry, Header, Key, read_journal
from paribus.quality.summary import QualitySummary, Score
from paribus.quality.tau2_calls import ToolForm
from paribus.quality.tau2_floor import Floors, recorded_floor
from paribus.quality.tau2_harness import harness
from paribus.quality.tau2_items import check_same, without
from paribus.quality.tau2_package import environment_of
from paribus.quality.tau2_probe import tool_form
from paribus.quality.tau2_proxy import Limits, Proxy, Talk
from paribus.quality.tau2_users import (
    HERE,
    SIMULATOR,
    NullAgent,
    QuietUser,
    ScriptedUser,
    check_user,
    open_user,
    refuse_same,
    where,
)
from paribus.wire import run

if TYPE_CHECKING:
    from paribus.quality.run import Evaluation

VERSION = "1"
"""Changes whenever a reward could, beside the harness's own version (in the task's settings)."""

Played = list[tuple[str, int, Dialogue]]

_FLOOR = -1
"""The repeat of the floor's dialogues."""

_PLAYING_AGAIN = 8
"""Dialogues at once while they are played again: the harness is one process, and more would only wait for it."""


def is_real(task: QualityTask) -> bool:
    """Whether a task is played by the benchmark's own code (its stand-in is played by ours)."""
    return task.family == "tau2" and not task.stand_in


def prepare(task: QualityTask, root: Path) -> UserSimulator:
    """Look at what a run needs before a server starts for it. Raises `UsageError` or `EnvironmentFault`."""
    simulator = simulator_of(task)
    if simulator is None:
        raise UsageError(f"tasks/quality/{task.task}.yaml pins no user_simulator")
    check_same(task, root)
    return simulator


def made_ready(evaluation: Evaluation, asking: Asking, root: Path) -> Evaluation:
    """The evaluation with what the harness adds to its conditions, without the domains that don't fit the context.

    Asks the server twice, a token each, to see whether its model is shown tools at all.
    """
    task = evaluation.task
    simulator, url = prepare(task, root), simulator_url()
    assert url is not None
    refuse_same(simulator, url, asking.endpoint, evaluation.repository)
    run(check_user(simulator, url))
    excluded = too_long(task, evaluation.context)
    items = without(task, root, evaluation.items.whole, excluded, evaluation.limit)
    if not items.items:
        raise UsageError(f"{task.task}: no domain is left: {'; '.join(excluded.values())}")
    facts = {
        "items": items.whole,
        "environment": environment_of(task),
        "build": lock_hash(root, environment_of(task)),
        "user_simulator": simulator_condition(task, url),
        "user_simulator_on": where(url),
        "tools": run(tool_form(asking)),
        "excluded": excluded,
        "turns": task.settings.get("scripted_turns") if url == SCRIPTED else None,
    }
    return replace(evaluation, items=items, harness=facts)


@dataclass(frozen=True)
class Stage:
    """Where dialogues are played: the repository, the start's folder, how many at once, whom to tell of progress."""

    root: Path
    folder: Path
    at_once: int
    changed: Callable[[int], None] = lambda _done: None


async def play_live(evaluation: Evaluation, stage: Stage, header: Header, agent: Answerer) -> Played:
    """Play every dialogue against live servers; what the journals hold already isn't asked again."""
    simulator, url = simulator_of(evaluation.task), simulator_url()
    assert simulator is not None
    assert url is not None
    async with open_user(simulator, url, header, _by_id(evaluation), stage.folder) as user:
        return await play(evaluation, stage, agent, user)


def play_again(
    evaluation: Evaluation, root: Path, folder: Path, replay: Answerer, progress: Callable[[int, int], None]
) -> tuple[Played, Floors]:
    """The same dialogues from the journals, without a server, and the floor under them: as recorded, else played too.

    Raises `CheckFailed` where a dialogue takes another turn than the journal's.
    """
    facts = evaluation.harness or {}
    if facts.get("user_simulator") == SCRIPTED:
        user: Answerer = ScriptedUser(_by_id(evaluation))
    else:
        user = ReplayAnswerer(read_journal(folder / SIMULATOR)[1])
    known = recorded_floor(evaluation.task, root, evaluation.items.items)
    count = len(evaluation.items.items) * (evaluation.repeats + (known is None))
    stage = Stage(root, folder, _PLAYING_AGAIN, lambda done: progress(done, count))
    agent, user = _Floored(replay, NullAgent()), _Floored(user, QuietUser())
    played = run(play(evaluation, stage, agent, user, floor=known is None))
    floor = _floors(evaluation, played) if known is None else known
    return [each for each in played if each[1] != _FLOOR], floor


def floors(
    evaluation: Evaluation, root: Path, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> Floors:
    """By domain, the rewards of an agent that does nothing on these items, played through the harness itself."""
    count = len(evaluation.items.items)
    stage = Stage(root, root, _PLAYING_AGAIN, lambda done: progress(done, count))
    return _floors(evaluation, run(play(replace(evaluation, repeats=0), stage, NullAgent(), QuietUser(), floor=True)))


@dataclass(frozen=True)
class _Floored:
    """Answers as `usual`, in the floor's dialogues as `idle`: one harness plays both."""

    usual: Answerer
    idle: Answerer

    async def answer(self, question: Question) -> Entry:
        """The answer of whoever plays this dialogue."""
        return await (self.idle if question.key.repeat == _FLOOR else self.usual).answer(question)


def _floors(evaluation: Evaluation, played: Played) -> Floors:
    domains = {item: str(each["domain"]) for item, each in _by_id(evaluation).items()}
    rewards: Floors = {}
    for item, repeat, each in played:
        if repeat == _FLOOR:
            if each.failed:
                raise EnvironmentFault(f"{evaluation.task.task}: the floor of {item} can't be computed: {each.why}")
            rewards.setdefault(domains[item], []).append(each.reward)
    return dict(sorted(rewards.items()))


def _by_id(evaluation: Evaluation) -> dict[str, Item]:
    return {item_id(evaluation.task, item): item for item in evaluation.items.items}


async def play(evaluation: Evaluation, stage: Stage, agent: Answerer, user: Answerer, *, floor: bool = False) -> Played:
    """Play every dialogue of an evaluation with these two answerers; with `floor`, the floor's too."""
    task, facts = evaluation.task, evaluation.harness or {}
    repeats = [*range(evaluation.repeats), *([_FLOOR] if floor else [])]
    pairs = [(item, repeat) for item in evaluation.items.items for repeat in repeats]
    talks = [Talk(item, Key(task.task, item_id(task, item), repeat)) for item, repeat in pairs]
    limits = Limits(int(task.settings["max_steps"]), int(task.settings["max_errors"]), facts.get("turns"))
    form: ToolForm = facts.get("tools", "native")
    served = Proxy(talks, agent, user, form=form, limits=limits, at_once=stage.at_once, changed=stage.changed)
    async with served as proxy, harness(stage.root, task, proxy.address, proxy.token) as ended:
        dialogues = await proxy.played(ended)
    return [(talk.key.item, talk.key.repeat, each) for talk, each in zip(talks, dialogues, strict=True)]


@dataclass(frozen=True)
class Beside:
    """What a score says beside what all tasks say: floors by domain, and flags."""

    floors: Mapping[str, float] = field(default_factory=dict)
    floor: float | None = None
    """Over all items."""
    flags: Sequence[Flag] = ()

    def added(self, summary: QualitySummary) -> QualitySummary:
        """The summary with it."""
        title = "floor in {}: what an agent that does nothing gets"
        scores = [
            Score(name=f"null-agent-{domain}", title=title.format(domain), value=value, low=None, high=None)
            for domain, value in self.floors.items()
        ]
        if not scores and not self.flags:
            return summary
        return summary.model_copy(update={"scores": [*summary.scores, *scores], "flags": [*summary.flags, *self.flags]})


def beside(rewards: Floors, header: Header) -> Beside:
    """What stands beside the score: the floors of these very items, and the run's flags."""
    by_domain = {domain: sum(got) / len(got) for domain, got in rewards.items()}
    every = [reward for got in rewards.values() for reward in got]
    return Beside(by_domain, sum(every) / len(every), flags_of(header))


def flags_of(header: Header) -> list[Flag]:
    """What a reader must know of a run beside what all tasks say."""
    facts: Mapping[str, Any] = header.harness or {}
    flags = []
    if facts.get("user_simulator") == SCRIPTED:
        flags.append(flag("scripted_user", "every user said the same few things, whatever they were told"))
    if facts.get("user_simulator_on") == HERE and header.endpoint is None:
        flags.append(flag("simulator_here", "what it took of the machine is in their times"))
    if facts.get("excluded"):
        flags.append(flag("left_out", "; ".join(facts["excluded"].values())))
    return flags


def observed(evaluation: Evaluation) -> dict[str, Any]:
    """Observed conditions of a run; nothing for other tasks."""
    facts = evaluation.harness
    if facts is None:
        return {}
    found = {"tool_form": facts["tools"], "user_simulator_on": facts["user_simulator_on"], "harness": facts["build"]}
    return found | ({"left_out_domains": ", ".join(sorted(facts["excluded"]))} if facts["excluded"] else {})


def items_asked(task: QualityTask, root: Path, header: Header) -> Items:
    """The items that a journal answers, of whatever task. Raises `UsageError` when those at hand are others."""
    facts = header.harness
    if not is_real(task):
        return load_asked(task, root, header.limit, header.items_hash)
    if facts is None:
        raise CheckFailed(f"{task.task}: this journal was not made by its harness")
    items = without(task, root, facts["items"], facts["excluded"], header.limit)
    if items.hash != header.items_hash:
        raise UsageError(
            f"{task.task}: these are not the items that were asked: expected hash {header.items_hash}, "
            f"found {items.hash}"
        )
    return items
