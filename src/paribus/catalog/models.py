"""Systems: one file per model (`systems/<model>.yaml`) with its weights, precisions, engines and decoders.

Knobs are kept apart by type (PROTOCOL rules 2 to 5): what decides the *answers* (weights, precision, sampler,
thinking, lossy settings) and what decides only the *speed* (decoder parameters, launch settings).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from paribus.catalog.engine_use import (
    CONTEXT_SETTINGS,
    KERNEL_SETTINGS,
    Decoder,
    EngineUse,
    Hosted,
    Image,
    Override,
    split_launch,
)
from paribus.catalog.shown import not_shown
from paribus.catalog.specs import UNPINNED, Date, Scalar, Sha256, SlugName, Spec, Text
from paribus.catalog.switches import switch_faults
from paribus.catalog.weights import UNQUANTISED, CardKind, Drafter, Needs, Precision, Weights
from paribus.conditions import SystemName, hash12

__all__ = [
    "CONTEXT_SETTINGS",
    "KERNEL_SETTINGS",
    "NEUTRAL",
    "UNPINNED",
    "CardKind",
    "Decoder",
    "Drafter",
    "EngineUse",
    "Hosted",
    "Image",
    "ModelFile",
    "Needs",
    "Override",
    "Parameters",
    "Precision",
    "Retired",
    "Sampling",
    "Scalar",
    "Sha256",
    "SlugName",
    "Spec",
    "System",
    "Thinking",
    "Weights",
    "split_launch",
]


NEUTRAL: Mapping[str, float | int] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "repetition_penalty": 1.0,
}
"""The value of each sampling setting with which it does nothing."""


class Sampling(Spec):
    """A model card's sampling settings, with the place where the card says so.

    The bounds are those of engines' requests (OpenAI's API; vllm/sampling_params.py). A `top_k` that turns it off is
    left out: 0 is refused by some engines, -1 by others.
    """

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    repetition_penalty: float | None = Field(default=None, gt=0, le=2)
    source: str

    @property
    def neutral(self) -> frozenset[str]:
        """Names of the settings that are given and do nothing."""
        return frozenset(name for name, value in self.fields().items() if value == NEUTRAL[name])

    @property
    def penalties(self) -> dict[str, float | int]:
        """The penalties that are given and do something: they depend on what is written already."""
        given = self.fields().items()
        return {name: value for name, value in given if name.endswith("_penalty") and name not in self.neutral}

    def fields(self) -> dict[str, float | int]:
        """What is sent with each request: the settings that are given."""
        return self.model_dump(exclude={"source"}, exclude_none=True)


class Thinking(Spec):
    """The model's own switch for thinking: `none` (it cannot think), or how it is turned on and off.

    `chat_template`: request fields that the chat template reads. `effort`: request fields that set a hosted model's
    effort; what they say is part of the answer class. `always`: it can't be turned off.
    """

    switch: Literal["none", "chat_template", "effort", "always"] = "none"
    on: dict[str, Any] = {}
    off: dict[str, Any] = {}
    sampling: Sampling | None = None
    """The card's sampling settings while it thinks, where they are others."""
    source: str = ""

    @model_validator(mode="before")
    @classmethod
    def _yaml_switches(cls, given: Any) -> Any:
        """YAML reads the bare keys `on` and `off` as truth values: they are meant as words here."""
        words = {True: "on", False: "off"}
        return {words.get(k, k): v for k, v in given.items()} if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _nothing_else(self) -> Thinking:
        fault = switch_faults(self.switch, self.on, self.off)
        if fault:
            raise ValueError(fault)
        return self


class Parameters(Spec):
    """How many parameters, in thousand millions; none: not disclosed."""

    total_b: float | None = Field(default=None, gt=0)
    active_b: float | None = Field(default=None, gt=0)
    """Parameters that take part in one token (fewer than all in a mixture of experts)."""
    source: str


class Retired(Spec):
    """A model that nobody can run any more: its runs stay, and none is planned."""

    date: Date | None = None
    reason: Text
    source: str


