"""Launch settings that would change the answers are refused, for every adapter; so are variables that it doesn't list.

Quality belongs to an answer class, of which launch settings are no part: what passes here would inherit a quality that
isn't its own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from paribus.catalog import Catalog, Scalar, System
from paribus.catalog.races import stacks
from paribus.conditions import UsageError
from paribus.engines import Engine, Launch, check_launch, engine, planned_launch, way_of
from paribus.engines import starting as starting_module
from paribus.engines.launching import prepare
from paribus.engines.registry import engines
from paribus.results.check_system import check_system
from paribus.results.findings import Report

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
GEMMA, QWEN = "gemma-4-26b-a4b--{}--vllm--plain", "qwen3.6-35b-a3b--{}--{}--plain"
SYSTEMS = {
    "vllm": "gemma-4-26b-a4b--bf16--vllm--plain",
    "sglang": QWEN.format("bf16", "sglang"),
    "llamacpp": "smollm2-135m--q4-1--llamacpp--plain",
    "mlx": QWEN.format("mlx-4bit", "mlx"),
    "transformers": "llada-8b--bf16--transformers-4--diffusion-card",
}
"""One system of the catalog for each engine that it has; others are asked on one of llama.cpp's."""
RUNS = CATALOG.systems.values()
STARTED = sorted(name for name, adapter in engines().items() if adapter.ways != ("endpoint",))


def system_on(name: str) -> System:
    """A system that runs on an engine: the catalog's; for a build for CPUs its sibling's, else llama.cpp's."""
    known = [s for s in CATALOG.systems.values() if s.name.engine == name]
    if not known:
        other = system_on(name.removesuffix("-cpu") if name.endswith("-cpu") else "llamacpp")
        adapter = engine(name)
        program = min(adapter.programs) if adapter.ways[0] == "binary" else None
        use = other.use.model_copy(update={"launch": {}, "overrides": [], "how": adapter.ways[0], "program": program})
        model = other.model.model_copy(update={"engines": {name: use}})
        return System(model, replace(other.name, engine=name))
    return CATALOG.systems.get(SYSTEMS.get(name, ""), known[0])


def launch_of(system: System, settings: dict[str, Scalar]) -> tuple[Engine, Launch]:
    adapter = engine(system.name.engine)
    return adapter, planned_launch(ROOT, system, way_of(system, adapter), settings)


def said_of(adapter: Engine, launch: Launch) -> str:
    """What an adapter's command line is refused with; nothing where it isn't."""
    try:
        adapter.command(launch)
    except UsageError as error:
        return str(error)
    return ""


VLLM = [
    ("kv_cache_dtype", "fp8"),
    ("kv_cache_dtype", "turboquant_4bit_nc"),
    ("quantization", "fp8"),
    ("dtype", "float16"),
    ("override_generation_config", '{"temperature": 0.1}'),
    ("generation_config", "auto"),
    ("default_chat_template_kwargs", '{"enable_thinking": true}'),
    ("hf_overrides", '{"num_experts_per_tok": 1}'),
    ("hf_overrides", '{"architectures": ["Evil"]}'),
    ("load_format", "dummy"),
    ("load_format", "tensorizer"),
    ("config_format", "somebodys"),
    ("safetensors_load_strategy", "torchao"),
    ("tokenizer", "somebody/elses"),
    ("tokenizer_mode", "slow"),
    ("mamba_ssm_cache_dtype", "float16"),
    ("attention_config", '{"indexer_kv_dtype": "fp8"}'),
    ("compilation_config", '{"backend": "some.module"}'),
    ("kernel_config", '{"ir_op_priority": {}}'),
    ("kernel_config", '{"moe_backend": "marlin"}'),
    ("speculative_rejection_sample_method", "synthetic"),
]
KNOWN = {
    "vllm": VLLM,
    "vllm-cpu": [pair for pair in VLLM if pair[0] != "quantization"],
    "sglang": [
        ("kv_cache_dtype", "fp8_e5m2"),
        ("quantization", "fp8"),
        ("dtype", "half"),
        ("mamba_ssm_dtype", "bfloat16"),
    ],
    "llamacpp": [("cache_type_k", "q4_0"), ("cache_type_v", "q4_0"), ("min_p", 0.05), ("top_k", 1)],
    "mlx": [("kv_bits", 2), ("kv_group_size", 32), ("kv_quant_scheme", "turboquant"), ("max_kv_size", 512)],
    "transformers": [("dtype", "float16"), ("cache_implementation", "quantized")],
    "transformers-cpu": [("dtype", "float16"), ("cache_implementation", "quantized")],
    "transformers-4": [("dtype", "float16"), ("cache_implementation", "quantized")],
}
LOSSY = {name: KNOWN.get(name, [(each, "another") for each in sorted(engine(name).deciding)]) for name in STARTED}
"""Settings that would change the answers, with values. A new engine is asked about those that it calls deciding."""


