"""Loading a model straight onto its device, offline, without code of its own unless that was asked for."""

from __future__ import annotations

from typing import Any

import torch

from serving.settings import Settings


def load_model(kind: Any, folder: str, settings: Settings, device: str) -> Any:
    """A model of an Auto class or of its own class, ready to answer."""
    extra: dict[str, Any] = {"attn_implementation": settings.attention} if settings.attention else {}
    dtype = "auto" if settings.dtype == "auto" else getattr(torch, settings.dtype)
    model = kind.from_pretrained(
        folder,
        dtype=dtype,
        device_map={"": device},
        local_files_only=True,
        trust_remote_code=settings.trust_remote_code,
        **extra,
    )
    return model.eval()


def ids_of(value: Any) -> frozenset[int]:
    """Token ids out of a configuration's field, which holds one, several or none."""
    if value is None:
        return frozenset()
    return frozenset(value) if isinstance(value, list | tuple) else frozenset({int(value)})
