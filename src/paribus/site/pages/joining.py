"""Which scores a decoder has, by the lossless gates, and what to run where they haven't all passed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from paribus.conditions import SystemName
from paribus.results.lossless import GATES, Gate, lossless_sentence, standing
from paribus.site.content import Row, Run
from paribus.site.page import Site

OWN_ANSWERS = ("plain", "block-diffusion")
"""Decoders that inherit nothing: they are what their scores were asked of."""

MORE_STARTS = 5
MORE_PROMPTS = 56

_SAFE = re.compile(r"[A-Za-z0-9_./=*,-]+")


def quoted(argument: str, instead: str) -> str:
    """An argument for a shell: quoted, and only if it is made of plain characters (names are, hostile ones are not)."""
    return f"'{argument if _SAFE.fullmatch(argument) else instead}'"


@dataclass(frozen=True)
class Step:
    """One gate that a decoder hasn't passed: whether it is undecided (else it hasn't run), and the command for it."""

    gate: Gate
    undecided: bool
    command: str

    @property
    def words(self) -> str:
        """The gate and its standing, in words."""
        return f"{GATES[self.gate]}, {'undecided' if self.undecided else 'not run yet'}"


def verdicts_of(site: Site, run: Run) -> list[Row]:
    """The verdicts of the lossless gates that are about a run's decoder, on its kind of hardware."""
    key = run.demo, str(run.row["hardware"]), str(run.row["system"]), str(run.row["answer_class"])
    return list(site.verdicts.get(key, ()))


def gate_words(site: Site, run: Run) -> str:
    """What is known of a decoder's answers on a card: each gate that passed, failed or wasn't run."""
    return lossless_sentence(verdicts_of(site, run))


def failed(site: Site, run: Run) -> bool:
    """Whether a lossless gate found that a run's decoder has other answers."""
    return standing(verdicts_of(site, run)) == "failed"


def proven(site: Site, run: Run) -> bool:
    """Whether a run's answers are its answer class's: it speculates on nothing, or every lossless gate has passed."""
    return run.decoder_method in OWN_ANSWERS or standing(verdicts_of(site, run)) == "passed"


def has_score(site: Site, run: Run, asked: Run) -> bool:
    """Whether a score is a run's too: asked of its very system, or both have the answers of their class, proven."""
    return run.row["system"] == asked.row["system"] or (proven(site, run) and proven(site, asked))


def steps(site: Site, run: Run) -> list[Step]:
    """What is left to run before a decoder's class's scores are its own: nothing for one that inherits none."""
    if run.decoder_method in OWN_ANSWERS:
        return []
    seen: dict[str, set[str]] = {}
    for row in verdicts_of(site, run):
        seen.setdefault(str(row["gate"]), set()).add(str(row["standing"]))
    left: list[Gate] = [gate for gate in GATES if "passed" not in seen.get(gate, ())]
    return [Step(gate, gate in seen, _command(site, run, gate, again=gate in seen)) for gate in left]


def _command(site: Site, run: Run, gate: Gate, *, again: bool) -> str:
    hardware, system = str(run.row["hardware"]), str(run.row["system"])
    profile = f"snakemake --profile {hardware if _SAFE.fullmatch(hardware) else 'NAME'}"
    if gate == "greedy":
        return f"paribus lossless {quoted(system, 'SYSTEM')}" + (f" --prompts {MORE_PROMPTS}" if again else "")
    if gate == "served":
        plain = "--".join((*SystemName.parse(system).stack, "plain")) + ("--think" if run.row["think"] else "")
        return f"{profile} speed --config {quoted(f'systems={plain},{system}', 'systems=*')} starts={MORE_STARTS}"
    asked = f"measures={_canary(site, run)}" + (" repeat=2" if again else "")
    return f"{profile} quality --config {quoted(f'systems={system}', 'systems=*')} {asked}"


def _canary(site: Site, run: Run) -> str:
    """The canary whose questions plain decoding of the same answers was asked; else that of the public benchmark."""
    canaries = {name: task for name, task in site.tasks.items() if task.canary is not None}
    same = (str(run.row["answer_class"]), run.row["hardware"], run.demo)
    asked = {
        str(r.row["scenario_or_task"])
        for r in site.content.quality_runs
        if (str(r.row["answer_class"]), r.row["hardware"], r.demo) == same
    }
    fitting = [name for name, task in canaries.items() if task.canary is not None and task.canary.of in asked]
    public = [name for name, task in canaries.items() if not task.stand_in]
    return next(iter([*fitting, *public, *canaries]), "CANARY")


def why_no_score(site: Site, runs: Sequence[Run]) -> str:
    """In plain words why one of some decoders has no score of another's, and what to run first; nothing where none."""
    for run in runs:
        for step in steps(site, run):
            return f"{run.row['decoder']}: its lossless gate ({step.words}); to run: {step.command}"
    return ""
