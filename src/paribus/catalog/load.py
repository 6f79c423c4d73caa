"""The catalog: everything that files declare (systems, hardware, tasks, pairs), read once and checked."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from paribus.catalog.claims import Claim
from paribus.catalog.hardware import HardwareFile
from paribus.catalog.models import ModelFile, SlugName, Spec, System
from paribus.catalog.prompts import SetPrompt, prompts_hash, read_prompt_set
from paribus.catalog.reading import read_yaml
from paribus.catalog.sources import PromptSource
from paribus.catalog.tasks import QualityTask, Scale, Scenario
from paribus.conditions import SystemName, UsageError, slug


class Pair(Spec):
    """One duel that the site leads with. `controlled`: only the decoding differs; `best-stack`: fastest engines.

    Sides are stacks, `<model>--<precision>--<engine>[--think]`. A side's decoder is found by the race, unless it is
    named: a diffusion model is met at its card's settings, not at the fastest lossy ones.
    """

    pair: SlugName
    title: str
    kind: str = Field(pattern="^(controlled|best-stack)$")
    left: str
    right: str
    left_decoder: SlugName | None = None
    right_decoder: SlugName | None = None
    cards: list[str] = []
    """Hardware profiles (globs) on which it is planned; none named: wherever its systems run."""
    note: str = ""

    def sides(self) -> list[tuple[str, str | None]]:
        """Both stacks, each with the decoder that is meant, if one is."""
        return [(self.left, self.left_decoder), (self.right, self.right_decoder)]

    def planned_on(self, card: str) -> bool:
        """Whether a hardware profile plans it."""
        return not self.cards or any(matches(card, glob) for glob in self.cards)


class PairsFile(Spec):
    """`pairs.yaml`, whole."""

    edition: str
    protocol: int
    pairs: list[Pair]


@dataclass(frozen=True)
class Catalog:
    """The catalog below one root folder (ours, and perhaps a private one given with `--config catalog=DIR`)."""

    root: Path
    extra: Path | None = None

    def _files(self, pattern: str) -> list[Path]:
        roots = [self.root] + ([self.extra] if self.extra else [])
        return sorted(path for root in roots for path in root.glob(pattern))

    @cached_property
    def models(self) -> dict[str, ModelFile]:
        """Every model by name. A file's name must be its model's."""
        models: dict[str, ModelFile] = {}
        for path in self._files("systems/*.yaml"):
            model = read_yaml(path, ModelFile)
            if path.stem != model.model:
                raise UsageError(f"{path}: the file must be named after its model, {model.model}.yaml")
            if model.model in models:
                raise UsageError(f"{path}: the model {model.model} is already in the catalog")
            models[model.model] = model
        return models

    def model_file(self, name: str) -> Path:
        """The file that a model of the catalog was read from."""
        return self._files(f"systems/{name}.yaml")[0]

    @cached_property
    def systems(self) -> dict[str, System]:
        """Every system by its full name."""
        return {str(s.name): s for model in self.models.values() for s in model.systems()}

    @cached_property
    def scenarios(self) -> dict[str, Scenario]:
        """Every speed scenario by id."""
        return {s.scenario: s for s in (read_yaml(p, Scenario) for p in self._files("tasks/speed/*.yaml"))}

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """Every claim by id. A file's name must be its claim's."""
        claims: dict[str, Claim] = {}
        for path in self._files("claims/*.yaml"):
            claim = read_yaml(path, Claim)
            if path.stem != claim.claim:
                raise UsageError(f"{path}: the file must be named after its claim, {claim.claim}.yaml")
            claims[claim.claim] = claim
        return claims

    @cached_property
    def scales(self) -> dict[str, Scale]:
        """Every scale by name."""
        return {s.scale: s for s in (read_yaml(p, Scale) for p in self._files("tasks/scales/*.yaml"))}

    @cached_property
    def tasks(self) -> dict[str, QualityTask]:
        """Every quality task by id."""
        return {t.task: t for t in (read_yaml(p, QualityTask) for p in self._files("tasks/quality/*.yaml"))}

    @cached_property
    def pairs(self) -> PairsFile:
        """The duels, with the edition and the protocol version."""
        return read_yaml(self.root / "pairs.yaml", PairsFile)

    def hardware(self, name: str) -> HardwareFile:
        """One hardware profile. Its folder must carry its name."""
        slug(name, "hardware profile")
        path = next((p for p in self._files("hardware/*/hardware.yaml") if p.parent.name == name), None)
        if path is None:
            known = ", ".join(sorted(p.parent.name for p in self._files("hardware/*/hardware.yaml")))
            raise UsageError(f"there is no hardware profile {name!r}; known: {known}")
        profile = read_yaml(path, HardwareFile)
        if profile.hardware != name:
            raise UsageError(f"{path}: hardware is {profile.hardware!r} but the folder is {name!r}")
        return profile

    def system(self, name: str | SystemName) -> System:
        """One system by its full name; close names are offered when there is none."""
        system = self.systems.get(str(name))
        if system is None:
            near = [n for n in self.systems if n.startswith(str(name).split("--")[0])][:8]
            hint = f"; near it: {', '.join(near)}" if near else "; `paribus show systems` lists them"
            raise UsageError(f"there is no system {str(name)!r} in the catalog{hint}")
        return system

    def scenario(self, name: str) -> Scenario:
        """One scenario by id."""
        return _get(self.scenarios, name, "scenario")

    def scale(self, name: str) -> Scale:
        """One scale by name."""
        return _get(self.scales, name, "scale")

    def task(self, name: str) -> QualityTask:
        """One quality task by id."""
        return _get(self.tasks, name, "quality task")

    @cached_property
    def prompt_sources(self) -> dict[str, PromptSource]:
        """Every public prompt set that is not ours, by name."""
        return {s.set: s for s in (read_yaml(p, PromptSource) for p in self._files("tasks/speed/prompts/*.yaml"))}

    def prompt_set(self, name: str) -> list[SetPrompt]:
        """All prompts of one set, in file order.

        A public set has the prompts that were fetched, and the tuning prompts of the set of ours that warms up for it.
        """
        source = self.prompt_sources.get(name)
        if source is None:
            return read_prompt_set(self.root / "tasks" / "speed" / "prompts" / f"{slug(name, 'prompt set')}.jsonl")
        path = source.fetched(self.root)
        if not path.is_file():
            raise UsageError(
                f"the prompts of {source.title} are not here: fetch them with `paribus fetch prompts {name}`"
            )
        return read_prompt_set(path) + [p for p in self.prompt_set(source.warm_up) if p.split == "tuning"]

    def scenario_prompts(self, scenario: Scenario, scale: Scale) -> list[SetPrompt]:
        """The prompts a scenario uses at a scale: its split and length, the first `n` of each kind in id order.

        Kinds of a public set are its own categories.
        """
        per_kind = scale.race_prompts if scenario.race else scale.prompts
        kinds = scale.kinds_of(scenario)
        chosen: list[SetPrompt] = []
        counts: dict[str, int] = {}
        for prompt in sorted(self.prompt_set(scenario.prompts), key=lambda p: p.id):
            if prompt.split != scenario.split or prompt.length != scenario.length:
                continue
            if kinds and not scenario.external and prompt.kind not in kinds:
                continue
            counts[prompt.kind] = counts.get(prompt.kind, 0) + 1
            if per_kind is None or counts[prompt.kind] <= per_kind:
                chosen.append(prompt)
        if not chosen:
            raise UsageError(f"the prompt set {scenario.prompts!r} has no {scenario.split} {scenario.length} prompts")
        return chosen

    def scenario_prompts_hash(self, scenario: Scenario, scale: Scale) -> str:
        """12 hex digits over the prompts that a scenario uses at a scale."""
        return prompts_hash(self.scenario_prompts(scenario, scale))


V = TypeVar("V")


def _get(table: dict[str, V], name: str, what: str) -> V:
    if name not in table:
        raise UsageError(f"there is no {what} {name!r}; known: {', '.join(sorted(table))}")
    return table[name]


def matches(name: str, globs: str) -> bool:
    """Whether a name matches one of several globs separated by commas (or blanks)."""
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs.replace(",", " ").split())
