"""MLX on Apple silicon: the server of mlx-vlm, or that of mlx-lm (launch setting `server: mlx-lm`).

Written against the sources of mlx-vlm 0.7.10 (`mlx_vlm/server/`) and mlx-lm 0.32.2 (`mlx_lm/server.py`); not run on
real hardware. Traps that are handled here:

- Both load another model when a request names one: the name must be the one the server was started with.
- mlx-vlm takes denoising settings by request, and its own sampler is not the checkpoint's (`confidence-threshold` where
  DiffusionGemma's is `entropy-bound`; no temperature means the most likely token): the file must name the sampler.
- mlx-vlm decodes plainly, with a line in its log, where the drafter doesn't fit the model, and still tells the kind of
  drafter that it was asked for.
- mlx-vlm answers diffusion requests one after the other; mlx-lm does so with a draft model, and with a seed.
- Both hold a penalty against the last 20 tokens, where a request says nothing of it (`mlx_vlm/generate/common.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.catalog import Scalar, System
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.base import COUNTERS, Adapter, Launch, Running, refuse_penalties, refuse_unknown
from paribus.engines.bounds import RATE, counts, few
from paribus.engines.deciding import Deciding, one_of
from paribus.engines.local import ask_header, ask_json
from paribus.engines.numbers import UNREAD

_VLM = frozenset({"prefill_step_size", "kv_bits", "kv_group_size", "kv_quant_scheme", "max_kv_size", "max_num_seqs"})
_LM = frozenset({"prefill_step_size", "prompt_concurrency", "decode_concurrency", "kv_bits", "kv_group_size"})
_OURS = frozenset({"server", "slots", "prefix_caching"})
_DECIDING = {
    "kv_bits": Deciding(
        lambda system, name, value: system.precision.kv_cache == _cache(value),  # noqa: ARG005
        "it may only repeat the precision's kv_cache (4 bits: 4bit)",
    ),
    "kv_group_size": one_of(64, instead="the cache is quantised in groups of 64, or not"),
    "kv_quant_scheme": one_of("uniform", instead="the cache is quantised uniformly, or not"),
    "max_kv_size": one_of(instead="a cache that forgets is another model"),
}
"""A file may set no variable: mlx-vlm takes all of these from its surroundings too (`KV_BITS`, `MAX_KV_SIZE`)."""

_DENOISING = {
    "sampler": "diffusion_sampler",
    "max_denoising_steps": "max_denoising_steps",
    "min_canvas_length": "diffusion_min_canvas_length",
    "max_canvas_length": "diffusion_max_canvas_length",
    "block_length": "block_length",
    "threshold": "threshold",
    "min_threshold": "min_threshold",
    "editing_threshold": "editing_threshold",
    "max_post_steps": "max_post_steps",
    "stability_steps": "stability_steps",
}
"""Lossy settings of the catalog and the request fields that carry them (`mlx_vlm/server/schemas.py`)."""
_SAMPLERS = ("entropy-bound", "confidence-threshold")
_KINDS = {"mtp": "mtp", "dflash": "dflash", "eagle3": "eagle3"}
"""Decoding methods and mlx-vlm's kinds of drafter."""
_PENALTIES = "mlx-vlm 0.7.10 checks drafts without penalties (mlx_vlm/generate/ar.py, SpeculativeGenerationBatch)"
_WITHOUT_DRAFTER = "falling back to autoregressive generation"
"""In the log of a server that passed over its drafter (`mlx_vlm/server/generation.py`)."""
_COUNTED = {
    "generated_tokens_total": "generated_tokens",
    "prompt_tokens_total": "prompt_tokens",
}


_BOUNDS = {
    **dict.fromkeys(("threshold", "min_threshold", "editing_threshold"), RATE),
    **counts("prefill_step_size"),
    **few("max_num_seqs", "prompt_concurrency", "decode_concurrency", "kv_group_size"),
    **few("draft_block_size", "num_draft_tokens", "max_denoising_steps", "block_length"),
}


