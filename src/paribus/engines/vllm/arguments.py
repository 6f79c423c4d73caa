"""vLLM's command line from the catalog: launch settings are its own flags in snake case.

Flags: `vllm serve --help=all` of vLLM 0.33.0 (vllm/engine/arg_utils.py, vllm/entrypoints/common/cli_args.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from paribus.catalog import Scalar, System
from paribus.conditions import UsageError
from paribus.engines.base import Launch
from paribus.engines.deciding import OF_NCCL, OF_TORCH, keys, one_of, own
from paribus.engines.vllm.denoising import diffusion_config, needs_generation_file
from paribus.engines.vllm.drafting import SPECULATIVE, speculative_config

VALUES = frozenset(
    {
        "attention_backend",
        "block_size",
        "config_format",
        "cpu_offload_gb",
        "data_parallel_size",
        "dtype",
        "gpu_memory_utilization",
        "kv_cache_dtype",
        "kv_cache_memory_bytes",
        "linear_backend",
        "load_format",
        "mamba_cache_mode",
        "mamba_ssm_cache_dtype",
        "max_cudagraph_capture_size",
        "max_model_len",
        "max_num_batched_tokens",
        "mm_encoder_attn_backend",
        "model_impl",
        "moe_backend",
        "optimization_level",
        "performance_mode",
        "pipeline_parallel_size",
        "quantization",
        "reasoning_parser",
        "safetensors_load_strategy",
        "tensor_parallel_size",
        "tokenizer",
        "tokenizer_mode",
        "tool_call_parser",
    }
)
"""Flags with a value. `max_num_seqs` and those that others decide are apart."""

SWITCHES = frozenset(
    {
        "async_scheduling",
        "disable_custom_all_reduce",
        "enable_auto_tool_choice",
        "enable_chunked_prefill",
        "enable_expert_parallel",
        "enable_flashinfer_autotune",
        "enforce_eager",
        "language_model_only",
        "skip_mm_profiling",
    }
)
"""Flags that are on or off: `--x` or `--no-x`."""

JSON = frozenset(
    {
        "attention_config",
        "compilation_config",
        "kernel_config",
        "limit_mm_per_prompt",
    }
)
"""Flags whose value is a JSON object."""

_ELSEWHERE = {
    "model": "the weights",
    "served_model_name": "the file's name",
    "host": "Paribus",
    "port": "Paribus",
    "api_key": "nobody: the server listens on this machine only",
    "speculative_config": "the decoder's parameters",
    "diffusion_config": "the decoder's lossy settings",
    "enable_prefix_caching": "the measure (`prefix_caching`)",
    "stream_interval": "`streaming_interval` of the engine",
    "trust_remote_code": "`trust_remote_code` of the engine",
    "seed": "nobody: no seed in speed runs (PROTOCOL rule 7)",
    "generation_config": "Paribus: sampling is the card's, and no cap of the checkpoint cuts answers",
    "override_generation_config": "the card's sampling (`sampling`)",
    "default_chat_template_kwargs": "the switch for thinking (`thinking`)",
    "hf_overrides": "nobody: it would make another model of the weights",
}
"""Flags that the catalog sets in another place, and where."""

_APART = frozenset({"max_num_seqs", "slots", "prefix_caching"})

_LOADED = ("auto", "safetensors", "fastsafetensors", "instanttensor", "runai_streamer", "mistral")
_TOKENIZERS = ("auto", "hf", "mistral", "deepseek_v32", "deepseek_v4", "inkling", "kimi_k3")
_READ = ("lazy", "eager", "prefetch")
DECIDING = {
    "kv_cache_dtype": own("kv_cache"),
    "quantization": own("quantization"),
    "dtype": own("dtype"),
    "load_format": one_of(*_LOADED, instead=f"the weights are read as they are, by {', '.join(_LOADED)}"),
    "safetensors_load_strategy": one_of(*_READ, instead=f"the weights are read as they are: {', '.join(_READ)}"),
    "mamba_ssm_cache_dtype": own("state_cache"),
    "config_format": one_of("auto", "hf", "mistral", instead="the weights' own description is read, whichever it is"),
    "tokenizer": one_of(instead="it is the weights' own"),
    "tokenizer_mode": one_of(*_TOKENIZERS, instead=f"the weights' own tokenizer, read by {', '.join(_TOKENIZERS)}"),
    "attention_config": keys(
        "backend", "backend_per_kind", "flash_attn_version", "mla_prefill_backend", "use_trtllm_attention"
    ),
    "kernel_config": keys("enable_flashinfer_autotune", "enable_jit_warmup"),
    "compilation_config": keys(
        "compile_ranges_endpoints",
        "cudagraph_capture_sizes",
        "cudagraph_mode",
        "custom_ops",
        "max_cudagraph_capture_size",
        "mode",
        "pass_config",
    ),
    "speculative_rejection_sample_method": one_of(instead="it belongs to the decoder, with its `acceptance`"),
}
"""Launch settings that decide the answers (`paribus.engines.deciding`): `load_format: dummy` makes weights up,
`attention_config` has quantised queries and keys among its keys, `compilation_config` names code to be run. Kernels of
quantised weights (`moe_backend`, `linear_backend`) are launch settings by themselves and not in `kernel_config`: the
answer class counts them (`KERNEL_SETTINGS`). `tokenizer_mode`, `config_format` and `load_format` say which of two forms
of one checkpoint is read (vllm/config/model.py, load.py); `custom_ops` names vLLM's own operations (compilation.py)."""

