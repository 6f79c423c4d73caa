"""What vLLM says of itself, read back: recorded pages and streams of its CPU build, and a card's log after its source.

`recorded/vllm/*` are vLLM 0.32.0's own, kept by `make test-engines` with PARIBUS_RECORD. The log of a card is written
after the lines in the source of 0.33.0 (the places are named in `paribus.engines.vllm.log`): not run on a card.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_vllm import BLOCKS, PLAIN, REJECTION, launch_of

from paribus.catalog import Decoder, System
from paribus.conditions import EnvironmentFault
from paribus.engines import engine
from paribus.engines.base import Running
from paribus.engines.counters import grown
from paribus.engines.local import NoAnswer
from paribus.engines.numbers import UNREAD
from paribus.engines.readback import differing, read_back
from paribus.engines.vllm import log
from paribus.speed.metrics.acceptance import acceptance

RECORDED = Path(__file__).with_name("recorded") / "vllm"
KINDS = ("plain", "ngram-n4", "draft-n4", "diffusion")

CARD = """\
(APIServer pid=7) INFO 12-01 17:37:26 [api_utils.py:286] non-default args: {'model_tag': '/w', 'host': '127.0.0.1', \
'port': 8123, 'model': '/w', 'max_model_len': 262144, 'served_model_name': ['m'], 'generation_config': 'vllm', \
'gpu_memory_utilization': 0.85, 'enable_prefix_caching': False, 'max_num_seqs': 4, 'reasoning_parser': 'gemma4', \
'diffusion_config': {'canvas_length': 256, 'max_denoising_steps': 48}}
(EngineCore pid=9) INFO 12-01 17:38:30 [core.py:133] Initializing a V1 LLM engine (v0.33.0) with config: model='/w', \
speculative_config=None, tokenizer='/w', dtype=torch.bfloat16, max_seq_len=262144, quantization=modelopt_fp4, \
enforce_eager=False, kv_cache_dtype=fp8, seed=0
(Worker pid=11) INFO 12-01 17:38:57 [gpu_worker.py:513] Using V2 Model Runner
(Worker pid=11) INFO 12-01 17:38:58 [cuda.py:509] Using TRITON_ATTN attention backend out of potential backends: \
['TRITON_ATTN'].
(Worker pid=11) INFO 12-01 17:39:31 [model_runner.py:429] Model loading took 24.31 GiB memory and 33.120000 seconds
(Worker pid=11) INFO 12-01 17:39:44 [backends.py:418] Compiling a graph for compile range (1, 8192) takes 12.50 s
(Worker pid=11) INFO 12-01 17:40:03 [monitor.py:20] torch.compile took 31.25 s in total
(EngineCore pid=9) INFO 12-01 17:40:04 [kv_cache_utils.py:1148] GPU KV cache size: 312,480 tokens, Maximum concurrency \
for 262,144 tokens per request: 1.19x
(Worker pid=11) INFO 12-01 17:40:13 [model_runner.py:1164] Graph capturing finished in 9 secs, took 0.61 GiB
(EngineCore pid=9) INFO 12-01 17:40:14 [core.py:402] init engine (profile, create kv cache, warmup model) took 70.12 s
"""
WHILE_SERVING = (
    "(Worker pid=11) WARNING 12-01 17:45:00 [jit_monitor.py:140] Triton kernel JIT compilation during inference: "
    "_row_stats_kernel (V=262144). This causes a latency spike; consider extending warmup to cover this shape/config.\n"
)


def text_of(kind: str, page: str) -> str:
    return (RECORDED / kind / page).read_text()


def test_a_cards_log_tells_the_configuration_in_force():
    assert log.findings(CARD) == {
        "attention_backend": "TRITON_ATTN",
        "kv_cache_tokens": 312_480,
        "weights_gb": 26.103,
        "engine_dtype": "bfloat16",
        "engine_kv_cache": "fp8",
        "engine_quantization": "modelopt_fp4",
        "model_runner": "V2",
    }
    assert log.arguments_of(CARD)["diffusion_config"] == {"canvas_length": 256, "max_denoising_steps": 48}


def test_compilations_and_captures_with_their_seconds_and_kernels_compiled_while_serving():
    told = [(each.what, each.seconds) for each in engine("vllm").compilations(CARD)]
    assert told == [("a graph compiled", None), ("the model compiled", 31.25), ("graphs captured", 9.0)]
    assert [each.what for each in engine("vllm").compilations(WHILE_SERVING)] == ["a Triton kernel"]
    assert engine("vllm").compilations("INFO Avg generation throughput: 12.0 tokens/s") == []


def test_in_an_image_the_checkpoint_and_the_written_file_are_read_where_they_lie_here(monkeypatch, tmp_path):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/generation_config.json").write_text(json.dumps({"t_max": 0.8, "top_k": 64}))
    seen, files = Path("/paribus/weights/w"), Path("/paribus/files")
    decoder = BLOCKS.model_copy(update={"lossy": {"canvas_length": 256, "entropy_bound": 0.2}})
    launch = launch_of(
        decoder, kind="diffusion", weights=seen, folder=files, how="image",
        mounted={seen: tmp_path / "weights", files: tmp_path},
    )  # fmt: skip
    (text,) = engine("vllm").files(launch).values()
    assert json.loads(text) == {"t_max": 0.8, "sampler_config": {"entropy_bound": 0.2}}
    (tmp_path / "generation_config.json").write_text(text)
    words = engine("vllm").command(launch)
    assert words[words.index("--generation-config") + 1] == "/paribus/files"
    read, _ = observed(monkeypatch, launch, CARD)
    assert read["settings"]["entropy_bound"] == 0.2
    assert read["settings"]["t_max"] == 0.8


KERNELS = """\
(Worker pid=11) INFO 12-01 17:39:01 [__init__.py:1240] Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM
(Worker pid=11) INFO 12-01 17:39:02 [nvfp4.py:291] Using 'MARLIN' NvFp4 MoE backend out of potential backends: [].
(Worker pid=11) INFO 12-01 17:39:30 [gpu_model_runner.py:5071] Loading drafter model...
(Worker pid=11) INFO 12-01 17:39:31 [fp8.py:470] Using TRITON Fp8 MoE backend out of potential backends: ['TRITON'].
(Worker pid=11) INFO 12-01 17:39:32 [__init__.py:758] Selected CutlassFP8ScaledMMLinearKernel for Fp8LinearMethod
"""
"""Written after the source of 0.32.0 (the places are in `paribus.engines.vllm.log`), not run on a card."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KERNELS, "MARLIN, FlashInferCutlassNvFp4LinearKernel"),
        ("\n".join(KERNELS.splitlines()[3:]), "TRITON, CutlassFP8ScaledMMLinearKernel"),
        ("Using MarlinLinearKernel for mixed-precision linear\n", "MarlinLinearKernel"),
        ("Using 'MARLIN' WNA16 MoE backend.\n", "MARLIN"),
        ("Using TRITON Unquantized MoE backend out of potential backends: ['TRITON'].\n", ""),
        ("Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN'].\n", ""),
    ],
)
def test_the_kernels_of_quantised_weights_are_the_targets_and_not_its_drafters(text, said):
    assert log.kernels(text) == said
    assert log.findings(text).get("kernels", "") == said


