"""Senseless numbers in a system's file are refused before anything starts, each with what it may be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from paribus.catalog import Catalog, Decoder, Sampling, System
from paribus.conditions import SystemName, UsageError
from paribus.engines import check_launch, engine, planned_launch, way_of
from paribus.engines.bounds import COUNT, OFF, RATE, SHARE, size_of
from paribus.engines.readback import differing

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
STACKS = {
    "vllm": "gemma-4-26b-a4b--bf16--vllm--plain",
    "sglang": "gemma-4-26b-a4b--bf16--sglang--plain",
    "llamacpp": "smollm2-135m--q4-1--llamacpp--plain",
    "mlx": "gemma-4-26b-a4b--mlx-4bit--mlx--plain",
    "transformers": "dream-7b--bf16--transformers-4--diffusion-card",
}

BYTES = "a whole number of at least 1 and at most 17,592,186,044,416 or a size such as 25G, "


def check(system: System, **settings: Any) -> None:
    adapter = engine(system.name.engine)
    check_launch(adapter, planned_launch(ROOT, system, way_of(system, adapter), {**system.launch_on(), **settings}))


def plain(name: str) -> System:
    found = next(s for n, s in CATALOG.systems.items() if n.startswith(STACKS[name].rsplit("--", 1)[0]))
    return CATALOG.systems.get(STACKS[name], found)


def with_decoder(name: str, **about: Any) -> System:
    system = plain(name)
    use = system.use.model_copy(update={"decoders": {"x": Decoder(**about)}})
    model = system.model.model_copy(update={"engines": {name: use}})
    return System(model, SystemName(model.model, system.name.precision, name, "x"))


@pytest.mark.parametrize(
    ("name", "setting", "value", "said"),
    [
        ("vllm", "gpu_memory_utilization", 99, "a number of at least 0.01 and at most 1, not 99"),
        ("vllm", "gpu_memory_utilization", "0.9", "a number of at least 0.01 and at most 1, not '0.9'"),
        ("vllm", "max_num_seqs", -4, "a whole number of at least 1 and at most 4,096, not -4"),
        ("vllm", "max_num_seqs", 2.5, "a whole number of at least 1 and at most 4,096, not 2.5"),
        ("vllm", "max_num_seqs", True, "a whole number of at least 1 and at most 4,096, not True"),
        ("vllm", "cpu_offload_gb", -1, "a number of at least 0, not -1"),
        ("vllm", "cpu_offload_gb", math.nan, "a number of at least 0, not nan"),
        ("sglang", "mem_fraction_static", 0, "a number of at least 0.01 and at most 1, not 0"),
        ("sglang", "max_running_requests", 0, "a whole number of at least 1 and at most 4,096, not 0"),
        ("sglang", "chunked_prefill_size", -2, "a whole number of at least -1 and at most 16,777,216, not -2"),
        ("llamacpp", "poll", 101, "a whole number of at least 0 and at most 100, not 101"),
        ("llamacpp", "batch", 0, "a whole number of at least 1 and at most 16,777,216, not 0"),
        (
            "llamacpp",
            "n_gpu_layers",
            "most",
            "a whole number .* at most 4,096 or auto or all, not 'most'",
        ),
        ("vllm", "kv_cache_memory_bytes", "25GB", BYTES + "not '25GB'"),
        ("vllm", "kv_cache_memory_bytes", "0G", BYTES + "not '0G'"),
        ("vllm", "kv_cache_memory_bytes", "1.5G", BYTES + "not '1.5G'"),
        ("vllm", "max_num_seqs", "4k", "a whole number of at least 1 and at most 4,096, not '4k'"),
        ("mlx", "prefill_step_size", -8, "a whole number of at least 1 and at most 16,777,216, not -8"),
        ("transformers", "threads", -1, "a whole number of at least 0 and at most 4,096, not -1"),
        ("llamacpp", "threads", 1e12, "a whole number of at least 0 and at most 4,096, not 1000000000000.0"),
        ("llamacpp", "batch", 10**15, "a whole number of at least 1 and at most 16,777,216, not 1000000000000000"),
        ("llamacpp", "flash_attn", "yes", "auto or on or off, not 'yes'"),
        ("llamacpp", "flash_attn", 1, "auto or on or off, not 1"),
        ("llamacpp", "flash_attn", True, "auto or on or off, not True"),
        ("llamacpp", "kv_unified", "false", "true or false, not 'false'"),
        ("llamacpp", "kv_unified", 1, "true or false, not 1"),
        ("transformers", "compile", "no", "true or false, not 'no'"),
        ("sglang", "enable_mixed_chunk", "false", "true or false, not 'false'"),
        ("vllm", "enforce_eager", "false", "true or false, not 'false'"),
    ],
)
def test_a_launch_setting_out_of_its_bounds_is_refused(name: str, setting: str, value: Any, said: str) -> None:
    check(plain(name))
    with pytest.raises(UsageError, match=f"the launch setting {setting} must be {said}$"):
        check(plain(name), **{setting: value})


@pytest.mark.parametrize(
    ("name", "setting", "value", "said"),
    [
        ("llamacpp", "flash_attn", "--api-key-file", "flash_attn: '--api-key-file' would be read as a flag"),
        ("vllm", "attention_backend", "--api-key", "attention_backend: '--api-key' would be read as a flag"),
        ("mlx", "max_num_seqs", "-4", "max_num_seqs: '-4' would be read as a flag"),
        ("vllm", "attention_backend", True, "attention_backend takes a value, not True"),
        ("sglang", "attention_backend", False, "attention_backend takes a value, not False"),
    ],
)
def test_a_value_is_one_word_of_the_command_line_and_no_flag(name: str, setting: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(plain(name), **{setting: value})


@pytest.mark.parametrize(
    ("name", "decoder", "said"),
    [
        (
            "vllm",
            {"method": "ngram", "acceptance": "rejection", "parameters": {"num_speculative_tokens": -1}},
            "the parameter num_speculative_tokens must be a whole number of at least 1 and at most 4,096, not -1",
        ),
        (
            "vllm",
            {"method": "ngram", "acceptance": "rejection", "parameters": {"num_speculative_tokens": 100_000}},
            "the parameter num_speculative_tokens must be a whole number of at least 1 and at most 4,096, not 100000",
        ),
        (
            "llamacpp",
            {"method": "mtp", "acceptance": "strict", "parameters": {"p_min": 1.5}},
            "the parameter p_min must be a number of at least 0 and at most 1, not 1.5",
        ),
        (
            "transformers",
            {"method": "block-diffusion", "lossy": {"block_length": 0}},
            "the lossy setting block_length must be a whole number of at least 1 and at most 4,096, not 0",
        ),
    ],
)
def test_so_is_a_decoders(name: str, decoder: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(with_decoder(name, **decoder))


def test_what_engines_turn_off_with_a_negative_number_may_stand() -> None:
    check(plain("sglang"), chunked_prefill_size=-1)
    check(plain("llamacpp"), n_gpu_layers=-1)
    for layers in ("auto", "all", 99):
        check(plain("llamacpp"), n_gpu_layers=layers)
    for bound, inside, outside in ((COUNT, 1, 0), (OFF, -1, -2), (SHARE, 1, 1.01), (RATE, 0.0, -0.1)):
        assert bound.allows(inside)
        assert not bound.allows(outside)
        assert not any(bound.allows(value) for value in (math.inf, -math.inf, math.nan, True, "1"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -5),
        ("temperature", True),
        ("temperature", "0.7"),
        ("top_k", False),
        ("presence_penalty", True),
        ("temperature", 2.1),
        ("temperature", math.nan),
        ("top_p", 7),
        ("top_p", 0),
        ("top_k", 0),
        ("top_k", -1),
        ("top_k", 2.5),
        ("min_p", 1.2),
        ("presence_penalty", 3),
        ("presence_penalty", math.inf),
        ("repetition_penalty", 0),
    ],
)
def test_a_cards_sampling_has_bounds(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match=field):
        Sampling(**{field: value}, source="a test")


def test_what_does_nothing_is_told_from_what_does() -> None:
    card = Sampling(temperature=1.0, top_p=0.95, min_p=0.0, presence_penalty=1.5, repetition_penalty=1, source="a test")
    assert card.neutral == {"temperature", "min_p", "repetition_penalty"}
    assert card.penalties == {"presence_penalty": 1.5}


@pytest.mark.parametrize(
    ("text", "number"),
    [("1k", 1000), ("1K", 1024), ("25.6k", 25_600), ("25G", 25 << 30), ("2t", 2 * 10**12), ("1.5G", None), ("25", None)]
    + [(text, None) for text in ("", "G", "-1G", "1 G", "1e3k", "9" * 400 + "g", "²k")],
)  # fmt: skip
def test_a_size_is_read_as_vllm_reads_it(text: str, number: int | None) -> None:
    """vllm/utils/argparse_utils.py, `human_readable_int`: its own examples are the first three."""
    assert size_of(text) == number


def test_memory_written_as_a_size_is_handed_on_and_read_back_in_bytes() -> None:
    check(plain("vllm"), kv_cache_memory_bytes="25G", max_num_batched_tokens="8k")
    launch = planned_launch(ROOT, plain("vllm"), "env", {"kv_cache_memory_bytes": "25G"})
    words = engine("vllm").command(launch)
    assert words[words.index("--kv-cache-memory-bytes") + 1] == "25G"
    assert differing({"kv_cache_memory_bytes": "25G"}, {"kv_cache_memory_bytes": 25 << 30}) == {}
    assert set(differing({"kv_cache_memory_bytes": "25g"}, {"kv_cache_memory_bytes": 25 << 30})) == {
        "kv_cache_memory_bytes"
    }
