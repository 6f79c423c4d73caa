"""A diffusion model's denoising settings: two are flags, the others vLLM reads from a generation_config.json.

vllm/config/diffusion.py and vllm/model_executor/models/diffusion_gemma.py of vLLM 0.32.0 and 0.33.0. The older way
through `--hf-overrides` (`diffusion_entropy_bound`) is read by neither.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paribus.catalog import System
from paribus.conditions import EnvironmentFault, UsageError

GENERATION = "generation_config.json"
_FLAGS = ("canvas_length", "max_denoising_steps")
_FILE = ("entropy_bound", "t_min", "t_max", "stability_threshold", "confidence_threshold")
_SAMPLER = "entropy_bound"
"""The one sampler that vLLM has."""
_NOT_OURS = ("max_new_tokens", "max_length", "temperature", "top_k", "top_p", "min_p", "repetition_penalty")
"""Sampling defaults of a checkpoint, which requests state themselves."""


def diffusion_config(system: System) -> dict[str, Any] | None:
    """The JSON of `--diffusion-config`; None for other decoders. `UsageError` for a setting that vLLM lacks."""
    if system.decoder.method != "block-diffusion":
        _refuse(system, ("rejection_sample_method",))
        return None
    _refuse(system, (*_FLAGS, *_FILE, "sampler"))
    lossy = system.decoder.lossy
    if lossy.get("sampler", _SAMPLER) != _SAMPLER:
        raise UsageError(f"{system.name}: vLLM has the sampler {_SAMPLER} only, not {lossy['sampler']}")
    if "canvas_length" not in lossy:
        raise UsageError(f"{system.name}: block diffusion in vLLM needs canvas_length among the lossy settings")
    return {name: lossy[name] for name in _FLAGS if name in lossy}


def needs_generation_file(system: System) -> bool:
    """Whether denoising settings are declared that vLLM takes from a file only."""
    return system.decoder.method == "block-diffusion" and any(name in system.decoder.lossy for name in _FILE)


def generation_file(system: System, weights: Path) -> str:
    """The checkpoint's generation_config.json with the declared denoising settings, and without its sampling defaults.

    `EnvironmentFault` where the checkpoint has none that can be read.
    """
    lossy = system.decoder.lossy
    found = checkpoint_generation(weights)
    if found is None:
        raise EnvironmentFault(
            f"{system.name}: {GENERATION} of the weights can't be read here, and vLLM takes "
            f"{', '.join(name for name in _FILE if name in lossy)} from it only"
        )
    kept = {name: value for name, value in found.items() if name not in _NOT_OURS}
    kept |= {name: lossy[name] for name in _FILE if name in lossy and name != "entropy_bound"}
    if "entropy_bound" in lossy:
        kept["sampler_config"] = {**(kept.get("sampler_config") or {}), "entropy_bound": lossy["entropy_bound"]}
    return json.dumps(kept, indent=1, sort_keys=True) + "\n"


def checkpoint_generation(folder: Path) -> dict[str, Any] | None:
    """A folder's generation_config.json; None where there is none."""
    try:
        read = json.loads((folder / GENERATION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) else None


def effective_denoising(flags: dict[str, Any], generation: dict[str, Any] | None) -> dict[str, Any]:
    """What the server denoises with, under the catalog's names: its flags, then the file it read."""
    found = dict(generation or {})
    sampler = found.get("sampler_config") or {}
    settings = {name: found[name] for name in (*_FILE, "max_denoising_steps") if found.get(name) is not None}
    if sampler.get("entropy_bound") is not None:
        settings |= {"entropy_bound": sampler["entropy_bound"], "sampler": _SAMPLER}
    return settings | {name: value for name, value in flags.items() if name in _FLAGS and value is not None}


def _refuse(system: System, known: tuple[str, ...]) -> None:
    unknown = sorted(set(system.decoder.lossy) - set(known))
    if unknown:
        raise UsageError(
            f"{system.name}: vLLM has no lossy setting {unknown[0]} for {system.decoder.method}; "
            f"known: {', '.join(sorted(known))}"
        )
