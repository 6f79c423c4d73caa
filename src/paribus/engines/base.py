"""What an engine is to Paribus: an adapter between a system's file and a serving program.

One file an engine. `paribus.engines.registry` finds every module of this package that holds an `engine`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from paribus.catalog import Scalar, System

How = Literal["env", "image", "binary", "endpoint"]

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
)
"""Our names of what engines count, always growing. An engine that lacks one leaves it out."""

GAUGES = ("running", "waiting")
"""Our names of what engines have at this moment: requests being answered, requests waiting."""


@dataclass(frozen=True)
class Launch:
    """Everything an adapter needs to write its command line.

    `python` is the interpreter of the engine's environment (`how: env`); `weights` the model's file or folder;
    `settings` the launch settings of the catalog; `slots` the requests to admit at once.
    """

    root: Path
    python: Path
    system: System
    weights: Path
    settings: dict[str, Scalar]
    slots: int
    port: int


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
    """The adapter of one serving program. Stateless: one object serves every session."""

    name: str
    how: How
    sampling_fields: frozenset[str]
    """Sampling fields that the engine accepts in a request; others are left out and named."""

    def command(self, launch: Launch) -> list[str]:
        """The command line. Raises `UsageError` for settings or decoder parameters the engine doesn't know."""

    def environment(self, launch: Launch) -> dict[str, str]:
        """Variables to set for the engine's process."""

    def counters(self, metrics_text: str) -> dict[str, float]:
        """Our counters (`COUNTERS`) out of the engine's metrics page."""

    def gauges(self, metrics_text: str) -> dict[str, float]:
        """Our gauges (`GAUGES`) out of the engine's metrics page."""

    def observe(self, base: str, log_text: str) -> dict[str, Any]:
        """Read the running server back: engine_version, admitted, context, sampling defaults. `base`: no `/v1`."""