VARIABLES = (
    OF_NCCL
    | OF_TORCH
    | {
        "VLLM_ALLREDUCE_USE_SYMM_MEM",
        "VLLM_CPU_KVCACHE_SPACE",
        "VLLM_CPU_OMP_THREADS_BIND",
        "VLLM_HAS_FLASHINFER_CUBIN",
        "VLLM_USE_DEEP_GEMM",
        "VLLM_USE_V2_MODEL_RUNNER",
    }
)
"""Variables that a file may set: which runner and kernels, how memory is kept (vllm/envs.py). Others load code, reach
the network or change answers (`VLLM_PLUGINS`, `VLLM_ALLOW_INSECURE_SERIALIZATION`, `VLLM_MARLIN_INPUT_DTYPE`)."""

LOCAL = frozenset({"VLLM_HOST_IP", "VLLM_LOOPBACK_IP", "VLLM_NCCL_SO_PATH"})
"""Variables of a contributor's machine: the address by which its processes find each other, and where NCCL, which moves
numbers between cards, lies (vllm/envs.py)."""


def arguments(launch: Launch, engine: str) -> list[str]:
    """Everything after `vllm serve`. Raises `UsageError` for a setting that vLLM, or Paribus, doesn't know.

    Three defaults aren't vLLM's own. `--generation-config vllm`: sampling defaults are vLLM's neutral ones, and a cap
    in the checkpoint (DiffusionGemma: 256 new tokens) cuts no answer. `--max-num-seqs`: as many as the measure keeps
    open, never more than the catalog says. Prefix caching is off unless the measure wants it.
    """
    settings, system = launch.settings, launch.system
    _check(settings, system, engine)
    _unsupported(launch)
    line = [str(launch.weights), "--served-model-name", system.name.model, "--host", launch.host]
    line += ["--port", str(launch.port), "--max-num-seqs", str(admitted(launch))]
    line += ["--enable-prefix-caching" if settings.get("prefix_caching") else "--no-enable-prefix-caching"]
    # From nowhere, or from our own file of denoising settings: never what the checkpoint has by itself.
    generation = str(launch.folder) if needs_generation_file(system) else "vllm"
    line += ["--generation-config", generation, "--disable-uvicorn-access-log"]
    for name in sorted(settings):
        line += _flag(name, settings[name])
    if system.use.trust_remote_code:
        line += ["--trust-remote-code"]
    if system.use.streaming_interval != 1:
        line += ["--stream-interval", str(system.use.streaming_interval)]
    line += _json("--speculative-config", speculative_config(launch))
    return line + _json("--diffusion-config", diffusion_config(system))


def admitted(launch: Launch) -> int:
    """Requests that run at once: a recipe's limit is kept, since more than it ran out of memory.

    vllm-project/vllm#50699: DiffusionGemma's buffers grow with requests x canvas x vocabulary, and the engine dies at
    its first full batch. Where the limit is below what a measure keeps open, the start says `admits N`.
    """
    limit = launch.settings.get("max_num_seqs")
    return min(launch.slots, int(limit)) if limit else launch.slots


def _check(settings: Mapping[str, Scalar], system: System, engine: str) -> None:
    for name in sorted(settings):
        if name in _ELSEWHERE:
            raise UsageError(f"{system.name}: {name} is no launch setting: {_ELSEWHERE[name]} decides it")
        drafting = name.startswith("speculative_") and name.removeprefix("speculative_") in SPECULATIVE
        if not drafting and name not in VALUES | SWITCHES | JSON | _APART:
            raise UsageError(
                f"{system.name}: the adapter of {engine} knows no launch setting {name}; known: "
                f"{', '.join(sorted(VALUES | SWITCHES | JSON | _APART))}, and speculative_ with one of "
                f"{', '.join(sorted(SPECULATIVE))}"
            )


def _unsupported(launch: Launch) -> None:
    """FlashInfer's attention can't look both ways within a canvas: the recipe of DiffusionGemma rules it out."""
    system, backend = launch.system, str(launch.settings.get("attention_backend", ""))
    if system.decoder.method == "block-diffusion" and backend.upper() == "FLASHINFER":
        raise UsageError(
            f"{system.name}: block diffusion has no attention_backend {backend}: use TRITON_ATTN or FLASH_ATTN"
        )


def _flag(name: str, value: Scalar) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if name in SWITCHES:
        if not isinstance(value, bool):
            raise UsageError(f"{name} is true or false, not {value!r}")
        return [flag if value else flag.replace("--", "--no-", 1)]
    if name in JSON:
        return _json(flag, _object(name, value))
    if name in VALUES and isinstance(value, bool):
        raise UsageError(f"{name} takes a value, not {value!r}")
    return [flag, str(value)] if name in VALUES else []


def _object(name: str, value: Scalar) -> dict[str, Any]:
    try:
        read = json.loads(str(value))
    except ValueError as error:
        raise UsageError(f"{name} is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise UsageError(f"{name} must be a JSON object, not {value!r}")
    return read


def _json(flag: str, value: dict[str, Any] | None) -> list[str]:
    return [flag, json.dumps(value, sort_keys=True)] if value else []
