"""Somebody else's server: run against the scripted endpoint, never ranked; address and key from the environment.

The services themselves were not asked. How they differ is played from their documentation, named in the adapter.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from private_catalog import write_hosted
from pydantic import ValidationError

from paribus.catalog import Catalog, Hosted, Plan, Surroundings, System, resolve
from paribus.catalog.hosts import key_name, public_fault
from paribus.conditions import CheckFailed, EnvironmentFault, Manifest, RunPath, UsageError
from paribus.engines import Launch, Running, check_launch, engine, open_session, planned_launch, run_job
from paribus.engines.endpoints import endpoint_of
from paribus.results.check import check
from paribus.results.run import RunFolder
from paribus.results.seal import seal
from paribus.speed.run import measure_speed_start
from paribus.wire import read_outcomes
from scripted import Script
from scripted.script import Step, answer_body

ROOT = Path(__file__).parents[2]
OWN = "url_env: OWN_URL, api_key_env: OWN_API_KEY"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with our tasks and the profile `hosted`, and no system."""
    root = tmp_path / "clone"
    for name in ("tasks", "hardware/hosted"):
        shutil.copytree(ROOT / name, root / name)
    (root / "pairs.yaml").write_text('{edition: "2026.1", protocol: 1, pairs: []}')
    return root


def planned(clone: Path, private: Path, scale: str = "tiny") -> tuple[Catalog, Plan]:
    """A plan of the private system, one request at a time."""
    wanted = {"catalog": str(private), "systems": "theirs--*", "measures": "c1-short", "scale": scale}
    catalog = Catalog(clone, private)
    return catalog, resolve(clone, "hosted", wanted, Surroundings.observe(catalog, "m-test"))


@pytest.mark.parametrize("name", ["hosted", "endpoint"])
def test_a_server_that_runs_already_is_measured_by_its_job_and_never_ranked(
    clone, scripted, tmp_path, monkeypatch, name
):
    private = write_hosted(tmp_path / "mine", OWN, engine=name, model="f5-n40-i500")
    catalog, plan = planned(clone, private)
    (job,) = plan.jobs
    assert job.needs == [], "there is nothing to build or fetch"
    monkeypatch.setenv("OWN_URL", scripted.base_url + "/")
    monkeypatch.setenv("OWN_API_KEY", "sk-scripted-0123456789")
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.delenv("PARIBUS_WORKFLOW_PID", raising=False)
    run_job(clone, plan, job.job, lambda s, p, to: measure_speed_start(s, p, catalog, to), catalog=catalog, tell=False)
    sent = scripted.log("f5-n40-i500")
    assert all(each.headers["authorization"] == "Bearer sk-scripted-0123456789" for each in sent)
    measured = [each.request for each in sent if each.request.get("stream")]
    assert measured
    assert all(each["reasoning_effort"] == "instant" for each in measured), "the effort is part of the system"
    assert all("top_k" not in each or name == "endpoint" for each in measured), "not documented, so left out"
    folder = clone / plan.results / job.measures[0].run / "start-1"
    manifest = Manifest.model_validate_json((folder / "manifest.json").read_text())
    assert manifest.origin == "endpoint"
    assert manifest.observed["card"] == "not disclosed"
    assert "cpu" not in manifest.observed, "this machine's CPU is not the server's"
    assert not (folder / "telemetry.parquet").exists()
    assert "sk-scripted" not in "".join(p.read_text(errors="ignore") for p in folder.iterdir())
    run = RunFolder(clone / plan.results, RunPath.parse(job.measures[0].run))
    summary = seal(run, catalog)
    assert (summary.origin, summary.ranked) == ("endpoint", False)
    report = check(clone, [str(run.folder)], private=private)
    assert [f for f in report.findings if f.verdict == "fails"] == []


def test_a_full_scale_without_a_single_flag_would_not_be_ranked_either(clone, scripted, tmp_path, monkeypatch):
    private = write_hosted(tmp_path / "mine", OWN, model="f5-n40-i500")
    _, plan = planned(clone, private)
    assert all(job.measures[0].declared["hardware"] == "hosted" for job in plan.jobs)
    owned = {"catalog": str(private), "systems": "theirs--*", "measures": "c1-short", "scale": "tiny"}
    shutil.copytree(ROOT / "hardware/h100", clone / "hardware/h100")
    left = resolve(clone, "h100", owned, Surroundings.observe(Catalog(clone, private), "m-test"))
    assert left.jobs == []
    assert {each.reason for each in left.excluded} == {"it is served by somebody else: use the profile hosted"}