class ModelFile(Spec):
    """`systems/<model>.yaml`, whole."""

    model: SlugName
    title: str
    family: SlugName
    kind: Literal["autoregressive", "diffusion", "concept"]
    track: Literal["instruction", "research"] = "instruction"
    """`research`: unconditional or single-task models, a track of their own that is never ranked with the others."""
    licence: str
    released: Date
    retired: Retired | None = None
    context: int | None = Field(default=None, gt=0)
    """The longest prompt and answer together, in tokens. Only a model that can't be run may leave it out."""
    max_output: int | None = Field(default=None, gt=0)
    source: str
    parameters: Parameters | None = None
    sibling: SlugName | None = None
    """The autoregressive model that a diffusion model is compared with."""
    sampling: Sampling
    thinking: Thinking = Thinking()
    quality_cap: int = Field(default=81_920, gt=0, le=81_920)
    precisions: dict[SlugName, Precision] = Field(min_length=1)
    engines: dict[SlugName, EngineUse] = Field(min_length=1)
    unsupported: Text | None = None
    """Why the model is in the catalog (for its claims, or until an engine runs it) but can't be run."""
    unverified: Text | None = None
    limits: list[Text] = []
    """What is known to go wrong or to be bounded, each with who says so."""
    notes: list[str] = []

    @model_validator(mode="after")
    def _whole(self) -> ModelFile:
        if self.context is None and self.unsupported is None:
            raise ValueError("context is missing: the longest prompt and answer together, in tokens")
        for engine, use in self.engines.items():
            for name, value in use.contexts():
                if self.context is not None and value > self.context:
                    raise ValueError(
                        f"engines.{engine}: {name} {value} is more than the model's context {self.context}"
                    )
            unknown = sorted(set(use.precisions) - set(self.precisions))
            if unknown:
                raise ValueError(f"engines.{engine} names the precision {unknown[0]}, which this file doesn't have")
            hosted = [p for p in use.precisions if self.precisions[p].weights.source == "hosted"]
            if hosted and use.hosted is None:
                raise ValueError(
                    f"engines.{engine} runs the hosted precision {hosted[0]} and says nowhere at which address"
                )
        return self

    def systems(self) -> Iterator[System]:
        """Every system of this model: precision x engine x decoder x thinking."""
        modes = {"none": [False], "always": [True]}.get(self.thinking.switch, [False, True])
        for engine, use in self.engines.items():
            for precision in use.precisions:
                for decoder, how in use.decoders.items():
                    if how.precisions and precision not in how.precisions:
                        continue
                    for think in modes:
                        yield System(self, SystemName(self.model, precision, engine, decoder, think))


