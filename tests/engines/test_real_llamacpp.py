"""The real llama.cpp server with the real model: answers, counters, and nothing left when a job is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.catalog import Catalog, Job, Plan, PlannedMeasure, Totals
from paribus.conditions import EnvironmentFault, Manifest
from paribus.engines import build_environment, fetch_weights, open_session, run_job, weights_marker
from paribus.engines.local import ask_json
from paribus.machine import card_lock, read_telemetry
from paribus.machine.parent import start_time

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("job_process.py")
CODE = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\n" * 2

pytestmark = pytest.mark.system


@pytest.fixture(scope="session")
def fetched():
    """The environment and the weights, fetched once into the repository's own build folder."""
    build_environment(ROOT, "llamacpp", lambda _: None)
    fetch_weights(ROOT, Catalog(ROOT), "smollm2-135m--q4-1", lambda _: None)


@pytest.fixture
def root(fetched, tmp_path, monkeypatch):
    """A repository that shares catalog, environment and weights with this one, and has results of its own."""
    place = tmp_path / "repository"
    (place / "build").mkdir(parents=True)
    for name in ("systems", "tasks", "hardware", "envs", "pairs.yaml", "build/envs", "build/weights"):
        (place / name).symlink_to(ROOT / name)
    monkeypatch.setenv("PARIBUS_LOCKS", str(tmp_path / "locks"))
    monkeypatch.delenv("PARIBUS_WORKFLOW_PID", raising=False)
    return place


def plan_of(decoder: str, slots: int = 2) -> Plan:
    system = f"smollm2-135m--q4-1--llamacpp--{decoder}"
    names = ("answer_class", "system_hash", "measure_hash", "conditions")
    measures = [
        PlannedMeasure(
            measure=name,
            id=name,
            run=f"cpu/m-test/{system}/{name}/{'0' * 12}.1",
            declared={},
            hashes=dict.fromkeys(names, "0" * 12),
        )
        for name in ("c16-long", "c1-long")
    ]
    # One thread: several that wait for each other hardly move on a machine that is busy elsewhere.
    changed = {"slots": slots, "context_per_slot": 1024, "threads": 1}
    launch = dict(Catalog(ROOT).system(system).use.launch) | changed
    job = Job(
        job="r0-1", kind="speed", system=system, start=1, lead=1, measures=measures, launch=launch, engine="llamacpp",
        done=False, needs=[], priority=0, seconds=1,
    )  # fmt: skip
    totals = Totals(jobs=1, jobs_done=0, hours=0, download_gb=0, disk_gb=0)
    return Plan(
        edition="test", protocol=1, hardware="cpu", machine="m-test", scale="tiny", results="results", races=[],
        jobs=[job], runs=[], excluded=[], waiting=[], totals=totals,
    )  # fmt: skip


def decoders() -> list[str]:
    """Every decoder of the catalog that is raced."""
    use = Catalog(ROOT).models["smollm2-135m"].engines["llamacpp"]
    return [name for name, decoder in use.decoders.items() if not decoder.not_tried]


def ask(session, content: str, **extra):
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 64, **session.sampling(), **extra}
    return ask_json(f"{session.endpoint.base_url}/chat/completions", body, timeout_s=240)


@pytest.mark.parametrize("decoder", decoders())
def test_every_raced_decoder_answers_and_its_counters_agree_with_its_answers(root, decoder):
    with open_session(root, plan_of(decoder).jobs[0], Catalog(ROOT)) as session:
        with session.measuring():
            # Greedy, on text that repeats itself: whatever drafts at all drafts here.
            answer = ask(session, f"Repeat this code exactly:\n{CODE}", temperature=0)
        counted, timings = session.record.counters, answer["timings"]
        assert answer["choices"][0]["message"]["content"]
        assert counted["generated_tokens"] == answer["usage"]["completion_tokens"]
        assert counted["cached_prompt_tokens"] == 0
        assert counted["draft_tokens"] == timings.get("draft_n", 0)
        assert counted["accepted_tokens"] == timings.get("draft_n_accepted", 0)
        if decoder == "plain":
            assert counted["drafts"] == 0
        else:
            assert 0 < counted["drafts"] <= counted["draft_tokens"]
        assert session.observed["admitted"] == 2
        assert session.observed["context_per_slot"] == 1024
        assert session.observed["engine_version"].startswith("xllamacpp 2026.10.11549")
        assert session.observed["rendered_prompt"].endswith("<|im_start|>assistant\n")
        assert set(session.gauges()) == {"running", "waiting"}
        assert session.peak_memory_gb() > 0.1