def test_engines_whose_settings_decide_are_asked() -> None:
    assert KNOWN.keys() <= LOSSY.keys()
    assert all(LOSSY[name] for name in STARTED if engine(name).deciding)


@pytest.mark.parametrize(("name", "setting", "value"), [(n, *pair) for n, pairs in LOSSY.items() for pair in pairs])
def test_a_launch_setting_that_would_change_the_answers_is_refused(name: str, setting: str, value: Scalar) -> None:
    system = system_on(name)
    adapter, launch = launch_of(system, {**system.launch_on(), setting: value})
    with pytest.raises(UsageError, match=setting):
        check_launch(adapter, launch)
    if setting in adapter.deciding:
        with pytest.raises(UsageError, match=f"{setting}: .* would change the answers"):
            prepare(adapter, launch, Path("/nowhere"))  # nor does a job start with it


OWN = [
    (GEMMA.format("fp8"), "kv_cache_dtype", "fp8"),
    (GEMMA.format("fp8"), "kv_cache_dtype", "fp8_e4m3"),
    (GEMMA.format("bf16"), "kv_cache_dtype", "bfloat16"),
    (GEMMA.format("bf16"), "kv_cache_dtype", "auto"),
    (GEMMA.format("bf16"), "dtype", "bfloat16"),
    (GEMMA.format("bf16"), "load_format", "fastsafetensors"),
    (GEMMA.format("bf16"), "load_format", "mistral"),
    (GEMMA.format("bf16"), "config_format", "mistral"),
    (GEMMA.format("bf16"), "tokenizer_mode", "mistral"),
    (GEMMA.format("bf16"), "safetensors_load_strategy", "lazy"),
    (GEMMA.format("bf16"), "compilation_config", '{"cudagraph_mode": "FULL_AND_PIECEWISE", "custom_ops": ["all"]}'),
    (GEMMA.format("bf16"), "mamba_ssm_cache_dtype", "auto"),
    (GEMMA.format("bf16"), "kv_cache_memory_bytes", "25G"),
    (QWEN.format("nvfp4-nvidia", "vllm"), "quantization", "modelopt_mixed"),
    (QWEN.format("nvfp4-nvidia", "vllm"), "attention_config", '{"use_trtllm_attention": true}'),
    (SYSTEMS["sglang"], "kv_cache_dtype", "bf16"),
    (SYSTEMS["sglang"], "dtype", "auto"),
    (SYSTEMS["llamacpp"], "cache_type_k", "f16"),
    (SYSTEMS["transformers"], "dtype", "bfloat16"),
    (SYSTEMS["transformers"], "cache_implementation", "static"),
]


@pytest.mark.parametrize(("name", "setting", "value"), OWN)
def test_what_repeats_the_precisions_own_may_stand(name: str, setting: str, value: Scalar) -> None:
    system = CATALOG.system(name)
    check_launch(*launch_of(system, {**system.launch_on(), setting: value}))


