"""Families of models: one file each, a strategy from a prompt to committed tokens.

Only the family that is served is imported: an older Transformers has none of the newer models.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from serving.run import Run
from serving.settings import Settings, Unfit


class Family(Protocol):
    """A loaded model of one kind.

    `fields`: sampling fields that its requests may carry; `counted`: counters it moves; `defaults`: what it does where
    a request says nothing; `denoising`: its lossy settings as they are in force; `research`: whether its sampler is
    our own or its code came with the weights.
    """

    name: str
    fields: frozenset[str]
    counted: frozenset[str]
    research: bool

    @property
    def model(self) -> Any:
        """The model."""

    @property
    def defaults(self) -> dict[str, Any]:
        """Sampling where a request says nothing."""

    @property
    def denoising(self) -> dict[str, Any]:
        """Denoising settings in force; empty for an autoregressive model."""

    def generate(self, run: Run) -> None:
        """Answer one request. Ends by returning or by `Halt`."""


FAMILIES = {
    "autoregressive": "Autoregressive",
    "diffusion-gemma": "DiffusionGemma",
    "masked-diffusion": "MaskedDiffusion",
}
"""Families and their classes; each is in the module of its name."""


def load_family(config: Any, settings: Settings, device: str) -> Family:
    """The model of a folder, in the family that was asked for or that its architecture says."""
    name = settings.family or family_of(config)
    if name not in FAMILIES:
        raise Unfit(f"there is no family {name!r}; known: {', '.join(sorted(FAMILIES))}")
    family = getattr(import_module(f"serving.families.{name.replace('-', '_')}"), FAMILIES[name])
    unknown = sorted(set(settings.denoising) - family.knobs)
    if unknown:
        raise Unfit(
            f"{name} has no denoising setting {', '.join(unknown)}; known: {', '.join(sorted(family.knobs)) or 'none'}"
        )
    if settings.drafter and name != "autoregressive":
        raise Unfit(f"{name} has no use for a drafter")
    loaded: Family = family.load(config, settings, device)
    return loaded


def family_of(config: Any) -> str:
    """The family that a configuration's architecture belongs to."""
    architectures = list(getattr(config, "architectures", None) or [])
    if config.model_type == "diffusion_gemma" or "DiffusionGemmaForBlockDiffusion" in architectures:
        return "diffusion-gemma"
    masked = any(name.endswith("ForMaskedLM") for name in architectures)
    return "masked-diffusion" if masked or config.model_type.lower() in {"llada", "dream"} else "autoregressive"
