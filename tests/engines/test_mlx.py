"""The adapter of MLX's servers: golden command lines and requests, and what it reads back.

Not run on real hardware (it needs Apple silicon). Pages follow the sources of mlx-vlm 0.7.10 and mlx-lm 0.32.2 (their
wheels on PyPI); each test names the file.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.catalog import Catalog, Decoder, Sampling, System
from paribus.conditions import EnvironmentFault, SystemName, UsageError
from paribus.engines import Running, check_launch, engine, planned_launch, way_of

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
MLX = engine("mlx")
DRAFTER = {"source": "hub", "repository": "a/drafter"}


def system_with(decoder: Decoder, think: bool = False, **use) -> System:
    model = CATALOG.models["gemma-4-26b-a4b"]
    changed = model.engines["mlx"].model_copy(update={"decoders": {"x": decoder}, **use})
    return System(
        model.model_copy(update={"engines": {"mlx": changed}}), SystemName(model.model, "mlx-4bit", "mlx", "x", think)
    )


def launched(system: System, **settings):
    launch = planned_launch(ROOT, system, "env", settings)
    check_launch(MLX, launch)
    return launch


VLM = "PYTHON -m mlx_vlm.server --model WEIGHTS --host 127.0.0.1 --port 8000 --max-num-seqs "
LM = "PYTHON -m mlx_lm server --model WEIGHTS --host 127.0.0.1 --port 8000 --decode-concurrency "


@pytest.mark.parametrize(
    ("decoder", "settings", "expected"),
    [
        (Decoder(method="plain"), {}, VLM + "16"),
        (Decoder(method="plain"), {"max_num_seqs": 4, "prefill_step_size": 8}, VLM + "4 --prefill-step-size 8"),
        (Decoder(method="mtp", drafter=DRAFTER), {}, VLM + "16 --draft-model DRAFTER --draft-kind mtp"),
        (Decoder(method="mtp"), {}, VLM + "16 --draft-model WEIGHTS --draft-kind mtp"),
        (
            Decoder(method="dflash", drafter=DRAFTER, parameters={"draft_block_size": 8}),
            {},
            VLM + "16 --draft-model DRAFTER --draft-kind dflash --draft-block-size 8",
        ),
        (Decoder(method="plain"), {"server": "mlx-lm"}, LM + "16 --prompt-cache-size 0"),
        (Decoder(method="plain"), {"server": "mlx-lm", "prefix_caching": True}, LM + "16"),
        (
            Decoder(method="draft", drafter=DRAFTER, parameters={"num_draft_tokens": 3}),
            {"server": "mlx-lm"},
            LM + "16 --prompt-cache-size 0 --draft-model DRAFTER --num-draft-tokens 3",
        ),
    ],
)
def test_command_lines(decoder, settings, expected):
    """Flags: mlx_vlm/server/cli.py and the parser at the end of mlx_lm/server.py."""
    assert " ".join(MLX.command(launched(system_with(decoder), **settings))) == expected


@pytest.mark.parametrize(
    ("decoder", "settings", "said"),
    [
        (Decoder(method="plain"), {"max_num_batched_tokens": 1}, "no launch setting of mlx-vlm max_num_batched_tokens"),
        (Decoder(method="plain"), {"server": "vllm"}, "servers mlx-vlm and mlx-lm, not 'vllm'"),
        (Decoder(method="ngram"), {}, "mlx-vlm drafts by mtp, dflash, eagle3; the catalog says ngram"),
        (Decoder(method="dflash"), {}, "dflash needs a drafter"),
        (Decoder(method="draft"), {"server": "mlx-lm"}, "the catalog says draft without a drafter"),
        (Decoder(method="mtp", drafter=DRAFTER), {"server": "mlx-lm"}, "mlx-lm decodes plainly or with a draft model"),
        (Decoder(method="block-diffusion"), {}, "its own sampler is not|own sampler is not the checkpoint's"),
        (Decoder(method="block-diffusion", lossy={"entropy": 1}), {}, "no lossy setting of mlx-vlm entropy"),
    ],
)
def test_what_the_servers_do_not_know_is_refused(decoder, settings, said):
    with pytest.raises(UsageError, match=said):
        launched(system_with(decoder), **settings)


def test_drafts_under_a_penalty_are_refused_where_the_server_checks_them_without_it():
    """mlx_vlm/generate/ar.py of mlx-vlm 0.7.10: a batch that drafts is made without `logits_processors`."""

    def under(decoder: Decoder, value: float, **use) -> System:
        system = system_with(decoder, **use)
        sampling = Sampling(presence_penalty=value, source="a test")
        return replace(system, model=system.model.model_copy(update={"sampling": sampling}))

    for method in ("mtp", "dflash", "eagle3"):
        drafting = Decoder(method=method, acceptance="strict", drafter=DRAFTER)
        with pytest.raises(UsageError, match=r"not supported with the card's presence_penalty 1.5: mlx-vlm 0.7.10 "):
            launched(under(drafting, 1.5))
        launched(under(drafting, 0))
    launched(under(Decoder(method="plain"), 1.5))


def test_denoising_settings_and_thinking_go_by_request():
    """mlx_vlm/server/schemas.py (GenerationRequest) and request_normalization.py; a temperature of 0, which is the
    server's default, takes the most likely token (generate/diffusion.py)."""
    decoder = Decoder(method="block-diffusion", lossy={"sampler": "entropy_bound", "max_denoising_steps": 48})
    for think in (False, True):
        system = system_with(decoder, think)
        fields = MLX.request_fields(launched(system))
        assert fields["diffusion_sampler"] == "entropy-bound"
        assert fields["max_denoising_steps"] == 48
        assert fields["enable_thinking"] is think
        # A card's temperature is a sampling field; without one, the checkpoint's schedule decides.
        assert ("temperature" in fields) == (system.sampling.temperature is None)
    catalog = CATALOG.system("diffusiongemma-26b-a4b--mlx-4bit--mlx--diffusion-card")
    assert MLX.request_fields(launched(catalog))["diffusion_sampler"] == "entropy-bound"


