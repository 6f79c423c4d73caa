"""The Transformers server, for real: canvases of DiffusionGemma, masked diffusion, token by token, drafts.

Each is measured as a job of a plan, then by `paribus speed --base-url`; tokens and requests agree with the server's own
counters within 1%. The models have random weights: their paths are proven, not their speed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from real_runs import ROOT, Repository, made, speed, within

from paribus.catalog import PromptLine
from paribus.engines import Session, build_environment, environment_python, fingerprinting
from paribus.engines.fingerprint import PROMPTS, Reading, Reference
from paribus.engines.fingerprinting import reference_file, verify_sampler
from paribus.engines.local import NoAnswer, ask_json

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]

SYSTEM = """
model: tiny-{kind}
title: A tiny model of random weights
family: tiny
kind: {sort}
licence: none
released: "2026-12"
context: 4096
source: tests/engines_real
sampling: {{temperature: 0.8, top_p: 0.95, source: a test}}
precisions:
  f32:
    weights: {{source: pypi, repository: tiny, revision: "0", file: made-by-a-test}}
    memory_gb: 1
engines:
  transformers-cpu:
    precisions: [f32]
    launch: {{context_length: 4096, threads: 1, dtype: float32}}
    launch_source: a test
    decoders:
      {decoders}
"""

DIFFUSION = """
      card: {method: block-diffusion, lossy: {canvas_length: 32, max_denoising_steps: 4, entropy_bound: 0.2}}
""".strip()
MASKED = """
      steps-8: {method: block-diffusion, lossy: {block_length: 32, steps_per_block: 8}}
      threshold: {method: block-diffusion, lossy: {block_length: 16, steps_per_block: 16, threshold: 0.2}}
      other: {method: block-diffusion, lossy: {block_length: 16, steps_per_block: 16, threshold: 0.6}}
""".strip()
CAUSAL = """
      plain: {method: plain}
      draft-n4: {method: draft, acceptance: rejection, parameters: {num_assistant_tokens: 4}}
""".strip()


@pytest.fixture(autouse=True)
def short_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fingerprints of short prompts: the catalog's are long for a model with one token a character."""
    lines = [PromptLine(id=f"p{n:02d}", prompt=f"Name {n} things.") for n in range(PROMPTS)]
    monkeypatch.setattr(fingerprinting, "prompts_of", lambda _: lines)


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of the server's CPU environment, built by its rule where it isn't there."""
    build_environment(ROOT, "transformers-cpu", print)
    return environment_python(ROOT, "transformers-cpu")


def put(repository: Repository, python: Path, kind: str, decoders: str) -> str:
    """A tiny model in a repository: its system's file and its weights; returns the beginning of its systems' names."""
    sort = "autoregressive" if kind == "causal" else "diffusion"
    repository.system_file(f"tiny-{kind}", SYSTEM.format(kind=kind, sort=sort, decoders=decoders))
    here = Path(__file__).parent
    if kind == "canvases":
        folder = made(python, "tiny-diffusion", here / "tiny_diffusion_gemma.py")
    else:
        folder = made(python, f"tiny-{kind}", here / "tiny_transformers.py", kind)
    repository.weights(f"tiny-{kind}--f32", folder)
    return f"tiny-{kind}--f32--transformers-cpu"


def agree(start, asked) -> None:
    """Tokens and requests of a job, and of `paribus speed`, are the server's own within 1%."""
    counters = start.manifest["counters"]
    assert start.summary["requests"]["ok"] == 2
    assert start.summary["requests"]["failed"] == 0
    assert within(0.01, counters["generated_tokens"], start.summary["tokens"]["total"])
    assert not start.flags & {"counters_disagree", "usage_mismatch", "usage_missing", "cached", "no_done"}
    assert asked.summary["requests"]["ok"] == asked.grown["paribus_requests_total"] == 6
    assert within(0.01, asked.grown["paribus_generated_tokens_total"], asked.summary["tokens"]["total"])
    assert asked.summary["tokens"]["total"] == 6 * 48, "the tiny models never end by themselves"
    assert start.manifest["observed"]["admitted"] == 1