def test_kernels_are_a_condition_of_quantised_weights_only(monkeypatch):
    launch = launch_of(PLAIN)
    assert not launch.system.quantised
    assert "kernels" not in observed(monkeypatch, launch, CARD + KERNELS)[0]
    name = replace(launch.system.name, precision="fp8")
    model = launch.system.model.model_copy(update={"precisions": {"fp8": launch.system.precision}})
    quantised = replace(launch, system=System(model, name))
    assert observed(monkeypatch, quantised, CARD + KERNELS)[0]["kernels"] == (
        "MARLIN, FlashInferCutlassNvFp4LinearKernel"
    )


def test_the_type_of_recurrent_state_is_told_where_it_was_set(monkeypatch):
    line = "non-default args: {'max_num_seqs': 8, 'mamba_ssm_cache_dtype': 'float32'}\n"
    found, _ = observed(monkeypatch, launch_of(PLAIN), line)
    assert found["state_cache"] == "float32"
    assert "state_cache" not in observed(monkeypatch, launch_of(PLAIN), CARD)[0]


@pytest.mark.parametrize("text", ["", "non-default args: {'a' 1}", "non-default args: [1]", "KV cache size: x"])
def test_an_odd_log_tells_nothing(text):
    assert log.arguments_of(text) is None
    assert log.findings(text) == {"model_runner": "V1"}


