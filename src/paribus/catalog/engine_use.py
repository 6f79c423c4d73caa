"""How one engine runs one model: launch settings and where they differ, decoders, and where it is served.

Launch settings carry the engine's own names in snake case (`max_num_seqs` for `--max-num-seqs`). One whose name is in
capitals is a variable for the engine's process (`VLLM_USE_V2_MODEL_RUNNER`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from paribus.catalog.hosts import own_fault, public_fault
from paribus.catalog.shown import Globs, Shown, all_or_any, any_of
from paribus.catalog.specs import UNPINNED, Scalar, SlugName, Spec, Text
from paribus.catalog.weights import Drafter, Needs

CONTEXT_SETTINGS = ("context_per_slot", "max_model_len", "context_length")
"""What engines call the tokens that one request may hold: llama.cpp (through our launcher), vLLM, SGLang."""
MOST_SLOTS = 4096
"""More requests at once than any measure keeps open."""
KERNEL_SETTINGS = (
    "VLLM_USE_DEEP_GEMM",
    "fp4_gemm_runner_backend",
    "fp8_gemm_runner_backend",
    "linear_backend",
    "moe_backend",
    "moe_runner_backend",
)
"""Launch settings by which vLLM and SGLang choose the kernels of quantised weights. Of one checkpoint some keep what is
multiplied with them at 16 bits, others quantise it as well (vllm/config/kernel.py: `marlin` is "weight-only
quantization"), and scales differ: that is quantisation, which decides answers (PROTOCOL rule 3)."""


def _launch(launch: dict[str, Scalar]) -> dict[str, Scalar]:
    """What Paribus itself counts with are whole numbers of at least 1; what the measure decides is in no file."""
    if "prefix_caching" in launch:
        raise ValueError("prefix_caching is no launch setting of a file: the measure alone decides it")
    for name in (*CONTEXT_SETTINGS, "slots"):
        value = launch.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
    if int(launch.get("slots", 1)) > MOST_SLOTS:
        raise ValueError(f"slots must be at most {MOST_SLOTS:,}, not {launch['slots']!r}")
    return launch


Launch = Annotated[dict[str, Scalar], AfterValidator(_launch)]
SPECULATIVE = frozenset({"ngram", "suffix", "mtp", "eagle3", "dflash", "draft"})
"""Methods that draft tokens and have them checked by the model itself."""


class Decoder(Spec):
    """How tokens come out. `parameters` are lossless (speed only); `lossy` make another answer class.

    A diffusion model's settings (`canvas_length`, `max_denoising_steps`, `sampler`, `entropy_bound`, thresholds) are
    lossy: card, fast and careful are three decoders.
    """

    method: Literal["plain", "ngram", "suffix", "mtp", "eagle3", "dflash", "draft", "block-diffusion", "undisclosed"]
    """`undisclosed`: a hosted model, of which nobody outside knows how it writes."""
    parameters: dict[str, Scalar] = {}
    lossy: dict[str, Scalar] = {}
    acceptance: Literal["none", "rejection", "block", "strict", "approximate", "synthetic"] = "none"
    drafter: Drafter | None = None
    keeps_state: bool = False
    """Whether it learns from earlier requests, so that each scenario needs a fresh server (PROTOCOL rule 8)."""
    not_tried: str | None = None
    """Reason why this candidate is listed but not raced."""
    on_request: bool = False
    """Planned only where `systems=` names this decoder: settings that others' claims were made with."""
    precisions: list[SlugName] = []
    """The engine's precisions that have this decoder; none named: all."""
    source: str | None = None
    """Where the parameters and the lossy settings are from."""
    unverified: Text | None = None
    """What no public source says of this decoder with this model."""
    unsupported: Text | None = None
    """Why it is in the catalog but can't run."""
    limits: list[Text] = []

    @property
    def speculates(self) -> bool:
        """Whether it drafts tokens that the model then checks."""
        return self.method in SPECULATIVE


class Image(Spec):
    """A container image that holds an engine: `vllm/vllm-openai:v0.28.0` and the digest that pins it."""

    reference: str = Field(pattern=r"^[a-z0-9][a-z0-9.:/_-]*$")
    digest: str = Field(default=UNPINNED, pattern=r"^(unpinned|sha256:[0-9a-f]{64})$")
    source: str

    @property
    def pinned(self) -> bool:
        """Whether the digest is known."""
        return self.digest != UNPINNED


class Hosted(Spec):
    """Where somebody else serves a model: an OpenAI-compatible address. The key comes from the environment only.

    Either `url`, a public address, or `url_env`, the environment variable that names a server that runs already (LM
    Studio, Unsloth, one of one's own).
    """

    url: str | None = Field(default=None, pattern=r"^https://.+/v1$")
    """Base address, with `/v1`."""
    url_env: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    """The environment variable that holds the base address."""
    model: str
    """The model's name in requests."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*$")
    """The environment variable that holds the key, one that belongs to the address (`paribus.catalog.hosts`); none: it
    takes none."""
    source: str

    @model_validator(mode="after")
    def _one_address(self) -> Hosted:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("hosted needs either url or url_env")
        if self.url is not None:
            fault = public_fault(self.url, self.api_key_env)
        else:
            fault = own_fault(self.url_env or "", self.api_key_env)
        if fault:
            raise ValueError(fault)
        return self


class Override(Spec):
    """Where launch settings differ: on some cards, for some precisions, for some decoders. Later ones win.

    What is left out of a selector stands for all. `cards` are hardware profiles; each entry may be a glob.
    """

    cards: Globs = []
    precisions: Globs = []
    decoders: Globs = []
    launch: Launch = {}
    without: list[str] = []
    """Launch settings of earlier ones that this one takes away."""
    image: Image | None = None
    source: str
    unverified: Text | None = None
    unsupported: Text | None = None
    """Why the combination can't run."""

    def applies(self, card: str | None, precision: str, decoder: str) -> bool:
        """Whether it applies to a precision and a decoder on a card (none: no particular card)."""
        if self.cards and (card is None or not any_of(card, self.cards)):
            return False
        return all_or_any(precision, self.precisions) and all_or_any(decoder, self.decoders)


class EngineUse(Spec):
    """How one engine runs this model: launch settings (serving knobs) and the decoders that are candidates."""

    precisions: list[SlugName] = Field(min_length=1)
    launch: Launch = {}
    launch_source: str
    """Where every setting of `launch` is from; an override names its own source."""
    overrides: list[Override] = []
    decoders: dict[SlugName, Decoder] = Field(min_length=1)
    how: Literal["env", "image", "binary", "endpoint"] | None = None
    """Another way to get the engine than the adapter's own."""
    image: Image | None = None
    """The container image to run it in, for `how: image`; or the one that its source recommends."""
    program: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]+$")
    """Name of the program on the path, for `how: binary`."""
    hosted: Hosted | None = None
    version: str | None = None
    """The first version of the engine that runs this model, as its source says it."""
    needs: Needs = Needs()
    prefix_caching: bool = True
    """Whether the engine can keep prompts between requests. Of one that can't, what needs that is left out."""
    trust_remote_code: bool = False
    """Whether the engine runs program code out of the weights' repository. Off unless the file asks for it."""
    research_implementation: bool = False
    """A server made for research: its runs are named so and not ranked."""
    shown: list[Shown] = []
    """Who shows this engine running this model, and on which cards. What none of them shows is not verified."""
    unverified: Text | None = None
    unsupported: Text | None = None
    """Reason why this combination is in the catalog but cannot run."""
    limits: list[Text] = []
    streaming_interval: int = Field(default=1, ge=1, le=1024, strict=True)
    """Tokens that a streamed piece holds, for engines that can be told (`Adapter.streaming_intervals`)."""

    @property
    def silent(self) -> bool:
        """Whether the file neither names who shows the engine running the model nor says what is missing."""
        return not (self.shown or self.unverified or self.unsupported)

    @model_validator(mode="after")
    def _whole(self) -> EngineUse:
        for name, decoder in self.decoders.items():
            unknown = sorted(set(decoder.precisions) - set(self.precisions))
            if unknown:
                raise ValueError(f"decoder {name} names the precision {unknown[0]}, which this engine doesn't have")
        self._one_plain()
        self._takes_away()
        if self.how == "image" and self.image is None:
            raise ValueError("how: image needs an image")
        if self.how == "binary" and self.program is None:
            raise ValueError("how: binary needs a program")
        return self

    def _one_plain(self) -> None:
        """`ValueError` for two decoders of a stack that are the same: plain decoding has no settings."""
        for precision in self.precisions:
            here = [n for n, d in self.decoders.items() if not d.precisions or precision in d.precisions]
            plain = [name for name in here if self.decoders[name].method == "plain"]
            if len(plain) > 1:
                raise ValueError(f"the decoders {' and '.join(plain)} are both plain decoding of {precision}: keep one")

    def _takes_away(self) -> None:
        """`ValueError` for an override that takes away what no launch before it sets."""
        known = set(self.launch)
        for number, override in enumerate(self.overrides):
            if unknown := sorted(set(override.without) - known):
                raise ValueError(f"overrides.{number}.without: no launch setting before it is called {unknown[0]}")
            known |= set(override.launch)

    def applying(self, card: str | None, precision: str, decoder: str) -> list[Override]:
        """The overrides that apply, in order."""
        return [o for o in self.overrides if o.applies(card, precision, decoder)]

    def contexts(self) -> Iterator[tuple[str, int]]:
        """Every launch setting that says how many tokens a request may hold, on whatever card."""
        for launch in (self.launch, *(override.launch for override in self.overrides)):
            yield from ((name, int(launch[name])) for name in CONTEXT_SETTINGS if name in launch)

    def launch_on(self, card: str | None, precision: str, decoder: str) -> dict[str, Scalar]:
        """The launch settings for a precision and a decoder on a card (none: no particular card)."""
        launch = dict(self.launch)
        for override in self.applying(card, precision, decoder):
            for name in override.without:
                launch.pop(name, None)
            launch |= override.launch
        return launch


def split_launch(launch: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Launch settings apart from variables for the engine's process (names in capitals; values as text)."""
    variables = {name: str(value) for name, value in launch.items() if name.isupper()}
    return {name: value for name, value in launch.items() if name not in variables}, variables