def test_a_cache_of_few_bits_belongs_to_the_precision_and_so_to_the_answer_class() -> None:
    plain = system_on("mlx")
    precision = plain.precision.model_copy(update={"kv_cache": "4bit"})
    model = plain.model.model_copy(update={"precisions": {**plain.model.precisions, plain.name.precision: precision}})
    quantised = System(model, plain.name)
    check_launch(*launch_of(quantised, {**plain.launch_on(), "kv_bits": 4}))
    assert quantised.answer_class_hash("b", {}) != plain.answer_class_hash("b", {})
    with pytest.raises(UsageError, match="kv_bits: 2"):
        check_launch(*launch_of(quantised, {**plain.launch_on(), "kv_bits": 2}))


@pytest.mark.parametrize(
    ("name", "setting", "other"),
    [("vllm", "mamba_ssm_cache_dtype", "float16"), ("sglang", "mamba_ssm_dtype", "bfloat16")],
)
def test_a_recipes_type_of_recurrent_state_belongs_to_the_precision_and_so_to_the_answer_class(
    name: str, setting: str, other: str
) -> None:
    """Nemotron 3's recipe sets float32 "for best accuracy" (vllm-project/recipes)."""
    plain = system_on(name)
    with pytest.raises(UsageError, match=f"{setting}: float32 would change .* declares as state_cache"):
        check_launch(*launch_of(plain, {**plain.launch_on(), setting: "float32"}))
    precision = plain.precision.model_copy(update={"state_cache": "float32"})
    model = plain.model.model_copy(update={"precisions": {**plain.model.precisions, plain.name.precision: precision}})
    kept = System(model, plain.name)
    check_launch(*launch_of(kept, {**plain.launch_on(), setting: "float32"}))
    assert kept.answer_class_hash("b", {}) != plain.answer_class_hash("b", {})
    with pytest.raises(UsageError, match=f"{setting}: {other} would change"):
        check_launch(*launch_of(kept, {**plain.launch_on(), setting: other}))


QUANTISED = [
    (QWEN.format("nvfp4-nvidia", "vllm"), {"moe_backend": "marlin"}),
    (QWEN.format("nvfp4-nvidia", "vllm"), {"linear_backend": "flashinfer_cutlass"}),
    (QWEN.format("fp8", "vllm"), {"VLLM_USE_DEEP_GEMM": "0"}),
]


@pytest.mark.parametrize(("name", "kernels"), QUANTISED)
def test_kernels_of_quantised_weights_are_part_of_the_answer_class(name: str, kernels: dict[str, Scalar]) -> None:
    """Marlin keeps at 16 bits what others quantise before they multiply it with the same weights."""
    system = CATALOG.system(name)
    check_launch(*launch_of(system, {**system.launch_on(), **kernels}))
    left_open = system.answer_class_hash("b", {})
    assert system.answer_class_hash("b", kernels) != left_open
    assert system.answer_class_hash("b", dict.fromkeys(kernels, "auto")) == left_open
    assert system.answer_class_hash("b", {"max_num_seqs": 4, "attention_backend": "X"}) == left_open
    unquantised = CATALOG.system(GEMMA.format("bf16"))
    assert unquantised.answer_class_hash("b", kernels) == unquantised.answer_class_hash("b", {})


def test_two_cards_whose_recipes_name_other_kernels_have_two_answer_classes() -> None:
    here = [s for s in CATALOG.systems.values() if str(s.name).startswith("qwen3.6-35b-a3b--nvfp4-nvidia--vllm--")]
    builds = {"vllm": "b"}
    spark, b200 = (stacks([s for s in here if not s.name.think], builds, card) for card in ("dgx-spark", "b200"))
    assert (len(spark), len(b200)) == (1, 1)
    assert spark[0].answer_class != b200[0].answer_class


