"""What real engines measure on a test's own models, of random weights too, stays apart from results. No engine runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_runs import ROOT, Repository, strangers
from test_transformers_on_a_cpu import CAUSAL, DIFFUSION, MASKED, SYSTEM

from paribus.catalog import Catalog
from paribus.conditions import UsageError

KINDS = {"canvases": DIFFUSION, "masked": MASKED, "causal": CAUSAL}
RUN = "cpu/m-test/tiny-masked--f32--transformers-cpu--steps-8/c1-short/0123456789ab.1"


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_model_is_measured_below_a_temporary_folder_only(repository: Repository, kind: str):
    sort = "autoregressive" if kind == "causal" else "diffusion"
    repository.system_file(f"tiny-{kind}", SYSTEM.format(kind=kind, sort=sort, decoders=KINDS[kind]))
    names = [name for name in repository.catalog.systems if name.startswith("tiny-")]
    assert names
    for name in names:
        with pytest.raises(UsageError):
            Catalog(ROOT).system(name)
        plan = repository.plan(name, ("c1-short",), 4)
        # Neither folder is a link, which would lead to this repository's.
        written = (repository.root / plan.results).resolve()
        assert written.is_relative_to(repository.root.resolve())
        assert not written.is_relative_to(ROOT)
        assert plan.results == "build/demo-results", "what lies there is never committed and never ranked"
    assert not (repository.root / "results").exists()


@pytest.mark.parametrize("results", ["results", "build/demo-results"])
def test_a_run_of_random_weights_among_results_is_found(tmp_path: Path, results: str):
    start = tmp_path / results / RUN / "start-1"
    start.mkdir(parents=True)
    (start / "manifest.json").write_text("{}")
    assert strangers(tmp_path, {"tiny-masked"}) == [RUN]
    assert strangers(tmp_path, {"tiny-causal"}) == []
