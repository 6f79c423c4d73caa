"""Start llama.cpp's own HTTP server from the `xllamacpp` wheel, which has no command line of its own.

Usage: serve.py '<JSON>'. Needs nothing but `xllamacpp`. The JSON holds `model` (GGUF file), `alias`, `host`, `port`,
`slots`, `context_per_slot`, `threads`, `batch`, `ubatch`, `poll`, `kv_unified`, `cache_prompt`, `options` (layers on
the card, flash attention, types of the cache), `sampling` (what holds where a request says nothing) and `speculative`
({} or {"type": ..., "drafter": file, parameters}). The server ends with its parent.
"""

import ctypes
import json
import os
import signal
import sys
import threading
from typing import Any

import xllamacpp


def speculate(params: Any, wanted: dict[str, Any]) -> None:
    """Set one way of drafting, its parameters and the draft model's file.

    Heads for several tokens (`draft-mtp`) may lie inside the target's own file: llama.cpp loads them for this type.
    """
    target, name = params.speculative, wanted["type"].replace("-", "_")
    target.types = [getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{name.upper()}")]
    group = target.draft if name.startswith("draft_") else getattr(target, name, None)
    for key, value in wanted.items():
        if key == "drafter":
            target.draft.mparams.path = value
        elif key == "sampling":
            group.probabilistic = value == "probabilistic"
        elif key != "type":
            setattr(group, key, value)


FLASH = {"auto": "AUTO", "on": "ENABLED", "off": "DISABLED"}
LAYERS = {"auto": -1, "all": -2}
"""Numbers that stand for words in llama.cpp's `--n-gpu-layers` (common/arg.cpp)."""


def options(params: Any, wanted: dict[str, Any]) -> None:
    """Set what only some systems say."""
    for key, value in wanted.items():
        if key == "flash_attn":
            params.flash_attn_type = getattr(xllamacpp.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{FLASH[value]}")
        elif key == "n_gpu_layers":
            params.n_gpu_layers = LAYERS.get(value, value)
        elif key.startswith("cache_type_"):
            setattr(params, key, getattr(xllamacpp.ggml_type, f"GGML_TYPE_{value.upper()}"))
        else:
            setattr(params, key, value)


PENALTIES = {"presence_penalty": "penalty_present", "repeat_penalty": "penalty_repeat"}
ALL_SAMPLING = (1 << 12) - 1
"""Every bit of llama.cpp's `common_params_sampling_config`: set by hand, so not taken from the weights' file."""


def sampling(params: Any, wanted: dict[str, Any]) -> None:
    """Set what holds where a request says nothing, whatever `general.sampling.*` in the weights' file says."""
    for key, value in wanted.items():
        setattr(params, PENALTIES.get(key, key), value)
    params.user_sampling_config = ALL_SAMPLING


def parameters(wanted: dict[str, Any]) -> Any:
    """The server's parameters."""
    params = xllamacpp.CommonParams()
    params.model.path = wanted["model"]
    params.model_alias = {wanted["alias"]}
    params.hostnames = [wanted["host"]]
    params.port = wanted["port"]
    params.n_parallel = wanted["slots"]
    # Without a unified cache the context is divided evenly among the slots.
    params.n_ctx = wanted["context_per_slot"] * wanted["slots"]
    params.fit_params = False
    params.kv_unified = wanted["kv_unified"]
    params.n_batch, params.n_ubatch = wanted["batch"], wanted["ubatch"]
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = wanted["threads"], wanted["poll"]
    params.cache_prompt = wanted["cache_prompt"]
    # Prompts of idle slots kept in memory: up to 8 GB by default, and a second cache that nobody asked for.
    params.cache_ram_mib = 0
    params.endpoint_metrics = True
    params.ui = False
    options(params, wanted["options"])
    sampling(params.sampling, wanted["sampling"])
    if wanted["speculative"]:
        speculate(params, wanted["speculative"])
    return params


def main() -> None:
    """Serve until told to stop or until the parent is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    parent = os.getppid()
    wanted = json.loads(sys.argv[1])
    # The default action ends the process at once; Python's own handlers would wait for the C++ threads.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print(f"xllamacpp {xllamacpp.__version__}", flush=True)
    params = parameters(wanted)
    print(f"cache of keys {params.cache_type_k.name}, of values {params.cache_type_v.name}", flush=True)
    server = xllamacpp.Server(params)
    print(f"serving at {server.listening_address}", flush=True)
    while os.getppid() == parent:
        threading.Event().wait(0.5)


if __name__ == "__main__":
    main()
