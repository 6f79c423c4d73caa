"""Start llama.cpp's own HTTP server from the `xllamacpp` wheel, which has no command line of its own.

Usage: serve.py '<JSON>'. Needs nothing but `xllamacpp`. The JSON holds `model` (GGUF file), `alias`, `port`, `slots`,
`context_per_slot`, `threads`, `batch`, `ubatch`, `poll`, `kv_unified`, `cache_prompt`, `sampling` (the server's own
defaults) and `speculative` ({} or {"type": ..., parameters}). The server listens on this machine only, and ends with
its parent.
"""

import ctypes
import json
import os
import signal
import sys
import threading
from typing import Any

import xllamacpp


def speculate(target: Any, wanted: dict[str, Any]) -> None:
    """Set one n-gram method of `common_params_speculative` and its parameters."""
    name = wanted["type"].replace("-", "_")
    target.types = [getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{name.upper()}")]
    for key, value in wanted.items():
        if key != "type":
            setattr(getattr(target, name), key, value)


def parameters(wanted: dict[str, Any]) -> Any:
    """The server's parameters."""
    params = xllamacpp.CommonParams()
    params.model.path = wanted["model"]
    params.model_alias = {wanted["alias"]}
    params.hostnames = ["127.0.0.1"]
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
    for key, value in wanted["sampling"].items():
        setattr(params.sampling, key, value)
    if wanted["speculative"]:
        speculate(params.speculative, wanted["speculative"])
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
    server = xllamacpp.Server(parameters(wanted))
    print(f"serving at {server.listening_address}", flush=True)
    while os.getppid() == parent:
        threading.Event().wait(0.5)


if __name__ == "__main__":
    main()
