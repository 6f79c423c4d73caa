"""Hardware profiles: `hardware/<name>/hardware.yaml`, what a card must be, and the defaults of its runs.

A profile names a card; a card has *variants* (H100 SXM, PCIe, NVL), and a machine is proven to be one of them from what
it says itself (`paribus.machine.proof`). The first variant is the one that the profile is about: plans are made for it
where no card is there to be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from paribus.catalog.models import SlugName, Spec

PciId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]
"""PCI device and vendor: `2330:10de`."""


FoundKind = Literal["cpu", "nvidia", "apple"]


@dataclass(frozen=True)
class FoundCard:
    """What a plan needs to know of the card in this machine: GB that weights and cache may use; for `any` also its
    name, its kind and NVIDIA's compute capability."""

    memory_gb: float | None
    kind: FoundKind | None = None
    compute_capability: float | None = None
    title: str | None = None


class Variant(Spec):
    """One variant of a card, as it can be proven. What isn't known is left out; what is in doubt is in `unverified`."""

    title: str
    """With its memory: `H100 SXM 80 GB`. The condition `card_variant` of every run on it."""
    pci_device_ids: list[PciId] = []
    chip: str | None = None
    """The chip's own name, of Apple's: `Apple M3 Max`."""
    sm_count: int | None = Field(default=None, gt=0)
    cores: int | None = Field(default=None, gt=0)
    """CUDA cores (NVML tells these, not the SMs), or the GPU cores of an Apple chip."""
    memory_gb: float | None = Field(default=None, gt=0)
    """As on the data sheet; a driver tells 80 GB as 85.5 (2^30 and 10^9), which fits."""
    bandwidth_gb_s: float | None = Field(default=None, gt=0)
    power_limit_w: float | None = Field(default=None, gt=0)
    """Default power limit. Other makers' boards may have another: noted, not refused."""
    sources: list[str] = []
    unverified: dict[str, str] = {}
    """Field to the reason why it is in doubt or missing."""


class Card(Spec):
    """What the machine's accelerator must be. A `cpu` card is proven by its absence of constraints: it is observed.

    `any` takes whatever is there and labels it. `hosted` is somebody else's.
    """

    kind: Literal["cpu", "nvidia", "apple", "hosted", "any"]
    title: str
    count: int = Field(default=1, ge=1)
    memory_gb: float | None = None
    """Memory that weights and cache may use; null: read from the machine."""
    unified: bool = False
    """Whether card and CPU share their memory, so that the driver tells no memory of the card's own."""
    compute_capability: float | None = None
    """NVIDIA's, as in <https://developer.nvidia.com/cuda-gpus>: 10.0 and above multiply NVFP4, 8.9 and above FP8."""
    variants: list[Variant] = []
    found: FoundKind | None = None
    """What `any` turned out to be on this machine; no file says it."""

    @property
    def power_limit_w(self) -> float | None:
        """Default power limit of the variant that plans are made for, all cards together."""
        limit = self.variants[0].power_limit_w if self.variants else None
        return limit * self.count if limit is not None else None


class Exclusion(Spec):
    """Systems (a glob over names) that this card leaves out, with the reason."""

    systems: str
    reason: str


class Speeds(Spec):
    """Rough speeds in tokens a second, for estimates only (never published). `basis`: where they come from."""

    decode_1: float = Field(gt=0)
    decode_16: float = Field(gt=0)
    prompt: float = Field(gt=0)
    engine_start_s: float = Field(gt=0)
    basis: str = ""


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

    def with_found(self, found: FoundCard | None) -> HardwareFile:
        """This profile for the card that was found; none: as the file has it."""
        if found is None:
            return self
        told = {
            "memory_gb": found.memory_gb,
            "compute_capability": found.compute_capability,
            "found": found.kind,
            "title": found.title,
        }
        update = {name: value for name, value in told.items() if value is not None}
        return self.model_copy(update={"card": self.card.model_copy(update=update)})