def asking(repository: Repository, folder: Path, *options: str):
    """`paribus speed` against the server, four at once though it admits one; and its properties."""

    def extra(session: Session):
        asked = speed(
            session, folder / "asked", *repository.tokenizer(session), *options, requests=6, at_once=4, cap=48
        )
        return asked, ask_json(f"{session.base}/props", timeout_s=120)

    return extra


def seeded(session: Session) -> list[str]:
    """Answers of two equal seeds and another one; what can't be done is refused."""
    url = f"{session.endpoint.base_url}/chat/completions"
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 40}
    texts = [
        ask_json(url, {**body, "seed": seed}, timeout_s=120)["choices"][0]["message"]["content"] for seed in (7, 7, 8)
    ]
    with pytest.raises(NoAnswer, match=r"HTTP 400.*doesn't know, for this model: temperature"):
        ask_json(url, {**body, "temperature": 0.5}, timeout_s=120)
    with pytest.raises(NoAnswer, match=r"HTTP 400.*the context holds 4096"):
        ask_json(url, {"messages": [{"role": "user", "content": "x" * 5000}]}, timeout_s=120)
    return texts


def test_diffusion_gemma_writes_canvas_by_canvas(repository: Repository, python: Path, tmp_path: Path):
    system = put(repository, python, "canvases", DIFFUSION)
    ask = asking(repository, tmp_path)
    done = repository.measure(f"{system}--card", ("c1-short",), extra=lambda session: (*ask(session), seeded(session)))
    start, (asked, props, (one, same, other)) = done.starts["c1-short"], done.extra
    agree(start, asked)
    assert one == same != other
    observed = start.manifest["observed"]
    assert (props["architecture"], props["family"]) == ("DiffusionGemmaForBlockDiffusion", "diffusion-gemma")
    assert observed["effective_settings"]["entropy_bound"] == 0.2
    assert observed["sampling_accepted"] == []
    assert "sampling_left_out" in start.flags
    assert "research_implementation" not in observed
    assert observed["rendered_prompt"] == "<turn>user\nhello\n<turn>model\n"
    # A cap of 48 is a canvas of 32 tokens and a part of the next: never more than two pieces. On a busy machine both
    # may be read at once.
    assert max(row["arrivals"] for row in asked.rows) == 2
    counters = start.manifest["counters"]
    # Two answers of one canvas each: four denoising steps and one pass of the encoder a canvas.
    assert (counters["denoising_steps"], counters["forward_passes"]) == (2 * 4, 2 * 5)
    committed = counters["committed_tokens"]
    assert start.summary["acceptance"]["tokens_per_pass"] == pytest.approx(committed / 10)
    assert {passes for _, passes, _ in observed["sampler_readings"]} == {4.0}


def reference(repository: Repository, system: str, readings: list) -> None:
    """Put readings in place as the reference's of a system."""
    found = repository.catalog.system(system)
    made = Reference(
        model=found.name.model,
        precision=found.name.precision,
        decoder=found.name.decoder,
        lossy=dict(found.decoder.lossy),
        engine_version="a test",
        readings=[Reading(prompt=name, passes=passes, first=first) for name, passes, first in readings],
    )
    path = repository.root / "private" / reference_file(found)
    path.parent.mkdir(exist_ok=True)
    path.write_text(made.model_dump_json())


def test_the_rules_of_masked_diffusion_hold(python: Path):
    script = Path(__file__).with_name("masked_rules.py")
    ran = subprocess.run([python, script, ROOT / "envs" / "transformers"], capture_output=True, text=True, check=False)
    assert ran.stdout == "holds\n", ran.stderr[-2000:]