def test_a_penalty_looks_at_the_whole_answer_and_not_at_its_last_20_tokens():
    """DEFAULT_REPETITION_CONTEXT_SIZE in mlx_vlm/generate/common.py; `presence_context_size` in mlx_lm/server.py and in
    mlx_vlm/server/schemas.py."""
    for name in ("qwen3.6-35b-a3b--mlx-4bit--mlx--plain", "qwen3.6-35b-a3b--mlx-4bit--mlx--plain--think"):
        system = CATALOG.system(name)
        assert system.sampling.penalties.keys() == {"presence_penalty"}
        for server in ("mlx-vlm", "mlx-lm"):
            assert MLX.request_fields(launched(system, server=server))["presence_context_size"] == 262_144
    plain = system_with(Decoder(method="plain"))
    for given, sent in (
        ({"repetition_penalty": 1.1}, {"repetition_context_size": plain.model.context}),
        ({"presence_penalty": 0, "repetition_penalty": 1}, {}),
        ({}, {}),
    ):
        model = plain.model.model_copy(update={"sampling": Sampling(source="a test", **given)})
        fields = MLX.request_fields(launched(replace(plain, model=model)))
        assert {name: value for name, value in fields.items() if name.endswith("_size")} == sent


def test_requests_name_the_model_the_server_was_started_with_and_no_path():
    """Another name makes either server load another model: get_cached_model in mlx_vlm/server/app.py, ModelProvider in
    mlx_lm/server.py."""
    launch = launched(system_with(Decoder(method="plain")))
    assert MLX.request_model(launch) == "WEIGHTS"
    assert MLX.working_folder(launch) == launch.weights.parent
    other = launched(system_with(Decoder(method="plain")), server="mlx-lm")
    assert MLX.request_model(other) == "default_model"


def test_prefix_caching_is_off_unless_wanted():
    """APC_ENABLED: mlx_vlm/server/runtime_config.py."""
    plain = system_with(Decoder(method="plain"))
    assert MLX.environment(launched(plain)) == {"APC_ENABLED": "0"}
    assert MLX.environment(launched(plain, prefix_caching=True)) == {"APC_ENABLED": "1"}


def test_a_seed_is_left_out_where_it_would_end_batching():
    """ResponseGenerator._is_batchable in mlx_lm/server.py."""
    assert "seed" in MLX.sampling_fields(system_with(Decoder(method="plain")))
    assert "seed" not in MLX.sampling_fields(system_with(Decoder(method="plain"), launch={"server": "mlx-lm"}))


