"""`paribus lossless`: whether a decoder gives plain decoding's answers at temperature 0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, zip_longest
from pathlib import Path

import click

from paribus.catalog import Catalog, Job, Plan, PromptLine, SetPrompt
from paribus.catalog.configuration import catalog_of
from paribus.catalog.prompts import prompts_hash
from paribus.cli._options import config_option, profile_option, read_settings, resolve_here
from paribus.conditions import CheckFailed, RunPath, UsageError, conditions_hash, hash12
from paribus.engines import Session, open_session
from paribus.engines.job import LOCK_WAIT_S, card_names
from paribus.engines.scoring import Scoring
from paribus.machine import card_lock, write_atomic
from paribus.machine.proof import require_card
from paribus.quality.lossless import MARGIN, Compared, LosslessVerdict, judge
from paribus.quality.lossless_run import Given, answers, compared, score, with_scores
from paribus.results.run import find_root

SCENARIO = "c1-short"
NAME = "lossless"


@click.command(
    epilog="""\b
Examples:
  paribus lossless smollm2-135m--q4-1--llamacpp--ngram-simple-n4-m4
  paribus lossless 'smollm2-135m--q4-1--llamacpp--ngram-*' --prompts 28"""
)
@click.argument("systems")
@profile_option
@config_option
@click.option("--prompts", "count", type=click.IntRange(2), default=14, show_default=True, help="Prompts to ask.")
@click.option("--max-tokens", type=click.IntRange(1), default=64, show_default=True, help="Token cap of an answer.")
@click.option("--at-once", type=click.IntRange(2), default=4, show_default=True, help="Load of plain's second pass.")
@click.option("--whole-answers", is_flag=True, help="Compare whole answers, also where the engine scores given text.")
def command(systems: str, profile: str, settings: tuple[str, ...], **asked: int) -> None:
    """Ask SYSTEMS (globs) and plain decoding the same prompts at temperature 0, and compare the answers.

    Plain decoding answers twice, alone and several at once: rounding turns some of its own answers, and a decoder may
    turn no more than that. Where the engine scores given text, the answers are fed through plain decoding, and tokens
    that it would not have chosen are counted; else whole answers are compared. Writes lossless.json beside the system's
    runs. Ends with 1 when a decoder fails the gate.
    """
    root = find_root()
    plan = resolve_here(root, profile, {**read_settings(settings), "systems": _with_plain(systems), "measures": "c1-*"})
    catalog = catalog_of(root, plan)
    jobs = {job.system: job for job in plan.jobs}
    chosen = [name for name in jobs if catalog.system(name).decoder.method != "plain"]
    if not chosen:
        raise UsageError(f"{systems!r} names no decoder that the profile {profile} plans beside plain decoding")
    gate = Gate(
        root, plan, catalog, jobs, first_prompts(catalog, asked["count"]), asked["max_tokens"], asked["at_once"]
    )
    gate = replace(gate, whole_answers=bool(asked["whole_answers"]))
    failed = []
    for plain in dict.fromkeys(_plain_of(catalog, name, jobs) for name in chosen):
        mine = [name for name in chosen if _plain_of(catalog, name, jobs) == plain]
        for verdict in gate.run(plain, mine):
            click.echo(f"{verdict.system}: {verdict.sentence}")
            failed += [verdict.system] if verdict.standing == "failed" else []
    if failed:
        raise CheckFailed(f"not lossless at temperature 0: {', '.join(failed)}")


def _with_plain(systems: str) -> str:
    """The systems asked for, and plain decoding of their stacks."""
    stacks = {"--".join(name.split("--")[:3]) for name in systems.replace(",", " ").split()}
    return ",".join([systems, *(f"{stack}--plain*" for stack in sorted(stacks))])


def _plain_of(catalog: Catalog, name: str, jobs: dict[str, Job]) -> str:
    """Plain decoding with the same answer class."""
    own, build = catalog.system(name), jobs[name].measures[0].hashes["answer_class"]
    for other, job in jobs.items():
        system = catalog.system(other)
        same = job.measures[0].hashes["answer_class"] == build and system.name.think == own.name.think
        if system.decoder.method == "plain" and same:
            return other
    raise UsageError(f"{name}: the profile plans no plain decoding of the same answer class")


def first_prompts(catalog: Catalog, count: int) -> list[PromptLine]:
    """So many measured prompts with short answers, of every kind in turn."""
    kinds: dict[str, list[SetPrompt]] = {}
    for prompt in catalog.scenario_prompts(catalog.scenario(SCENARIO), catalog.scale("full")):
        kinds.setdefault(prompt.kind, []).append(prompt)
    turns = chain.from_iterable(zip_longest(*kinds.values()))
    return [prompt for prompt in turns if prompt is not None][:count]


@dataclass(frozen=True)
class Gate:
    """What is asked, and of what: the same for every decoder of a stack."""

    root: Path
    plan: Plan
    catalog: Catalog
    jobs: dict[str, Job]
    prompts: list[PromptLine]
    max_tokens: int
    at_once: int
    whole_answers: bool = False

    def run(self, plain: str, subjects: list[str]) -> Iterator[LosslessVerdict]:
        """Ask each decoder once, then plain decoding twice, which also scores what the others wrote.

        One server after the other; each verdict is written.
        """
        with ExitStack() as stack:
            for card in card_names(self.plan, self.catalog):
                stack.enter_context(card_lock(card, timeout_s=LOCK_WAIT_S, purpose="the lossless gate"))
            # A verdict is about all runs on this card: it is made on no other.
            require_card(self.plan.hardware, self.catalog.hardware(self.plan.hardware).card)
            given = {}
            for subject in subjects:
                with self._open(subject) as session:
                    given[subject] = self._ask(session, 1)
            with self._open(plain) as session:
                alone, several = self._ask(session, 1), self._ask(session, self.at_once)
                scoring = self._scoring(session)
                scored = score(session.endpoint, scoring, several) if scoring else []
                for subject, answered in given.items():
                    rows = compared(self.prompts, alone, several, answered)
                    if scoring:
                        rows = with_scores(rows, scored, score(session.endpoint, scoring, answered))
                    yield self._write(plain, subject, rows, teacher_forced=scoring is not None)

    @contextmanager
    def _open(self, system: str) -> Iterator[Session]:
        with open_session(self.root, self._job(system), self.catalog) as session:
            if "temperature" not in session.accepted:
                raise UsageError(f"{system}: its engine takes no temperature, so that it has no answers at 0")
            yield session

    def _ask(self, session: Session, at_once: int) -> list[Given]:
        scoring = self._scoring(session)
        return answers(session.endpoint, self.prompts, max_tokens=self.max_tokens, at_once=at_once, scoring=scoring)

    def _scoring(self, session: Session) -> Scoring | None:
        return None if self.whole_answers else session.engine.scoring()

    def _job(self, system: str) -> Job:
        slots = {"slots": self.at_once}
        return self.jobs[system].model_copy(update={"launch": {**self.jobs[system].launch, **slots}})

    def _write(self, plain: str, subject: str, rows: list[Compared], *, teacher_forced: bool) -> LosslessVerdict:
        own, other = (self.jobs[name].measures[0].hashes for name in (subject, plain))
        differ, control, p, standing = judge(rows)
        verdict = LosslessVerdict(
            schema_version=1,
            system=subject,
            plain=plain,
            form="teacher-forced" if teacher_forced else "equal-outputs",
            margin=MARGIN if teacher_forced else None,
            max_tokens=self.max_tokens,
            at_once=self.at_once,
            engine=self.jobs[subject].engine,
            hashes={
                "answer_class": own["answer_class"],
                "subject": own["system_hash"],
                "plain": other["system_hash"],
                "prompts": prompts_hash(self.prompts),
            },
            prompts=rows,
            differ=differ,
            control_differ=control,
            p=round(p, 6),
            standing=standing,
            measured_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        asked = {"prompts": verdict.hashes["prompts"], "max_tokens": self.max_tokens, "at_once": self.at_once}
        asked |= {"form": verdict.form} if teacher_forced else {}
        conditions = conditions_hash(own["system_hash"], hash12(asked))
        place = RunPath(self.plan.hardware, self.plan.machine, subject, NAME, conditions, 1)
        path = self.root / self.plan.results / str(place) / f"{NAME}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, (verdict.model_dump_json(indent=1, by_alias=True) + "\n").encode())
        return verdict