def test_a_rate_limit_is_a_failure_of_a_speed_run_and_is_recorded(clone, scripted, tmp_path, monkeypatch):
    whole = Script((Step(0, answer_body("blue", 1), 1),), content_type="application/json", framing="length")
    limit = Script((Step(0, b"{}"),), 429, "application/json", {"retry-after": "0"}, "length")
    scripted.register("limited", whole, limit)
    catalog, plan = planned(clone, write_hosted(tmp_path / "mine", OWN, model="limited"))
    monkeypatch.setenv("OWN_URL", scripted.base_url)
    monkeypatch.setenv("OWN_API_KEY", "k")
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.delenv("PARIBUS_WORKFLOW_PID", raising=False)
    with pytest.raises(CheckFailed, match="http_429"):
        run_job(
            clone,
            plan,
            plan.jobs[0].job,
            lambda s, p, to: measure_speed_start(s, p, catalog, to),
            catalog=catalog,
            tell=False,
        )
    folder = clone / plan.results / plan.jobs[0].measures[0].run / "start-1"
    outcomes = list(read_outcomes(folder / "requests.parquet"))
    assert outcomes
    assert all((each.error, each.retry_after_s) == ("http_429", 0.0) for each in outcomes)
    assert not (folder / "manifest.json").exists()


def session(clone: Path, private: Path):
    catalog, plan = planned(clone, private)
    return open_session(clone, plan.jobs[0], catalog)


@pytest.mark.parametrize(
    ("variables", "error", "said"),
    [
        ({}, EnvironmentFault, "the environment variable OWN_URL must hold the server's address"),
        ({"OWN_URL": "http://127.0.0.1:1"}, UsageError, "OWN_URL must end with /v1"),
        (
            {"OWN_URL": "http://127.0.0.1:1/v1"},
            EnvironmentFault,
            "the environment variable OWN_API_KEY holds no API key",
        ),
    ],
)
def test_what_the_environment_lacks_is_named(clone, tmp_path, monkeypatch, variables, error, said):
    for name in ("OWN_URL", "OWN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(error, match=said), session(clone, write_hosted(tmp_path / "mine", OWN)):
        pass


@pytest.mark.parametrize("repeated", ["abc-very-secret-1", "abc-********ret-1", "abc-ve..."])
def test_what_a_service_says_of_a_wrong_key_does_not_give_it_away(clone, scripted, tmp_path, monkeypatch, repeated):
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {repeated}"}}).encode()
    scripted.register("m", Script((Step(0, body),), status=401, content_type="application/json", framing="length"))
    monkeypatch.setenv("OWN_URL", scripted.base_url)
    monkeypatch.setenv("OWN_API_KEY", "abc-very-secret-1")
    with (
        pytest.raises(EnvironmentFault, match="HTTP 401") as caught,
        session(clone, write_hosted(tmp_path / "mine", OWN)),
    ):
        pass
    assert "Incorrect API key provided" in str(caught.value)
    assert "abc-" not in str(caught.value)
    assert "ret-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either url or url_env"),
        ({"url": "https://a.example/v1", "url_env": "X", "api_key_env": "K"}, "either url or url_env"),
        ({"url": "https://a.example/v1"}, "needs api_key_env: PARIBUS_A_EXAMPLE_API_KEY"),
        ({"url": "http://127.0.0.1:8000/v1", "api_key_env": "K"}, "pattern"),
        ({"url": "https://169.254.169.254/v1", "api_key_env": "AWS_SECRET_ACCESS_KEY"}, "no public host"),
        ({"url": "https://169.254.169.254/v1", "api_key_env": "PARIBUS_X_API_KEY"}, "no public host"),
        ({"url": "https://2852039166/v1", "api_key_env": "PARIBUS_X_API_KEY"}, "no public host"),
        ({"url": "https://0x7f.1/v1", "api_key_env": "PARIBUS_X_API_KEY"}, "no public host"),
        ({"url": "https://[fe80::1]/v1", "api_key_env": "PARIBUS_X_API_KEY"}, "no public host"),
        ({"url": "https://10.0.0.8:8443/v1", "api_key_env": "PARIBUS_X_API_KEY"}, "no public host"),
        ({"url": "https://localhost/v1", "api_key_env": "PARIBUS_X_API_KEY"}, "no public host"),
        ({"url": "https://metadata.google.internal/v1", "api_key_env": "PARIBUS_X_API_KEY"}, "no public host"),
        ({"url": "https://evil.example/v1", "api_key_env": "AWS_SECRET_ACCESS_KEY"}, "not the key of evil.example"),
        ({"url": "https://evil.example/v1", "api_key_env": "OPENROUTER_API_KEY"}, "not the key of evil.example"),
        ({"url": "https://evil.example/v1", "api_key_env": "PARIBUS_OTHER_EXAMPLE_API_KEY"}, "not the key of"),
        ({"url": "https://openrouter.ai@evil.example/v1", "api_key_env": "OPENROUTER_API_KEY"}, "neither user"),
        ({"url": "https://evil.example/?/v1", "api_key_env": "PARIBUS_EVIL_EXAMPLE_API_KEY"}, "neither user"),
        ({"url": "https://openrouter.ai/api/v1", "api_key_env": "INCEPTION_API_KEY"}, "not the key of openrouter.ai"),
        ({"url_env": "OWN_URL", "api_key_env": "AWS_SECRET_ACCESS_KEY"}, "that is OWN_API_KEY"),
        ({"url_env": "HOME", "api_key_env": None}, "must end with _URL"),
        ({"url_env": "_URL", "api_key_env": None}, "pattern|must end with _URL"),
    ],
)
def test_an_address_is_public_or_comes_from_the_environment(given, said):
    with pytest.raises(ValidationError, match=said):
        Hosted(model="m", source="a test", **given)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("https://api.my-lab.org/v1", "PARIBUS_API_MY__LAB_ORG_API_KEY"),
        ("https://api.my.lab.org:8443/v1", "PARIBUS_API_MY_LAB_ORG_API_KEY"),
    ],
)
def test_a_public_host_has_one_key(url, key):
    assert Hosted(model="m", source="a test", url=url, api_key_env=key).api_key_env == key


