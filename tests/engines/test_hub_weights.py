"""Weights from the hub: whole repositories and single files at a commit, drafters, and refusals in one sentence.

The hub can't be reached here: a stand-in for its client answers with the shapes and the errors of huggingface_hub 2.4.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from paribus.catalog import Catalog, resolve
from paribus.catalog.envs import drafter_marker, drafter_name
from paribus.catalog.surroundings import Surroundings
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines import fetch_weights, weights_path
from paribus.engines.weights import drafter_path, revision_of

COMMIT = "ab" * 20
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 9, "original/old.bin": b"o"}


class StandIn:
    """The functions of `huggingface_hub` that are used; `refuses` names the error that every call raises."""

    def __init__(self):
        self.calls, self.refuses = [], None
        self.HfApi = lambda: SimpleNamespace(model_info=self._info)

    def _info(self, repository):
        self._may()
        self.calls.append(("model_info", repository))
        return SimpleNamespace(sha=COMMIT)

    def snapshot_download(self, repository, *, revision, local_dir):
        self._may()
        self.calls.append(("snapshot", repository, revision))
        for name in FILES:
            self._write(local_dir, name)
        self._write(local_dir, ".cache/huggingface/trace")
        return str(local_dir)

    def hf_hub_download(self, repository, name, *, revision, local_dir):
        self._may()
        self.calls.append(("file", repository, name, revision))
        return str(self._write(local_dir, name))

    def _write(self, folder, name):
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FILES.get(name, b"x"))
        return path

    def _may(self):
        if self.refuses:
            raise type(self.refuses, (Exception,), {})("401 Client Error: secret-token")


@pytest.fixture
def hub(monkeypatch):
    client = StandIn()
    monkeypatch.setitem(sys.modules, "huggingface_hub", client)
    monkeypatch.delenv("PARIBUS_OFFLINE", raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return client


def a_catalog(root: Path, weights: dict, drafter: dict | None = None) -> Catalog:
    decoders: dict = {"plain": {"method": "plain"}}
    if drafter:
        decoders["dflash-n16"] = {"method": "dflash", "acceptance": "rejection", "drafter": drafter}
    model = {
        "model": "big",
        "title": "Big",
        "family": "big",
        "kind": "autoregressive",
        "licence": "none",
        "released": "2026-01",
        "context": 4096,
        "source": "a test",
        "sampling": {"source": "a test"},
        "precisions": {"bf16": {"weights": {"source": "hub", "repository": "maker/Big", **weights}, "memory_gb": 1}},
        "engines": {"sglang": {"precisions": ["bf16"], "launch_source": "a test", "decoders": decoders}},
    }
    (root / "systems").mkdir(parents=True, exist_ok=True)
    (root / "systems" / "big.yaml").write_text(yaml.safe_dump(model))
    return Catalog(root)


def silent(_text: str) -> None:
    pass


def test_a_whole_repository_is_fetched_at_its_pinned_revision(hub, tmp_path):
    catalog = a_catalog(tmp_path, {"revision": "c" * 40})
    marker = json.loads(fetch_weights(tmp_path, catalog, "big--bf16", silent).read_text())
    assert hub.calls == [("snapshot", "maker/Big", "c" * 40)]
    path = weights_path(tmp_path, Catalog(tmp_path).system("big--bf16--sglang--plain"))
    assert {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()} == set(FILES), "no trace of the client"
    assert marker["resolved"] == "c" * 40
    assert marker["files"] == {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    assert revision_of(tmp_path, catalog.system("big--bf16--sglang--plain")) is None, "the file says it already"
    (path / "config.json").write_text("{ }")
    with pytest.raises(EnvironmentFault, match="missing or changed since they were fetched"):
        weights_path(tmp_path, Catalog(tmp_path).system("big--bf16--sglang--plain"))


def test_what_is_not_pinned_is_resolved_once_and_recorded(hub, tmp_path):
    catalog = a_catalog(tmp_path, {})
    told: list[str] = []
    fetch_weights(tmp_path, catalog, "big--bf16", told.append)
    assert hub.calls == [("model_info", "maker/Big"), ("snapshot", "maker/Big", COMMIT)]
    assert f"maker/Big is not pinned: its newest commit is {COMMIT}" in told
    assert revision_of(tmp_path, catalog.system("big--bf16--sglang--plain")) == COMMIT


def test_one_file_of_a_repository_is_checked(hub, tmp_path):
    right = hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    weights = {"revision": "c" * 40, "file": "model.safetensors", "file_sha256": right}
    fetch_weights(tmp_path, a_catalog(tmp_path, weights), "big--bf16", silent)
    assert (
        weights_path(tmp_path, Catalog(tmp_path).system("big--bf16--sglang--plain")).read_bytes()
        == FILES["model.safetensors"]
    )
    other = tmp_path / "other"
    with pytest.raises(EnvironmentFault, match="sha256 expected"):
        fetch_weights(other, a_catalog(other, {**weights, "file_sha256": "0" * 64}), "big--bf16", silent)
    with pytest.raises(UsageError, match=r"big.yaml: .*weights.file: .* lies outside"):
        fetch_weights(other, a_catalog(other, {"file": "../../x"}), "big--bf16", silent)


def test_a_drafter_is_fetched_by_a_name_of_its_own_and_planned(hub, tmp_path):
    drafter = {"source": "hub", "repository": "z-lab/Big-DFlash", "revision": "d" * 40}
    catalog = a_catalog(tmp_path, {}, drafter)
    system = catalog.system("big--bf16--sglang--dflash-n16")
    name = drafter_name(system.drafter)
    assert name.startswith("drafter--big-dflash-")
    with pytest.raises(EnvironmentFault, match=f"run `paribus fetch weights {name}`"):
        drafter_path(tmp_path, system.drafter)
    marker = fetch_weights(tmp_path, catalog, name, silent)
    assert marker == tmp_path / drafter_marker(system.drafter)
    assert ("snapshot", "z-lab/Big-DFlash", "d" * 40) in hub.calls
    assert (drafter_path(tmp_path, system.drafter) / "config.json").is_file()
    with pytest.raises(UsageError, match=f"known: big--bf16, {name}"):
        fetch_weights(tmp_path, catalog, "drafter--other", silent)


def test_a_job_with_a_drafter_needs_its_weights(hub, tmp_path):
    ours = Path(__file__).parents[2]
    catalog = Catalog(ours)
    system = catalog.system("qwen3.6-35b-a3b--bf16--vllm--dflash-n15")
    around = Surroundings.observe(catalog, "m-test")
    plan = resolve(ours, "h200", {"systems": "qwen3.6-35b-a3b--bf16--vllm--*", "scale": "quick"}, around)
    needs = {need for job in plan.jobs if job.system == str(system.name) for need in job.needs}
    assert drafter_marker(system.drafter) in needs
    plain = {need for job in plan.jobs if job.system.endswith("--plain") for need in job.needs}
    assert drafter_marker(system.drafter) not in plain


@pytest.mark.parametrize(
    ("kind", "weights", "token", "said"),
    [
        (
            "GatedRepoError",
            {},
            "",
            "is gated, and the hub refuses no token \\(HF_TOKEN is not set\\): accept its licence",
        ),
        ("GatedRepoError", {}, "hf_x", "is gated, and the hub refuses the token in HF_TOKEN: accept its licence"),
        ("RepositoryNotFoundError", {}, "", "the hub shows no maker/Big to no token"),
        ("RevisionNotFoundError", {"revision": "e" * 40}, "", f"has no revision {'e' * 40}"),
        ("RemoteEntryNotFoundError", {"file": "a.gguf"}, "", "has no file a.gguf"),
        ("HfHubHTTPError", {}, "", "the hub gave no maker/Big at unpinned: 401 Client Error"),
    ],
)
def test_each_refusal_is_one_sentence_with_what_to_do(hub, tmp_path, monkeypatch, kind, weights, token, said):
    hub.refuses = kind
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(EnvironmentFault, match=said) as caught:
        fetch_weights(tmp_path, a_catalog(tmp_path, weights), "big--bf16", silent)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "build" / "weights").glob("*.json")) == []


def test_the_names_of_errors_are_those_of_the_client():
    errors = pytest.importorskip("huggingface_hub.errors")
    for name in ("GatedRepoError", "RepositoryNotFoundError", "RevisionNotFoundError", "RemoteEntryNotFoundError"):
        assert hasattr(errors, name)
