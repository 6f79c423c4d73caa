"""One start of a planned measure against the scripted endpoint: files, loads, what is observed."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from speed_making import by_word

from paribus.catalog import Catalog, PlannedMeasure, Weights
from paribus.catalog.envs import weights_marker
from paribus.conditions import CheckFailed, EnvironmentFault, SystemName
from paribus.engines import StartRecord
from paribus.engines.deaths import EngineDied
from paribus.machine import Hold, Stopped, parent, watch_parent
from paribus.machine import Load as MachineLoad
from paribus.speed.race import read_part
from paribus.speed.rows import read_rows
from paribus.speed.run import admitted_of, drafted, load_of, measure_speed_start, tokenizer_of, with_machine
from paribus.speed.summarise import Around
from paribus.wire import read_outcomes
from scripted import DONE, Script, Step, content, finish, steps, usage, words

KINDS = ("chat", "code", "maths")
WEIGHTS = Weights(source="hub", repository="a/tiny")

SCENARIO = """\
scenario: {name}
title: x
requests: {requests}
length: long
cap: 1024
prompts: own
split: measured
"""
SCALE = """\
scale: demo
starts: 1
prompts: 2
requests_16: 24
window_s: {window}
window_completions: 0
caps: {{short: 16, long: 32}}
warm_up_blocks: 2
"""
HARDWARE = """\
hardware: cpu
card: {kind: cpu, title: a CPU}
speeds: {decode_1: 85, decode_16: 160, prompt: 240, engine_start_s: 4}
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    root = tmp_path / "root"
    for name, requests in (("c1-long", 1), ("c4-long", 4)):
        _write(root / f"tasks/speed/{name}.yaml", SCENARIO.format(name=name, requests=requests))
    _write(root / "tasks/scales/demo.yaml", SCALE.format(window=0.1))
    _write(root / "hardware/cpu/hardware.yaml", HARDWARE)
    lines = [
        {"id": f"{kind}-{split}-{i}", "prompt": f"{kind} {i}", "kind": kind, "length": "long", "split": split}
        for kind in KINDS
        for split in ("measured", "tuning")
        for i in range(2)
    ]
    _write(root / "tasks/speed/prompts/own.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return Catalog(root)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def planned(scenario: str) -> PlannedMeasure:
    run = f"cpu/m-x/tiny--q4--llamacpp--plain/{scenario}.demo/0123456789ab.1"
    declared = {"scale": "demo", "cap": 32, "hardware": "cpu", "sampling": {"temperature": 0.2, "top_k": 5}}
    return PlannedMeasure(measure=f"{scenario}.demo", id=scenario, run=run, declared=declared, hashes={})


class Session:
    """A session on the scripted endpoint in place of an engine."""

    def __init__(self, endpoint, *, alive: bool = True, running: float = 4):
        self.endpoint, self._alive, self._running = endpoint, alive, running
        model = SimpleNamespace(context=8192, kind="autoregressive")
        decoder = SimpleNamespace(acceptance="none", method="ngram")
        self.system = SimpleNamespace(
            model=model,
            name=SystemName("tiny", "q4", "llamacpp", "plain"),
            thinking_settings={},
            decoder=decoder,
            context_of=lambda _: 8192,
            precision=SimpleNamespace(weights=WEIGHTS),
        )
        self.accepted = frozenset({"temperature"})
        self.observed: dict[str, object] = {}
        self.record = StartRecord()
        self.hosted = False
        self.hold = Hold("")
        self.counter = lambda text: None
        self.parts: list[str] = []

    def gauges(self):
        return {"running": self._running}

    def alive(self):
        return self._alive

    def death(self):
        return EnvironmentFault("the engine ended while it was measured")

    def load(self):
        return MachineLoad(samples=0)

    def token_counter(self):
        return self.counter

    @contextmanager
    def warming_up(self):
        self.parts.append("warming up")
        yield

    @contextmanager
    def measuring(self):
        self.parts.append("measuring")
        yield
        self.record.counters = {"drafts": 10.0, "accepted_tokens": 20.0, "generated_tokens": 60.0}


def measure(session, catalog, folder, scenario="c1-long"):
    return measure_speed_start(session, planned(scenario), catalog, folder)


def test_at_one_request_every_prompt_is_measured_once_after_the_warm_up(scripted, catalog, tmp_path):
    session, folder = Session(scripted.endpoint("f5-n40-i500")), tmp_path / "start-1"
    record = measure(session, catalog, folder)
    assert session.parts == ["warming up", "measuring"]
    assert sorted(p.name for p in folder.iterdir()) == ["requests-lite.parquet", "requests.parquet", "summary.json"]
    part = read_part(folder)
    assert sorted(r.prompt_id for r in part.rows) == sorted(f"{k}-measured-{i}" for k in KINDS for i in range(2))
    assert part.summary.requests.ok == 6
    assert part.summary.requests.capped == 6, "40 tokens are more than the cap of 32"
    assert part.summary.acceptance.acceptance_length == 3
    assert set(part.summary.kinds) == set(KINDS)
    assert record.observed["sampling_accepted"] == ["temperature"]
    assert record.observed["drafting_seen"] == "yes, 10 drafts"
    assert {"preliminary", "sampling_left_out"} <= {f.id for f in part.summary.flags}


@pytest.mark.parametrize(("declared", "flagged"), [(False, True), (True, False)])
def test_reasoning_in_a_run_with_thinking_off_invalidates_it(scripted, catalog, tmp_path, declared, flagged):
    plan = planned("c1-long")
    plan.declared["thinking"] = declared
    measure_speed_start(Session(scripted.endpoint("f5-n32-R16-i500")), plan, catalog, tmp_path / "start-1")
    found = {f.id: f for f in read_part(tmp_path / "start-1").summary.flags}
    assert ("thinking_mismatch" in found) is flagged
    if flagged:
        assert found["thinking_mismatch"].severity == "invalid"
        assert "6 of 6 answers" in found["thinking_mismatch"].text


def test_what_was_sent_is_natural_unique_and_without_a_seed(scripted, catalog, tmp_path):
    endpoint = scripted.endpoint("f5-n8-i500")
    measure(Session(endpoint), catalog, tmp_path / "start-1")
    bodies = [emission.request for emission in scripted.log(endpoint.model)]
    assert all("seed" not in body and "ignore_eos" not in body and "top_k" not in body for body in bodies)
    assert all(body["temperature"] == 0.2 for body in bodies)
    firsts = [body["messages"][0]["content"].splitlines()[0] for body in bodies]
    assert len(set(firsts)) == len(bodies)
    warm = [b for b in bodies if "measured" not in json.dumps(b)]
    assert warm, "the warm-up asks its own prompts"


def test_at_several_requests_the_window_is_the_steady_part_and_its_rate_is_the_servers(scripted, catalog, tmp_path):
    folder = tmp_path / "start-1"
    measure(Session(scripted.endpoint("f20-n32-i5000")), catalog, folder, "c4-long")
    summary = read_part(folder).summary
    assert summary.requests.ok == 24
    assert summary.concurrency_seen == 4
    # 32 tokens in 20 + 31 x 5 ms, four at a time; loopback adds a little to each request.
    assert summary.throughput.value == pytest.approx(4 * 32 / 0.175, rel=0.1)
    assert summary.window_s >= 0.1


def test_a_gauge_below_the_requests_asked_is_seen(scripted, catalog, tmp_path):
    _write(
        catalog.root / "tasks/scales/demo.yaml", SCALE.format(window=0.1).replace("requests_16: 24", "requests_16: 16")
    )
    session = Session(scripted.endpoint("f20-n32-i40000"), running=2)
    measure(session, Catalog(catalog.root), tmp_path / "start-1", "c4-long")
    summary = read_part(tmp_path / "start-1").summary
    assert summary.admitted == 2
    assert "admits" in {f.id for f in summary.flags}


def test_raw_outcomes_give_the_rows_again(scripted, catalog, tmp_path):
    from paribus.speed.files import traces_of
    from paribus.speed.summarise import rows_of

    folder = tmp_path / "start-1"
    measure(Session(scripted.endpoint("f5-n20-i500")), catalog, folder)
    again = rows_of(traces_of(read_outcomes(folder / "requests.parquet"), catalog.prompt_set("own")))
    assert again == read_rows(folder / "requests-lite.parquet")


def test_an_engine_that_died_is_an_environment_fault_and_leaves_no_summary(scripted, catalog, tmp_path):
    with pytest.raises(EnvironmentFault, match="ended while"):
        measure(Session(scripted.endpoint("f5-n4"), alive=False), catalog, tmp_path / "start-1")
    assert not (tmp_path / "start-1" / "summary.json").exists()


class Interrupted(Session):
    """A session whose process is told to stop as its third measured request is to leave."""

    looks = 3

    def alive(self):
        self.looks -= "measuring" in self.parts
        if self.looks == 0:
            signal.raise_signal(signal.SIGINT)
        return True


@pytest.mark.parametrize(("around", "raised"), [(nullcontext, KeyboardInterrupt), (watch_parent, Stopped)])
def test_a_start_that_is_interrupted_in_the_middle_is_none(scripted, catalog, tmp_path, monkeypatch, around, raised):
    monkeypatch.setattr(parent, "arm_last_resort", lambda code: None)
    monkeypatch.delenv("PARIBUS_WORKFLOW_PID", raising=False)
    session = Interrupted(scripted.endpoint("f5-n4"))
    with pytest.raises(raised), around():
        measure(session, catalog, tmp_path / "start-1")
    assert session.looks <= 0
    assert not list((tmp_path / "start-1").iterdir())


class Dying(Session):
    """A session whose engine is gone after so many looks at it in the measured part."""

    def __init__(self, endpoint, looks: int):
        super().__init__(endpoint)
        self.looks = looks

    def alive(self):
        self.looks -= "measuring" in self.parts
        return self.looks > 0

    def death(self):
        return EngineDied("the engine ended; the end of its log", "the engine ended: out of luck", measuring=True)


def test_what_an_engine_that_died_had_answered_is_kept_and_flagged(scripted, catalog, tmp_path):
    session, folder = Dying(scripted.endpoint("f5-n4"), looks=3), tmp_path / "start-1"
    with pytest.raises(EngineDied):
        measure(session, catalog, folder)
    part = read_part(folder)
    assert 0 < len(part.rows) < 6, "six were to be asked"
    told = {flag.id: flag.text for flag in part.summary.flags}
    assert told["died"] == "Its server died while it was measured: the engine ended: out of luck."
    assert session.record.observed == {"died": "the engine ended: out of luck", "sampling_accepted": ["temperature"]}
    assert len(list(read_outcomes(folder / "requests.parquet"))) == len(part.rows)


def test_an_engine_that_died_before_anything_was_measured_leaves_no_files(scripted, catalog, tmp_path):
    with pytest.raises(EngineDied):
        measure(Dying(scripted.endpoint("f5-n4"), looks=1), catalog, tmp_path / "start-1")
    assert not list((tmp_path / "start-1").iterdir())


def test_a_start_without_an_answer_fails_with_the_reason(scripted, catalog, tmp_path):
    from scripted import Script

    scripted.register("broken", Script(status=500, content_type="application/json", framing="length"))
    with pytest.raises(CheckFailed, match="http_500"):
        measure(Session(scripted.endpoint("broken")), catalog, tmp_path / "start-1")


def test_what_a_server_says_in_a_measured_start_does_not_give_the_key_away(scripted, catalog, tmp_path):
    body = b'{"error": {"message": "quota of key abc-****ret-1 is used up"}}'
    scripted.register("used-up", Script((Step(0, body),), 403, "application/json", framing="length"))
    endpoint = replace(scripted.endpoint("used-up"), api_key="abc-very-secret-1")
    with pytest.raises(CheckFailed, match="quota of key") as caught:
        measure(Session(endpoint), catalog, tmp_path / "start-1")
    assert "abc-" not in str(caught.value)
    assert "ret-1" not in str(caught.value)


def padded(scripted, said: int) -> str:
    """A server whose usage says so many tokens for 40 words of one token each."""
    pieces = steps([content(word) for word in words(40)], first_ms=5, gap_ms=0.5)
    return scripted.register("padded", Script((*pieces, Step(30, finish() + usage(said) + DONE))))


@pytest.mark.parametrize(("said", "mismatch"), [(41, False), (120, True), (14, True)])
def test_usage_is_held_against_the_servers_own_tokenizer(scripted, catalog, tmp_path, said, mismatch):
    session, folder = Session(scripted.endpoint(padded(scripted, said))), tmp_path / "start-1"
    session.counter = lambda text: len(by_word(text))
    measure(session, catalog, folder)
    told = {flag.id: flag.severity for flag in read_part(folder).summary.flags}
    assert (told.get("usage_mismatch") == "invalid") == mismatch
    assert "usage_unverified" not in told
    rows = read_rows(folder / "requests-lite.parquet")
    assert {row.text_tokens for row in rows} == {40}
    assert {row.tokens for row in rows} == {40.0 if said == 120 else float(said)}, "past its text nothing was delivered"


def test_where_nothing_counts_the_text_it_is_said(scripted, catalog, tmp_path):
    folder = tmp_path / "start-1"
    measure(Session(scripted.endpoint("f5-n20-i500")), catalog, folder)
    told = {flag.id: flag.severity for flag in read_part(folder).summary.flags}
    assert told["usage_unverified"] == "warning"
    assert {row.text_tokens for row in read_rows(folder / "requests-lite.parquet")} == {None}


def test_the_tokenizer_lies_beside_the_fetched_weights_of_a_real_system(tmp_path):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    for name in ("systems", "tasks", "hardware", "pairs.yaml"):
        (tmp_path / name).symlink_to(Path(__file__).parents[2] / name)
    real = Catalog(tmp_path)
    model = real.models["llada-8b"]
    system = next(iter(model.systems()))
    assert tokenizer_of(system, real) is None, "nothing was fetched"
    files = tmp_path / weights_marker(system).removesuffix(".json") / "files"
    files.mkdir(parents=True)
    made = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.save(str(files / "tokenizer.json"))
    marker = {"path": "files", "bytes": (files / "tokenizer.json").stat().st_size}
    files.parent.with_name(files.parent.name + ".json").write_text(json.dumps(marker))
    assert list(tokenizer_of(system, real)("two words")) == [3, 9]
    (files / "tokenizer.json").write_bytes(b"{" + bytes(marker["bytes"] - 1))
    assert tokenizer_of(system, real) is None, "one that can't be read is none: the load is not lost for it"


def test_starts_have_orders_of_their_own(catalog, tmp_path):
    def order(k: int) -> list[str]:
        session = Session(None)
        load = load_of(planned("c1-long"), session.system, frozenset(), catalog, tmp_path / f"start-{k}")
        from paribus.wire import Endpoint

        return [r.prompt_id for r in load.bodies(Endpoint("http://localhost/v1", "m"))]

    assert sorted(order(1)) == sorted(order(2))
    assert order(1) != order(2)
    assert order(1) == order(1)


def test_telemetry_becomes_flags_and_energy():
    quiet = with_machine(
        Around(1),
        MachineLoad(1, busy_share=0.01, stolen_share=0.0, energy_j=100, power_integral_j=98, energy_scope="board"),
    )
    assert (quiet.energy_j, quiet.energy_scope) == (100, "board")
    assert quiet.facts.energy_disagrees == ""
    loud = with_machine(
        Around(1), MachineLoad(1, busy_share=0.03, stolen_share=0.04, energy_j=140, power_integral_j=100)
    )
    assert loud.facts.busy_share == pytest.approx(0.07)
    assert loud.energy_j is None
    assert loud.facts.energy_disagrees
    slow = with_machine(Around(1), MachineLoad(1, throttled_share=0.2, throttle_reasons=("thermal",)))
    assert slow.facts.throttled_severity == "invalid"
    capped = with_machine(
        Around(1), MachineLoad(1, throttled_share=0.2, throttle_reasons=("power",), power_cap_only=True)
    )
    assert capped.facts.throttled_severity == "note"


def test_without_a_bound_the_window_lasts_as_long_as_the_scale_asks_and_soak_is_not_counted(
    scripted, catalog, tmp_path
):
    endless = (
        SCALE.format(window=1)
        .replace("requests_16: 24", "requests_16: null")
        .replace("completions: 0", "completions: 4")
    )
    _write(catalog.root / "tasks/scales/demo.yaml", endless)
    folder = tmp_path / "start-1"
    measure(Session(scripted.endpoint("f20-n32-i5000")), Catalog(catalog.root), folder, "c4-long")
    rows, summary = read_rows(folder / "requests-lite.parquet"), read_part(folder).summary
    assert summary.window_s >= 1
    assert summary.window_s == int(summary.window_s)
    assert summary.requests.ok == sum(r.counted for r in rows) < len(rows)
    assert summary.requests.failed == 0, "what the end of the load cut off is no failure"
    start, end = summary.window_ns
    assert sum(start < r.ended_ns <= end and r.ok for r in rows) >= 16
    assert summary.throughput.value == pytest.approx(4 * 32 / 0.175, rel=0.1)
    assert "short_window" not in {f.id for f in summary.flags}


def test_the_counters_say_whether_an_engine_drafted():
    assert drafted("ngram", {"drafts": 98.0}) == {"drafting_seen": "yes, 98 drafts"}
    assert drafted("ngram", {"drafts": 0.0}) == drafted("plain", {"drafts": 0.0}) == {"drafting_seen": "no drafts"}
    assert drafted("ngram", {}) == drafted("plain", {"generated_tokens": 5.0}) == {}
    with pytest.raises(EnvironmentFault, match="plain decoding, but the engine counted 3 drafts"):
        drafted("plain", {"drafts": 3.0})


@pytest.mark.parametrize(
    ("gauge", "told", "asked", "admitted"),
    [(15, 16, 16, 15), (None, 16, 16, None), (None, 1, 16, 1), (None, 1, 1, None), (None, None, 16, None)],
)
def test_a_server_without_a_gauge_is_believed_when_it_says_that_it_admits_fewer(gauge, told, asked, admitted):
    assert admitted_of({"admitted": told}, SimpleNamespace(admitted=gauge), asked) == admitted
