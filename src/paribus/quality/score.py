"""From samples to scores: headline, other rules, groups, budgets, tokens and times, flags. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paribus.catalog import QualityTask
from paribus.conditions import Flag, flag, hash12
from paribus.conditions.flags import Severity
from paribus.conditions.thinking import Thought
from paribus.quality import dialogue
from paribus.quality.calibration import MOST
from paribus.quality.data import Item, item_id, window_of
from paribus.quality.journal import GREEDY, Header
from paribus.quality.samples import UNDONE, USER, Sample
from paribus.quality.statistics import clustered_interval, majority, mean_interval, pass_power, question_means
from paribus.quality.summary import NAMED_CAP, Grading, GroupScore, QualitySummary, Score, TokenAccount
from paribus.quality.tasks import family_of

BUDGETS = (2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 80_000)
"""Token budgets for which a score is computed from the same run: an answer that took more counts as wrong."""

_FLAGGED_CAP = 0.05
_FAILED = 0.01
_NAMED = 5
_STARVED, _STARVED_BADLY = 0.01, 0.05
_YEARS = 3
"""Exam years from which an interval by year says anything."""


_NOT_SCORING = (
    "margin", "known_file", "known_whole", "known_hash", "examples_hash", "floor_file", "text_licence",
)  # fmt: skip
"""Settings of a task that change no grade."""


RULES = 2
"""Version of what holds for every task here. 2: an answer that the cap cut is wrong, in votes too."""


def scorer_id(task: QualityTask) -> str:
    """The scorer with 8 hex digits over everything that could change a grade: a score's version."""
    version = dialogue.VERSION if task.family == "tau2" else family_of(task).version
    settings = {name: value for name, value in task.settings.items() if name not in _NOT_SCORING}
    about = {"scorer": task.scorer, "version": version, "settings": settings, "rules": RULES}
    return f"{task.scorer}-{hash12(about)[:8]}"


def summarise(
    task: QualityTask,
    header: Header,
    items: Sequence[Item],
    samples: Sequence[Sample],
    *,
    floor: float | None = None,
    grading: Grading | None = None,
) -> QualitySummary:
    """The summary of one start. `floor`: what an agent that does nothing would get (dialogues)."""
    flags = flags_of(task, header, items, samples) + grading_flags(grading, len(samples))
    right = [sample for sample in samples if sample.correct >= 1]
    wrong = [sample for sample in samples if sample.correct < 1]
    return QualitySummary(
        schema_version=1,
        task=task.task,
        family=task.family,
        scorer=scorer_id(task),
        items=len(header.items),
        repeats=header.repeats,
        answered=sum(sample.status not in UNDONE and sample.marks.get("answered", 1.0) > 0 for sample in samples),
        failed=sum(sample.status == "failed" for sample in samples),
        user_failed=sum(sample.status == USER for sample in samples),
        capped=sum(sample.status == "capped" for sample in samples),
        cap=header.cap,
        scores=scores_of(task, header, items, samples, floor),
        by_group=_by_group(task, items, samples),
        account=account(samples),
        account_right=account(right) if right else None,
        account_wrong=account(wrong) if wrong else None,
        finish_reasons=_finish_reasons(samples),
        requests_at_once=min(header.concurrency, max(1, len(samples))),
        grading=grading,
        items_hash=header.items_hash,
        partial=header.partial is not None,
        stand_in=task.stand_in,
        flags=flags,
    )


def scores_of(
    task: QualityTask, header: Header, items: Sequence[Item], samples: Sequence[Sample], floor: float | None
) -> list[Score]:
    """Every score of a task, the headline first."""
    capped = sum(sample.status == "capped" for sample in samples) / max(1, len(samples))
    within = f" (within {header.cap:,} tokens)" if capped > NAMED_CAP else ""
    months = window_of(task, items)
    window = f", contests of {months}" if months else ""
    within = window + within
    scores = (
        _dialogue_scores(header, samples, within)
        if task.family == "tau2"
        else _answer_scores(task, header, samples, within)
    )
    if task.family == "aime" and header.repeats > 1:
        title = f"majority of {header.repeats} answers{within}"
        scores.append(_score(f"maj@{header.repeats}", title, votes_of(task, items, samples)))
    if task.family == "aime":
        scores += _by_exam_year(samples, within)
    if floor is not None:
        title = "floor: what an agent that does nothing gets"
        scores.append(Score(name="null-agent", title=title, value=floor, low=None, high=None))
    return scores + _budget_scores(header, samples, window)


def _answer_scores(task: QualityTask, header: Header, samples: Sequence[Sample], within: str) -> list[Score]:
    family = family_of(task)
    name, title = family.headline
    scores = [_mean(name.format(k=header.repeats), title + within, samples, lambda s: s.correct, headline=True)]
    scores += [
        _mean(mark, words + within, samples, lambda s, mark=mark: s.marks.get(mark, 0.0))  # type: ignore[misc]
        for mark, words in family.mark_titles.items()
    ]
    return [*scores, _mean("answered", "share of answers in which something was found", samples, _answered)]