OBJECTS = """\
(APIServer pid=7) INFO 12-01 17:37:26 [api_utils.py:286] non-default args: {'model_tag': '/w', 'max_model_len': 65536, \
'quantization': 'modelopt_fp4', 'served_model_name': ['m'], 'generation_config': 'vllm', 'attention_config': \
AttentionConfig(backend=<AttentionBackendEnum.FLASHINFER: 'vllm.v1.attention.backends.flashinfer.Backend'>, \
backend_per_kind={}, flash_attn_version=None, use_trtllm_attention=True, note="a, (b"), 'odd': <object at 0x7f00>, \
'max_num_seqs': 8, 'kernel_config': KernelConfig(ir_op_priority=IrOpPriorityConfig(rms_norm=['a', 'b']), \
moe_backend='marlin'), 'block_size': 128}
"""
"""As vLLM prints arguments that are objects (the repr of a pydantic dataclass and of an enumeration): written after its
source, not run on a card."""


def test_arguments_are_read_key_by_key_also_where_some_are_objects():
    given = log.arguments_of(OBJECTS)
    assert given["generation_config"] == "vllm"
    assert given["max_num_seqs"] == 8
    assert given["block_size"] == 128
    assert given["attention_config"] == {
        "backend": "FLASHINFER",
        "backend_per_kind": {},
        "use_trtllm_attention": True,
        "note": "a, (b",
    }
    assert given["kernel_config"] == {"ir_op_priority": {"rms_norm": ["a", "b"]}, "moe_backend": "marlin"}
    assert given["odd"] == UNREAD


