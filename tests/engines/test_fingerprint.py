"""The sampler fingerprint: readings of 64 canvases against the reference's, and what is said of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from paribus.catalog import Catalog, PromptLine
from paribus.cli.fingerprint import command
from paribus.conditions import EnvironmentFault, Manifest, Timings, UsageError
from paribus.engines import fingerprinting
from paribus.engines.fingerprint import (
    PROMPTS,
    Reading,
    Reference,
    compare,
    faults,
    first_token,
    fixed_prompts,
    read,
    verify,
)

ROOT = Path(__file__).parents[2]
IDS = [f"p{i:02d}" for i in range(PROMPTS)]


def readings(*passes: float, first: str = "The") -> list[Reading]:
    """64 readings whose passes go round these."""
    return [Reading(prompt=name, passes=passes[i % len(passes)], first=first) for i, name in enumerate(IDS)]


def reference(*passes: float) -> Reference:
    return Reference(
        model="tiny", precision="bf16", decoder="card", lossy={}, engine_version="x", readings=readings(*passes)
    )


def test_the_same_readings_agree():
    found = compare(readings(10, 20, 12), readings(10, 20, 12))
    assert (found.verdict, found.ratio, found.agreement) == ("agrees", 1.0, 1.0)
    assert found.low == found.high == 1.0


def test_five_percent_more_passes_still_agree_and_six_do_not():
    assert compare(readings(10.5), readings(10)).verdict == "agrees"
    assert compare(readings(10.6), readings(10)).verdict == "mismatch"
    assert compare(readings(9.4), readings(10)).verdict == "mismatch"


def test_means_apart_that_chance_explains_are_left_unresolved():
    here = [r.model_copy(update={"passes": 48.0 if i % 2 else 1.0}) for i, r in enumerate(readings(10))]
    there = [r.model_copy(update={"passes": 1.0 if i % 2 else 43.0}) for i, r in enumerate(readings(10))]
    found = compare(here, there)
    assert abs(found.ratio - 1) > 0.05
    assert found.low < 1 < found.high
    assert found.verdict == "unresolved"


def test_first_tokens_are_compared_prompt_by_prompt():
    here = readings(10)
    half = [r.model_copy(update={"first": "A"}) if i % 2 else r for i, r in enumerate(here)]
    assert compare(half, here).agreement == 0.5
    assert "agrees in 50%" in compare(half, here).words()


def test_readings_of_other_prompts_are_not_compared():
    with pytest.raises(ValueError, match="not of the reference's prompts"):
        compare(readings(10)[:-1], readings(10))


@given(st.lists(st.integers(1, 48), min_size=PROMPTS, max_size=PROMPTS), st.integers(0, 1000))
def test_a_sampler_agrees_with_itself_and_never_with_half_its_passes(passes, shift):
    mine = [Reading(prompt=name, passes=n + shift) for name, n in zip(IDS, passes, strict=True)]
    half = [r.model_copy(update={"passes": r.passes / 2}) for r in mine]
    assert compare(mine, mine).verdict == "agrees"
    assert compare(half, mine).verdict == "mismatch"


def test_the_first_token_is_a_standard_one():
    assert first_token("Hello world") == "Hello"
    assert first_token("") is None


def test_fixed_prompts_are_the_same_whatever_the_order():
    lines = [PromptLine(id=f"k{i:03d}", prompt="x") for i in range(96)]
    chosen = fixed_prompts(lines)
    assert chosen == fixed_prompts(reversed(lines))
    assert len({p.id for p in chosen}) == PROMPTS
    with pytest.raises(ValueError, match="needs 64 prompts, there are 3"):
        fixed_prompts(lines[:3])


def test_passes_are_what_the_counter_grew_by():
    grown: Iterator[int] = iter([5, 17, 25])
    asked = []

    def answer(prompt: PromptLine) -> str:
        asked.append(prompt.id)
        return "Yes, but"

    found = read(
        [PromptLine(id="a", prompt="x"), PromptLine(id="b", prompt="y")],
        answer,
        lambda: {"denoising_steps": next(grown)},
    )
    assert found == [Reading(prompt="a", passes=6, first="Yes"), Reading(prompt="b", passes=4, first="Yes")]
    assert asked == ["a", "a", "b", "b"]


def test_an_engine_without_pass_counters_cannot_be_verified():
    assert read([PromptLine(id="a", prompt="x")], lambda _: "never asked", lambda: {"drafts": 0}) == []
    found = verify([], reference(10))
    assert found == {"sampler_fingerprint": "unverified", "sampler_note": "no pass counters"}
    assert faults(found) == ("", "no pass counters")


def test_an_answer_without_a_pass_is_an_error():
    with pytest.raises(ValueError, match="no denoising step for the prompt a"):
        read([PromptLine(id="a", prompt="x")], lambda _: "cached", lambda: {"denoising_steps": 7})


def test_what_is_said_of_each_verdict():
    known = reference(10)
    good = verify(readings(10.2), known)
    assert good["sampler_fingerprint"] == f"reference {known.id}"
    assert good["sampler_readings"][0] == ["p00", 10.2, "The"]
    assert faults(good) == ("", "")
    bad = verify(readings(14), known)
    assert bad["sampler_fingerprint"] == f"not reference {known.id}: 14.0 passes for 10.0"
    mismatch, unverified = faults(bad)
    assert mismatch.startswith("14.0 passes a canvas where the reference takes 10.0")
    assert unverified == ""
    alone = verify(readings(14), None)
    assert alone["sampler_fingerprint"] == "unverified"
    assert faults(alone) == ("", "no readings of the reference to compare")
    assert faults({}) == ("", "")


def test_two_starts_that_agree_with_one_reference_have_the_same_condition():
    known = reference(10)
    one, two = verify(readings(10), known), verify(readings(10.3), known)
    assert one["sampler_fingerprint"] == two["sampler_fingerprint"]


@pytest.fixture
def system():
    name = SimpleNamespace(model="tiny", precision="bf16", decoder="card")
    return SimpleNamespace(name=name, decoder=SimpleNamespace(lossy={"canvas_length": 32}))


def manifest(engine="transformers", passes=10.0, many=PROMPTS) -> Manifest:
    """Of a start whose sampler was read."""
    return Manifest(
        kind="speed", path="cpu/m-x/tiny--bf16--transformers--card/c1-short/0123456789ab.1/start-1", start=1,
        started_at="2026-12-01T00:00:00Z", ended_at="2026-12-01T00:01:00Z", origin="catalog",
        declared={
            "engine": engine, "model": "tiny", "precision": "bf16", "decoder": "card", "lossy": {"canvas_length": 32},
        },
        observed={
            "engine_version": "transformers 5.24.0", "sampler_readings": [[name, passes, "The"] for name in IDS[:many]],
        },
        hashes={}, versions={}, timings=Timings(engine_start=1, warm_up=1, measuring=1, rest=0), counters={}, files=[],
        contributor="anonymous", previous=None,
    )  # fmt: skip


def test_a_reference_is_found_by_name_and_must_be_of_the_same_settings(tmp_path, system):
    catalog = Catalog(tmp_path)
    assert fingerprinting.reference_of(catalog, system) is None
    path = tmp_path / fingerprinting.reference_file(system)
    path.parent.mkdir(parents=True)
    made = fingerprinting.reference_from(manifest())
    path.write_text(made.model_dump_json())
    assert fingerprinting.reference_of(catalog, system) == made
    assert fingerprinting.reference_of(Catalog(tmp_path / "other", extra=tmp_path), system) == made
    system.decoder.lossy["canvas_length"] = 64
    with pytest.raises(UsageError, match="is of other denoising settings"):
        fingerprinting.reference_of(catalog, system)
    path.write_text(json.dumps({"model": "tiny"}))
    with pytest.raises(UsageError, match="this key is missing"):
        fingerprinting.reference_of(catalog, system)


def test_a_reference_comes_from_a_whole_reading_of_the_reference_implementation():
    with pytest.raises(UsageError, match="comes from transformers or transformers-cpu, not from vllm"):
        fingerprinting.reference_from(manifest(engine="vllm"))
    with pytest.raises(UsageError, match="holds 3 readings of its sampler, a reference needs 64"):
        fingerprinting.reference_from(manifest(many=3))


def test_the_command_prints_a_reference(tmp_path):
    (tmp_path / "manifest.json").write_text(manifest().model_dump_json(by_alias=True))
    ran = CliRunner().invoke(command, [str(tmp_path)])
    assert ran.exit_code == 0
    assert Reference.model_validate_json(ran.stdout).id == reference(10).id
    assert "systems/fingerprints/tiny--bf16--card.json" in ran.stderr
    (tmp_path / "manifest.json").write_text("{}")
    assert isinstance(CliRunner().invoke(command, [str(tmp_path)]).exception, UsageError)
    assert isinstance(CliRunner().invoke(command, [str(tmp_path / "none")]).exception, UsageError)


def test_the_fixed_prompts_of_the_catalog_are_short_and_of_every_other_kind():
    prompts = fingerprinting.prompts_of(Catalog(ROOT))
    assert len(prompts) == PROMPTS
    assert {p.kind for p in prompts} == {"chat", "code", "maths", "json", "infill", "tools"}


class Played:
    """A session whose engine counts nine steps a canvas, and publishes them late."""

    def __init__(self, system):
        self.system, self.steps, self.late, self.observed = system, 0, 0, {}
        self.engine = SimpleNamespace(name="transformers")
        self.endpoint = SimpleNamespace(base_url="http://127.0.0.1:1/v1", model="tiny", api="chat", extra_body={})

    def sampling(self):
        return {"seed": 1}

    def counters(self):
        self.late = min(self.steps, self.late + 3)
        return {"denoising_steps": float(self.late)}


def test_counters_that_come_late_are_waited_for(monkeypatch, system):
    session = Played(system)
    bodies = []

    def ask(url, body, **_):
        bodies.append(body)
        session.steps += 9
        return {"choices": [{"message": {"content": "Red."}}]}

    monkeypatch.setattr(fingerprinting, "ask_json", ask)
    monkeypatch.setattr(fingerprinting, "_SETTLE_S", 0)
    found = fingerprinting.verify_sampler(session, Catalog(ROOT))
    assert {passes for _, passes, _ in found["sampler_readings"]} == {9.0}
    assert bodies[0]["max_tokens"] == 32
    assert bodies[0]["seed"] == 1
    assert found["sampler_note"] == "no readings of the reference to compare"
    monkeypatch.setattr(fingerprinting, "ask_json", lambda *_, **__: {"choices": []})
    with pytest.raises(EnvironmentFault, match="fingerprint could not be taken"):
        fingerprinting.verify_sampler(session, Catalog(ROOT))


def test_a_canvas_is_as_long_as_the_server_says(system):
    assert fingerprinting.canvas_of(system, {}) == 32
    assert fingerprinting.canvas_of(system, {"effective_settings": {"canvas_length": 64}}) == 64
    assert fingerprinting.canvas_of(system, {"effective_settings": {"block_length": 16, "canvas_length": None}}) == 16
    system.decoder.lossy.clear()
    assert fingerprinting.canvas_of(system, {}) == 256


def test_without_a_reference_only_the_reference_implementation_is_read(monkeypatch, system):
    session = Played(system)
    session.engine.name = "vllm"
    monkeypatch.setattr(fingerprinting, "ask_json", lambda *_, **__: pytest.fail("a prompt was asked"))
    found = fingerprinting.verify_sampler(session, Catalog(ROOT))
    assert faults(found) == ("", "no readings of the reference to compare")
    monkeypatch.setattr(Played, "counters", lambda _: {"generated_tokens": 3.0})
    assert faults(fingerprinting.verify_sampler(session, Catalog(ROOT))) == ("", "no pass counters")