def _dialogue_scores(header: Header, samples: Sequence[Sample], within: str) -> list[Score]:
    scores = []
    for k in range(1, header.repeats + 1):
        powers = {
            item: pass_power(sum(s.correct >= 1 for s in each), len(each), k)
            for item, each in _by_item(samples).items()
            if len(each) >= k
        }
        title = "share of dialogues that end well" if k == 1 else f"chance that {k} dialogues in a row end well"
        scores.append(_score(f"pass^{k}", title + within, powers, headline=k == 1))
    played = [sample for sample in samples if sample.status != USER]
    if played and len(played) < len(samples):
        lost = len(samples) - len(played)
        title = f"share of dialogues that end well, without the {lost} that the user simulator broke off{within}"
        scores.append(_mean("pass^1-played", title, played, lambda s: float(s.correct >= 1)))
    return scores


def _by_exam_year(samples: Sequence[Sample], within: str) -> list[Score]:
    """The headline's mean once more, its interval by exam year: a check of how much the exam as such matters."""
    years: dict[str, list[float]] = {}
    for each in _by_item(samples).values():
        if each[0].group is None:
            return []
        years.setdefault(each[0].group, []).append(sum(sample.correct for sample in each) / len(each))
    if len(years) < _YEARS:
        return []
    found = clustered_interval(list(years.values()))
    title = f"the same mean, its interval by exam year (a check: {len(years)} years){within}"
    return [Score(name="by-exam-year", title=title, value=found.value, low=found.low, high=found.high)]


def _answered(sample: Sample) -> float:
    return sample.marks.get("answered", 0.0)


def _budget_scores(header: Header, samples: Sequence[Sample], window: str) -> list[Score]:
    """Score at each budget below the cap: an answer counts when it was right, whole, and within the budget.

    The headline is the score at a budget of the cap.
    """
    if any(sample.tokens is None for sample in samples if sample.status not in UNDONE):
        return []
    return [
        _mean(
            f"at-{budget}",
            f"right within {budget:,} tokens{window}",
            samples,
            lambda s, budget=budget: s.correct * (s.status == "ok" and (s.tokens or 0) <= budget),  # type: ignore[misc]
        )
        for budget in BUDGETS
        if budget < header.cap
    ]


def _mean(
    name: str, title: str, samples: Sequence[Sample], value: Callable[[Sample], float], *, headline: bool = False
) -> Score:
    means = question_means((sample.item, value(sample)) for sample in samples)
    return _score(name, title, means, headline=headline)


def _score(name: str, title: str, means: Mapping[str, float], *, headline: bool = False) -> Score:
    found = mean_interval(list(means.values()))
    return Score(name=name, title=title, value=found.value, low=found.low, high=found.high, headline=headline)


def _by_item(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.item, []).append(sample)
    return found


def votes_of(task: QualityTask, items: Sequence[Item], samples: Sequence[Sample]) -> dict[str, float]:
    """Whether the majority of a question's answers is right, for tasks with integer answers. Cut ones have no vote."""
    rights = {item_id(task, item): str(int(item["answer"])) for item in items}
    votes = {q: [s.answer if s.status == "ok" else None for s in each] for q, each in _by_item(samples).items()}
    return {q: majority(each, rights[q]) for q, each in votes.items()}


def _by_group(task: QualityTask, items: Sequence[Item], samples: Sequence[Sample]) -> dict[str, GroupScore]:
    """The headline score over the questions of each group (year, category, difficulty, domain)."""
    means = question_means((sample.item, sample.correct) for sample in samples)
    repeated = len(samples) > len(means)
    votes = votes_of(task, items, samples) if task.family == "aime" and repeated else {}
    groups: dict[str, set[str]] = {}
    for sample in samples:
        if sample.group is not None:
            groups.setdefault(sample.group, set()).add(sample.item)
    return {group: _group_score(means, votes, sorted(each)) for group, each in sorted(groups.items())}


def _group_score(means: Mapping[str, float], votes: Mapping[str, float], questions: Sequence[str]) -> GroupScore:
    found = mean_interval([means[question] for question in questions])
    share = sum(votes[question] for question in questions) / len(questions) if votes else None
    return GroupScore(value=found.value, low=found.low, high=found.high, questions=len(questions), majority=share)


def _finish_reasons(samples: Sequence[Sample]) -> dict[str, int]:
    """Answers by the reason that the engine gave for their end."""
    found = Counter(s.status if s.status in UNDONE else s.finish_reason or "none given" for s in samples)
    return dict(sorted(found.items()))