def test_masked_diffusion_writes_block_by_block_and_is_a_research_implementation(
    repository: Repository, python: Path, tmp_path: Path
):
    system = put(repository, python, "masked", MASKED)
    done = repository.measure(f"{system}--steps-8", ("c1-short",), extra=asking(repository, tmp_path))
    start, (asked, props) = done.starts["c1-short"], done.extra
    agree(start, asked)
    assert props["denoising"]["steps_per_block"] == 8
    assert start.manifest["observed"]["research_implementation"] is True
    assert start.manifest["observed"]["sampling_accepted"] == []
    # Caps of 12 are cut out of one block of 32 each, which takes exactly its eight steps.
    assert start.manifest["counters"]["denoising_steps"] == 2 * 8
    assert asked.grown["paribus_denoising_steps_total"] == 8 * asked.grown["paribus_canvases_total"]


def test_a_sampler_agrees_with_itself_and_not_with_one_of_another_threshold(
    repository: Repository, python: Path, tmp_path: Path
):
    system = put(repository, python, "masked", MASKED)
    catalog = repository.catalog

    def extra(session: Session):
        """Ask, then read the sampler again: now against the readings that this start was measured with."""
        asked = asking(repository, tmp_path)(session)[0]
        first = dict(session.observed)
        reference(repository, f"{system}--threshold", first["sampler_readings"])
        return asked, first, verify_sampler(session, catalog)

    done = repository.measure(f"{system}--threshold", ("c1-short",), extra=extra)
    start, (asked, first, again) = done.starts["c1-short"], done.extra
    agree(start, asked)
    assert first["sampler_fingerprint"] == "unverified"
    assert "sampler_unverified" in start.flags
    passes = {passes for _, passes, _ in first["sampler_readings"]}
    assert len(passes) > 1
    assert all(1 <= each <= 16 for each in passes)
    assert again["sampler_fingerprint"].startswith("reference "), again["sampler_note"]

    # The same weights with another threshold, held against these readings: another sampler.
    reference(repository, f"{system}--other", first["sampler_readings"])
    other = repository.measure(f"{system}--other", ("c1-short",)).starts["c1-short"]
    observed = other.manifest["observed"]
    assert observed["sampler_fingerprint"].startswith("not reference "), observed["sampler_note"]
    assert "sampler_mismatch" in other.flags
    assert "sampler_unverified" not in other.flags


def greedy(session: Session) -> str:
    """A greedy completion."""
    body = {"prompt": "Once upon", "max_tokens": 40, "temperature": 0}
    return ask_json(f"{session.endpoint.base_url}/completions", body, timeout_s=120)["choices"][0]["text"]


def test_token_by_token_and_with_drafts_that_change_nothing(repository: Repository, python: Path, tmp_path: Path):
    system = put(repository, python, "causal", CAUSAL)
    plain, drafting = (
        repository.measure(
            f"{system}--{decoder}",
            ("c1-short",),
            extra=lambda session, at=decoder: (
                asking(repository, tmp_path / at, "--temperature", "0")(session)[0],
                greedy(session),
            ),
        )
        for decoder in ("plain", "draft-n4")
    )
    for done in (plain, drafting):
        agree(done.starts["c1-short"], done.extra[0])
    manifest = plain.starts["c1-short"].manifest
    assert manifest["counters"]["forward_passes"] == manifest["counters"]["generated_tokens"]
    assert manifest["observed"]["sampling_accepted"] == ["temperature", "top_p"]
    assert "drafts" not in manifest["counters"]

    counters = drafting.starts["c1-short"].manifest["counters"]
    assert 0 < counters["accepted_tokens"] <= counters["draft_tokens"]
    assert counters["generated_tokens"] == counters["forward_passes"] + counters["accepted_tokens"]
    # The model is its own assistant, and greedy here: every draft is accepted, but for the last one at the cap.
    asked = drafting.extra[0]
    assert asked.grown["paribus_generated_tokens_total"] > 4 * asked.grown["paribus_forward_passes_total"]
    assert plain.extra[1] == drafting.extra[1]
    assert len(plain.extra[1]) > 10
