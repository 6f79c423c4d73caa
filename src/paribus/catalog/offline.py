"""Whether the user forbids the network, and by which variable."""

from __future__ import annotations

import os

OFFLINE = "PARIBUS_OFFLINE"
HUB_OFFLINE = "HF_HUB_OFFLINE"
"""The hub's own client reads it (huggingface_hub, "environment variables")."""


def offline() -> bool:
    """Whether the user forbids the network altogether (`PARIBUS_OFFLINE` set to anything but 0)."""
    return os.environ.get(OFFLINE, "0").strip() not in {"", "0"}


def hub_forbidden_by() -> str | None:
    """The variable that forbids the hub; None where it may be asked."""
    if offline():
        return OFFLINE
    return HUB_OFFLINE if os.environ.get(HUB_OFFLINE, "").strip().upper() in {"1", "ON", "YES", "TRUE"} else None
