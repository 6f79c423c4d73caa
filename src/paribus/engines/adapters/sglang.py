"""SGLang, from its own environment or image. Written against the source of 0.5.23; not run on real hardware.

Where its settings are: `sglang/srt/arg_groups/fields/*.py` (each field is a flag in kebab case); diffusion language
models: `sglang/srt/dllm/` (one request at once unless `--max-running-requests` says otherwise, no effect of a request's
sampling, denoising settings in a file of their own); speculation: `sglang/srt/arg_groups/fields/spec.py` and
`speculative_hook.py` (NEXTN becomes the frozen-KV method for Gemma 4's assistant).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paribus.catalog import PromptLine, Scalar, System
from paribus.conditions import UsageError
from paribus.engines.base import Adapter, Compilation, How, Launch, Running, refuse_penalties, refuse_unknown
from paribus.engines.bounds import OFF, RATE, SHARE, SWITCH, counts, few
from paribus.engines.counters import SGLANG, sglang_accepted
from paribus.engines.deciding import OF_NCCL, OF_TORCH, own
from paribus.engines.local import NoAnswer, ask_json
from paribus.engines.scoring import Call, chat_messages, gap, token_ids
from paribus.engines.sglang import log
from paribus.engines.thinking import shown
from paribus.wire import Endpoint

_SWITCHES = frozenset(
    {
        "disable_cuda_graph_padding",
        "disable_decode_cuda_graph",
        "disable_overlap_schedule",
        "disable_prefill_cuda_graph",
        "enable_deterministic_inference",
        "enable_mixed_chunk",
        "enable_torch_compile",
    }
)
"""Settings without a value: there or not."""

_VALUES = frozenset(
    {
        "attention_backend",
        "chunked_prefill_size",
        "context_length",
        "cuda_graph_backend_decode",
        "cuda_graph_backend_prefill",
        "cuda_graph_max_bs_decode",
        "decode_attention_backend",
        "dtype",
        "fp4_gemm_runner_backend",
        "fp8_gemm_runner_backend",
        "kv_cache_dtype",
        "linear_attn_backend",
        "mamba_radix_cache_strategy",
        "mamba_ssm_dtype",
        "max_prefill_tokens",
        "max_running_requests",
        "max_total_tokens",
        "mem_fraction_static",
        "moe_runner_backend",
        "num_continuous_decode_steps",
        "page_size",
        "prefill_attention_backend",
        "quantization",
        "reasoning_parser",
        "sampling_backend",
        "schedule_conservativeness",
        "schedule_policy",
        "speculative_attention_mode",
        "speculative_draft_attention_backend",
        "speculative_draft_window_size",
        "speculative_moe_runner_backend",
        "tool_call_parser",
        "torch_compile_max_bs",
        "tp_size",
    }
)
"""Settings with a value."""
_NAMED = {"fp4_gemm_runner_backend": "--fp4-gemm-backend", "fp8_gemm_runner_backend": "--fp8-gemm-backend"}
"""Flags that have another name than their field (`cli_name` in arg_groups/fields/exec_.py)."""
_OURS = frozenset({"slots", "prefix_caching"})
_DECIDING = {
    "kv_cache_dtype": own("kv_cache"),
    "quantization": own("quantization"),
    "dtype": own("dtype"),
    "mamba_ssm_dtype": own("state_cache"),
}
_VARIABLES = OF_NCCL | OF_TORCH
"""None of SGLang's own: some load code or make up what is accepted (`SGLANG_EXTERNAL_MODEL_PACKAGE`,
`SGLANG_SIMULATE_ACC_METHOD`; sglang/srt/environ.py), and no recipe of the catalog sets one."""
_LOCAL = frozenset({"SGLANG_HOST_IP", "SGLANG_NCCL_SO_PATH"})
"""The address by which its processes find each other, and where NCCL lies."""

_DRAFTS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
_EXACT = ("speculative_use_rejection_sampling", "speculative_use_block_verification")
_NGRAM = (
    "speculative_num_draft_tokens",
    "speculative_ngram_min_bfs_breadth",
    "speculative_ngram_max_bfs_breadth",
    "speculative_ngram_match_type",
    "speculative_ngram_max_trie_depth",
    "speculative_ngram_capacity",
)
_ALGORITHMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ngram": ("NGRAM", _NGRAM),
    "mtp": ("NEXTN", (*_DRAFTS, *_EXACT)),
    "eagle3": ("EAGLE3", (*_DRAFTS, *_EXACT)),
    "dflash": ("DFLASH", ("speculative_num_draft_tokens", "speculative_dflash_block_size", *_EXACT)),
    "draft": ("STANDALONE", (*_DRAFTS, *_EXACT)),
}
"""Speculation: the engine's name of the method, and the decoder parameters that it takes."""
_WITH_DRAFTER = frozenset({"eagle3", "dflash", "draft"})
_PENALTIES = (
    "SGLang 0.5.23 checks all drafts of a pass with one penalty, and those of DFlash with none "
    "(sglang/srt/speculative/eagle_utils.py and dflash_utils.py)"
)
"""What its speculation does with a penalty: "a relaxed version", as the source calls it, one for all positions; DFlash
reads `acc_linear_penalties`, which nothing sets."""
_LOSSY_ACCEPTANCE = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")

