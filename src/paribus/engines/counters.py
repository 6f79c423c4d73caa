"""Engine counters: from a page in the Prometheus text format to our names.

The format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})?\s+(\S+)(?:\s+-?\d+)?\s*$")

LLAMACPP: dict[str, str] = {
    "llamacpp:spec_decode_num_drafts_total": "drafts",
    "llamacpp:spec_decode_num_draft_tokens_total": "draft_tokens",
    "llamacpp:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "llamacpp:tokens_predicted_total": "generated_tokens",
    "llamacpp:prompt_tokens_total": "prompt_tokens",
    "llamacpp:prompt_tokens_cached_total": "cached_prompt_tokens",
    "llamacpp:requests_processing": "running",
    "llamacpp:requests_deferred": "waiting",
}
"""llama.cpp's server. Its `n_decode_total` counts a batch once, whatever it holds: no forward passes a request."""

VLLM: dict[str, str] = {
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "cached_prompt_tokens",
    "vllm:prefix_cache_hits_total": "cached_prompt_tokens",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:diffusion_num_denoising_steps_total": "forward_passes",
    "vllm:diffusion_num_denoising_steps": "forward_passes",
    "vllm:diffusion_num_committed_tokens_total": "committed_tokens",
    "vllm:diffusion_num_committed_tokens": "committed_tokens",
    "vllm:diffusion_num_canvas_positions_total": "canvas_positions",
    "vllm:diffusion_num_canvas_positions": "canvas_positions",
}
"""vLLM (<https://docs.vllm.ai/en/stable/usage/metrics/>); its client library adds `_total` to counters. Where two names
stand for one of ours, the first that is there counts: older versions tell cached prompt tokens as hits only. What it
calls denoising steps are all passes over a canvas, the one that commits it too (`vllm_denoising`)."""

_POSITION = re.compile(
    r'^vllm:spec_decode_num_accepted_tokens_per_pos_total\{(?:.*,)?position="(\d+)".*\}\s+(\S+)', re.MULTILINE
)


def vllm_positions(text: str) -> dict[str, float]:
    """How many drafts were accepted at least up to each position: `accepted_at_1`, `accepted_at_2`, ..."""
    found: dict[str, float] = {}
    for position, value in _POSITION.findall(text):
        name = f"accepted_at_{int(position) + 1}"
        try:
            found[name] = found.get(name, 0.0) + float(value)
        except ValueError:
            continue
    return found


def vllm_denoising(counters: Mapping[str, float]) -> dict[str, float]:
    """Denoising steps without the passes that commit: one a canvas. {} where no canvas was counted.

    Measured on vLLM 0.32 with canvases of 32 and 8 denoising steps: 27 "steps" for three canvases.
    """
    passes, positions = counters.get("forward_passes"), counters.get("canvas_positions")
    if passes is None or positions is None:
        return {}
    canvases = counters.get("committed_tokens", 0.0) * passes / positions if positions else 0.0
    return {"denoising_steps": passes - canvases}


SGLANG: dict[str, str] = {
    "sglang:spec_verify_calls_total": "drafts",
    "sglang:generation_tokens_total": "generated_tokens",
    "sglang:prompt_tokens_total": "prompt_tokens",
    "sglang:cached_tokens_total": "cached_prompt_tokens",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
}
"""SGLang with `--enable-metrics` (<https://docs.sglang.io/references/production_metrics.html>). Its acceptance length
is a gauge over its last few steps (`sglang:spec_accept_length`), no counter: it says nothing about a window, and isn't
read. `sglang_accepted` counts."""


def sglang_accepted(text: str, counters: Mapping[str, float]) -> dict[str, float]:
    """Accepted drafts, which SGLang doesn't count by themselves. {} where nothing was drafted.

    It adds a request's tokens and the passes that verified its drafts when the request ends (0.5.23:
    sglang/srt/observability/metrics_collector.py, `observe_one_finished_request`; one more for each pass over a live
    request: managers/scheduler_components/batch_result_processor.py). The prefill and each such pass give a token of
    their own; the rest are drafts that reached an answer. One that is prefilled anew when memory runs short counts a
    draft too many.
    """
    ended = named(text, {"sglang:num_requests_total": "requests"}, ("requests",)).get("requests")
    generated, drafts = counters.get("generated_tokens"), counters.get("drafts")
    if ended is None or generated is None or drafts is None:
        return {}
    return {"accepted_tokens": generated - drafts - ended}


KNOWN = LLAMACPP | VLLM | SGLANG


def parse_metrics(text: str) -> dict[str, float]:
    """Sample values by metric name, added up over labels. Comments, what isn't a sample and NaN are passed over."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.match(line)
        if match is None:
            continue
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value):
            values[match[1]] = values.get(match[1], 0.0) + value
    return values


def named(text: str, names: Mapping[str, str], wanted: tuple[str, ...]) -> dict[str, float]:
    """The `wanted` ones of our names, read from a page with a table from the engine's names to ours."""
    there = parse_metrics(text)
    found: dict[str, float] = {}
    for theirs, ours in names.items():
        if theirs in there and ours in wanted:
            found.setdefault(ours, there[theirs])
    return found


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """After minus before, for the counters in both. Raises `ValueError` for one that shrank: the server restarted."""
    shrunk = sorted(name for name in before if name in after and after[name] < before[name])
    if shrunk:
        raise ValueError(f"engine counters went back ({', '.join(shrunk)}): the server was restarted")
    return {name: after[name] - before[name] for name in after if name in before}
