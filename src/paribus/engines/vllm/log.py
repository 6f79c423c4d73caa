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
from paribus.engines.numbers import UNREAD, Choice

_ARGUMENTS = re.compile(r"non-default args: (\{.*\})\s*$", re.MULTILINE)
_OBJECT = re.compile(r"[A-Za-z_][\w.]*\((.*)\)", re.DOTALL)
_ENUM = re.compile(r"<[A-Za-z_]\w*\.(\w+): (.*)>", re.DOTALL)
_PASSES = {"eliminate_noops": True, "rope_kvcache_fusion_max_token_num": 256}
"""Defaults that aren't None of `PassConfig`, which the `repr` of a `CompilationConfig` leaves out
(vllm/config/compilation.py)."""
_FINDINGS = {
    "attention_backend": re.compile(r"Using (\w+) attention backend out of"),
    "kv_cache_tokens": re.compile(r"KV cache size: ([\d,]+) tokens"),
    "weights_gb": re.compile(r"Model loading took ([\d.]+) GiB memory"),
    "engine_dtype": re.compile(r"Initializing a V1 LLM engine .*? dtype=torch\.(\w+)"),
    "engine_kv_cache": re.compile(r"Initializing a V1 LLM engine .*? kv_cache_dtype=(\w+)"),
    "engine_quantization": re.compile(r"Initializing a V1 LLM engine .*? quantization=([\w-]+)"),
    # Among the arguments only: what is left to the model is told nowhere (vllm/config/cache.py).
    "engine_state_cache": re.compile(r"non-default args: \{.*?'mamba_ssm_cache_dtype': '(\w+)'"),
}
_KERNELS = (
    re.compile(r"Using '?(\w+)'? (?:(?!Unquantized)[\w ]+) MoE backend"),
    re.compile(r"(?:Using|Selected) (\w+Kernel) for \w+"),
)
"""Of quantised experts (vllm/model_executor/layers/fused_moe/oracle/) and of other quantised layers
(vllm/model_executor/kernels/linear/). The target loads first: later lines are its drafter's, which decide no answer."""
_SECONDS = re.compile(
    r"Graph capturing finished in (?P<capture>[\d.]+) secs"
    r"|torch\.compile took (?P<compile>[\d.]+) s in total"
    r"|(?P<part>Compiling a graph for compile range)"
)
_WHAT = {"capture": "graphs captured", "compile": "the model compiled", "part": "a graph compiled"}
_WHILE_SERVING = re.compile(r"(?P<backend>Triton|CuTeDSL|TileLang) (?:kernel )?JIT compilation during inference")


def arguments_of(log: str) -> dict[str, Any] | None:
    """The arguments that differ from vLLM's defaults, as it read them; None where the log doesn't say them whole.

    They are the `repr` of a dictionary whose values are partly objects (`AttentionConfig(backend=None, ...)`): each is
    read by itself, an object as the fields that it names, and what can't be read so stands as `UNREAD`. A
    `CompilationConfig` prints itself as a dictionary with bare enumerations inside.
    """
    found = _ARGUMENTS.search(log)
    if found is None:
        return None
    read = _entries(found[1])
    compiled = (read or {}).get("compilation_config")
    if isinstance(compiled, dict) and isinstance(compiled.get("pass_config"), dict):
        compiled["pass_config"] = _PASSES | compiled["pass_config"]
    return read


def _entries(text: str) -> dict[str, Any] | None:
    """The `repr` of a dictionary key by key; None where it isn't one, or its keys are no words."""
    pairs = [_cut(entry, ":") for entry in _cut(text[1:-1], ",") if entry.strip()]
    if any(len(pair) < 2 or not isinstance(_literal(pair[0]), str) for pair in pairs):
        return None
    return {_literal(pair[0]): _value(":".join(pair[1:])) for pair in pairs}


def _literal(text: str) -> Any:
    """A literal; `...` for what is none, since None is a literal."""
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return ...


def _cut(text: str, at: str) -> list[str]:
    """A text cut at a character wherever that stands outside of quotes and brackets."""
    parts, start, depth, quote, skip = [], 0, 0, "", False
    for place, letter in enumerate(text):
        if quote:
            skip, closes = letter == "\\" and not skip, letter == quote and not skip
            quote = "" if closes else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= 1
        elif letter == at and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _value(text: str) -> Any:
    """A value out of its `repr`: a literal, a dictionary key by key, a member of an enumeration, or the fields of an
    object that aren't None; else `UNREAD`."""
    text = text.strip()
    if (literal := _literal(text)) is not ...:
        return literal
    if text.startswith("{") and text.endswith("}"):
        entries = _entries(text)
        return UNREAD if entries is None else entries
    enumerated, built = _ENUM.fullmatch(text), _OBJECT.fullmatch(text)
    if enumerated is not None:
        value = _literal(enumerated[2])
        return Choice(enumerated[1], None if value is ... else value)
    if built is None:
        return UNREAD
    fields = [_cut(entry, "=") for entry in _cut(built[1], ",") if entry.strip()]
    if any(len(field) < 2 for field in fields):
        return UNREAD
    told = {field[0].strip(): _value("=".join(field[1:])) for field in fields}
    return {name: value for name, value in told.items() if value is not None}


def findings(log: str) -> dict[str, Any]:
    """Facts that the log tells, under names of ours; what it doesn't tell is left out."""
    found: dict[str, Any] = {}
    for name, pattern in _FINDINGS.items():
        match = pattern.search(log)
        if match is not None:
            found[name] = "none" if match[1] == "None" else match[1]
    if found.get("engine_kv_cache") == "auto" and "engine_dtype" in found:
        found["engine_kv_cache"] = found["engine_dtype"]  # vllm/utils/torch_utils.py, get_kv_cache_torch_dtype
    if "kv_cache_tokens" in found:
        found["kv_cache_tokens"] = int(found["kv_cache_tokens"].replace(",", ""))
    if "weights_gb" in found:
        found["weights_gb"] = round(float(found["weights_gb"]) * 1.073741824, 3)
    chosen = kernels(log)
    return found | ({"kernels": chosen} if chosen else {}) | {"model_runner": model_runner(log)}


def kernels(log: str) -> str:
    """The kernels that multiply with quantised weights, by name; nothing where the log tells none.

    Of one checkpoint some quantise what is multiplied with them, others don't: the numbers may differ.
    """
    return ", ".join(found[1] for found in (kind.search(log) for kind in _KERNELS) if found)


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
