"""What SGLang's log says about the server: types of numbers, what it captured and compiled.

The lines are those of 0.5.23, and of the earlier versions that images hold where those differ; not run on a card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paribus.engines.base import Compilation
from paribus.engines.numbers import NOT_SAID, word

_COMPILED = re.compile(
    r"(?P<what>Capture [\w -]+? (?:CUDA|cuda|device|npu|xpu|cpu)[\w ]*graph) end\.(?:.*?elapsed=(?P<s1>[\d.]+) s)?"
    r"|(?P<what2>Compiling a graph for [\w ()\[\],]+?) takes (?P<s2>[\d.]+) s"
    r"|(?P<what3>captured \d+ rows) \(\d+ segments\) in (?P<s3>[\d.]+) s"
)
_CACHE = re.compile(
    r"(?:KV Cache (?:is allocated|VA upper bound)\. dtype|Using KV cache dtype): (?P<kv_cache>torch\.\w+)"
)
_LOADED = re.compile(r"Load weight end\..*")
_OF_LOADED = re.compile(r"\bquant=(?P<quantization>[\w-]+)|\bdtype=(?P<dtype>torch\.\w+)")
"""Types of numbers in the log: the target's lines come before its drafter's. Of the cache in 0.5.23 `KVCache.
_finalize_allocation_log` (`srt/mem_cache/memory_pool.py`), in earlier versions, as images have them,
`ModelRunner.configure_kv_cache_dtype` (`srt/model_executor/model_runner.py`); of the weights `load_model` there, with a
dtype in earlier versions and with `get_quantization_config_log_str` (`srt/configs/model_config.py`) since."""

_ARGUMENTS = {
    "kv_cache": "kv_cache_dtype",
    "quantization": "quantization",
    "dtype": "dtype",
    "state_cache": "mamba_ssm_dtype",
}


def numbers(info: Mapping[str, Any], log: str) -> dict[str, Any]:
    """Types of numbers where the server tells them: its arguments, which may say `auto` to the end, else its log."""
    cache, loaded = _CACHE.search(log), _LOADED.search(log)
    found = [cache] if cache else []
    found += _OF_LOADED.finditer(loaded[0]) if loaded else []
    logged = {name: value for match in found for name, value in match.groupdict().items() if value}
    told = {ours: info[name] for ours, name in _ARGUMENTS.items() if word(info.get(name) or "") not in NOT_SAID}
    return {**logged, **told}


def compilations(log: str) -> list[Compilation]:
    """Captured graphs and compiled shapes, with their seconds where the line tells them."""
    found = []
    for match in _COMPILED.finditer(log):
        seconds = match["s1"] or match["s2"] or match["s3"]
        what = match["what"] or match["what2"] or match["what3"]
        found.append(Compilation(what, float(seconds) if seconds else None))
    return found
