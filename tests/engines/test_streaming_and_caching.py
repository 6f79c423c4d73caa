"""What is a file's to say and what isn't: tokens to a streamed piece (read back), the cache of prompts (never)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from paribus.catalog import Catalog, EngineUse, System
from paribus.catalog.models import Override
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines import Running, check_launch, engine, planned_launch, way_of
from paribus.engines.numbers import UNREAD
from paribus.engines.opening import _read

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
VLLM, SGLANG = "gemma-4-26b-a4b--bf16--vllm--plain", "gemma-4-26b-a4b--bf16--sglang--plain"
LLAMACPP = "smollm2-135m--q4-1--llamacpp--plain"
MLX = "gemma-4-26b-a4b--mlx-4bit--mlx--plain"
TRANSFORMERS = "dream-7b--bf16--transformers-4--diffusion-card"
HOSTED = next(name for name in CATALOG.systems if "--hosted--" in name)
USE = {"precisions": ["q4"], "launch_source": "a test", "decoders": {"plain": {"method": "plain"}}}


def launched(name: str, interval: int = 1, **settings: Any):
    system = CATALOG.system(name)
    use = system.use.model_copy(update={"streaming_interval": interval})
    model = system.model.model_copy(update={"engines": {**system.model.engines, system.name.engine: use}})
    system = System(model, system.name)
    adapter = engine(system.name.engine)
    return adapter, planned_launch(ROOT, system, way_of(system, adapter), {**system.launch_on(), **settings})


@pytest.mark.parametrize("interval", [0, -5, 1.5, True, "5", 2048])
def test_a_streamed_piece_holds_a_whole_number_of_tokens_from_one(interval: Any) -> None:
    with pytest.raises(ValidationError, match="streaming_interval"):
        EngineUse.model_validate({**USE, "streaming_interval": interval})
    assert EngineUse.model_validate({**USE, "streaming_interval": 5}).streaming_interval == 5


@pytest.mark.parametrize("name", [LLAMACPP, MLX, TRANSFORMERS, HOSTED])
def test_an_interval_is_refused_where_the_server_would_never_hear_of_it(name: str) -> None:
    check_launch(*launched(name, **CATALOG.system(name).launch_on()))
    with pytest.raises(UsageError, match="can't be told to stream 50 tokens at a time: leave streaming_interval out"):
        check_launch(*launched(name, 50, **CATALOG.system(name).launch_on()))


def of_vllm(launch, interval: int | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is read of vLLM: an argument that has its default isn't in the log; none at all: the log doesn't say."""
    pages = {"version": {"version": "0.33.0"}, "models": {"data": [{"id": "m", "max_model_len": 131072}]}}
    monkeypatch.setattr("paribus.engines.adapters.vllm.ask_json", lambda url, *_, **__: pages[url.rsplit("/", 1)[1]])
    monkeypatch.setattr("paribus.engines.adapters.vllm.Vllm.rendered", lambda *_: None)
    given = f", 'stream_interval': {interval}" if interval != 1 else ""
    log = "" if interval is None else f"non-default args: {{'model': '/w'{given}}}\n"
    return engine("vllm").observe(Running("http://127.0.0.1:1", log, launch))


def of_sglang(launch, interval: int | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is read of SGLang's `/server_info`."""
    info = {"version": "0.5.23"} | ({} if interval is None else {"stream_interval": interval})
    pages = {"server_info": info, "models": {"data": []}}
    monkeypatch.setattr("paribus.engines.adapters.sglang.ask_json", lambda url, *_, **__: pages[url.rsplit("/", 1)[1]])
    monkeypatch.setattr("paribus.engines.adapters.sglang.SGLang.rendered", lambda *_: None)
    return engine("sglang").observe(Running("http://127.0.0.1:1", "", launch))


@pytest.mark.parametrize(("name", "of"), [(VLLM, of_vllm), (SGLANG, of_sglang)])
def test_the_interval_that_is_recorded_is_the_one_that_the_server_tells(name: str, of, monkeypatch) -> None:
    for declared, told, recorded in ((1, 1, 1), (8, 8, 8), (1, None, UNREAD), (8, None, UNREAD)):
        adapter, launch = launched(name, declared)
        assert _read(adapter, launch, of(launch, told, monkeypatch))["streaming_interval"] == recorded
    for declared, told in ((8, 1), (1, 8)):
        adapter, launch = launched(name, declared)
        with pytest.raises(EnvironmentFault, match=f"declared is streaming_interval {declared}, but .* with {told}"):
            _read(adapter, launch, of(launch, told, monkeypatch))


def test_a_server_that_knows_no_interval_sends_what_there_is_and_of_somebody_elses_nothing_is_known() -> None:
    assert _read(*launched(LLAMACPP), {})["streaming_interval"] == 1
    assert _read(*launched(HOSTED), {})["streaming_interval"] == UNREAD


@pytest.mark.parametrize("value", [True, False])
def test_a_file_may_not_turn_the_cache_of_prompts_on_or_off(value: bool) -> None:
    """PROTOCOL rule 8: off, but for the measures that are about it."""
    for kind, given in ((EngineUse, USE), (Override, {"source": "a test"})):
        with pytest.raises(ValidationError, match="prefix_caching is no launch setting of a file: the measure alone"):
            kind.model_validate({**given, "launch": {"prefix_caching": value}})
        kind.model_validate({**given, "launch": {"slots": 4}})


@pytest.mark.parametrize("value", [True, "on", 1])
def test_nor_by_llamacpps_own_name_of_it(value: Any) -> None:
    check_launch(*launched(LLAMACPP, cache_prompt=False))
    check_launch(*launched(LLAMACPP, prefix_caching=True))
    for measure in ({}, {"prefix_caching": True}):
        with pytest.raises(UsageError, match=f"cache_prompt: {value} is not the file's to set"):
            check_launch(*launched(LLAMACPP, cache_prompt=value, **measure))
