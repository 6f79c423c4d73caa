"""What vLLM's log says about the server: which code runs, what it admits, what it compiled and captured.

The lines are those of vLLM 0.32.0 and 0.33.0: `vllm/v1/engine/core.py`, `vllm/v1/core/kv_cache_utils.py`,
`vllm/entrypoints/serve/utils/api_utils.py`, `vllm/platforms/cuda.py`, `vllm/compilation/`, `vllm/utils/jit_monitor.py`.
Colours and the prefix of each line (process, level, time, place) are passed over.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from paribus.engines.base import Compilation

_ARGUMENTS = re.compile(r"non-default args: (\{.*\})\s*$", re.MULTILINE)
_FINDINGS = {
    "attention_backend": re.compile(r"Using (\w+) attention backend out of"),
    "kv_cache_tokens": re.compile(r"KV cache size: ([\d,]+) tokens"),
    "weights_gb": re.compile(r"Model loading took ([\d.]+) GiB memory"),
    "engine_dtype": re.compile(r"Initializing a V1 LLM engine .*? dtype=torch\.(\w+)"),
    "engine_kv_cache": re.compile(r"Initializing a V1 LLM engine .*? kv_cache_dtype=(\w+)"),
    "engine_quantization": re.compile(r"Initializing a V1 LLM engine .*? quantization=([\w-]+)"),
}
_SECONDS = re.compile(
    r"Graph capturing finished in (?P<capture>[\d.]+) secs"
    r"|torch\.compile took (?P<compile>[\d.]+) s in total"
    r"|(?P<part>Compiling a graph for compile range)"
)
_WHAT = {"capture": "graphs captured", "compile": "the model compiled", "part": "a graph compiled"}
_WHILE_SERVING = re.compile(r"(?P<backend>Triton|CuTeDSL|TileLang) (?:kernel )?JIT compilation during inference")


def arguments_of(log: str) -> dict[str, Any]:
    """The arguments that differ from vLLM's defaults, as it read them; {} where the log doesn't say."""
    found = _ARGUMENTS.search(log)
    if found is None:
        return {}
    try:
        read = ast.literal_eval(found[1])
    except (ValueError, SyntaxError):
        return {}
    return read if isinstance(read, dict) else {}


def findings(log: str) -> dict[str, Any]:
    """Facts that the log tells, under names of ours; what it doesn't tell is left out."""
    found: dict[str, Any] = {}
    for name, pattern in _FINDINGS.items():
        match = pattern.search(log)
        if match is not None and match[1] != "None":
            found[name] = match[1]
    if "kv_cache_tokens" in found:
        found["kv_cache_tokens"] = int(found["kv_cache_tokens"].replace(",", ""))
    if "weights_gb" in found:
        found["weights_gb"] = round(float(found["weights_gb"]) * 1.073741824, 3)
    return found | {"model_runner": model_runner(log)}


def model_runner(log: str) -> str:
    """Which of vLLM's two model runners serves: drafters that one accepts may have no draft accepted by the other."""
    return "V2" if "Using V2 Model Runner" in log else "V1"


def compilations(log: str) -> list[Compilation]:
    """Graphs compiled and captured, with their seconds, and kernels compiled while requests were being answered."""
    found = []
    for match in _SECONDS.finditer(log):
        seconds = match["capture"] or match["compile"]  # those of a part are in the total
        found.append(Compilation(_WHAT[match.lastgroup or "part"], float(seconds) if seconds else None))
    return found + [Compilation(f"a {match['backend']} kernel") for match in _WHILE_SERVING.finditer(log)]