_BLOCK = ("block_size",)
_RENOISE = {
    "max_denoising_steps": (),
    "entropy_bound": ("sampler_config",),
    "t_min": ("temperature_schedule",),
    "t_max": ("temperature_schedule",),
    "confidence_threshold": ("stopping_config",),
    "stability_threshold": ("stopping_config",),
}
"""Gemma4Renoise's settings and the section of its file that each stands in."""
_DENOISING: dict[str, tuple[str, ...]] = {
    "LowConfidence": ("threshold", *_BLOCK),
    "JointThreshold": ("threshold", "edit_threshold", "max_post_edit_steps", "penalty_lambda", *_BLOCK),
    "JointThresholdInDel": ("threshold", "edit_threshold", "max_post_edit_steps", *_BLOCK),
    "Gemma4Renoise": tuple(_RENOISE),
}
"""Diffusion: algorithms and the lossy settings that each takes (`sglang/srt/dllm/algorithm/`)."""
_DENOISING_SPEED = ("dllm_fdfo", "use_temperature_table", "capture_input_preparation", "vectorized_decoding")
_CONFIG = "dllm.yaml"


_BOUNDS = {
    "mem_fraction_static": SHARE,
    "chunked_prefill_size": OFF,
    "speculative_draft_window_size": OFF,
    **dict.fromkeys(("threshold", "edit_threshold", "confidence_threshold", *_LOSSY_ACCEPTANCE), RATE),
    **counts("max_total_tokens", "max_prefill_tokens"),
    **few("max_running_requests", "page_size", "tp_size"),
    **few("num_continuous_decode_steps", "cuda_graph_max_bs_decode", "torch_compile_max_bs", *_DRAFTS),
    **few("speculative_dflash_block_size", "max_denoising_steps", *_BLOCK),
    **dict.fromkeys((*_SWITCHES, *_EXACT, "dllm_fdfo"), SWITCH),
}


