"""What an engine is to Paribus: an adapter between a system's file and a serving program.

One file an engine. `paribus.engines.registry` finds every module of this package that holds an `ENGINE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from paribus.catalog import Scalar, System
from paribus.conditions import UsageError
from paribus.engines.bounds import Bound
from paribus.engines.counters import named
from paribus.engines.deciding import Deciding
from paribus.engines.scoring import Call, Scoring
from paribus.machine.ports import LOCALHOST

LOADING_S = 1800.0
"""The longest that an engine may load: large models compile for many minutes."""

How = Literal["env", "image", "binary", "endpoint"]
"""Where a server comes from: a locked environment, a container image by digest, a program on the path, or a URL."""

COUNTERS = (
    "drafts",
    "draft_tokens",
    "accepted_tokens",
    "generated_tokens",
    "prompt_tokens",
    "cached_prompt_tokens",
    "forward_passes",
    "denoising_steps",
    "committed_tokens",
    "canvas_positions",
)
"""Our names of what engines count, always growing. An engine that lacks one leaves it out."""

GAUGES = ("running", "waiting")
"""Our names of what engines have at this moment: requests being answered, requests waiting."""


@dataclass(frozen=True)
class Launch:
    """Everything an adapter needs to write its command line.

    `python` is the interpreter of the engine's environment (`how: env`; in an image, the image's own), `program` the
    program on the path (`how: binary`). `weights`, `drafter` and `folder` (where the adapter's `files` lie) are paths
    as the server sees them: in an image they are mounted read-only, and `here(path)` is where they lie. `settings` are
    the launch settings of the catalog without those that are variables for the process. `slots`: the requests to admit
    at once. `host`, `port`: where to listen. `card`: the hardware profile; none: no particular one.
    """

    root: Path
    python: Path
    system: System
    weights: Path
    settings: dict[str, Scalar]
    slots: int
    port: int
    drafter: Path | None = None
    how: How = "env"
    program: Path | None = None
    host: str = LOCALHOST
    folder: Path = Path()
    variables: dict[str, str] = field(default_factory=dict)
    mounted: Mapping[Path, Path] = field(default_factory=dict)
    card: str | None = None

    def here(self, path: Path) -> Path:
        """Where a file or folder that the server sees as `path` lies on this machine: to be read by an adapter."""
        return self.mounted.get(path, path)


@dataclass(frozen=True)
class Running:
    """A server that answers, as an adapter reads it back: its address without `/v1`, its log so far, its launch.

    `key` is the API key of an endpoint that wants one; it never shows in a repr.
    """

    base: str
    log: str
    launch: Launch
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Compilation:
    """Something that an engine compiled or captured, as its log tells. `seconds` is None where the log doesn't say."""

    what: str
    seconds: float | None = None


@dataclass
class StartRecord:
    """What a measuring function tells about its start, for the manifest. Times in seconds.

    `counters`: engine counters after minus before the measured part. `observed`: conditions found while measuring
    (`cached_tokens`, `sampling_accepted`, `tokens_method`, ...). `window_ns`: monotonic edges of the measured part.
    """

    counters: dict[str, float] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    warm_up: float = 0.0
    measuring: float = 0.0
    window_ns: tuple[int, int] | None = None


@runtime_checkable
class Engine(Protocol):
    """The adapter of one serving program. Stateless: one object serves every session. Inherit `Adapter` for defaults.

    `ways`: how its server may be had; the first is meant where a system's file doesn't say. `programs`: the names of
    programs on the path that a file may choose (`how: binary`). `ready_path`: a page that
    answers 200 when loading is over; None for a server that has none, whose first real answer is waited for instead.
    `metrics_path`: its metrics page; None for one that has none. `deciding`: launch settings that decide the answers,
    each with what it may say. `variables`: those that a system's file may give its process, by their exact names.
    `reads`: how the names of variables begin that the engine takes settings from; those of our own surroundings are
    kept from it, since nothing would tell of them. `local`: the exact names of those among them that say where things
    are on a contributor's machine and reach it all the same; which were there is a condition, their values never.
    `streaming_intervals`: whether it can be told to stream several tokens at a time (`streaming_interval` of a file).
    """

    name: str
    ways: tuple[How, ...]
    programs: frozenset[str]
    ready_path: str | None
    metrics_path: str | None
    deciding: Mapping[str, Deciding]
    bounds: Mapping[str, Bound]
    variables: frozenset[str]
    reads: tuple[str, ...]
    local: frozenset[str]
    streaming_intervals: bool

    def sampling_fields(self, system: System) -> frozenset[str]:
        """Sampling fields that the engine accepts in a request to this system; others are left out and named."""

    def command(self, launch: Launch) -> list[str]:
        """The command line. Pure: it touches no file, so that a plan can be checked with it.

        Raises `UsageError` for settings or decoder parameters that the engine doesn't know.
        """

    def environment(self, launch: Launch) -> dict[str, str]:
        """Variables to set for the engine's process, beside those of the launch settings."""

    def files(self, launch: Launch) -> dict[str, str]:
        """Text files that the engine reads, by name: written into `launch.folder` before it starts."""

    def working_folder(self, launch: Launch) -> Path | None:
        """The folder to start in; None: ours. (In an image it has no effect.)"""

    def request_model(self, launch: Launch) -> str:
        """The model's name in requests, as the engine wants it."""

    def request_fields(self, launch: Launch) -> dict[str, Any]:
        """Fields of every request beside sampling and the switch for thinking: lossy settings that go by request."""

    def counters(self, metrics_text: str) -> dict[str, float]:
        """Our counters (`COUNTERS`) out of the engine's metrics page."""

    def gauges(self, metrics_text: str) -> dict[str, float]:
        """Our gauges (`GAUGES`) out of the engine's metrics page."""

    def observe(self, running: Running) -> dict[str, Any]:
        """Read the running server back: engine_version, admitted, context, sampling_defaults, rendered_prompt, ...

        `kv_cache`, `quantization` ("none" where there is none), `dtype`: in the engine's words, where the server tells
        them; the session holds them against the precision's, and they gate comparisons.

        `streaming_interval`: tokens to a streamed piece, of an engine with `streaming_intervals`.

        `settings`: effective settings under the names of the catalog (launch settings, decoder parameters, lossy
        ones), for those that the server tells; the session compares them with what was declared.
        """

    def rendered(self, running: Running) -> str | None:
        """One short message as the chat template renders it with the launch's switch for thinking; None where the
        server doesn't show it."""

    def compilations(self, log_text: str) -> list[Compilation]:
        """What a part of the log says was compiled or captured. In the measured part it invalidates the start."""

    def scoring(self) -> Scoring | None:
        """How given tokens are scored, for the lossless gate; None where the engine can't."""

    def token_count(self, model: str, text: str) -> Call[int] | None:
        """How the running server is asked for the tokens of a text, without special ones; None where it can't be."""


def refuse_unknown(who: str, given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise `UsageError` for names that aren't known: `<who> knows no <what> <names>; known: ...`."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        listed = ", ".join(sorted(known)) or "none at all"
        raise UsageError(f"{who} knows no {what} {', '.join(unknown)}; known: {listed}")


def refuse_penalties(system: System, why: str) -> None:
    """Raise `UsageError` where a decoder drafts under a penalty, for engines whose drafts don't keep to it.

    A penalty depends on every token before: drafts that are checked without it, or with one for all of them, are
    another model's answers, and no gate at temperature 0 sees it. `why`: what the engine does, with the source.
    """
    given = system.sampling.penalties
    if system.decoder.speculates and given:
        said = ", ".join(f"{name} {value:g}" for name, value in given.items())
        raise UsageError(
            f"{system.name}: drafts are not supported with the card's {said}: {why}; mark the decoder `unsupported`"
        )


class Adapter:
    """Defaults for adapters: an engine of one environment, with a table of metric names and fixed sampling fields."""

    name: str = ""
    ways: tuple[How, ...] = ("env",)
    programs: frozenset[str] = frozenset()
    """Programs on the path that a file may name: a file is a stranger's, and starts nothing else."""
    ready_path: str | None = "/health"
    metrics_path: str | None = "/metrics"
    metrics: Mapping[str, str] = {}
    """From the engine's metric names to ours."""
    deciding: Mapping[str, Deciding] = {}
    """Launch settings that decide the answers (`paribus.engines.deciding`)."""
    bounds: Mapping[str, Bound] = {}
    """What numbers of a file may be (`paribus.engines.bounds`); those not named: finite and at least 0."""
    variables: frozenset[str] = frozenset()
    """Variables that a system's file may give the process: such as change no answer, reach nothing, load nothing."""
    reads: tuple[str, ...] = ()
    """Beginnings of the names of variables that the engine takes settings from."""
    local: frozenset[str] = frozenset()
    """Those of them that say where things are on this machine (an address, a library, a device), and decide nothing."""
    streaming_intervals: bool = False
    """Whether the server can be told to stream several tokens at a time, and `observe` tells its `streaming_interval`.
    Others send what there is."""
    fields: frozenset[str] = frozenset({"temperature", "top_p", "top_k", "min_p", "seed"})

    def sampling_fields(self, system: System) -> frozenset[str]:  # noqa: ARG002 (the protocol's signature)
        """The same fields for every system."""
        return self.fields

    def environment(self, launch: Launch) -> dict[str, str]:  # noqa: ARG002 (the protocol's signature)
        """Nothing beside the common ones."""
        return {}

    def files(self, launch: Launch) -> dict[str, str]:  # noqa: ARG002 (the protocol's signature)
        """None."""
        return {}

    def working_folder(self, launch: Launch) -> Path | None:  # noqa: ARG002 (the protocol's signature)
        """Ours."""
        return None

    def request_model(self, launch: Launch) -> str:
        """The catalog's name of the model, or that of a hosted one."""
        return launch.system.request_model

    def request_fields(self, launch: Launch) -> dict[str, Any]:  # noqa: ARG002 (the protocol's signature)
        """None."""
        return {}

    def counters(self, metrics_text: str) -> dict[str, float]:
        """Counters by the table."""
        return named(metrics_text, self.metrics, COUNTERS)

    def gauges(self, metrics_text: str) -> dict[str, float]:
        """Gauges by the table."""
        return named(metrics_text, self.metrics, GAUGES)

    def rendered(self, running: Running) -> str | None:  # noqa: ARG002 (the protocol's signature)
        """None: the server shows no rendered prompt."""
        return None

    def compilations(self, log_text: str) -> list[Compilation]:  # noqa: ARG002 (the protocol's signature)
        """None: an engine that compiles nothing, or doesn't say."""
        return []

    def scoring(self) -> Scoring | None:
        """None: the engine scores no given text."""
        return None

    def token_count(self, model: str, text: str) -> Call[int] | None:  # noqa: ARG002 (the protocol's signature)
        """None: the server lends its tokenizer to nobody."""
        return None
