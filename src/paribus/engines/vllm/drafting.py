"""`--speculative-config` from a decoder, and what of it would change the answers.

Fields: vllm/config/speculative.py of vLLM 0.33.0 (`SpeculativeConfig`).
"""

from __future__ import annotations

from typing import Any

from paribus.conditions import UsageError
from paribus.engines.base import Launch

SPECULATIVE = frozenset(
    {
        "attention_backend",
        "disable_padded_drafter_batch",
        "draft_sample_method",
        "draft_tensor_parallel_size",
        "enforce_eager",
        "kv_cache_dtype",
        "max_model_len",
        "moe_backend",
        "num_speculative_tokens",
        "parallel_drafting",
        "prompt_lookup_max",
        "prompt_lookup_min",
        "quantization",
        "rejection_sample_method",
        "suffix_decoding_max_cached_requests",
        "suffix_decoding_max_spec_factor",
        "suffix_decoding_max_tree_depth",
        "suffix_decoding_min_token_prob",
        "use_local_argmax_reduction",
    }
)
"""Parameters of a decoder that only decide its speed. `type: ngram_gpu` beside them picks the n-gram lookup."""

_METHODS = {
    "ngram": "ngram",
    "suffix": "suffix",
    "draft": "draft_model",
    "mtp": "mtp",
    "eagle3": "eagle3",
    "dflash": "dflash",
}
_NEEDS_DRAFTER = frozenset({"draft", "eagle3", "dflash"})
_TAKES_DRAFTER = _NEEDS_DRAFTER | {"mtp"}
_ACCEPTANCE = {"standard": "rejection", "block": "block"}
"""vLLM's names of lossless acceptance and ours. Its third, `synthetic`, fakes acceptance."""


def speculative_config(launch: Launch) -> dict[str, Any] | None:
    """The JSON of `--speculative-config`; None where nothing is drafted.

    Raises `UsageError` for what vLLM doesn't know and for acceptance that isn't lossless: `synthetic` acceptance makes
    up how many drafts are right, so that what it measures is no decoder.
    """
    decoder, name = launch.system.decoder, launch.system.name
    faked = [key for key in {**decoder.parameters, **decoder.lossy} if key.startswith("synthetic_")]
    method = str({**decoder.parameters, **decoder.lossy}.get("rejection_sample_method", "standard"))
    if faked or method == "synthetic" or decoder.acceptance == "synthetic":
        raise UsageError(f"{name}: synthetic acceptance makes up how many drafts are right: it is not measured")
    if decoder.method not in _METHODS:
        _nothing(launch)
        return None
    unknown = sorted((decoder.parameters.keys() | decoder.lossy.keys()) - SPECULATIVE - {"type"})
    if unknown:
        raise UsageError(
            f"{name}: vLLM's speculation has no parameter {unknown[0]}; known: type, {', '.join(sorted(SPECULATIVE))}"
        )
    if decoder.acceptance != _ACCEPTANCE.get(method):
        raise UsageError(
            f"{name}: acceptance says {decoder.acceptance}, but rejection_sample_method {method} is "
            f"{_ACCEPTANCE.get(method, 'nothing that vLLM has')}"
        )
    return {"method": _method(launch), **_drafter(launch), **_settings(launch), **_parameters(launch)}


def _nothing(launch: Launch) -> None:
    decoder, name = launch.system.decoder, launch.system.name
    if decoder.method not in {"plain", "block-diffusion"}:
        raise UsageError(f"{name}: the adapter of vLLM has no decoder {decoder.method}")
    if decoder.parameters or launch.drafter:
        given = ", ".join([*sorted(decoder.parameters), *(["drafter"] if launch.drafter else [])])
        raise UsageError(f"{name}: {decoder.method} decoding takes no parameter: leave out {given}")


def _method(launch: Launch) -> str:
    decoder = launch.system.decoder
    kind = str(decoder.parameters.get("type", _METHODS[decoder.method]))
    allowed = {_METHODS[decoder.method]} | ({"ngram_gpu"} if decoder.method == "ngram" else set())
    if kind not in allowed:
        raise UsageError(
            f"{launch.system.name}: type {kind} is no {decoder.method}; known: {', '.join(sorted(allowed))}"
        )
    return kind


def _drafter(launch: Launch) -> dict[str, str]:
    method, name = launch.system.decoder.method, launch.system.name
    if launch.drafter is None:
        if method in _NEEDS_DRAFTER:
            raise UsageError(f"{name}: {method} needs a drafter: name its weights in the decoder")
        return {}
    if method not in _TAKES_DRAFTER:
        raise UsageError(f"{name}: {method} drafts without a model: leave out the drafter")
    return {"model": str(launch.drafter)}


def _settings(launch: Launch) -> dict[str, Any]:
    """Launch settings of the drafter (`speculative_moe_backend`), which a recipe has for some cards only."""
    prefix = "speculative_"
    return {n.removeprefix(prefix): value for n, value in launch.settings.items() if n.startswith(prefix)}


def _parameters(launch: Launch) -> dict[str, Any]:
    decoder = launch.system.decoder
    return {name: value for name, value in {**decoder.parameters, **decoder.lossy}.items() if name != "type"}
