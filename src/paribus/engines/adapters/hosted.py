"""Models that their makers or a gateway serve: Inception, OpenRouter, NVIDIA's hosted NIM, and others alike.

Nothing is started and nothing of the machine is known: such runs have a page of their own (`origin: endpoint`) and are
never ranked with owned hardware. What is measured is the whole way there and back. Rate limits (429 with
`Retry-After`) are waited out in quality runs and counted as failures in speed runs. Not run on the real services: tests
play their documented forms.

- Inception: <https://docs.litellm.ai/docs/providers/inception> (`reasoning_effort`: instant, low, medium, high).
- OpenRouter: <https://openrouter.ai/docs/api_reference/parameters>; its list of models tells contexts.
- NVIDIA: <https://docs.nvidia.com/nim/large-language-models/latest/api-reference.html>, built on vLLM; a hosted
  context may be far below the model's (8,192 for DiffusionGemma, as Decrypt reported on 2026-06-10).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from paribus.catalog import System
from paribus.conditions import UsageError
from paribus.engines.base import Adapter, How, Launch, Running
from paribus.engines.local import NoAnswer, ask_json

_ALL = frozenset({"temperature", "top_p", "top_k", "min_p", "seed"})
_FIELDS: dict[str, frozenset[str]] = {
    "api.inceptionlabs.ai": frozenset({"temperature"}),
    "openrouter.ai": _ALL,
    "integrate.api.nvidia.com": frozenset({"temperature", "top_p", "seed"}),
}
"""Sampling fields that a service documents; of any other: temperature and top_p."""
_OTHERS = frozenset({"temperature", "top_p"})
_NVIDIA = "integrate.api.nvidia.com"
_CONTEXTS = ("context_length", "max_model_len", "context_window")
"""What services call the context in their lists of models."""


class Hosted(Adapter):
    """The adapter."""

    name = "hosted"
    ways: tuple[How, ...] = ("endpoint",)
    ready_path = None
    metrics_path = None

    def sampling_fields(self, system: System) -> frozenset[str]:
        """What the service takes. NVIDIA's is built on vLLM, whose diffusion path refuses every such field."""
        place = _place(system)
        if place == _NVIDIA and system.model.kind == "diffusion":
            return frozenset()
        return _FIELDS.get(place, _OTHERS)

    def command(self, launch: Launch) -> list[str]:
        """There is none."""
        raise UsageError(f"{launch.system.name}: a hosted model isn't started")

    def observe(self, running: Running) -> dict[str, Any]:
        """Who serves, and the context that its list of models tells, where it tells one."""
        system = running.launch.system
        place = _place(system)
        told: dict[str, Any] = {"engine_version": f"{place or 'a server of its own'}, not disclosed"}
        entry = _entry(running, system.request_model)
        context = next((entry[name] for name in _CONTEXTS if isinstance(entry.get(name), int)), None)
        if context is not None:
            told |= {"context_per_slot": context, "settings": dict.fromkeys(_CONTEXTS, context)}
        return told


def _place(system: System) -> str:
    hosted = system.use.hosted
    return (urlsplit(hosted.url).hostname or "") if hosted and hosted.url else ""


def _entry(running: Running, model: str) -> dict[str, Any]:
    """What the service's list of models says of ours; {} where it has no list, or not this model."""
    try:
        listed = ask_json(f"{running.base}/v1/models", key=running.key, timeout_s=30)
        return next((each for each in listed["data"] if each.get("id") == model), {})
    except (NoAnswer, LookupError, TypeError, AttributeError):
        return {}


ENGINE = Hosted()