@pytest.mark.parametrize("field", ["quantization", "dtype"])
def test_what_a_precision_says_of_its_numbers_makes_another_answer_class(field: str) -> None:
    plain = system_on("vllm")
    precision = plain.precision.model_copy(update={field: "fp8"})
    model = plain.model.model_copy(update={"precisions": {**plain.model.precisions, plain.name.precision: precision}})
    assert System(model, plain.name).answer_class_hash("b", {}) != plain.answer_class_hash("b", {})


@pytest.mark.parametrize("name", STARTED)
def test_every_deciding_setting_is_one_that_the_adapter_knows(name: str) -> None:
    """A rule for a word that the engine doesn't have would never be asked."""
    adapter, system = engine(name), system_on(name)
    for setting in adapter.deciding:
        if setting.startswith("speculative_"):
            continue
        launch = planned_launch(ROOT, system, way_of(system, adapter), {**system.launch_on(), setting: "x"})
        assert "knows no" not in said_of(adapter, launch), setting


HARMFUL = (
    "LD_PRELOAD", "PYTHONPATH", "HF_HUB_OFFLINE", "HTTPS_PROXY", "CUDA_VISIBLE_DEVICES", "VLLM_PLUGINS",
    "VLLM_ALLOW_INSECURE_SERIALIZATION", "VLLM_MARLIN_INPUT_DTYPE", "SGLANG_EXTERNAL_MODEL_PACKAGE",
    "SGLANG_SIMULATE_ACC_METHOD", "KV_BITS", "GGML_BACKEND_PATH", "PATH", "NCCL_NET_PLUGIN",
)  # fmt: skip


@pytest.mark.parametrize("variable", HARMFUL)
@pytest.mark.parametrize("name", STARTED)
def test_a_variable_that_the_adapter_does_not_list_is_refused(name: str, variable: str) -> None:
    system = system_on(name)
    adapter, launch = launch_of(system, {**system.launch_on(), variable: "0"})
    with pytest.raises(UsageError, match=f"{variable} is no variable that a file may set for {name}"):
        check_launch(adapter, launch)
    with pytest.raises(UsageError, match=variable):
        prepare(adapter, launch, Path("/nowhere"))


@pytest.fixture
def seen(monkeypatch) -> dict[str, str]:
    """The variables that a process would be started with."""
    found: dict[str, str] = {}

    class Tree:
        @staticmethod
        def start(command, *, log, environment, folder, keep):
            found.update(environment)

    monkeypatch.setattr(starting_module, "ProcessTree", Tree)
    return found


def test_a_variable_that_the_adapter_lists_reaches_the_process_and_none_takes_it_online(seen) -> None:
    system = system_on("vllm")
    adapter, launch = launch_of(system, {**system.launch_on(), "VLLM_USE_V2_MODEL_RUNNER": "1"})
    check_launch(adapter, launch)
    online = replace(launch, variables={**launch.variables, "HF_HUB_OFFLINE": "0"})
    starting_module._spawn(adapter, online, None, Path("/dev/null"), ())
    assert seen["VLLM_USE_V2_MODEL_RUNNER"] == "1"
    assert seen["HF_HUB_OFFLINE"] == "1", "measuring is offline whatever a file says"


LEFT_OVER = {
    "vllm": "VLLM_MARLIN_INPUT_DTYPE",
    "vllm-cpu": "VLLM_CPU_INT4_W4A8",
    "sglang": "SGLANG_SIMULATE_ACC_METHOD",
    "llamacpp": "LLAMA_ARG_CACHE_TYPE_K",
    "mlx": "KV_BITS",
}


LIBRARIES = [(name, variable) for name in ("vllm", "sglang", "llamacpp", "mlx") for variable in (
    "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TRITON_INTERPRET", "CUDA_LAUNCH_BLOCKING",
    "TORCHDYNAMO_DISABLE",
)]  # fmt: skip