class MLX(Adapter):
    """The adapter."""

    name = "mlx"
    fields = frozenset({"temperature", "top_p", "top_k", "min_p", "presence_penalty", "repetition_penalty"})
    deciding = _DECIDING
    reads = ("APC_", "EXPERT_CACHE_", "KV_", "MAX_KV_", "MLX_", "PREFILL_STEP_", "QUANTIZED_KV_", "TOP_LOGPROBS_")
    bounds = _BOUNDS

    def sampling_fields(self, system: System) -> frozenset[str]:
        """A seed only where it doesn't end batching: with mlx-vlm."""
        if system.decoder.method == "block-diffusion":
            return frozenset({"temperature", "top_p", "top_k", "seed"})
        return self.fields | (frozenset() if _server(system.use.launch) == "mlx-lm" else {"seed"})

    def command(self, launch: Launch) -> list[str]:
        """`python -m mlx_vlm server` or `python -m mlx_lm server` with its flags."""
        if _server(launch.settings) == "mlx-lm":
            return self._lm(launch)
        refuse_unknown(f"{launch.system.name}: mlx", launch.settings, _VLM | _OURS, "launch setting of mlx-vlm")
        words = [str(launch.python), "-m", "mlx_vlm.server", "--model", launch.weights.name, "--host", launch.host]
        words += ["--port", str(launch.port), "--max-num-seqs", str(launch.settings.get("max_num_seqs", launch.slots))]
        words += ["--trust-remote-code"] if launch.system.use.trust_remote_code else []
        words += _flags(launch.settings, _VLM - {"max_num_seqs"})
        return words + _drafting(launch)

    def _lm(self, launch: Launch) -> list[str]:
        decoder, given = launch.system.decoder, launch.settings
        refuse_unknown(f"{launch.system.name}: mlx", given, _LM | _OURS, "launch setting of mlx-lm")
        refuse_unknown(f"{launch.system.name}: mlx", decoder.lossy, (), "lossy setting of mlx-lm")
        words = [str(launch.python), "-m", "mlx_lm", "server", "--model", launch.weights.name, "--host", launch.host]
        words += ["--port", str(launch.port)]
        words += ["--decode-concurrency", str(given.get("decode_concurrency", launch.slots))]
        words += [] if given.get("prefix_caching") else ["--prompt-cache-size", "0"]
        words += ["--trust-remote-code"] if launch.system.use.trust_remote_code else []
        words += _flags(given, _LM - {"decode_concurrency"})
        if decoder.method == "plain":
            return words
        if decoder.method != "draft" or launch.drafter is None:
            raise UsageError(
                f"{launch.system.name}: mlx-lm decodes plainly or with a draft model; the catalog says {decoder.method}"
                + ("" if decoder.method != "draft" else " without a drafter")
            )
        refuse_unknown(
            f"{launch.system.name}: mlx", decoder.parameters, ("num_draft_tokens",), "parameter of mlx-lm's drafting"
        )
        words += ["--draft-model", str(launch.drafter)]
        return words + _flags(decoder.parameters, frozenset({"num_draft_tokens"}))

    def environment(self, launch: Launch) -> dict[str, str]:
        """mlx-vlm's automatic prefix cache, off unless the scenario wants it (`mlx_vlm/server/runtime_config.py`)."""
        return {"APC_ENABLED": "1" if launch.settings.get("prefix_caching") else "0"}

    def working_folder(self, launch: Launch) -> Path | None:
        """The folder beside the weights: requests repeat the model's name in each piece, so that it must be no path."""
        return launch.weights.parent

    def request_model(self, launch: Launch) -> str:
        """The name that the server was started with; mlx-lm has a word for that."""
        return "default_model" if _server(launch.settings) == "mlx-lm" else launch.weights.name

    def request_fields(self, launch: Launch) -> dict[str, Any]:
        """Denoising settings, mlx-vlm's own switch for thinking, and how far back a penalty looks: over everything."""
        system = launch.system
        fields: dict[str, Any] = {}
        switch = (system.thinking_settings.get("chat_template_kwargs") or {}).get("enable_thinking")
        if switch is not None and _server(launch.settings) != "mlx-lm":
            fields["enable_thinking"] = switch
        if system.decoder.method == "block-diffusion":
            return fields | _denoising(system)
        far = system.context_of(launch.settings)
        return fields | {name.replace("_penalty", "_context_size"): far for name in system.sampling.penalties}

    def counters(self, metrics_text: str) -> dict[str, float]:
        """Counters of mlx-vlm's page, which is JSON; mlx-lm has none. Its requests in flight count waiting ones too."""
        try:
            summary = json.loads(metrics_text)["summary"]
            found = {ours: float(summary[theirs]) for theirs, ours in _COUNTED.items() if theirs in summary}
        except (ValueError, LookupError, TypeError):
            return {}
        return {name: value for name, value in found.items() if name in COUNTERS}

    def gauges(self, metrics_text: str) -> dict[str, float]:  # noqa: ARG002 (the protocol's signature)
        """None that could be told apart."""
        return {}

    def observe(self, running: Running) -> dict[str, Any]:
        """Version, context and settings; one request at once where the server can do no more.

        Raises `EnvironmentFault` where it drafts nothing because the drafter doesn't fit.
        """
        if _server(running.launch.settings) == "mlx-lm":
            return _observe_lm(running)
        if _WITHOUT_DRAFTER in running.log:
            raise EnvironmentFault(
                f"{running.launch.system.name}: mlx-vlm found that the drafter doesn't fit the model and decodes "
                "plainly: correct the drafter in the system's file; the server's log says why"
            )
        health = ask_json(f"{running.base}/health")
        current = ask_json(f"{running.base}/v1/settings")["current"]
        version = (ask_header(f"{running.base}/health", "Server") or "").removeprefix("mlx_vlm/")
        settings = {name: current[name] for name in sorted(_VLM) if current.get(name) is not None}
        one = running.launch.system.decoder.method == "block-diffusion"
        read = {
            "engine_version": f"mlx-vlm {version or 'not stated'}",
            "admitted": 1 if one else None,
            "context_per_slot": health.get("effective_context_limit"),
            "speculation": current.get("draft_kind"),
            "kv_cache": _cache(current["kv_bits"]) if "kv_bits" in current else None,
            "settings": settings,
        }
        return {name: value for name, value in read.items() if value is not None}


