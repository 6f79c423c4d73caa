"""Rough costs of a plan: seconds a job, gigabytes to fetch and to keep. For planning only, never published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paribus.catalog.envs import drafter_marker, items_marker, weights_marker
from paribus.catalog.estimate_dialogues import DialogueCost, dialogue_cost
from paribus.catalog.hardware import Speeds
from paribus.catalog.load import Catalog
from paribus.catalog.plan import Job, PlannedMeasure, Totals
from paribus.catalog.tasks import Scale

USED_OF_CAP = 0.7
"""Share of the cap that an answer takes, on average."""
CHARACTERS_A_TOKEN = 4
RAW_BYTES_A_TOKEN = 12
"""Disk that one answered token takes as compressed raw stream and arrivals."""
QUALITY_PROMPT_TOKENS = 400
QUALITY_ANSWER_TOKENS = {True: 7_200, False: 1_500}
"""Mean tokens of a quality task's answer, thinking or not: the longer of two means in one vendor's report (the claim
c019); for answers without thinking a guess. A cap that allows less makes them shorter."""
WARM_UP_CAP = 64
SOAK = 1.5
"""A load at several requests takes longer than its window: the soak before it and the tail after it."""


class Estimator:
    """Seconds and bytes of planned work, from a profile's rough speeds and the prompts' lengths.

    `counts`: items of the tasks of which the data hold only a part.
    """

    def __init__(self, catalog: Catalog, scale: Scale, speeds: Speeds, counts: Mapping[str, int] | None = None) -> None:
        self.catalog, self.scale, self.speeds, self.counts = catalog, scale, speeds, counts or {}
        self._prompts: dict[str, tuple[int, float]] = {}

    def job_seconds(self, kind: str, measures: Iterable[PlannedMeasure]) -> float:
        """Duration of a job: the engine's start, then its measures with their warm-up."""
        each = self._quality_seconds if kind == "quality" else self._speed_seconds
        return round(self.speeds.engine_start_s + sum(each(m) for m in measures), 1)

    def tokens(self, measure: PlannedMeasure) -> float:
        """Tokens that one start of a measure generates."""
        if (dialogues := self._dialogues(measure)) is not None:
            return dialogues.tokens
        cap = float(measure.declared["cap"]) * USED_OF_CAP
        if "task" in measure.declared:
            answer = min(cap, QUALITY_ANSWER_TOKENS[bool(measure.declared["thinking"])])
            return answer * self._items(measure) * int(measure.declared["repeats"])
        return cap * self._requests(measure)

    def _speed_seconds(self, measure: PlannedMeasure) -> float:
        _, prompt_tokens = self._prompt_lengths(measure.id)
        at_once, cap = int(measure.declared["requests_at_once"]), float(measure.declared["cap"])
        decode = self.speeds.decode_1 if at_once == 1 else self.speeds.decode_16
        reading = prompt_tokens / self.speeds.prompt
        block = max(at_once, 2) * (min(cap, WARM_UP_CAP) / 2 / decode + reading)
        measured = self._requests(measure) * (cap * USED_OF_CAP / decode + reading)
        if at_once > 1 and self._bound(measure) is None:
            measured = max(measured, self.scale.window_s * SOAK)
        return self.scale.warm_up_blocks * block + measured

    def _bound(self, measure: PlannedMeasure) -> int | None:
        return self.scale.requests_of(self.catalog.scenario(measure.id))

    def _requests(self, measure: PlannedMeasure) -> float:
        prompts, _ = self._prompt_lengths(measure.id)
        at_once = measure.declared["requests_at_once"]
        if at_once == 1:
            return prompts
        return self._bound(measure) or max(prompts, (self.scale.window_completions + 2) * at_once)

    def _dialogues(self, measure: PlannedMeasure) -> DialogueCost | None:
        """The cost of a task of dialogues; None for any other measure."""
        task = self.catalog.tasks.get(measure.id) if "task" in measure.declared else None
        if task is None or "scripted_turns" not in task.settings:
            return None
        return dialogue_cost(task, measure.declared, self._items(measure))

    def _quality_seconds(self, measure: PlannedMeasure) -> float:
        if (cost := self._dialogues(measure)) is not None:
            read = cost.prompt_tokens / self.speeds.prompt
            return cost.tokens / self.speeds.decode_16 + read + cost.waiting_s
        answers = self._items(measure) * int(measure.declared["repeats"])
        return self.tokens(measure) / self.speeds.decode_16 + answers * QUALITY_PROMPT_TOKENS / self.speeds.prompt

    def _items(self, measure: PlannedMeasure) -> int:
        count = self.counts.get(measure.id, self.catalog.task(measure.id).data.count)
        return min(count, self.scale.quality_items or count)

    def _prompt_lengths(self, scenario: str) -> tuple[int, float]:
        """Number of prompts and their mean length in tokens."""
        if scenario not in self._prompts:
            prompts = self.catalog.scenario_prompts(self.catalog.scenario(scenario), self.scale)
            characters = sum(len(str(p.messages or p.prompt)) for p in prompts)
            self._prompts[scenario] = len(prompts), characters / CHARACTERS_A_TOKEN / len(prompts)
        return self._prompts[scenario]


@dataclass(frozen=True)
class Downloads:
    """Bytes that are fetched from elsewhere, as far as they are known; `unknown` names what isn't."""

    bytes: int
    unknown: list[str]


def totals(jobs: list[Job], estimator: Estimator, waiting_seconds: float, power_w: float | None) -> Totals:
    """What the jobs that aren't done will cost, and what waits for a race. The machine runs one job at a time.

    `power_w`: the cards' default power limit.
    """
    open_jobs = [job for job in jobs if not job.done]
    downloads = _downloads(estimator.catalog, open_jobs)
    tokens = sum(estimator.tokens(measure) for job in open_jobs for measure in job.measures)
    return Totals(
        jobs=len(jobs),
        jobs_done=len(jobs) - len(open_jobs),
        hours=round((sum(job.seconds for job in open_jobs) + waiting_seconds) / 3600, 3),
        download_gb=round(downloads.bytes / 1e9, 3),
        disk_gb=round((2 * downloads.bytes + tokens * RAW_BYTES_A_TOKEN) / 1e9, 3),
        unknown_sizes=downloads.unknown,
        power_limit_w=power_w,
    )


def _downloads(catalog: Catalog, jobs: list[Job]) -> Downloads:
    """Weights and items that open jobs need and that aren't there yet, each counted once."""
    known, unknown = 0, []
    for name, size in {**_weights(catalog, jobs), **_items(catalog, jobs)}.items():
        known += size or 0
        unknown += [name] if size is None else []
    return Downloads(known, unknown)


def _weights(catalog: Catalog, jobs: list[Job]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name in dict.fromkeys(job.system for job in jobs):
        system = catalog.system(name)
        weights, drafter = system.precision.weights, system.drafter
        marker = weights_marker(system)
        if weights.source != "hosted" and not (catalog.root / marker).exists():
            found[f"the weights of {system.name.model} in {system.name.precision}"] = weights.bytes or None
        if drafter and not (catalog.root / drafter_marker(drafter)).exists():
            found[f"the drafter {drafter.repository}"] = drafter.bytes or None
    return found


def _items(catalog: Catalog, jobs: list[Job]) -> dict[str, int | None]:
    needed = {need for job in jobs for need in job.needs if not (catalog.root / need).exists()}
    return {
        f"the items of {task.task} ({source.repository})": source.bytes
        for task in catalog.tasks.values()
        if items_marker(task) in needed
        for source in task.data.hub
    }
