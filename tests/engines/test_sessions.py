"""A session: ready after a real answer, or one sentence why not; and nothing is left."""

import socket
import sys
import time
from pathlib import Path

import pytest

from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines import Launch, open_session
from paribus.engines.launching import Prepared
from paribus.engines.local import ask_json
from paribus.engines.opening import slots_of
from paribus.engines.registry import engine
from paribus.engines.starting import start_server
from paribus.machine import port_in_use
from paribus.machine.parent import start_time


def open_one(workplace, **changes):
    plan = workplace.plan()
    job = plan.jobs[0].model_copy(update=changes)
    return open_session(workplace.root, job, workplace.catalog)


def test_a_session_is_ready_observed_and_gone_afterwards(workplace):
    with open_one(workplace) as session:
        assert session.alive()
        answer = ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})
        assert answer["choices"][0]["message"]["content"] == "blue"
        assert session.observed["engine_version"] == "xllamacpp 0.0-played (llama.cpp build b1)"
        assert session.observed["admitted"] == 2
        assert session.observed["context_per_slot"] == 512
        assert session.observed["cpu_count"] >= 1
        assert session.timings["engine_start"] > 0
        pids = session.tree.members()
        assert len(pids) >= 2
        port = int(session.base.rsplit(":", 1)[1])
    assert all(start_time(pid) is None for pid in pids)
    assert not port_in_use(port)


def test_variables_of_the_machine_are_told_by_name_and_never_by_value(workplace, monkeypatch):
    monkeypatch.setenv("GGML_VK_VISIBLE_DEVICES", "10.0.0.7")
    with open_one(workplace) as session:
        assert session.observed["local_variables"] == ["GGML_VK_VISIBLE_DEVICES"]
        assert "10.0.0.7" not in repr(session.observed)
    monkeypatch.delenv("GGML_VK_VISIBLE_DEVICES")
    with open_one(workplace) as session:
        assert "local_variables" not in session.observed


def test_the_measured_part_is_timed_and_counted(workplace):
    with open_one(workplace) as session:
        with session.warming_up():
            time.sleep(0.05)
        for _ in range(2):
            with session.measuring():
                ask_json(f"{session.endpoint.base_url}/chat/completions", {"messages": []})
        assert session.record.counters == {"generated_tokens": 20.0, "prompt_tokens": 20.0, "drafts": 0.0}
        assert session.record.warm_up >= 0.05
        assert session.record.measuring > 0
        assert session.gauges() == {"running": 0.0}
        assert session.read_metrics("llamacpp:requests_deferred 3\n") == ({}, {"waiting": 3.0})


def test_sampling_is_what_the_card_says_and_the_engine_takes(workplace):
    with open_one(workplace) as session:
        assert session.sampling() == {"temperature": 0.2, "top_p": 0.9}
        assert session.sampling_left_out == []


def test_an_engine_that_dies_while_loading_is_told_with_the_end_of_its_log(workplace):
    workplace.play("dies")
    with pytest.raises(EnvironmentFault) as caught, open_one(workplace):
        pass
    said = str(caught.value)
    assert said.startswith("llamacpp died while loading (exit code 3); the end of its log:\n")
    assert said.endswith("  | error: the model is not a model")
    assert "203.0.113.7" not in said


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("empty", "llamacpp started but doesn't answer (its first answer is empty)"),
        ("odd", "llamacpp doesn't say what it runs"),
    ],
)
def test_an_engine_that_makes_no_sense_is_refused(workplace, behaviour, said):
    workplace.play(behaviour)
    with pytest.raises(EnvironmentFault) as caught, open_one(workplace):
        pass
    assert said in str(caught.value)


def test_an_engine_that_never_gets_ready_is_given_up(workplace):
    workplace.play("mute")
    system = workplace.catalog.system(workplace.plan().jobs[0].system)
    launch = Launch(
        root=workplace.root,
        python=Path(sys.executable),
        system=system,
        weights=workplace.weights,
        settings=system.launch_on("cpu"),
        slots=1,
        port=0,
    )
    with (
        pytest.raises(EnvironmentFault, match="not ready after 1 s"),
        start_server(engine("llamacpp"), Prepared(launch), workplace.root / "log", (), loading_s=1),
    ):
        pass


def test_a_port_in_use_is_said_before_anything_starts(workplace, monkeypatch):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        monkeypatch.setenv("PARIBUS_PORT", str(port))
        with pytest.raises(EnvironmentFault, match=f"the port {port} .* is in use"), open_one(workplace):
            pass


def test_a_port_that_is_taken_again_and_again_is_said(workplace):
    workplace.play("port")
    with pytest.raises(EnvironmentFault, match=r"the port \d+ was taken while llamacpp started"), open_one(workplace):
        pass


def test_missing_weights_and_a_missing_environment_say_which_command_helps(workplace):
    weights = workplace.weights
    weights.write_text("cut short")
    with pytest.raises(EnvironmentFault, match="changed since they were fetched"), open_one(workplace):
        pass
    weights.unlink()
    workplace.marker.unlink()
    with pytest.raises(EnvironmentFault, match="run `paribus fetch weights tiny--q4`"), open_one(workplace):
        pass
    next((workplace.root / "build" / "envs").glob("*.json")).unlink()
    with pytest.raises(EnvironmentFault, match="run `paribus fetch env llamacpp`"), open_one(workplace):
        pass


def test_settings_that_the_engine_does_not_know_are_refused(workplace):
    with (
        pytest.raises(UsageError, match="llamacpp knows no launch setting context_per_slott; known: batch"),
        open_one(workplace, launch={"context_per_slott": 512}),
    ):
        pass


def test_a_daemon_of_the_engine_is_taken_down_too(workplace):
    workplace.play("leaves-a-daemon")
    note = workplace.weights.with_name("tiny.gguf.daemon")
    with open_one(workplace):
        end = time.monotonic() + 10
        while not note.exists() and time.monotonic() < end:
            time.sleep(0.02)
        daemon = int(note.read_text())
        assert start_time(daemon) is not None
    assert start_time(daemon) is None


def test_slots_come_from_the_launch_else_from_what_the_measures_keep_open(workplace):
    job = workplace.plan().jobs[0]
    assert slots_of(job, workplace.catalog) == 2
    measures = [
        m.model_copy(update={"declared": {"requests_at_once": n}}) for m, n in zip(job.measures, (1, 7), strict=True)
    ]
    assert slots_of(job.model_copy(update={"launch": {}, "measures": measures}), workplace.catalog) == 7
    with pytest.raises(UsageError, match="slots must be a whole number of at least 1, not True"):
        slots_of(job.model_copy(update={"launch": {"slots": True}}), workplace.catalog)
