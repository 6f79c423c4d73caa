"""What this machine is: read, not asserted. Never host names, serial numbers or addresses."""

from __future__ import annotations

from typing import Any


def observe_machine() -> dict[str, Any]:
    """Observed conditions of this machine (keys of `paribus.conditions.CONDITIONS`)."""
    raise NotImplementedError
