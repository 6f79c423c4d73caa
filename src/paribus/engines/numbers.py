"""Types of numbers that an engine keeps and computes with: one word for each, whatever an engine calls it.

Engines' words: vllm/config/cache.py (`CacheDType`) and vllm/utils/torch_utils.py of vLLM 0.32.0, where `fp8` is E4M3;
sglang/srt/mem_cache/kv_cache_dtype.py of SGLang 0.5.23; ggml's names of types in llama.cpp; torch's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paribus.catalog import System
from paribus.catalog.weights import UNQUANTISED

NUMBERS = ("kv_cache", "quantization", "dtype", "state_cache")
"""Conditions that a server tells of its numbers: types of keys and values, of the weights, of what is computed, of the
state of recurrent layers."""

NOT_SAID = frozenset({"", "auto"})
"""Words that leave it to the engine."""

UNREAD = "not stated"
"""Stands for a value that a server told in a form that isn't understood: nothing was told."""

NOT_TOLD = " as declared, not told"
"""Follows the declared type where no server told one. Such a type isn't that of a run whose server did tell it."""


class Choice(str):
    """A member of an enumeration as a server tells it: the text is its name, `value` what it stands for.

    A catalog may declare either (vLLM's compilation mode 3 is `VLLM_COMPILE`).
    """

    value: Any

    def __new__(cls, name: str, value: Any) -> Choice:
        """The name, with its value beside it."""
        made = super().__new__(cls, name)
        made.value = value
        return made


_WORDS = {
    "bfloat16": "bf16",
    "float16": "f16",
    "fp16": "f16",
    "half": "f16",
    "float32": "f32",
    "fp32": "f32",
    "float": "f32",
    "fp8_e4m3": "fp8",
    "fp8_e4m3fn": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8_e5m2",
}


def word(value: Any) -> str:
    """One word for a type: `torch.bfloat16`, `bfloat16` and `BF16` are `bf16`, `fp8_e4m3` is `fp8`; others stay."""
    text = str(value).strip().lower().removeprefix("torch.")
    return _WORDS.get(text, text.replace("-", "_"))


def declared_numbers(system: System) -> dict[str, str]:
    """What a system's precision declares of its numbers, in words of ours; what it doesn't say is left out.

    A precision that is named after a type of 16 or 32 bits says with its name that it isn't quantised, and its type.
    """
    precision, name = system.precision, word(system.name.precision)
    plain = name in UNQUANTISED
    said = {
        "kv_cache": precision.kv_cache,
        "quantization": precision.quantization or ("none" if plain else None),
        "dtype": precision.dtype or (name if plain else None),
        "state_cache": precision.state_cache,
    }
    return {which: word(value) for which, value in said.items() if value is not None}


def other_numbers(system: System, observed: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The types that a running server tells otherwise than its precision declares: declared and told, by name."""
    said, told = declared_numbers(system), told_numbers(observed)
    return {name: (said[name], told[name]) for name in said if told.get(name, said[name]) != said[name]}


def told_numbers(observed: Mapping[str, Any]) -> dict[str, str]:
    """What a running server tells of its numbers (under the names of `NUMBERS`), in words of ours.

    `observed`: what an adapter reads, or the conditions that were kept, in which a type may be marked `NOT_TOLD`.
    """
    given = {name: str(observed[name]) for name in NUMBERS if observed.get(name) is not None}
    told = {name: word(value) for name, value in given.items() if not value.endswith(NOT_TOLD)}
    return {name: value for name, value in told.items() if value not in NOT_SAID | {UNREAD}}
