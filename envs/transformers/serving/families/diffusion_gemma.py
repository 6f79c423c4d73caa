"""DiffusionGemma: canvas after canvas, with the generation loop that Transformers ships for it.

`DiffusionGemmaForBlockDiffusion.generate` calls the logits processors once a denoising step and the streamer once a
finished canvas: that is where passes are counted and tokens committed. Each canvas costs one pass of the encoder too
(transformers 5.24, `models/diffusion_gemma/generation_diffusion_gemma.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import DiffusionGemmaForBlockDiffusion, LogitsProcessor, LogitsProcessorList
from transformers.generation.streamers import BaseStreamer
from transformers.models.diffusion_gemma.generation_diffusion_gemma import EntropyBoundSamplerConfig

from serving.families.loading import load_model
from serving.run import Run
from serving.settings import Settings, Unfit

_NUMBERS = ("max_denoising_steps", "t_min", "t_max", "stability_threshold", "confidence_threshold")


class _Steps(LogitsProcessor):
    """Counts denoising steps; changes nothing."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        self._run.passed(denoising=1)
        return scores


class _Canvases(BaseStreamer):
    """Commits each finished canvas. Each was encoded once, the first with the prompt, when its tokens come here."""

    def __init__(self, run: Run) -> None:
        self._run, self._prompt = run, True

    def put(self, value: torch.Tensor) -> None:
        if self._prompt:
            self._prompt = False
            return
        self._run.passed(other=1)
        self._run.commit(value.flatten().tolist(), canvas=True)

    def end(self) -> None:
        pass


@dataclass
class DiffusionGemma:
    """A block diffusion model that renoises a canvas until it is stable and certain."""

    model: Any
    name = "diffusion-gemma"
    knobs = frozenset({*_NUMBERS, "entropy_bound", "canvas_length", "sampler"})
    fields = frozenset({"seed"})
    counted = frozenset(
        {"requests", "prompt_tokens", "cached_prompt_tokens", "generated_tokens", "forward_passes"}
        | {"denoising_steps", "committed_tokens", "canvases"}
    )
    research = False

    @classmethod
    def load(cls, config: Any, settings: Settings, device: str) -> DiffusionGemma:  # noqa: ARG003 (a family's signature)
        """Load the model; settings that are given come over those of its checkpoint."""
        given = dict(settings.denoising)
        if given.pop("sampler", "entropy_bound") != "entropy_bound":
            raise Unfit("Transformers has the sampler entropy_bound for DiffusionGemma, and no other")
        model = load_model(DiffusionGemmaForBlockDiffusion, settings.model, settings, device)
        if "canvas_length" in given:
            model.config.canvas_length = int(given.pop("canvas_length"))
        if "entropy_bound" in given:
            model.generation_config.sampler_config = EntropyBoundSamplerConfig(float(given.pop("entropy_bound")))
        for name, value in given.items():
            setattr(model.generation_config, name, value)
        # A length of the checkpoint would win over a request for exactly 256 tokens, the value that it takes for unset.
        model.generation_config.max_length = None
        model.generation_config.disable_compile = not settings.compile
        if settings.cache != "dynamic":
            model.generation_config.cache_implementation = settings.cache
        try:
            model.generation_config = model._prepare_generation_config(None)[0]
        except (TypeError, ValueError, AttributeError) as error:
            raise Unfit(f"these denoising settings don't fit together: {error}") from error
        return cls(model)

    @property
    def defaults(self) -> dict[str, Any]:
        """A schedule of temperatures, which no request changes."""
        config = self.model.generation_config
        return {"temperature": f"{config.t_max} to {config.t_min}"}

    @property
    def denoising(self) -> dict[str, Any]:
        """As the model's generation settings have them."""
        config = self.model.generation_config
        return {
            "canvas_length": self.model.config.canvas_length,
            "sampler": "entropy_bound",
            "entropy_bound": config.sampler_config.entropy_bound,
            **{name: getattr(config, name) for name in _NUMBERS},
        }

    def generate(self, run: Run) -> None:
        """One answer, a whole canvas at a time."""
        if (seed := run.sampling.get("seed")) is not None:
            torch.manual_seed(int(seed))
        self.model.generate(
            torch.tensor([run.prompt], device=self.model.device),
            max_new_tokens=run.most,
            streamer=_Canvases(run),
            logits_processor=LogitsProcessorList([_Steps(run)]),
        )