def account(samples: Sequence[Sample]) -> TokenAccount:
    """Means an answer over those that came; null where the engine didn't say."""
    came = [sample for sample in samples if sample.status not in UNDONE]

    def mean(name: str) -> float | None:
        values = [value for value in (getattr(sample, name) for sample in came) if value is not None]
        return float(sum(values)) / len(values) if values else None

    return TokenAccount(
        answers=len(came),
        prompt_tokens=mean("prompt_tokens"),
        reasoning_tokens=mean("reasoning_tokens"),
        answer_tokens=mean("answer_tokens"),
        tokens=mean("tokens"),
        ttft_ms=mean("ttft_ms"),
        answer_time_ms=mean("answer_time_ms"),
        reasoning_split=sum(sample.reasoning_split for sample in came),
    )


def flags_of(task: QualityTask, header: Header, items: Sequence[Item], samples: Sequence[Sample]) -> list[Flag]:
    """What a reader must know about these scores."""
    count = max(1, len(samples))
    undone = [sample for sample in samples if sample.status in UNDONE]
    failed = [sample for sample in undone if sample.status != USER]
    broken_off = [sample for sample in undone if sample.status == USER]
    capped = sum(sample.status == "capped" for sample in samples)
    flags: list[Flag] = []
    if task.stand_in:
        flags.append(flag("stand_in", task.title))
    if task.canary is not None:
        flags.append(
            flag("canary", f"it is held against plain decoding's answers to the same questions ({task.canary.of})")
        )
    if header.partial is not None:
        unknown = "" if len(items) < task.data.count else ", which no hash vouches for"
        flags.append(flag("partial", f"{len(items)} of {task.data.count} items{unknown}"))
    if header.left_out:
        greedy_lost = header.profile == GREEDY and "temperature" in header.left_out
        said = ", ".join(header.left_out) + (": this engine can't be asked for greedy answers" if greedy_lost else "")
        flags.append(flag("sampling_left_out", said, "invalid" if greedy_lost else None))
    # The limit is on both together: whoever is to blame, what wasn't measured is no headline.
    severity: Severity = "invalid" if len(undone) > _FAILED * count else "warning"
    if failed:
        words = ", ".join(sorted({sample.error or "?" for sample in failed})[:4])
        said = f"{len(failed)} of {count} answers ({words}); they count as wrong: {_named(failed)}"
        flags.append(flag("failures", said, severity))
    if broken_off:
        said = f"{len(broken_off)} of {count}, counted as not ended well: {_named(broken_off)}"
        flags.append(flag("user_failures", said, severity))
    # Of a server that is asked ad hoc nobody said whether it thinks.
    if not header.thinking and header.scale is not None and (mismatch := _thought(samples).mismatch):
        flags.append(mismatch)
    if capped > _FLAGGED_CAP * count:
        flags.append(flag("capped", f"{capped} of {count} at {header.cap:,} tokens"))
    old = 0 if task.stand_in or header.released is None else sum(_older(task, i, header.released) for i in items)
    if old:
        flags.append(flag("possibly_seen", f"{old} of {len(items)} are older than the model ({header.released})"))
    return flags


def _thought(samples: Sequence[Sample]) -> Thought:
    """The reasoning in answers, to be held against the switch (PROTOCOL rule 2); each turn is an answer."""
    came = [sample for sample in samples if sample.status not in UNDONE]
    return Thought(
        sum(sample.turns for sample in came),
        sum(sample.thinking_turns for sample in came),
        sum(sample.thought_tokens for sample in came),
    )


GRADED_ELSEWHERE = frozenset({"slow_grader", "starved"})
"""Flags of the machine that graded: another one may have others."""


def grading_flags(grading: Grading | None, answers: int) -> list[Flag]:
    """Where the grading machine may have failed right programs: too slow for its bound, or busy with other work."""
    if grading is None:
        return []
    flags: list[Flag] = []
    if grading.workload_s > MOST * grading.reference_s:
        times = grading.workload_s / grading.reference_s
        said = (
            f"{times:.1f} times slower than the reference machine, and time limits are stretched {MOST:g} times at most"
        )
        flags.append(flag("slow_grader", said))
    share = grading.starved / max(1, answers)
    if share > _STARVED:
        said = f"{grading.starved} tests of {answers} answers were kept from their core and got more time"
        flags.append(flag("starved", said, "invalid" if share > _STARVED_BADLY else "warning"))
    return flags


def _named(failed: Sequence[Sample]) -> str:
    """The items that failed; the first few by name (`samples.parquet` has them all)."""
    items = sorted({sample.item for sample in failed})
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more


def _older(task: QualityTask, item: Item, released: str) -> bool:
    """Whether an item was public before the model was: contest date, year of the exam, or the task's own date."""
    published: Any = item.get("contest_date") or item.get("year") or task.settings.get("published")
    return published is not None and str(published)[: len(released)] < released
