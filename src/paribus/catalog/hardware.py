"""Hardware profiles: `hardware/<name>/hardware.yaml`, what a card must be, and the defaults of its runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from paribus.catalog.models import SlugName, Spec


class Variant(Spec):
    """One variant of a card, as it can be proven: PCI device ids, SM (or core) count, memory, default power."""

    title: str
    pci_device_ids: list[str] = []
    sm_count: int | None = None
    memory_gb: float | None = None
    power_limit_w: float | None = None


class Card(Spec):
    """What the machine's accelerator must be. A `cpu` card is proven by its absence of constraints: it is observed."""

    kind: Literal["cpu", "nvidia", "apple", "hosted", "any"]
    title: str
    count: int = 1
    memory_gb: float | None = None
    """Memory that weights and cache may use; null: read from the machine."""
    variants: list[Variant] = []


class Exclusion(Spec):
    """Systems (a glob over names) that this card leaves out, with the reason."""

    systems: str
    reason: str


class Speeds(Spec):
    """Rough speeds in tokens a second, for estimates only (never published)."""

    decode_1: float = Field(gt=0)
    decode_16: float = Field(gt=0)
    prompt: float = Field(gt=0)
    engine_start_s: float = Field(gt=0)


class HardwareFile(Spec):
    """`hardware/<name>/hardware.yaml`, whole. `scale` to `repeat` can be set with `--config`."""

    hardware: SlugName
    card: Card
    scale: SlugName = "full"
    starts: int | None = Field(default=None, ge=1)
    systems: str = "pairs"
    """A glob over system names, several separated by commas, or `pairs`: the systems of `pairs.yaml`."""
    measures: str = "*"
    sampling: Literal["served", "greedy"] = "served"
    repeat: int = Field(default=1, ge=1)
    quality: bool = True
    exclusions: list[Exclusion] = []
    speeds: Speeds
    note: str = ""
