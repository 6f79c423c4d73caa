"""Any OpenAI-compatible server that runs already: LM Studio, Unsloth, one of one's own.

Paribus didn't start it, so it is never ranked with cards. A system's file names the environment variable that holds its
address (`hosted: {url_env: ...}`); without a file, `paribus speed --base-url` measures it.
"""

from __future__ import annotations

import json
from typing import Any

from paribus.conditions import UsageError
from paribus.engines.base import Adapter, How, Launch, Running
from paribus.engines.counters import KNOWN
from paribus.engines.local import NoAnswer, ask


class AnyEndpoint(Adapter):
    """The adapter of a server that someone else runs."""

    name = "endpoint"
    ways: tuple[How, ...] = ("endpoint",)
    ready_path = None
    metrics = KNOWN

    def command(self, launch: Launch) -> list[str]:
        """There is none."""
        raise UsageError(
            f"{launch.system.name}: an endpoint isn't started; name its address in the file (hosted: url_env), or "
            "measure it with `paribus speed --base-url URL/v1`"
        )

    def observe(self, running: Running) -> dict[str, Any]:
        """What `/v1/models` says about who serves; nothing where it says nothing."""
        try:
            models = json.loads(ask(f"{running.base}/v1/models", key=running.key))
            owner = str(models["data"][0].get("owned_by", ""))
        except (NoAnswer, ValueError, LookupError, TypeError, AttributeError):
            owner = ""
        return {"engine_version": f"an endpoint of {owner[:60]}" if owner else "an endpoint, not disclosed"}


ENGINE = AnyEndpoint()