def _cache(bits: Any) -> str:
    """The word for a cache of so many bits: `4bit`, `3.5bit`; none: it has the type that the model computes in."""
    if not bits:
        return "unquantised"
    try:
        return f"{float(bits):g}bit"
    except (TypeError, ValueError):
        return UNREAD


def _server(settings: Mapping[str, Scalar]) -> str:
    server = str(settings.get("server", "mlx-vlm"))
    if server not in ("mlx-vlm", "mlx-lm"):
        raise UsageError(f"mlx has the servers mlx-vlm and mlx-lm, not {server!r}")
    return server


def _flags(given: Mapping[str, Scalar], names: frozenset[str]) -> list[str]:
    return [word for name in sorted(names & given.keys()) for word in ("--" + name.replace("_", "-"), str(given[name]))]


def _drafting(launch: Launch) -> list[str]:
    """mlx-vlm's flags for a decoder; denoising settings go by request."""
    system, decoder = launch.system, launch.system.decoder
    if decoder.method == "block-diffusion":
        _denoising(system)
        refuse_unknown(f"{system.name}: mlx", decoder.parameters, (), "parameter of diffusion")
        return []
    refuse_unknown(f"{system.name}: mlx", decoder.lossy, (), "lossy setting of mlx-vlm's speculation")
    if decoder.method == "plain":
        refuse_unknown(f"{system.name}: mlx", decoder.parameters, (), "parameter of plain decoding")
        return []
    refuse_penalties(system, _PENALTIES)
    if decoder.method not in _KINDS:
        raise UsageError(f"{system.name}: mlx-vlm drafts by {', '.join(_KINDS)}; the catalog says {decoder.method}")
    refuse_unknown(f"{system.name}: mlx", decoder.parameters, ("draft_block_size",), "parameter of mlx-vlm's drafting")
    # Qwen's checkpoints bring MTP weights of their own: the model is then its own drafter.
    drafter = str(launch.drafter) if launch.drafter else launch.weights.name
    if launch.drafter is None and decoder.method != "mtp":
        raise UsageError(f"{system.name}: {decoder.method} needs a drafter, and the file names none")
    words = ["--draft-model", drafter, "--draft-kind", _KINDS[decoder.method]]
    return words + _flags(decoder.parameters, frozenset({"draft_block_size"}))


def _denoising(system: System) -> dict[str, Any]:
    """Request fields of the denoising settings."""
    lossy = system.decoder.lossy
    refuse_unknown(f"{system.name}: mlx", lossy, tuple(_DENOISING), "lossy setting of mlx-vlm")
    fields: dict[str, Any] = {_DENOISING[name]: value for name, value in lossy.items()}
    sampler = str(lossy.get("sampler", "")).replace("_", "-")
    if "threshold" not in lossy and sampler not in _SAMPLERS:
        raise UsageError(
            f"{system.name}: mlx-vlm's own sampler is not the checkpoint's: name one under lossy (sampler: "
            f"{' or '.join(_SAMPLERS)})"
        )
    if sampler:
        fields["diffusion_sampler"] = sampler
    if system.sampling.temperature is None:
        # The checkpoint samples, at its schedule's temperature; the server would take the most likely token.
        fields["temperature"] = 1.0
    return fields


def _observe_lm(running: Running) -> dict[str, Any]:
    """mlx-lm tells its versions in each answer: `<mlx-lm>-<mlx>-<system>-<chip>`."""
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    answer = ask_json(f"{running.base}/v1/chat/completions", body, timeout_s=120)
    version, _, rest = str(answer.get("system_fingerprint", "")).partition("-")
    told = f"mlx-lm {version or 'not stated'}" + (f" (mlx {rest.split('-')[0]})" if rest else "")
    one = running.launch.drafter is not None
    return {"engine_version": told} | ({"admitted": 1} if one else {})


ENGINE = MLX()