METRICS = {
    "latest": None,
    "recent": [],
    "summary": {
        "uptime_s": 12.5,
        "requests_started": 5,
        "requests_completed": 4,
        "requests_failed": 0,
        "streaming_requests": 5,
        "in_flight": 1,
        "prompt_tokens_total": 410,
        "completion_tokens_total": 1000,
        "generated_tokens_total": 1004,
    },
    "server": {"request_queue_depth": 0},
}
"""`/metrics`: snapshot() in mlx_vlm/server/generation.py and metrics_endpoint() in app.py; shortened."""


def test_counters_of_a_page_in_json():
    assert MLX.counters(json.dumps(METRICS)) == {"generated_tokens": 1004.0, "prompt_tokens": 410.0}
    assert MLX.gauges(json.dumps(METRICS)) == {}, "its requests in flight are also those that wait"
    assert MLX.counters("Not Found") == {}


def test_mlx_vlm_is_read_back(monkeypatch):
    """`/health` and `/v1/settings`: mlx_vlm/server/app.py; the version is in the header `Server` of every answer."""
    pages = {
        "/health": {"status": "healthy", "effective_context_limit": 262144, "continuous_batching_enabled": True},
        "/v1/settings": {"current": {"kv_bits": 8.0, "max_kv_size": None, "draft_kind": None}},
    }
    monkeypatch.setattr("paribus.engines.adapters.mlx.ask_json", lambda url, *_, **__: pages[url[18:]])
    monkeypatch.setattr("paribus.engines.adapters.mlx.ask_header", lambda *_: "mlx_vlm/0.7.10")
    system = CATALOG.system("diffusiongemma-26b-a4b--mlx-4bit--mlx--diffusion-card")
    found = MLX.observe(Running("http://127.0.0.1:1", "", launched(system)))
    assert found == {
        "engine_version": "mlx-vlm 0.7.10",
        "admitted": 1,
        "context_per_slot": 262144,
        "kv_cache": "8bit",
        "settings": {"kv_bits": 8.0},
    }


def test_a_server_that_passed_over_its_drafter_is_refused(monkeypatch):
    """_initialize_model() in mlx_vlm/server/generation.py warns; `/v1/settings` still tells the kind asked for."""
    pages = {"/health": {"effective_context_limit": 262144}, "/v1/settings": {"current": {"draft_kind": "mtp"}}}
    monkeypatch.setattr("paribus.engines.adapters.mlx.ask_json", lambda url, *_, **__: pages[url[18:]])
    monkeypatch.setattr("paribus.engines.adapters.mlx.ask_header", lambda *_: "mlx_vlm/0.7.10")
    launch = launched(system_with(Decoder(method="mtp", drafter=DRAFTER)))
    good = "Drafter ready; speculative decoding enabled."
    assert MLX.observe(Running("http://127.0.0.1:1", good, launch))["speculation"] == "mtp"
    bad = (
        "Speculative drafter is incompatible with the target model; "
        "falling back to autoregressive generation: hidden sizes differ"
    )
    with pytest.raises(EnvironmentFault, match="doesn't fit the model and decodes plainly"):
        MLX.observe(Running("http://127.0.0.1:1", bad, launch))


def test_mlx_lm_is_read_back(monkeypatch):
    """`system_fingerprint`: get_system_fingerprint() in mlx_lm/server.py."""
    answer = {"choices": [], "system_fingerprint": "0.32.2-0.32.4-macOS-26.1-arm64-arm-64bit-applegpu_g16s"}
    monkeypatch.setattr("paribus.engines.adapters.mlx.ask_json", lambda *_, **__: answer)
    launch = launched(system_with(Decoder(method="draft", drafter=DRAFTER)), server="mlx-lm")
    read = MLX.observe(Running("http://127.0.0.1:1", "", launch))
    assert read == {"engine_version": "mlx-lm 0.32.2 (mlx 0.32.4)", "admitted": 1}


def test_every_supported_system_of_the_catalog_has_a_command():
    systems = [s for s in CATALOG.systems.values() if s.name.engine == "mlx" and not s.unsupported_on()]
    assert len(systems) >= 4
    for system in systems:
        check_launch(MLX, planned_launch(ROOT, system, way_of(system, MLX), system.launch_on()))
