"""Counters and gauges of vLLM and SGLang under our names, and what the metrics make of them."""

import pytest

from paribus.engines import engine
from paribus.engines.adapters.endpoint import ENGINE
from paribus.engines.base import COUNTERS, GAUGES
from paribus.engines.counters import KNOWN, LLAMACPP, SGLANG, VLLM, grown, named
from paribus.speed.metrics.acceptance import acceptance

LABELS = '{engine="0",model_name="m"}'

VLLM_PAGE = f"""\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{LABELS} 14.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{LABELS} 2.0
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{LABELS} 4100.0
# TYPE vllm:prompt_tokens_created gauge
vllm:prompt_tokens_created{LABELS} 1.79e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{LABELS} 999.0
# TYPE vllm:prompt_tokens_cached_total counter
vllm:prompt_tokens_cached_total{LABELS} 96.0
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{LABELS} 1000.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum{LABELS} 5100.0
vllm:iteration_tokens_total_bucket{{engine="0",le="1.0",model_name="m"}} 300.0
vllm:iteration_tokens_total_count{LABELS} 400.0
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{LABELS} 300.0
vllm:spec_decode_num_draft_tokens_total{LABELS} 1200.0
vllm:spec_decode_num_accepted_tokens_total{LABELS} 600.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",model_name="m",position="0"}} 280.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",model_name="m",position="1"}} 200.0
"""

DIFFUSION_PAGE = f"""\
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{LABELS} 2048.0
# TYPE vllm:diffusion_num_denoising_steps_total counter
vllm:diffusion_num_denoising_steps_total{LABELS} 128.0
vllm:diffusion_num_canvas_positions_total{LABELS} 2304.0
vllm:diffusion_num_committed_tokens_total{LABELS} 2048.0
"""

SGLANG_PAGE = """\
# HELP sglang:prompt_tokens_total Number of prefill tokens processed.
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 8.128902e+06
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 7.557572e+06
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 40.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 2.0
# TYPE sglang:spec_verify_calls_total counter
sglang:spec_verify_calls_total{model_name="m"} 8060.0
# TYPE sglang:spec_accept_length gauge
sglang:spec_accept_length{model_name="m"} 2.8
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 161.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 2826.0
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{model_name="m"} 0.0075
"""


def test_vllm_has_our_names():
    assert named(VLLM_PAGE, VLLM, COUNTERS) == {
        "drafts": 300,
        "draft_tokens": 1200,
        "accepted_tokens": 600,
        "generated_tokens": 1000,
        "prompt_tokens": 4100,
        "cached_prompt_tokens": 96,
    }
    assert named(VLLM_PAGE, VLLM, GAUGES) == {"running": 14, "waiting": 2}


def test_older_vllm_tells_cached_tokens_as_hits():
    page = VLLM_PAGE.replace("vllm:prompt_tokens_cached_total", "vllm:other_total")
    assert named(page, VLLM, COUNTERS)["cached_prompt_tokens"] == 999


def test_sglang_has_our_names_and_its_gauge_of_acceptance_is_not_taken_for_a_counter():
    counters = named(SGLANG_PAGE, SGLANG, COUNTERS)
    assert counters == {
        "drafts": 8060,
        "generated_tokens": 7_557_572,
        "prompt_tokens": 8_128_902,
        "cached_prompt_tokens": 42,
    }
    assert named(SGLANG_PAGE, SGLANG, GAUGES) == {"running": 161, "waiting": 2826}
    assert acceptance(counters).acceptance_length is None


def test_sglang_drafts_are_accepted_where_tokens_are_from_neither_a_pass_nor_a_prefill():
    page = """\
sglang:generation_tokens_total{is_streaming="true",model_name="m"} 900.0
sglang:generation_tokens_total{is_streaming="false",model_name="m"} 100.0
sglang:num_requests_total{is_streaming="true",model_name="m"} 9.0
sglang:num_requests_total{is_streaming="false",model_name="m"} 1.0
"""
    assert "accepted_tokens" not in engine("sglang").counters(page), "plain decoding verifies nothing"
    counters = engine("sglang").counters(page + 'sglang:spec_verify_calls_total{model_name="m"} 330.0\n')
    assert counters["accepted_tokens"] == 1000 - 330 - 10
    found = acceptance(counters)
    assert found.acceptance_length == pytest.approx(1 + 660 / 330)
    assert found.tokens_per_pass == pytest.approx(1000 / (330 + 10)), "prefills give a token each"


def test_any_endpoint_is_read_by_every_engines_names():
    assert ENGINE.gauges(SGLANG_PAGE) == {"running": 161, "waiting": 2826}
    assert ENGINE.counters(VLLM_PAGE)["accepted_tokens"] == 600
    assert set(KNOWN.values()) <= {*COUNTERS, *GAUGES}
    assert len(KNOWN) == len(LLAMACPP) + len(VLLM) + len(SGLANG), "names tell engines apart"


def test_acceptance_over_a_window_is_made_of_differences():
    before = named(VLLM_PAGE, VLLM, COUNTERS)
    after = before | {"drafts": 400, "draft_tokens": 1600, "accepted_tokens": 850, "generated_tokens": 1400}
    found = acceptance(grown(before, after))
    assert found.acceptance_length == pytest.approx(1 + 250 / 100)
    assert found.tokens_per_pass == pytest.approx(400 / (400 - 250))
    assert found.counted_tokens == 400


def test_denoising_steps_give_tokens_a_pass():
    counters = named(DIFFUSION_PAGE, VLLM, COUNTERS)
    assert counters == {
        "generated_tokens": 2048,
        "forward_passes": 128,
        "committed_tokens": 2048,
        "canvas_positions": 2304,
    }
    found = acceptance(counters)
    assert (found.acceptance_length, found.tokens_per_pass) == (None, 16.0)
    bare = DIFFUSION_PAGE.replace("_steps_total", "_steps").replace("committed_tokens_total", "committed_tokens")
    assert named(bare, VLLM, COUNTERS) == counters
