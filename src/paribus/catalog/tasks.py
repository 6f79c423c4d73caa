"""The protocol as data: speed scenarios and scales (`tasks/speed/`), quality tasks (`tasks/quality/`)."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from paribus.catalog.sources import Commit, Repository
from paribus.catalog.specs import UNPINNED, Scalar, Sha256, SlugName, Spec

Length = Literal["short", "long"]
Kind = Literal["chat", "code", "maths", "json", "long-input", "infill", "tools"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The seven kinds of text. `infill` holds infilling and translation."""


class Scale(Spec):
    """How much is measured. `prompts` per kind and length (null: all); windows in seconds.

    `requests_16` bounds the requests of a scenario at 16 (null: as many as the window takes).
    `warm_up_blocks` bounds the warm-up (blocks of one request per active number); `warm_up_kinds` narrows its prompts
    to some kinds of text, for machines that read prompts slowly (empty: all kinds).
    """

    scale: SlugName
    starts: int = Field(ge=1)
    prompts: int | None = Field(default=None, ge=1)
    kinds: list[Kind] = []
    """Kinds of text that are measured at all, for runs that only prove that everything works (empty: all kinds)."""
    requests_16: int | None = Field(default=None, ge=1)
    window_s: float = Field(gt=0)
    window_completions: int = Field(ge=0)
    """The window holds at least this many completions a request slot (PROTOCOL: 20)."""
    caps: dict[Length, int] | None = None
    """Caps in the model's tokens in place of the scenario's."""
    warm_up_blocks: int = Field(ge=1)
    warm_up_kinds: list[Kind] = []
    race_kinds: list[Kind] = []
    """Kinds of text that races are run on, the same for every candidate (empty: those that are measured)."""
    race_caps: dict[Length, int] | None = None
    """`caps` for races, the same for all candidates (null: `caps`)."""
    race_prompts: int | None = Field(default=None, ge=1)
    race_requests_16: int | None = Field(default=None, ge=1)
    """`requests_16` for races, the same for all candidates (null: `requests_16`)."""
    quality_items: int | None = Field(default=None, ge=1)
    quality_repeats: int | None = Field(default=None, ge=1)
    quality_cap: int | None = Field(default=None, ge=1)
    preliminary: bool = True
    committed: bool = True
    """False: results go to `build/demo-results/`, not to `results/`."""

    def requests_of(self, scenario: Scenario) -> int | None:
        """Bound on the requests of a scenario with several at once; None: as many as its window takes."""
        return (self.race_requests_16 if scenario.race else None) or self.requests_16

    def cap_of(self, scenario: Scenario) -> int:
        """The cap of a scenario's answers in the model's tokens."""
        caps = (self.race_caps if scenario.race else None) or self.caps or {}
        return caps.get(scenario.length, scenario.cap)

    def kinds_of(self, scenario: Scenario) -> list[Kind]:
        """Kinds of text that a scenario is run on; empty: all of them."""
        return (self.race_kinds if scenario.race else []) or self.kinds


class Scenario(Spec):
    """One speed scenario: `tasks/speed/<id>.yaml`."""

    scenario: SlugName
    title: str
    requests: int = Field(ge=1)
    length: Length
    thinking: bool = False
    cap: int = Field(ge=1)
    prompts: SlugName
    """Name of the prompt set: a file `tasks/speed/prompts/<name>.jsonl`."""
    split: Literal["measured", "tuning"] = "measured"
    prefix_caching: bool = False
    headline: bool = True
    race: bool = False
    """A race on tuning prompts between decoders (its verdict picks the decoder measured in `picks_for`)."""
    picks_for: list[SlugName] = []
    synthetic: bool = False
    """Its load is not natural text: never a headline, planned only when it is named."""
    external: bool = False
    """Its prompts are a set that is not ours: it is planned only when it is named."""
    ignore_end: bool = False
    """Every answer is written up to the cap, whatever the model says (`ignore_eos`). Only where it is synthetic."""

    @model_validator(mode="after")
    def _honest(self) -> Scenario:
        if self.ignore_end and not self.synthetic:
            raise ValueError("a scenario that ignores the end of text is synthetic")
        if self.synthetic and (self.headline or self.race):
            raise ValueError("a synthetic scenario is no headline and picks no decoder: set headline to false")
        return self