@pytest.mark.parametrize("url", ["http://openrouter.ai/api/v1", "ftp://openrouter.ai/api/v1", "//openrouter.ai/v1"])
def test_a_key_is_sent_to_no_public_address_where_it_could_be_read(url):
    assert "begins with https://" in (public_fault(url, "OPENROUTER_API_KEY") or "")
    with pytest.raises(ValidationError, match="https"):
        Hosted(model="m", source="a test", url=url, api_key_env="OPENROUTER_API_KEY")


def system_at(url: str, kind: str = "autoregressive") -> System:
    hosted = next(s for s in Catalog(ROOT).systems.values() if s.use.hosted)
    key = key_name(urlsplit(url).hostname or "")
    use = hosted.use.model_copy(update={"hosted": Hosted(url=url, model="m", api_key_env=key, source="a test")})
    model = hosted.model.model_copy(update={"kind": kind, "engines": {hosted.name.engine: use}})
    return System(model, hosted.name)


@pytest.mark.parametrize(
    ("url", "kind", "fields"),
    [
        ("https://api.inceptionlabs.ai/v1", "diffusion", {"temperature"}),
        ("https://openrouter.ai/api/v1", "diffusion", {"temperature", "top_p", "top_k", "min_p", "seed"}),
        ("https://integrate.api.nvidia.com/v1", "autoregressive", {"temperature", "top_p", "seed"}),
        ("https://integrate.api.nvidia.com/v1", "diffusion", set()),
        ("https://api.example.com/v1", "autoregressive", {"temperature", "top_p"}),
    ],
)
def test_sampling_fields_are_those_that_a_service_documents(url, kind, fields):
    assert engine("hosted").sampling_fields(system_at(url, kind)) == fields


def test_a_context_that_the_service_tells_is_read_back(monkeypatch):
    """OpenRouter's `GET /api/v1/models` gives `context_length` for each model (its API reference)."""
    page = {"data": [{"id": "other", "context_length": 1}, {"id": "m", "context_length": 8192}]}
    monkeypatch.setattr("paribus.engines.adapters.hosted.ask_json", lambda *_, **__: page)
    system = system_at("https://openrouter.ai/api/v1")
    launch = planned_launch(ROOT, system, "endpoint", {"context_length": 8192})
    check_launch(engine("hosted"), launch)
    read = engine("hosted").observe(Running("https://openrouter.ai/api", "", launch))
    assert read["context_per_slot"] == 8192
    assert read["settings"]["context_length"] == 8192
    assert read["engine_version"] == "openrouter.ai, not disclosed"


def test_a_hosted_model_takes_no_launch_settings():
    launch = planned_launch(ROOT, system_at("https://openrouter.ai/api/v1"), "endpoint", {"max_num_seqs": 4})
    with pytest.raises(UsageError, match="takes no launch setting max_num_seqs"):
        check_launch(engine("hosted"), launch)
    with pytest.raises(UsageError, match="isn't started"):
        engine("hosted").command(launch)


def test_every_hosted_system_of_the_catalog_has_an_address_and_a_key(monkeypatch):
    hosted = [s for s in Catalog(ROOT).systems.values() if s.use.hosted]
    assert hosted
    for system in hosted:
        assert system.use.hosted.api_key_env is not None
        monkeypatch.setenv(system.use.hosted.api_key_env, "k")
        assert endpoint_of(system.use.hosted).address().secure
        assert isinstance(planned_launch(ROOT, system, "endpoint", dict(system.use.launch)), Launch)