@dataclass(frozen=True)
class System:
    """One system: a name and the model file that explains it."""

    model: ModelFile
    name: SystemName

    @property
    def precision(self) -> Precision:
        """Weights and needs of this system's precision."""
        return self.model.precisions[self.name.precision]

    @property
    def use(self) -> EngineUse:
        """How this system's engine runs the model."""
        return self.model.engines[self.name.engine]

    @property
    def decoder(self) -> Decoder:
        """This system's decoder."""
        return self.use.decoders[self.name.decoder]

    @property
    def drafter(self) -> Drafter | None:
        """Weights of the draft model that this system's decoder needs."""
        return self.decoder.drafter

    @property
    def sampling(self) -> Sampling:
        """The card's sampling settings for this system: its own while it thinks, where the card has such."""
        return (self.name.think and self.model.thinking.sampling) or self.model.sampling

    @property
    def thinking_settings(self) -> dict[str, Any]:
        """Extra request fields that turn thinking on or off for this system."""
        return self.model.thinking.on if self.name.think else self.model.thinking.off

    @property
    def request_model(self) -> str:
        """The model's name in requests: ours, but for a hosted model."""
        return self.use.hosted.model if self.use.hosted else self.name.model

    @property
    def memory_gb(self) -> float | None:
        """Gigabytes that weights, a working cache and the drafter need; none: not known."""
        own, cache = self.precision.memory_gb, self.precision.cache_gb
        if cache is not None:
            own = self.precision.weights.bytes / 1e9 + cache
        return None if own is None else own + (self.drafter.needs_gb if self.drafter else 0.0)

    def context_of(self, launch: Mapping[str, Any]) -> int:
        """Tokens that one request may hold: the model's context, or what the launch settings leave of it."""
        given = [int(launch[name]) for name in CONTEXT_SETTINGS if launch.get(name)]
        return min([*given, self.model.context or sys.maxsize])

    def overrides(self, card: str | None = None) -> list[Override]:
        """What changes the launch of this system on a card (a hardware profile; none: no particular one), in order."""
        return self.use.applying(card, self.name.precision, self.name.decoder)

    def launch_on(self, card: str | None = None) -> dict[str, Scalar]:
        """The launch settings of this system on a card (a hardware profile; none: no particular one)."""
        return self.use.launch_on(card, self.name.precision, self.name.decoder)

    def image_on(self, card: str | None) -> Image | None:
        """The container image of this system on a card (a hardware profile; none: no particular one)."""
        return next((o.image for o in reversed(self.overrides(card)) if o.image), self.use.image)

    def unsupported_on(self, card: str | None = None) -> str | None:
        """Why this system can't run, whatever the card's memory; none when nothing is known against it."""
        retired = self.model.retired
        reasons = [
            f"retired: {retired.reason}" if retired else None,
            self.model.unsupported,
            self.use.unsupported,
            self.precision.unsupported,
            self.decoder.unsupported,
            *(override.unsupported for override in self.overrides(card)),
        ]
        return next((reason for reason in reasons if reason), None)

    def unverified_on(self, card: str) -> list[str]:
        """What no source confirms about this system on a card (a hardware profile), each in words.

        Where the file names no doubt of its own, the doubt is that no source shows it there (`EngineUse.shown`).
        """
        said = [self.model.unverified, self.use.unverified, self.precision.unverified, self.decoder.unverified]
        said += [override.unverified for override in self.overrides(card)]
        silent = not_shown(self.use.shown, card, self.name.precision, self.name.decoder)
        return list(dict.fromkeys(reason for reason in said if reason)) or ([silent] if silent else [])

    def build_of(self, builds: Mapping[str, str], card: str | None) -> str | None:
        """The build of the engine that this system would run on: of a locked environment, an image or a program.

        `card`: a hardware profile, whose image may be another; none: no particular one. `builds`: engine name to its
        build (`envs.engine_build`), `program:<name>` to that of a program on the path.
        None where there is no build that could be named beforehand.
        """
        if self.use.hosted is not None:
            return "hosted"
        if self.use.how == "image":
            image = self.image_on(card)
            return image.digest.removeprefix("sha256:")[:12] if image and image.pinned else None
        if self.use.how == "binary":
            return builds.get(f"program:{self.use.program}")
        return builds.get(self.name.engine)

    def answer_class(self, engine_build: str, launch: Mapping[str, Scalar]) -> dict[str, Any]:
        """Everything that decides the answers (PROTOCOL rule 3), as JSON; its `hash12` is the `answer_class`.

        `engine_build` is the build of the engine (`build_of`). Of the launch settings only the kernels of quantised
        weights count. Keys that came later are there only where they say something, so that the hashes of older files
        stay.
        """
        later = {
            "effort": self._effort,
            "drafter": self._lossy_drafter,
            "quantization": self.precision.quantization,
            "dtype": self.precision.dtype,
            "state_cache": self.precision.state_cache,
            "kernels": self._kernels(launch),
            "hosted": self._service,
        }
        return {
            "model": self.name.model,
            "weights": self.precision.weights.identity,
            "precision": self.name.precision,
            "kv_cache": self.precision.kv_cache,
            "engine": self.name.engine,
            "engine_build": engine_build,
            "sampling": self.sampling.fields(),
            "thinking": self.name.think,
            "lossy": dict(self.decoder.lossy),
            **{name: value for name, value in later.items() if value},
        }

    @property
    def _effort(self) -> dict[str, Any] | None:
        return dict(self.thinking_settings) if self.model.thinking.switch == "effort" else None

    @property
    def _lossy_drafter(self) -> dict[str, Any] | None:
        """The drafter's identity, where the answers differ with it."""
        return self.drafter.identity if self.drafter and self.drafter.lossy else None

    @property
    def _service(self) -> dict[str, Any] | None:
        """Who else serves the model (an address from the environment names nobody), and under which name."""
        hosted = self.use.hosted
        return hosted.model_dump(include={"url", "model"}, exclude_none=True) if hosted else None

    @property
    def quantised(self) -> bool:
        """Whether its weights are quantised, as far as its file says."""
        said = self.precision.quantization
        return self.name.precision not in UNQUANTISED if said is None else said != "none"

    def _kernels(self, launch: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The kernels that a launch chooses for quantised weights; what is left to the engine follows from the card."""
        if not self.quantised:
            return {}
        return {name: launch[name] for name in KERNEL_SETTINGS if launch.get(name, "auto") != "auto"}

    def declared(self, engine_build: str, launch: dict[str, Scalar]) -> dict[str, Any]:
        """Declared conditions of this system under one launch configuration; their `hash12` is `system_hash`.

        They hold all that the answer class counts: runs of two classes have two paths. Keys that came later are there
        only where they say something.
        """
        later: dict[str, Any] = {
            "track": self.model.track if self.model.track != "instruction" else None,
            "drafter": self.drafter.reference if self.drafter else None,
            "effort": self._effort,
            "trust_remote_code": self.use.trust_remote_code or None,
            "weights_artifact": self.precision.weights.artifact,
            "number_types": self.precision.number_types,
            "model_sampling": self.sampling.fields(),
            "lossy_drafter": self._lossy_drafter,
            "hosted": self._service,
        }
        return {
            "model": self.name.model,
            "kind": self.model.kind,
            "weights": self.precision.weights.reference,
            "precision": self.name.precision,
            "thinking": self.name.think,
            "engine": self.name.engine,
            "engine_build": engine_build,
            "decoder": self.name.decoder,
            "decoder_parameters": dict(self.decoder.parameters),
            "acceptance_method": self.decoder.acceptance,
            "lossy": dict(self.decoder.lossy),
            "launch": dict(launch),
            "prefix_caching": bool(launch.get("prefix_caching", False)),
            **{name: value for name, value in later.items() if value},
        }

    def answer_class_hash(self, engine_build: str, launch: Mapping[str, Scalar]) -> str:
        """12 hex digits: the answer class that quality belongs to."""
        return hash12(self.answer_class(engine_build, launch))