class HubSource(Spec):
    """Files of one data set on the hub that hold a task's items, or a part of them (one year of several).

    `files` and `examples` (worked examples that stand in the prompts) name Parquet or JSON lines files, each with its
    sha256 where that is known. Rows that lack what the task needs get it here: `add` (fields that are the same for
    all), `integers` (our field: theirs, a whole number in figures or in a box), `id_prefix` (before the rows' own ids).
    """

    repository: Repository
    revision: Commit = UNPINNED
    files: dict[str, Sha256 | None] = Field(min_length=1)
    examples: dict[str, Sha256 | None] = {}
    bytes: int | None = Field(default=None, ge=0)
    """Size of all files together; null: not known."""
    bytes_source: str = ""
    """Where `bytes` is from."""
    id_prefix: str = ""
    add: dict[str, Scalar] = {}
    integers: dict[str, str] = {}

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit: without one it is resolved when the files are fetched, and recorded."""
        return self.revision != UNPINNED

    @model_validator(mode="after")
    def _sourced(self) -> HubSource:
        if (self.bytes is None) == bool(self.bytes_source):
            raise ValueError("bytes and bytes_source go together")
        return self


class TaskData(Spec):
    """Where a task's items come from: shipped (`file` below `tasks/quality/`), `PARIBUS_DATA`, or the hub.

    `fields` are the canonical fields hashed (NFC, items sorted by id); `items_hash` the expected hash of all items.
    """

    file: str | None = None
    local: list[str] = []
    """File names looked for below `PARIBUS_DATA`."""
    hub: list[HubSource] = []
    """Where the hub has them: all of these together are the task."""
    id_field: str = "id"
    fields: list[str] = Field(min_length=1)
    items_hash: Sha256 | None = None
    count: int = Field(ge=1)


class Effort(Spec):
    """How much of a quality task one run does: items (null: all), repeats of each, token cap of an answer."""

    items: int | None
    repeats: int
    cap: int


class Canary(Spec):
    """What makes a task a quality canary: asked of decoders, to see whether they break answers; never a score.

    `of`: the task that plain decoding answers, of which these items are a part laid down beforehand. `margin`: the
    loss, as a share, that must be ruled out for a decoder to pass.
    """

    of: SlugName
    margin: float = Field(gt=0, lt=1)


Budget = Literal["standard", "full"]
"""How often each question is asked: `standard`, what a card manages in a day (the default), or `full` (PROTOCOL 6)."""


class QualityTask(Spec):
    """One quality evaluation: `tasks/quality/<id>.yaml`."""

    task: SlugName
    title: str
    family: Literal["aime", "mmlu-pro", "livecodebench", "tau2"]
    version: str
    data: TaskData
    repeats: int = Field(ge=1)
    """Repeats of the `full` budget."""
    standard_repeats: int | None = Field(default=None, ge=1)
    """Repeats of the `standard` budget (null: as many as `full`)."""
    cap: int | None = None
    """Token cap; null: the model card's."""
    concurrency: int = Field(default=16, ge=1)
    scorer: str
    stand_in: bool = False
    sandbox: bool = False
    settings: dict[str, Any] = {}
    unsupported: str | None = None
    """Reason why this task is in the catalog but can't run yet."""
    on_request: bool = False
    """Planned only when it is named: `*` leaves it out."""
    canary: Canary | None = None
    """Asked of speculative decoders in place of plain decoding, and never ranked (PROTOCOL rule 5)."""

    @model_validator(mode="after")
    def _one_source(self) -> QualityTask:
        if self.data.file is None and not self.data.local and not self.data.hub:
            raise ValueError("data needs a file, local names or a hub repository")
        if self.canary is not None and not self.on_request:
            raise ValueError("a canary is planned only when it is named: set on_request to true")
        return self

    def repeats_of(self, budget: Budget) -> int:
        """Repeats of each item within a budget."""
        return self.repeats if budget == "full" or self.standard_repeats is None else self.standard_repeats

    def effort(self, scale: Scale | None, model_cap: int, budget: Budget = "standard") -> Effort:
        """What a scale and a budget leave of this task; the cap never exceeds the model card's."""
        scaled = (scale.quality_items, scale.quality_repeats, scale.quality_cap) if scale else (None, None, None)
        items, repeats, cap = scaled
        return Effort(
            items=items if items is not None and items < self.data.count else None,
            repeats=min(self.repeats_of(budget), repeats or self.repeats),
            cap=min(x for x in (cap, self.cap, model_cap) if x is not None),
        )