def test_a_server_whose_arguments_are_objects_is_read_back_whole(monkeypatch):
    declared = {"attention_config": '{"use_trtllm_attention": true}', "block_size": 128, "max_num_seqs": 8}
    found, _ = observed(monkeypatch, launch_of(PLAIN, declared), OBJECTS)
    assert found["sampling_defaults"] == {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    assert found["admitted"] == 8
    assert found["settings"]["block_size"] == 128
    assert differing(declared, found["settings"]) == {}
    other = OBJECTS.replace("use_trtllm_attention=True", "use_trtllm_attention=False").replace(
        "size': 128", "size': 16"
    )
    found, _ = observed(monkeypatch, launch_of(PLAIN, declared), other)
    assert set(differing(declared, found["settings"])) == {"attention_config", "block_size"}


COMPILED = """\
(APIServer pid=7) INFO 12-01 17:37:26 [api_utils.py:286] non-default args: {'model': 'x', 'compilation_config': \
{'mode': <CompilationMode.VLLM_COMPILE: 3>, 'debug_dump_path': None, 'cache_dir': '', 'backend': 'inductor', \
'custom_ops': [], 'splitting_ops': None, 'inductor_compile_config': {'enable_auto_functionalized_v2': False}, \
'cudagraph_mode': <CUDAGraphMode.FULL_DECODE_ONLY: (2, 0)>, 'cudagraph_capture_sizes': [1, 2, 4], \
'pass_config': {'fuse_norm_quant': True}, 'max_cudagraph_capture_size': None, 'dynamic_shapes_config': {'type': \
<DynamicShapesType.BACKED: 'backed'>, 'evaluate_guards': False}, 'odd': <object at 0x7f00>}, 'max_num_seqs': 8}
"""
"""As vLLM 0.32.0 prints a `CompilationConfig`: the repr of one made with its CPU build, shortened, `odd` added."""


def test_a_compilation_config_prints_itself_as_a_dictionary_with_enumerations():
    given = log.arguments_of(COMPILED)
    read = given["compilation_config"]
    assert (given["max_num_seqs"], read["mode"], read["cudagraph_mode"]) == (8, "VLLM_COMPILE", "FULL_DECODE_ONLY")
    assert read["pass_config"]["fuse_norm_quant"] is True
    assert (read["odd"], read["debug_dump_path"]) == (UNREAD, None)
    assert json.loads(json.dumps(read))["dynamic_shapes_config"] == {"type": "BACKED", "evaluate_guards": False}


@pytest.mark.parametrize(
    ("declared", "differs"),
    [
        ({"mode": 3, "cudagraph_mode": "FULL_DECODE_ONLY"}, False),
        ({"mode": "vllm_compile", "cudagraph_mode": "full-decode-only"}, False),
        ({"cudagraph_capture_sizes": [1, 2, 4], "pass_config": {"fuse_norm_quant": True}}, False),
        ({"pass_config": {"eliminate_noops": True}}, False),
        ({"pass_config": {"eliminate_noops": False}}, True),
        ({"odd": 1}, False),
        ({"mode": 0}, True),
        ({"mode": True}, True),
        ({"mode": "NONE"}, True),
        ({"cudagraph_mode": "FULL"}, True),
    ],
)
def test_a_declared_compilation_is_held_against_what_is_told_by_name_or_number(monkeypatch, declared, differs):
    settings = {"compilation_config": json.dumps(declared)}
    launch = launch_of(PLAIN, settings)
    found, _ = observed(monkeypatch, launch, COMPILED)
    assert bool(differing(settings, found["settings"])) is differs
    silent = SimpleNamespace(name="vllm", deciding=engine("vllm").deciding)
    if differs:
        with pytest.raises(EnvironmentFault, match="declared is compilation_config"):
            read_back(silent, launch, {"settings": found["settings"]})
    else:
        assert "settings_differ" not in read_back(silent, launch, {"settings": found["settings"]})


@pytest.mark.parametrize(
    ("line", "said", "admits"),
    [
        ("non-default args: {'max_num_seqs': 8, 'generation_config': <object at 0x7f00>}", "not stated", 8),
        ("non-default args: {'generation_config': ", "not stated", None),
        ("non-default args: {'max_num_seqs': 4, 'generation_config'}", "not stated", None),
        ("non-default args: {'max_num_seqs': 4}", "the checkpoint's", 4),
    ],
)
def test_what_the_line_does_not_tell_is_not_guessed(monkeypatch, line, said, admits):
    found, _ = observed(monkeypatch, launch_of(PLAIN), line + "\n")
    assert found["sampling_defaults"] == said
    assert found.get("admitted") == admits


class Served:
    """A server played from pages: what was asked of it, and answers by address."""

    def __init__(self, pages: dict[str, object]) -> None:
        self.pages, self.asked = pages, []

    def __call__(self, url: str, body: object = None, **_: object) -> object:
        path = url.removeprefix("http://127.0.0.1:1")
        self.asked.append((path, body))
        if path not in self.pages:
            raise NoAnswer("HTTP 404")
        return self.pages[path]


PAGES = {
    "/version": {"version": "0.33.0"},
    "/v1/models": {"data": [{"id": "m", "max_model_len": 262144}]},
    "/tokenize": {"tokens": [1, 2]},
    "/detokenize": {"prompt": "<turn>hello<think>"},
}


def observed(monkeypatch, launch, text, pages=PAGES) -> tuple[dict, Served]:
    served = Served(pages)
    monkeypatch.setattr("paribus.engines.adapters.vllm.ask_json", served)
    return engine("vllm").observe(Running("http://127.0.0.1:1", text, launch)), served


def test_what_a_diffusion_server_on_a_card_says_of_itself(monkeypatch, tmp_path):
    checkpoint = {"max_denoising_steps": 30, "t_min": 0.4, "sampler_config": {"entropy_bound": 0.1}}
    (tmp_path / "generation_config.json").write_text(json.dumps(checkpoint))
    launch = launch_of(BLOCKS, {"max_model_len": 262144, "max_num_seqs": 4}, kind="diffusion", weights=tmp_path)
    found, served = observed(monkeypatch, launch, CARD)
    assert found["engine_version"] == "vllm 0.33.0"
    assert found["admitted"] == 4
    assert found["attention_backend"] == "TRITON_ATTN"
    assert found["rendered_prompt"] == "<turn>hello<think>"
    assert found["sampling_defaults"]["temperature"] == "a schedule of its own"
    assert found["settings"] == {
        "max_model_len": 262144,
        "max_num_seqs": 4,
        "dtype": "bfloat16",
        "kv_cache_dtype": "fp8",
        "quantization": "modelopt_fp4",
        "canvas_length": 256,
        "max_denoising_steps": 48,  # the flag's, not the checkpoint's 30
        "t_min": 0.4,
        "entropy_bound": 0.1,
        "sampler": "entropy_bound",
    }
    (tokenize,) = [body for path, body in served.asked if path == "/tokenize"]
    assert tokenize["chat_template_kwargs"] == {"enable_thinking": False}, "the switch for thinking is read back"


def test_a_server_that_renders_nothing_is_still_observed(monkeypatch):
    pages = {name: PAGES[name] for name in ("/version", "/v1/models")}
    found, _ = observed(monkeypatch, launch_of(PLAIN), "", pages)
    assert found["rendered_prompt"] is None
    assert found["attention_backend"] == "not stated"
    assert found["sampling_defaults"] == "not stated", "a log without its arguments says nothing of them"
    assert "admitted" not in found


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_pages_are_small_and_hold_nothing_of_the_machine_they_are_from(kind):
    places = re.compile(r"(?<![\w.<>:/])/(?!/)(?:[\w.+-]+/)*[\w.+-]+")
    known = ("/site-packages", "/build/weights", "/smollm2-wide", "/tiny-diffusion", "/somewhere", "/v1/", "/version")
    for path in (RECORDED / kind).iterdir():
        text = path.read_text()
        assert path.stat().st_size < 60_000
        assert not re.findall(r"(?<![\d.])(?!127\.0\.0\.1)\d{1,3}(?:\.\d{1,3}){3}(?![\d.])", text)
        if path.name != "stream.txt":
            odd = {found for found in places.findall(text) if not found.startswith(known)}
            assert not {found for found in odd if found.count("/") > 2}, path


@pytest.mark.parametrize("kind", KINDS)
def test_recorded_logs_and_models(kind):
    text = text_of(kind, "log.txt")
    given = log.arguments_of(text)
    # Declared denoising settings that are no flags come from a file of ours; sampling defaults are neutral both ways.
    assert given["generation_config"] == ("/somewhere" if kind == "diffusion" else "vllm")
    assert given["enable_prefix_caching"] is False
    assert given["served_model_name"] == [json.loads(text_of(kind, "models.json"))["data"][0]["id"]]
    assert json.loads(text_of(kind, "models.json"))["data"][0]["max_model_len"] == 4096
    found = log.findings(text)
    assert found["kv_cache_tokens"] > 4096
    told = {name: found[f"engine_{name}"] for name in ("dtype", "kv_cache", "quantization")}
    assert told == {"dtype": "bfloat16", "kv_cache": "bfloat16", "quantization": "none"}, "real lines of vLLM"
    assert found["model_runner"] == ("V2" if kind == "diffusion" else "V1")
    assert ("speculative_config" in given) == (kind in ("ngram-n4", "draft-n4"))
    assert ("diffusion_config" in given) == (kind == "diffusion")


def test_recorded_counters_of_speculation():
    for kind in ("ngram-n4", "draft-n4"):
        counted = engine("vllm-cpu").counters(text_of(kind, "metrics.txt"))
        by_position = [counted[f"accepted_at_{n}"] for n in range(1, 5)]
        assert sum(by_position) == counted["accepted_tokens"]
        assert by_position == sorted(by_position, reverse=True)
        assert counted["drafts"] >= by_position[0]
        found = acceptance(grown(dict.fromkeys(counted, 0.0), counted))
        assert 1 <= found.tokens_per_pass <= found.acceptance_length <= 5
    assert "drafts" not in engine("vllm").counters(text_of("plain", "metrics.txt"))


def test_recorded_counters_of_block_diffusion():
    counted = engine("vllm-cpu").counters(text_of("diffusion", "metrics.txt"))
    canvases = counted["committed_tokens"] / 32
    assert counted["canvas_positions"] == 32 * counted["forward_passes"]
    assert counted["denoising_steps"] == counted["forward_passes"] - canvases
    assert counted["denoising_steps"] <= 6 * canvases
    assert counted["generated_tokens"] <= counted["committed_tokens"]
    assert acceptance(counted).tokens_per_pass == counted["committed_tokens"] / counted["forward_passes"]


def pieces(kind: str) -> tuple[list[str], int]:
    """Texts of a recorded stream's pieces, and the tokens that its usage tells."""
    events = [line.removeprefix("data: ") for line in text_of(kind, "stream.txt").splitlines() if line.strip()]
    assert events.pop() == "[DONE]"
    read = [json.loads(event) for event in events]
    assert read[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}, "a role piece carries no text"
    texts = [choice["delta"].get("content") for event in read for choice in event["choices"]]
    return [text for text in texts if text], read[-1]["usage"]["completion_tokens"]


def test_recorded_streams_hold_one_or_several_tokens_or_a_canvas_in_a_piece():
    plain, tokens = pieces("plain")
    assert 0.9 * tokens <= len(plain) <= tokens
    drafted, tokens = pieces("draft-n4")
    assert len(drafted) < 0.4 * tokens
    canvases, tokens = pieces("diffusion")
    assert len(canvases) == -(-tokens // 32)


def test_a_drafter_is_read_back_with_its_decoder(monkeypatch):
    decoder = Decoder(method="ngram", parameters={"num_speculative_tokens": 4}, **REJECTION)
    found, _ = observed(monkeypatch, launch_of(decoder), text_of("ngram-n4", "log.txt"))
    assert found["model_runner"] == "V1"
    assert found["admitted"] == 16