@pytest.mark.parametrize("penalty", [0.0, 1.5])
def test_plain_and_speculative_decoding_say_the_same_at_temperature_0(root, penalty):
    """Under a penalty too, which depends on every token before: llama.cpp samples and accepts one after the other."""
    said = {}
    for decoder in ("plain", next(d for d in decoders() if d != "plain")):
        with open_session(root, plan_of(decoder).jobs[0], Catalog(ROOT)) as session:
            prompt = f"Repeat this code exactly:\n{CODE}"
            said[decoder] = ask(session, prompt, temperature=0, presence_penalty=penalty, max_tokens=128)
    texts = {answer["choices"][0]["message"]["content"] for answer in said.values()}
    assert len(texts) == 1
    kept = [answer["timings"].get("draft_n_accepted", 0) for answer in said.values()]
    assert kept[0] == 0 < kept[1]


def test_what_a_card_leaves_out_has_no_effect_and_a_penalty_has(root):
    """llama.cpp's own top_k 40, top_p 0.95, min_p 0.05 and temperature 0.8 are not those of the model's card."""
    with open_session(root, plan_of("plain").jobs[0], Catalog(ROOT)) as session:
        told = session.observed["sampling_defaults"]
        assert {told[name] for name in ("temperature", "top_p", "repeat_penalty")} == {1.0}
        assert {told[name] for name in ("top_k", "min_p", "presence_penalty")} == {0}
        assert session.sampling() == {"temperature": 0.2, "top_p": 0.9}
        said = {
            penalty: ask(session, "Write many words about the sea.", temperature=0, presence_penalty=penalty)
            for penalty in (0.0, 1.5)
        }
    assert len({answer["choices"][0]["message"]["content"] for answer in said.values()}) == 2


def test_each_slot_has_its_whole_context(root):
    with open_session(root, plan_of("plain", slots=3).jobs[0], Catalog(ROOT)) as session:
        slots = ask_json(f"{session.base}/slots")
        assert [slot["n_ctx"] for slot in slots] == [1024] * 3


def test_a_damaged_model_is_told_with_the_end_of_the_engines_log(root):
    (root / "build" / "weights").unlink()
    folder = weights_marker(root, Catalog(ROOT).system("smollm2-135m--q4-1--llamacpp--plain")).with_suffix("")
    folder.mkdir(parents=True)
    (folder / "m.gguf").write_bytes(b"GGUF" + bytes(5000))
    folder.with_name(folder.name + ".json").write_text(json.dumps({"path": "m.gguf", "bytes": 5004}))
    with (
        pytest.raises(EnvironmentFault, match=r"llamacpp died while loading \(.*\); the end of its log:") as caught,
        open_session(root, plan_of("plain").jobs[0], Catalog(ROOT)),
    ):
        pass
    assert "failed to load model" in str(caught.value)


def test_a_job_writes_whole_starts(root):
    def measure(session, planned, folder):
        with session.warming_up():
            ask(session, "Name a fruit.")
        with session.measuring():
            ask(session, f"Repeat this code exactly:\n{CODE}")
        session.record.observed["busy"] = session.load().busy_share
        (folder / "summary.json").write_text("{}")

    plan = plan_of(decoders()[1])
    run_job(root, plan, "r0-1", measure, tell=False)
    for planned in plan.jobs[0].measures:
        folder = root / "results" / planned.run / "start-1"
        manifest = Manifest.model_validate_json((folder / "manifest.json").read_text())
        assert manifest.counters["generated_tokens"] > 0
        assert manifest.observed["engine_memory_gb"] > 0.1
        assert 0 <= manifest.observed["busy"] <= 1
        assert manifest.timings.measuring > 0
        assert manifest.timings.warm_up > 0
        assert "print_timing" in (folder / "engine.log").read_text()
        own = [row["cpu_own_s"] for row in read_telemetry(folder / "telemetry.parquet")]
        assert own[-1] > own[0]


@pytest.mark.parametrize("killed", ["job", "workflow"])
def test_nothing_is_left_of_a_killed_job(root, tmp_path, killed):
    workflow = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    (root / "wait").touch()
    (tmp_path / "plan.json").write_text(plan_of("plain").model_dump_json())
    job = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(root), str(tmp_path / "plan.json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PARIBUS_WORKFLOW_PID": str(workflow.pid)},
    )
    line = job.stdout.readline()
    assert line.startswith("measuring c16-long "), job.communicate()[1]
    engine = [int(pid) for pid in line.split()[2:]]
    (job if killed == "job" else workflow).kill()
    if killed == "workflow":
        workflow.wait()
    job.communicate(timeout=30)
    workflow.kill()
    workflow.wait()
    with card_lock("cpu", timeout_s=20):
        assert [pid for pid in engine if start_time(pid) is not None] == []
    assert job.returncode == (143 if killed == "workflow" else -9)
    assert not list((root / "results").rglob("manifest.json"))