class SGLangScoring:
    """Scoring of given tokens by SGLang's own `/generate`.

    `srt/managers/io_struct.py` (`GenerateReqInput`); `srt/managers/tokenizer_manager.py` (`output_ids`; in `meta_info`
    `input_token_logprobs`, rows of log-probability, token id and text, and `input_top_logprobs`, such rows or null for
    each place); `srt/managers/scheduler_components/logprob_result_processor.py` (the first place has none); `/tokenize`
    with messages renders them as a chat completion does (`srt/entrypoints/openai/protocol.py`, `TokenizeRequest`).
    """

    def tokens(self, endpoint: Endpoint, prompt: PromptLine) -> Call[list[int]]:
        """`/tokenize` of the chat; the switch for thinking goes along as in a request."""
        body = {"model": endpoint.model, **chat_messages(prompt), **endpoint.extra_body}
        return Call("/tokenize", body, lambda reply: token_ids(reply["tokens"]))

    def answer(self, endpoint: Endpoint, tokens: Sequence[int], max_tokens: int) -> Call[list[int]]:  # noqa: ARG002
        """What is written after tokens, in tokens."""
        body = {"input_ids": list(tokens), "sampling_params": {"temperature": 0, "max_new_tokens": max_tokens}}
        return Call("/generate", body, lambda reply: token_ids(reply["output_ids"]))

    def gaps(self, endpoint: Endpoint, tokens: Sequence[int], first: int) -> Call[list[float]]:  # noqa: ARG002
        """The log-probabilities of all given tokens, and of the likeliest at each place."""
        body = {
            "input_ids": list(tokens),
            "sampling_params": {"temperature": 0, "max_new_tokens": 1},
            "return_logprob": True,
            "logprob_start_len": 0,
            "top_logprobs_num": 1,
        }
        return Call("/generate", body, lambda reply: _gaps(reply["meta_info"], tokens, first))


def _gaps(told: Any, tokens: Sequence[int], first: int) -> list[float]:
    own, best = told["input_token_logprobs"], told["input_top_logprobs"]
    if [row[1] for row in own] != list(tokens) or len(best) != len(tokens):
        raise ValueError("not one log-probability for each token")
    return [
        gap(row[0], [row[0], *(each[0] for each in top)]) for row, top in zip(own[first:], best[first:], strict=True)
    ]


