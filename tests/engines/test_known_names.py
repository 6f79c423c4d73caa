"""Every name that an adapter knows is one that its engine has: flags, fields of JSON settings, variables.

`recorded/names.json` holds the names of the pinned versions (`envs/*/requirements.in`), read out of their sources by
`engine_names.py`. vLLM's are held against the environment that is built here as well, where there is one.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from engine_names import RECORDED, kebab, vllm

from paribus.catalog.engine_use import KERNEL_SETTINGS
from paribus.engines import engine
from paribus.engines.adapters import llamacpp as of_llamacpp
from paribus.engines.adapters import mlx as of_mlx
from paribus.engines.adapters import sglang as of_sglang
from paribus.engines.adapters.vllm import _SURROUNDINGS
from paribus.engines.deciding import OF_NCCL, OF_TORCH
from paribus.engines.vllm import arguments as of_vllm
from paribus.engines.vllm.denoising import _FLAGS
from paribus.engines.vllm.drafting import SPECULATIVE

ROOT = Path(__file__).parents[2]
OTHERS = OF_NCCL | OF_TORCH | {"HF_HUB_DISABLE_PROGRESS_BARS"}
"""Variables of libraries below the engines."""
Names = dict[str, set[str]]


@cache
def recorded(name: str) -> Names:
    known = json.loads(RECORDED.read_text(encoding="utf-8"))[name]
    return {kind: set(names) for kind, names in known.items()}


def installed_vllm() -> Path:
    found = sorted(ROOT.glob("build/envs/vllm*/lib/python*/site-packages/vllm/engine/arg_utils.py"))
    if not found:
        pytest.skip("no environment of vLLM is built here: the recorded names of the pinned version were held against")
    return found[0].parents[1]


def keys_of(setting: str) -> set[str]:
    """The keys that a rule lets a JSON setting have."""
    return set(engine("vllm").deciding[setting].instead.removeprefix("it may have the keys ").split(", "))


def unknown_to_vllm(has: Names) -> set[str]:
    """What the adapter knows and this vLLM doesn't."""
    settings = of_vllm.VALUES | of_vllm.SWITCHES | of_vllm.JSON | {"max_num_seqs", "stream_interval"}
    ours = set(map(kebab, settings | (of_vllm._ELSEWHERE.keys() - {"model"}))) - has["flags"]
    ours |= SPECULATIVE - has["speculative"] | set(_FLAGS) - has["diffusion_config"]
    for setting in ("attention_config", "kernel_config", "compilation_config"):
        ours |= keys_of(setting) - has[setting]
    return ours | (of_vllm.VARIABLES | of_vllm.LOCAL | _SURROUNDINGS.keys()) - OTHERS - has["variables"]


def test_vllm_has_every_name_that_its_adapter_knows() -> None:
    assert unknown_to_vllm(recorded("vllm")) == set()


def test_so_does_the_one_that_is_installed() -> None:
    assert unknown_to_vllm(vllm(installed_vllm())) == set()


def test_a_name_that_vllm_drops_is_found() -> None:
    has = recorded("vllm")
    without = {
        **has,
        "flags": has["flags"] - {"--moe-backend"},
        "speculative": has["speculative"] - {"parallel_drafting"},
        "compilation_config": has["compilation_config"] - {"custom_ops"},
        "variables": has["variables"] - {"VLLM_USE_DEEP_GEMM"},
    }
    assert unknown_to_vllm(without) == {"--moe-backend", "parallel_drafting", "custom_ops", "VLLM_USE_DEEP_GEMM"}


def test_sglang_has_every_flag_and_denoising_setting_that_its_adapter_knows() -> None:
    has = recorded("sglang")
    drafting = {name for _, names in of_sglang._ALGORITHMS.values() for name in names} | {*of_sglang._LOSSY_ACCEPTANCE}
    values = of_sglang._VALUES | drafting
    words = [word for name in values for word in of_sglang._flag(name, "x")[:1]]
    words += [word for name in of_sglang._SWITCHES for word in of_sglang._flag(name, True)]
    assert len(words) == len(values) + len(of_sglang._SWITCHES)
    assert set(words) - has["flags"] == set()
    lossy = {name for names in of_sglang._DENOISING.values() for name in names}
    assert (lossy | set(of_sglang._DENOISING_SPEED)) - {"dllm_fdfo"} - has["denoising"] == set()
    assert "--dllm-fdfo" in has["flags"]
    assert of_sglang._LOCAL - has["variables"] == set()


def test_mlx_has_every_flag_and_request_field_that_its_adapter_knows() -> None:
    has = recorded("mlx")
    assert set(map(kebab, of_mlx._VLM | {"draft_block_size", "draft_model", "draft_kind"})) - has["vlm_flags"] == set()
    assert set(map(kebab, of_mlx._LM | {"num_draft_tokens", "prompt_cache_size"})) - has["lm_flags"] == set()
    penalties = {"presence_context_size", "repetition_context_size"}
    assert {*of_mlx._DENOISING.values(), "enable_thinking", *penalties} - has["request_fields"] == set()


@pytest.mark.parametrize("name", ["vllm", "sglang", "mlx", "llamacpp"])
def test_every_flag_of_every_golden_launch_is_one_that_its_engine_has(name: str) -> None:
    """The commands that a reviewer opens, whole: also the flags that an adapter adds by itself."""
    has = set().union(*(names for kind, names in recorded(name).items() if kind.endswith("flags")))
    found = {flag for line in golden_lines(name) for flag in re.findall(r" (--[a-z][a-z0-9-]+)", line)}
    if name == "llamacpp":
        options = dict.fromkeys(of_llamacpp._OPTIONS, 1)
        found |= {word for word in of_llamacpp._flags(FLAGS | {"options": options}) if word.startswith("--")}
        found |= {
            f"--spec-{kind}-{part.replace('_', '-')}" for kind, parts in of_llamacpp._NGRAMS.items() for part in parts
        }
        found |= {f"--spec-draft-{part.replace('_', '-')}" for part in of_llamacpp._DRAFT}
    assert found
    assert {flag for flag in found if flag not in has and flag.replace("--no-", "--", 1) not in has} == set()


FLAGS = {
    "model": "m", "alias": "m", "host": "h", "port": 1, "slots": 1, "context_per_slot": 1, "threads": 1, "batch": 1,
    "ubatch": 1, "poll": 1, "kv_unified": True, "cache_prompt": True, "sampling": {"temp": 1.0, "top_p": 1.0},
    "speculative": {"type": "draft-simple", "drafter": "d"},
}  # fmt: skip


def golden_lines(name: str) -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests/catalog/golden").glob("*.txt")]
    return [line for text in texts for line in text.splitlines() if PROGRAMS[name] in line]


PROGRAMS = {"vllm": "vllm.entrypoints", "sglang": "sglang.launch_server", "mlx": "mlx_", "llamacpp": "llama-server"}


def test_every_setting_that_chooses_kernels_is_known_to_an_adapter() -> None:
    """One that no adapter took would be counted with the answers and never be there."""
    assert set(KERNEL_SETTINGS) - of_vllm.VALUES - of_vllm.VARIABLES - of_sglang._VALUES == set()
