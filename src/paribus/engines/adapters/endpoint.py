"""Any OpenAI-compatible URL: for ad-hoc runs only. Paribus didn't start it, so it is never ranked with cards."""

from __future__ import annotations

import json
from typing import Any

from paribus.conditions import UsageError
from paribus.engines.base import COUNTERS, GAUGES, How, Launch
from paribus.engines.counters import KNOWN, named
from paribus.engines.local import NoAnswer, ask


class AnyEndpoint:
    """The adapter of a server that someone else runs."""

    name = "endpoint"
    how: How = "endpoint"
    sampling_fields = frozenset({"temperature", "top_p", "top_k", "min_p", "seed"})

    def command(self, launch: Launch) -> list[str]:
        """There is none."""
        raise UsageError(
            f"{launch.system.name}: an endpoint isn't started; measure it with `paribus speed --base-url URL/v1`"
        )

    def environment(self, launch: Launch) -> dict[str, str]:  # noqa: ARG002 (the protocol's signature)
        """Nothing."""
        return {}

    def counters(self, metrics_text: str) -> dict[str, float]:
        """Counters of the engines whose names we know."""
        return named(metrics_text, KNOWN, COUNTERS)

    def gauges(self, metrics_text: str) -> dict[str, float]:
        """Gauges of the engines whose names we know."""
        return named(metrics_text, KNOWN, GAUGES)

    def observe(self, base: str, log_text: str) -> dict[str, Any]:  # noqa: ARG002 (the protocol's signature)
        """What `/v1/models` says about who serves; nothing where it says nothing."""
        try:
            models = json.loads(ask(f"{base}/v1/models"))
            owner = str(models["data"][0].get("owned_by", ""))
        except (NoAnswer, ValueError, LookupError, TypeError, AttributeError):
            owner = ""
        return {"engine_version": f"an endpoint of {owner[:60]}" if owner else "an endpoint, not disclosed"}


ENGINE = AnyEndpoint()