class SGLang(Adapter):
    """The adapter."""

    name = "sglang"
    ways: tuple[How, ...] = ("env", "image")
    metrics = SGLANG
    fields = frozenset({"temperature", "top_p", "top_k", "min_p", "presence_penalty", "repetition_penalty"})
    deciding = _DECIDING
    variables = _VARIABLES
    reads = ("SGLANG_", "SGL_")
    local = _LOCAL
    bounds = _BOUNDS
    streaming_intervals = True

    def sampling_fields(self, system: System) -> frozenset[str]:
        """None for a diffusion model: its denoising settings decide, and a request's sampling does nothing.

        A seed has an effect only with deterministic inference.
        """
        if system.decoder.method == "block-diffusion":
            return frozenset()
        seeds = {"seed"} if system.use.launch.get("enable_deterministic_inference") else set()
        return self.fields | seeds

    def request_fields(self, launch: Launch) -> dict[str, Any]:
        """Gemma's tags around thinking are special tokens, which the text would lose before a parser sees it.

        SGLang 0.5.23 keeps them for models of the types gemma4 and gemma4_unified only, and DiffusionGemma's is
        diffusion_gemma (srt/entrypoints/openai/serving_chat.py, `is_gemma4`).
        """
        diffusion = launch.system.decoder.method == "block-diffusion"
        keep = diffusion and launch.settings.get("reasoning_parser") == "gemma4"
        return {"skip_special_tokens": False} if keep else {}

    def command(self, launch: Launch) -> list[str]:
        """`python -m sglang.launch_server` with its flags."""
        given = launch.settings
        refuse_unknown(f"{launch.system.name}: sglang", given, _SWITCHES | _VALUES | _OURS, "launch setting")
        words = [str(launch.python), "-m", "sglang.launch_server", "--model-path", str(launch.weights)]
        words += ["--served-model-name", launch.system.name.model, "--host", launch.host, "--port", str(launch.port)]
        # What a request doesn't set is then the API's own default, not a value out of the weights' folder.
        words += ["--enable-metrics", "--enable-cache-report", "--sampling-defaults", "openai"]
        words += ["--max-running-requests", str(given.get("max_running_requests", launch.slots))]
        words += [] if given.get("prefix_caching") else ["--disable-radix-cache"]
        words += ["--trust-remote-code"] if launch.system.use.trust_remote_code else []
        interval = launch.system.use.streaming_interval
        words += ["--stream-interval", str(interval)] if interval != 1 else []
        for name in sorted(given.keys() - _OURS - {"max_running_requests"}):
            words += _flag(name, given[name])
        return words + _decoder(launch)

    def files(self, launch: Launch) -> dict[str, str]:
        """The file of denoising settings (`--dllm-algorithm-config`; JSON is YAML)."""
        decoder = launch.system.decoder
        if decoder.method != "block-diffusion":
            return {}
        config = _denoising(launch.system)
        return {_CONFIG: json.dumps(config, indent=1, sort_keys=True) + "\n"} if config else {}

    def counters(self, metrics_text: str) -> dict[str, float]:
        """By the table; accepted drafts from tokens, passes and requests."""
        counted = super().counters(metrics_text)
        return counted | sglang_accepted(metrics_text, counted)

    def observe(self, running: Running) -> dict[str, Any]:
        """Everything from `/server_info`: the resolved arguments, and each scheduler's own state."""
        info = ask_json(f"{running.base}/server_info", timeout_s=60)
        states = info.get("internal_states") or [{}]
        decoder = running.launch.system.decoder
        wanted = _SWITCHES | _VALUES | decoder.parameters.keys() | decoder.lossy.keys()
        settings = {name: info[name] for name in sorted(wanted) if info.get(name) is not None}
        if info.get("dllm_algorithm"):
            settings["algorithm"] = info["dllm_algorithm"]
        admitted = states[0].get("effective_max_running_requests_per_dp") or info.get("max_running_requests")
        read = {
            "engine_version": f"sglang {info['version']}",
            "attention_backend": info.get("attention_backend"),
            "speculation": info.get("speculative_algorithm"),
            "sampling_defaults": info.get("sampling_defaults"),
            "admitted": int(admitted) if admitted is not None else None,
            "context_per_slot": _context(running),
            "streaming_interval": info.get("stream_interval"),
            "rendered_prompt": self.rendered(running),
            "server_memory_gb": _memory(states[0].get("memory_usage")),
            **log.numbers(info, running.log),
            "settings": settings,
        }
        return {name: value for name, value in read.items() if value is not None}

    def rendered(self, running: Running) -> str | None:
        """By `/tokenize` of a message and `/detokenize`."""
        system = running.launch.system
        model = {"model": system.name.model}
        wanted = {"messages": [{"role": "user", "content": "hello"}], "add_generation_prompt": True}
        try:
            tokens = ask_json(f"{running.base}/tokenize", {**model, **wanted, **system.thinking_settings})["tokens"]
            answer = ask_json(f"{running.base}/detokenize", {**model, "tokens": tokens, "skip_special_tokens": False})
        except (NoAnswer, LookupError):
            return None
        return shown(answer, "text")

    def compilations(self, log_text: str) -> list[Compilation]:
        """Captured graphs and compiled shapes, with their seconds."""
        return log.compilations(log_text)

    def scoring(self) -> SGLangScoring:
        """By the log-probabilities of its own `/generate`."""
        return SGLangScoring()

    def token_count(self, model: str, text: str) -> Call[int]:
        """`/tokenize` of a plain text (`srt/entrypoints/openai/protocol.py`, `TokenizeRequest`)."""
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        return Call("/tokenize", body, lambda reply: len(token_ids(reply["tokens"])))


def _flag(name: str, value: Scalar) -> list[str]:
    flag = _NAMED.get(name, "--" + name.replace("_", "-"))
    if name in _VALUES and isinstance(value, bool):
        raise UsageError(f"{name} takes a value, not {value!r}")
    if name in _SWITCHES or isinstance(value, bool):
        return [flag] if value else []
    return [flag, str(value)]


