"""Masked diffusion of the LLaDA and Dream kind: our own loop, from the papers' description.

The answer begins as masks and is filled block by block from the left (semi-autoregressive). In a step the model sees
prompt, filled tokens and masks at once and predicts all masks of the block; the predictions it is surest of stay, the
others are masked again (low-confidence remasking): LLaDA, arXiv 2502.09992, section 2.4 and appendix A.5. With a
`threshold`, everything surer than that stays, at least one token: Fast-dLLM, arXiv 2505.22618. Dream
(arXiv 2508.15487) reads its predictions one position to the left (`shift_logits`) and may rank by entropy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModel, AutoModelForMaskedLM

from serving.families.loading import load_model
from serving.run import Run
from serving.settings import Settings, Unfit

_DEFAULTS: dict[str, Any] = {
    "block_length": 32,
    "steps_per_block": 32,
    "threshold": 0.0,
    "remasking": "low_confidence",
    "shift_logits": False,
    "mask_token_id": -1,
}
_REMASKING = ("low_confidence", "entropy", "random")


@dataclass
class MaskedDiffusion:
    """A bidirectional model that predicts masked tokens. The canvas is the request's `max_tokens`, in whole blocks."""

    model: Any
    settings: dict[str, Any]
    name = "masked-diffusion"
    knobs = frozenset(_DEFAULTS)
    fields = frozenset({"temperature", "seed"})
    counted = frozenset(
        {"requests", "prompt_tokens", "cached_prompt_tokens", "generated_tokens", "forward_passes"}
        | {"denoising_steps", "committed_tokens", "canvases"}
    )
    research = True

    @classmethod
    def load(cls, config: Any, settings: Settings, device: str) -> MaskedDiffusion:
        """Load the model. The mask's id comes from the settings, else from the configuration."""
        chosen = _DEFAULTS | settings.denoising
        if chosen["mask_token_id"] < 0:
            chosen["mask_token_id"] = getattr(config, "mask_token_id", None)
        if chosen["mask_token_id"] is None:
            raise Unfit("the model's configuration names no mask_token_id: set it among the denoising settings")
        if chosen["remasking"] not in _REMASKING:
            raise Unfit(f"remasking is one of {', '.join(_REMASKING)}, not {chosen['remasking']!r}")
        if min(chosen["block_length"], chosen["steps_per_block"]) < 1 or not 0 <= chosen["threshold"] <= 1:
            raise Unfit("block_length and steps_per_block are at least 1, a threshold lies between 0 and 1")
        if chosen["threshold"] and chosen["remasking"] != "low_confidence":
            raise Unfit("a threshold is a probability: it goes with the remasking low_confidence only")
        own = any(name.endswith("ForMaskedLM") for name in getattr(config, "architectures", None) or [])
        return cls(load_model(AutoModelForMaskedLM if own else AutoModel, settings.model, settings, device), chosen)

    @property
    def defaults(self) -> dict[str, Any]:
        """The likeliest token."""
        return {"temperature": 0.0}

    @property
    def denoising(self) -> dict[str, Any]:
        """As they are in force."""
        return dict(self.settings)

    @torch.inference_mode()
    def generate(self, run: Run) -> None:
        """One answer, block by block."""
        length, mask = self.settings["block_length"], self.settings["mask_token_id"]
        generator = torch.Generator(self.model.device)
        seed = run.sampling.get("seed")
        generator.manual_seed(int(seed)) if seed is not None else generator.seed()
        blocks = math.ceil(run.most / length)
        canvas = torch.full((len(run.prompt) + blocks * length,), mask, device=self.model.device)
        canvas[: len(run.prompt)] = torch.tensor(run.prompt, device=self.model.device)
        temperature = float(run.sampling.get("temperature", 0.0))
        for block in range(blocks):
            start = len(run.prompt) + block * length
            self._fill(canvas, slice(start, start + length), temperature, generator, run)
            run.commit(canvas[start : start + length].tolist(), canvas=True)

    def _fill(
        self, canvas: torch.Tensor, block: slice, temperature: float, generator: torch.Generator, run: Run
    ) -> None:
        """Fill one block in place. Which positions are still masked is kept apart: a model may predict the mask."""
        masked = torch.ones(block.stop - block.start, dtype=torch.bool, device=canvas.device)
        for left in range(min(self.settings["steps_per_block"], len(masked)), 0, -1):
            run.passed(denoising=1)
            logits = self._predict(canvas, block).float()
            logits[:, self.settings["mask_token_id"]] = -torch.inf
            tokens, sure = choose(logits, temperature, self.settings["remasking"], generator)
            keep = kept(sure, masked, left, self.settings["threshold"])
            canvas[block] = torch.where(keep, tokens, canvas[block])
            masked &= ~keep
            if not masked.any():
                return

    def _predict(self, canvas: torch.Tensor, block: slice) -> torch.Tensor:
        """Logits at the block's positions, shape (block, vocabulary)."""
        logits = self.model(input_ids=canvas[None]).logits[0]
        shift = 1 if self.settings["shift_logits"] else 0
        return logits[block.start - shift : block.stop - shift].clone()


def choose(
    logits: torch.Tensor, temperature: float, remasking: str, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """A token for each position and how sure the model is of it. `logits`: (positions, vocabulary).

    Sampled from the softmax at a temperature, the likeliest at 0. Sureness: the token's probability at temperature 1,
    or minus the distribution's entropy, or chance.
    """
    shares = torch.softmax(logits, dim=-1)
    if temperature > 0:
        tokens = torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1, generator=generator)[:, 0]
    else:
        tokens = logits.argmax(dim=-1)
    if remasking == "random":
        return tokens, torch.rand(tokens.shape, generator=generator, device=tokens.device)
    if remasking == "entropy":
        return tokens, torch.special.entr(shares).sum(dim=-1).neg()
    return tokens, shares.gather(-1, tokens[:, None])[:, 0]


def kept(sure: torch.Tensor, masked: torch.Tensor, steps_left: int, threshold: float) -> torch.Tensor:
    """Which masked positions keep their prediction in this step, at least one; all of them in the last.

    Without a threshold an even share of what is left, the surest first; with one, everything at least as sure.
    """
    ranked = sure.masked_fill(~masked, -torch.inf)
    many = 1 if threshold > 0 and steps_left > 1 else math.ceil(int(masked.sum()) / steps_left)
    keep = torch.zeros_like(masked)
    keep[ranked.topk(many).indices] = True
    if threshold > 0:
        keep |= ranked >= threshold
    return keep & masked
