"""Types of cache, weights and numbers: read back from each engine, held against the precision, kept as conditions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.catalog import Catalog, System
from paribus.conditions import CONDITIONS, EnvironmentFault
from paribus.engines import Launch, engine, planned_launch
from paribus.engines.base import Running
from paribus.engines.numbers import NUMBERS, declared_numbers, told_numbers, word
from paribus.engines.readback import differing, read_back

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
GEMMA = "gemma-4-26b-a4b--{}--vllm--plain"
DIFFUSION = "diffusiongemma-26b-a4b--nvfp4-nvidia--vllm--diffusion-card"
STARTED = (
    "(EngineCore pid=9) INFO 12-01 17:38:30 [core.py:133] Initializing a V1 LLM engine (v0.33.0) with config: "
    "model='/w', dtype=torch.{dtype}, load_format=auto, quantization={quantization}, quantization_config=None, "
    "kv_cache_dtype={kv_cache}, device_config=cuda, seed=0\n"
)
ARGUMENTS = (
    "(APIServer pid=7) INFO 12-01 17:37:26 [api_utils.py:286] non-default args: {'model': '/w', "
    "'generation_config': 'vllm', 'max_num_seqs': 8, 'kv_cache_dtype': 'fp8'}\n"
)
PAGES = {"/version": {"version": "0.33.0"}, "/v1/models": {"data": [{"id": "m", "max_model_len": 262144}]}}


def launch_of(system: System | str, **settings) -> Launch:
    return planned_launch(ROOT, CATALOG.system(system) if isinstance(system, str) else system, "env", settings)


def vllm_reads(monkeypatch, launch: Launch, log: str) -> dict:
    monkeypatch.setattr(
        "paribus.engines.adapters.vllm.ask_json",
        lambda url, *_, **__: PAGES.get(url[18:]) or {"tokens": [1], "prompt": "x"},
    )
    read = engine("vllm").observe(Running("http://127.0.0.1:1", log, launch))
    return read | read_back(engine("vllm"), launch, read)


def of(kv_cache: str, dtype: str = "bfloat16", quantization: str = "None") -> str:
    return ARGUMENTS + STARTED.format(dtype=dtype, quantization=quantization, kv_cache=kv_cache)


def test_what_is_declared_is_read_back_and_kept_as_a_condition(monkeypatch) -> None:
    found = vllm_reads(
        monkeypatch,
        launch_of(GEMMA.format("fp8"), kv_cache_dtype="fp8"),
        of("fp8_e4m3", quantization="compressed-tensors"),
    )
    assert {name: found[name] for name in NUMBERS if name in found} == {
        "kv_cache": "fp8",
        "quantization": "compressed_tensors",
        "dtype": "bf16",
    }
    assert "settings_differ" not in found, "fp8 is E4M3"


def test_a_cache_that_is_left_to_the_engine_has_the_type_that_it_computes_in(monkeypatch) -> None:
    found = vllm_reads(monkeypatch, launch_of(GEMMA.format("bf16")), of("auto"))
    assert {name: found[name] for name in NUMBERS if name in found} == {
        "kv_cache": "bf16",
        "quantization": "none",
        "dtype": "bf16",
    }


@pytest.mark.parametrize(
    ("system", "settings", "log", "said"),
    [
        (GEMMA.format("fp8"), {"kv_cache_dtype": "fp8"}, of("auto"), "kv_cache fp8, but vllm runs with bf16"),
        (DIFFUSION, {}, of("fp8_e4m3", quantization="modelopt_fp4"), "kv_cache bf16, but vllm runs with fp8"),
        (GEMMA.format("bf16"), {}, of("auto", quantization="fp8"), "quantization none, but vllm runs with fp8"),
        (GEMMA.format("bf16"), {}, of("bfloat16", dtype="float16"), "dtype bf16, but vllm runs with f16"),
        (
            "qwen3.6-35b-a3b--nvfp4-nvidia--vllm--plain",
            {},
            of("fp8", quantization="modelopt_fp4"),
            "quantization modelopt_mixed, but vllm runs with modelopt_fp4",
        ),
    ],
)
def test_other_numbers_than_declared_are_a_fault_and_nothing_is_measured(
    monkeypatch, system, settings, log, said
) -> None:
    with pytest.raises(EnvironmentFault, match=f"declared is {said}"):
        vllm_reads(monkeypatch, launch_of(system, **settings), log)


def test_a_deciding_setting_that_reads_back_differently_is_a_fault_also_where_the_precision_is_silent() -> None:
    system = CATALOG.system(GEMMA.format("fp8"))
    silent = system.precision.model_copy(update={"kv_cache": None})
    model = system.model.model_copy(update={"precisions": {**system.model.precisions, "fp8": silent}})
    launch = replace(launch_of(System(model, system.name)), settings={"kv_cache_dtype": "fp8"})
    with pytest.raises(EnvironmentFault, match="declared is kv_cache_dtype fp8, but vllm runs with bfloat16"):
        read_back(engine("vllm"), launch, {"settings": {"kv_cache_dtype": "bfloat16"}})


def test_sglang_tells_by_its_arguments_and_by_its_log(monkeypatch) -> None:
    launch = launch_of("qwen3.6-35b-a3b--bf16--sglang--plain")
    info = {"version": "0.5.23", "kv_cache_dtype": "fp8_e5m2", "dtype": "bfloat16", "quantization": None}
    pages = {"/server_info": info, "/v1/models": {"data": []}}
    monkeypatch.setattr(
        "paribus.engines.adapters.sglang.ask_json",
        lambda url, *_, **__: pages.get(url[18:]) or {"tokens": [], "text": ""},
    )
    log = "[2026-12-01 17:00:00] Load weight end. elapsed=9.1 s, type=Qwen3, quant=fp8, avail mem=20.00 GB\n"
    read = engine("sglang").observe(Running("http://127.0.0.1:1", log, launch))
    assert told_numbers(read) == {"kv_cache": "fp8_e5m2", "quantization": "fp8", "dtype": "bf16"}
    with pytest.raises(EnvironmentFault, match="declared is kv_cache bf16, but sglang runs with fp8_e5m2"):
        read_back(engine("sglang"), launch, read)
    info |= {"kv_cache_dtype": "auto", "dtype": "auto"}
    read = engine("sglang").observe(Running("http://127.0.0.1:1", "", launch))
    assert told_numbers(read) == {}, "left open to the end: nothing is guessed"
    kept = read_back(engine("sglang"), launch, read)
    assert {name: kept[name] for name in NUMBERS if name in kept} == {
        "kv_cache": "bf16 as declared, not told",
        "quantization": "none as declared, not told",
        "dtype": "bf16 as declared, not told",
    }
    assert told_numbers(kept) == {}, "what was kept doesn't become told either"


@pytest.mark.parametrize(
    "line", ["KV Cache is allocated. dtype: ", "Target KV Cache VA upper bound. dtype: ", "Using KV cache dtype: "]
)
@pytest.mark.parametrize(
    ("logged", "told"), [("bfloat16", "bf16"), ("float8_e4m3fn", "fp8"), ("float8_e5m2", "fp8_e5m2")]
)
def test_sglangs_log_tells_the_type_of_a_cache_that_was_left_to_it(
    monkeypatch, logged: str, told: str, line: str
) -> None:
    """0.5.23 tells it where it allocates the cache (srt/mem_cache/memory_pool.py), earlier versions before that."""
    launch = launch_of("qwen3.6-35b-a3b--bf16--sglang--plain")
    pages = {"/server_info": {"version": "0.5.23", "kv_cache_dtype": "auto"}, "/v1/models": {"data": []}}
    monkeypatch.setattr(
        "paribus.engines.adapters.sglang.ask_json",
        lambda url, *_, **__: pages.get(url[18:]) or {"tokens": [], "text": ""},
    )
    log = (
        "[2026-02-01 00:05:03 TP0] Load weight end. elapsed=1.25 s, type=M, dtype=torch.bfloat16, avail mem=9.26 GB\n"
        f"[2026-02-01 00:05:03 TP0] {line}torch.{logged}, #tokens: 4096, K size: 0.31 GB, V size: 0.31 GB\n"
        f"[2026-02-01 00:05:04 TP0] {line}torch.float32\n"
    )
    read = engine("sglang").observe(Running("http://127.0.0.1:1", log, launch))
    assert told_numbers(read) == {"kv_cache": told, "dtype": "bf16"}, "the target's, not its drafter's"
    if told == "bf16":
        kept = read_back(engine("sglang"), launch, read)
        assert (kept["kv_cache"], kept["quantization"]) == ("bf16", "none as declared, not told")
    else:
        with pytest.raises(EnvironmentFault, match=f"declared is kv_cache bf16, but sglang runs with {told}"):
            read_back(engine("sglang"), launch, read)


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("xllamacpp 1\ncache of keys GGML_TYPE_F16, of values GGML_TYPE_F16\n", "f16"),
        ("cache of keys GGML_TYPE_Q4_0, of values GGML_TYPE_F16\n", "q4_0/f16"),
        (
            "llama_kv_cache: size = 90.00 MiB (  4096 cells,  30 layers,  4/4 seqs), K (q8_0): 45.00 MiB, "
            "V (q8_0): 45.00 MiB\n",
            "q8_0",
        ),
        ("nothing of it\n", None),
    ],
)
def test_llama_cpp_tells_by_its_launcher_or_its_log(monkeypatch, log: str, told: str | None) -> None:
    neutral = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    props = {"total_slots": 1, "default_generation_settings": {"n_ctx": 4096, "params": neutral}}
    monkeypatch.setattr("paribus.engines.adapters.llamacpp.ask_json", lambda url, *_: {"prompt": "", **props})
    launch = launch_of("smollm2-135m--q4-1--llamacpp--plain", context_per_slot=4096)
    read = engine("llamacpp").observe(Running("http://127.0.0.1:1", log, launch))
    assert told_numbers(read).get("kv_cache") == told
    if told in (None, "f16"):
        kept = read_back(engine("llamacpp"), launch, read)["kv_cache"]
        assert kept == ("f16" if told else "f16 as declared, not told")
    else:
        with pytest.raises(EnvironmentFault, match=f"declared is kv_cache f16, but llamacpp runs with {told}"):
            read_back(engine("llamacpp"), launch, read)


def test_mlx_tells_a_quantised_cache(monkeypatch) -> None:
    system = CATALOG.system("qwen3.6-35b-a3b--mlx-4bit--mlx--plain")
    precision = system.precision.model_copy(update={"kv_cache": "8bit"})
    model = system.model.model_copy(update={"precisions": {**system.model.precisions, "mlx-4bit": precision}})
    launch = replace(launch_of(System(model, system.name)), settings={"kv_bits": 8})
    pages = {"/health": {}, "/v1/settings": {"current": {"kv_bits": 4.0}}}
    monkeypatch.setattr("paribus.engines.adapters.mlx.ask_json", lambda url, *_, **__: pages[url[18:]])
    monkeypatch.setattr("paribus.engines.adapters.mlx.ask_header", lambda *_: "mlx_vlm/0.7.10")
    read = engine("mlx").observe(Running("http://127.0.0.1:1", "", launch))
    with pytest.raises(EnvironmentFault, match="declared is kv_cache 8bit, but mlx runs with 4bit"):
        read_back(engine("mlx"), launch, read)
    pages["/v1/settings"] = {"current": {"kv_bits": None}}
    read = engine("mlx").observe(Running("http://127.0.0.1:1", "", launch_of(str(system.name))))
    assert read_back(engine("mlx"), launch_of(str(system.name)), read)["kv_cache"] == "unquantised", (
        "as the server tells"
    )


@pytest.mark.parametrize(
    ("system", "family", "cache"),
    [
        ("llada-8b--bf16--transformers-4--diffusion-card", "masked-diffusion", "none"),
        ("clover-35b-a3b-preview--bf16--transformers--plain", "autoregressive", "bf16"),
    ],
)
def test_the_transformers_server_tells_its_type_and_whether_there_is_a_cache(
    monkeypatch, system, family, cache
) -> None:
    props = {
        "versions": {"transformers": "5", "torch": "2"}, "server": "s", "family": family, "context": 131072,
        "dtype": "bfloat16", "compile": False, "cache": "dynamic", "denoising": {}, "draft_tokens": 0, "admitted": 1,
        "sampling_defaults": {}, "attention": "sdpa", "research_implementation": False,
        "sampling_fields": ["temperature", "top_p", "top_k", "min_p", "seed"],
    }  # fmt: skip
    monkeypatch.setattr(
        "paribus.engines.adapters.transformers.ask_json",
        lambda url, *_: props if url.endswith("/props") else {"prompt": ""},
    )
    launch = launch_of(system)
    adapter = engine(launch.system.name.engine)
    read = adapter.observe(Running("http://127.0.0.1:1", "", launch))
    kept = read_back(adapter, launch, read)
    assert (kept["kv_cache"], kept["dtype"]) == (cache, "bf16")
    props["dtype"] = "float16"
    read = adapter.observe(Running("http://127.0.0.1:1", "", launch))
    with pytest.raises(EnvironmentFault, match=f"bf16, but {adapter.name} runs with f16"):
        read_back(adapter, launch, read)


PUBLIC = (
    "(EngineCore pid=310) INFO 06-01 21:35:57 [core.py:112] Initializing a V1 LLM engine (v0.22.1rc1.dev26+g4721bb3aa) "
    "with config: model='nvidia/Qwen3.6-35B-A3B-NVFP4', speculative_config=SpeculativeConfig(method='mtp', "
    "model='nvidia/Qwen3.6-35B-A3B-NVFP4', num_spec_tokens=2), skip_tokenizer_init=False, revision=None, "
    "dtype=torch.bfloat16, max_seq_len=262144, load_format=auto, tensor_parallel_size=1, quantization=modelopt_mixed, "
    "quantization_config=None, enforce_eager=False, kv_cache_dtype=fp8, device_config=cuda, seed=0\n"
)
"""As vLLM 0.22.1rc1 wrote it on a DGX Spark on 2026-06-01 (a public log, shortened). It was started with
`--quantization modelopt`, in whose place it puts what the checkpoint says."""


@pytest.mark.parametrize("card", ["b200", "dgx-spark", "dgx-station", "gb300", "rtx-5090", "rtx-6000-pro"])
def test_a_checkpoint_of_mixed_types_runs_under_the_word_that_vllm_has_for_it(monkeypatch, card: str) -> None:
    system = CATALOG.system("qwen3.6-35b-a3b--nvfp4-nvidia--vllm--mtp-n2")
    settings = system.launch_on(card) | {"max_model_len": PAGES["/v1/models"]["data"][0]["max_model_len"]}
    assert settings["kv_cache_dtype"] == "fp8", "vLLM doesn't read the checkpoint's own wish for it"
    assert "quantization" not in settings, "vLLM passes it over"
    found = vllm_reads(monkeypatch, planned_launch(ROOT, system, "env", settings), PUBLIC)
    assert {name: found[name] for name in NUMBERS if name in found} == {
        "kv_cache": "fp8",
        "quantization": "modelopt_mixed",
        "dtype": "bf16",
    }


ITSELF = {"gemma-4-26b-a4b": {"nvfp4-nvidia"}}
"""Checkpoints whose config.json asks for a quantised cache, as their files say with the source."""


def test_a_quantised_cache_that_is_declared_is_asked_for_on_every_card() -> None:
    cards = sorted(path.parent.name for path in ROOT.glob("hardware/*/hardware.yaml"))
    declared = [s for s in CATALOG.systems.values() if s.name.engine == "vllm" and s.precision.kv_cache == "fp8"]
    left = {
        (s.name.model, s.name.precision)
        for s in declared
        for card in cards
        if s.launch_on(card).get("kv_cache_dtype") != "fp8"
    }
    assert declared
    assert left == {(model, precision) for model, names in ITSELF.items() for precision in names}


def test_every_system_on_vllm_declares_the_type_of_its_cache() -> None:
    """Left to the checkpoint, the type would be found on the card only, and no controlled pair could be planned."""
    said = {str(s.name): declared_numbers(s) for s in CATALOG.systems.values() if s.name.engine == "vllm"}
    assert said
    assert [name for name, numbers in said.items() if "kv_cache" not in numbers] == []


def test_these_conditions_gate_unless_they_are_the_subject() -> None:
    assert {CONDITIONS[name].gates for name in NUMBERS} == {"subject"}


def test_names_of_one_type_are_one_word_and_others_stay() -> None:
    assert [word(w) for w in ("torch.bfloat16", "BF16", "half", "fp8_e4m3", "fp8_e5m2", "modelopt-fp4")] == [
        "bf16", "bf16", "f16", "fp8", "fp8_e5m2", "modelopt_fp4",
    ]  # fmt: skip


def test_a_json_setting_is_compared_by_the_keys_that_it_names() -> None:
    declared = {"attention_config": json.dumps({"use_trtllm_attention": True})}
    assert (
        differing(declared, {"attention_config": {"use_trtllm_attention": True, "indexer_sparse_logits": False}}) == {}
    )
    assert set(differing(declared, {"attention_config": {"use_trtllm_attention": False}})) == {"attention_config"}
    assert set(differing(declared, {"attention_config": "backend"})) == {"attention_config"}


def test_what_was_told_in_a_form_that_is_not_understood_was_not_told() -> None:
    declared = {"attention_config": json.dumps({"use_trtllm_attention": True}), "block_size": 16}
    assert differing(declared, {"attention_config": "not stated", "block_size": "not stated"}) == {}
    assert differing(declared, {"attention_config": {"use_trtllm_attention": "not stated"}}) == {}
    assert told_numbers({"kv_cache": "not stated"}) == {}