def _decoder(launch: Launch) -> list[str]:
    """The decoder's flags."""
    system = launch.system
    decoder = system.decoder
    if decoder.method == "block-diffusion":
        return _diffusion(launch)
    if decoder.method == "plain":
        refuse_unknown(f"{system.name}: sglang", decoder.parameters, (), "parameter of plain decoding")
        refuse_unknown(f"{system.name}: sglang", decoder.lossy, (), "lossy setting of plain decoding")
        return []
    refuse_penalties(system, _PENALTIES)
    if decoder.method not in _ALGORITHMS:
        raise UsageError(f"{system.name}: the adapter of sglang knows no decoding method {decoder.method}")
    if decoder.acceptance == "synthetic":
        raise UsageError(f"{system.name}: sglang has no synthetic acceptance")
    algorithm, known = _ALGORITHMS[decoder.method]
    refuse_unknown(f"{system.name}: sglang", decoder.parameters, known, f"parameter of {decoder.method}")
    refuse_unknown(f"{system.name}: sglang", decoder.lossy, _LOSSY_ACCEPTANCE, f"lossy setting of {decoder.method}")
    if decoder.method in _WITH_DRAFTER and launch.drafter is None:
        raise UsageError(f"{system.name}: {decoder.method} needs a drafter, and the file names none")
    words = ["--speculative-algorithm", algorithm]
    words += ["--speculative-draft-model-path", str(launch.drafter)] if launch.drafter else []
    for settings in (decoder.parameters, decoder.lossy):
        for name in sorted(settings):
            words += _flag(name, settings[name])
    return words


def _diffusion(launch: Launch) -> list[str]:
    system = launch.system
    words = ["--dllm-algorithm", _algorithm(system)]
    words += ["--dllm-algorithm-config", str(launch.folder / _CONFIG)] if _denoising(system) else []
    if "dllm_fdfo" in system.decoder.parameters:
        words += ["--dllm-fdfo" if system.decoder.parameters["dllm_fdfo"] else "--no-dllm-fdfo"]
    return words


def _algorithm(system: System) -> str:
    algorithm = system.decoder.lossy.get("algorithm")
    if algorithm not in _DENOISING:
        raise UsageError(
            f"{system.name}: sglang's diffusion needs lossy: {{algorithm: ...}}, one of {', '.join(_DENOISING)}; "
            f"the file says {algorithm!r}"
        )
    return str(algorithm)


def _denoising(system: System) -> dict[str, Any]:
    """The content of the file of denoising settings; {} where all are the algorithm's own."""
    decoder, algorithm = system.decoder, _algorithm(system)
    lossy = {name: value for name, value in decoder.lossy.items() if name != "algorithm"}
    refuse_unknown(f"{system.name}: sglang", lossy, _DENOISING[algorithm], f"lossy setting of {algorithm}")
    refuse_unknown(f"{system.name}: sglang", decoder.parameters, _DENOISING_SPEED, "parameter of diffusion")
    config: dict[str, Any] = {n: v for n, v in decoder.parameters.items() if n != "dllm_fdfo"}
    for name, value in lossy.items():
        section = _RENOISE.get(name, ()) if algorithm == "Gemma4Renoise" else ()
        place = config.setdefault(section[0], {}) if section else config
        place[name] = value
    return config


def _context(running: Running) -> int | None:
    """The context that the list of models tells."""
    models = ask_json(f"{running.base}/v1/models", timeout_s=30)["data"]
    told = models[0].get("max_model_len") if models else None
    return int(told) if told is not None else None


def _memory(told: Mapping[str, Any] | None) -> dict[str, float] | None:
    """GB of weights, cache and graphs, as the scheduler counts them."""
    if not told:
        return None
    graphs = told.get("graph")
    parts = {"weights": told.get("weight"), "cache": told.get("kvcache")}
    parts["graphs"] = round(sum(graphs.values()), 3) if isinstance(graphs, dict) else graphs
    return {name: float(value) for name, value in parts.items() if value is not None}


ENGINE = SGLang()