@pytest.mark.parametrize(("name", "variable"), [*LEFT_OVER.items(), *LIBRARIES])
def test_a_setting_left_over_in_the_shell_does_not_reach_the_engine(
    seen, monkeypatch, name: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    system = system_on(name)
    adapter, launch = launch_of(system, system.launch_on())
    starting_module._spawn(adapter, launch, None, Path("/dev/null"), ())
    assert variable not in seen
    assert seen["CUDA_VISIBLE_DEVICES"] == "1", "the contributor says which card"


@pytest.mark.parametrize(
    ("model", "name", "setting", "value", "said"),
    [
        ("gemma-4-26b-a4b", "vllm", "quantization", "fp8", "quantization: fp8 would change the answers"),
        ("qwen3.6-35b-a3b", "sglang", "kv_cache_dtype", "fp8_e5m2", "kv_cache_dtype: fp8_e5m2 would change"),
        ("smollm2-135m", "llamacpp", "cache_type_v", "q4_0", "cache_type_v: q4_0 would change the answers"),
        ("qwen3.6-35b-a3b", "mlx", "kv_bits", 2, "kv_bits: 2 would change the answers"),
        ("llada-8b", "transformers-4", "dtype", "float16", "dtype: float16 would change the answers"),
        ("llada-8b", "transformers-4", "LD_PRELOAD", "x.so", "LD_PRELOAD is no variable"),
    ],
)
def test_paribus_check_refuses_such_a_file(tmp_path, model: str, name: str, setting: str, value, said: str) -> None:
    (tmp_path / "systems").mkdir()
    data = yaml.safe_load((ROOT / f"systems/{model}.yaml").read_text(encoding="utf-8"))
    data["engines"][name].setdefault("launch", {})[setting] = value
    path = tmp_path / f"systems/{model}.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    report = Report()
    with report.looking("catalog", str(path)):
        check_system(path, CATALOG, report)
    assert [f.text for f in report.findings if f.verdict == "fails" and said in f.text]


MACHINES = {
    "vllm": {"VLLM_HOST_IP", "VLLM_LOOPBACK_IP", "VLLM_NCCL_SO_PATH"},
    "vllm-cpu": {"VLLM_HOST_IP", "VLLM_LOOPBACK_IP", "VLLM_NCCL_SO_PATH"},
    "sglang": {"SGLANG_HOST_IP", "SGLANG_NCCL_SO_PATH"},
    "llamacpp": {"GGML_VK_VISIBLE_DEVICES"},
    "mlx": set(),
    "transformers": set(),
    "transformers-cpu": set(),
    "transformers-4": set(),
}
"""What a contributor's own machine may say to each engine."""


@pytest.mark.parametrize("name", [n for n in STARTED if n in MACHINES or any(n == s.name.engine for s in RUNS)])
def test_what_only_says_where_things_are_on_a_machine_reaches_the_engine_and_is_recorded_by_name(
    seen, monkeypatch, name: str
) -> None:
    machine = MACHINES.get(name, engine(name).local)
    for variable in machine:
        monkeypatch.setenv(variable, "/home/someone/10.0.0.7")
    for variable in set(HARMFUL) - {"PATH", "LD_PRELOAD", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"}:
        monkeypatch.setenv(variable, "left over")
    system = system_on(name)
    adapter, launch = launch_of(system, system.launch_on())
    starting_module._spawn(adapter, launch, None, Path("/dev/null"), ())
    assert {n for n in seen if n.startswith(adapter.reads)} - adapter.environment(launch).keys() == machine
    assert starting_module.local_variables(adapter) == sorted(machine), "by name: a value may be private"
    for variable in machine:
        given = planned_launch(ROOT, system, way_of(system, adapter), {**system.launch_on(), variable: "x"})
        with pytest.raises(UsageError, match=f"{variable} is no variable that a file may set"):
            check_launch(adapter, given)
