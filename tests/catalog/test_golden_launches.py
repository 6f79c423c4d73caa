"""The command line of every system that can run, on every card whose launch differs, beside a golden file a model.

Paths and the port stand for themselves (WEIGHTS, DRAFTER, FILES, PYTHON, 8000). After a wanted change:

    PARIBUS_GOLDEN=write pytest tests/catalog/test_golden_launches.py

and read the difference before it is committed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.catalog import Catalog, ModelFile, System
from paribus.catalog.fit import fit
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.adapters import llamacpp, transformers
from paribus.engines.base import Launch
from paribus.engines.launching import check_launch, planned_launch
from paribus.engines.opening import way_of
from paribus.engines.registry import engine

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
GOLDEN = Path(__file__).parent / "golden"
CHECKPOINT = Path(__file__).parent / "checkpoint"
"""Stands for a checkpoint where an engine's file is made of the checkpoint's own; its numbers are no model's."""
PROFILES = {p.parent.name: CATALOG.hardware(p.parent.name) for p in sorted(ROOT.glob("hardware/*/hardware.yaml"))}


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads follow the machine's cores."""
    for module in (llamacpp, transformers):
        monkeypatch.setattr(module, "usable_cores", lambda: 16)


def command(system: System, card: str | None) -> tuple[list[str], dict[str, str]]:
    """One launch: the words that one would type, variables first, and the files that the engine reads."""
    adapter = engine(system.name.engine)
    launch = planned_launch(Path(), system, way_of(system, adapter), system.launch_on(card))
    variables = [f"{name}={value}" for name, value in launch.variables.items()]
    files = adapter.files(replace(launch, weights=CHECKPOINT))
    return [*variables, *adapter.command(launch)], files


def flags(words: list[str]) -> list[str]:
    """Variables, and flags together with their values."""
    grouped: list[str] = []
    for word in words:
        if grouped and grouped[-1].startswith("--") and " " not in grouped[-1] and not word.startswith("--"):
            grouped[-1] += f" {shlex.quote(word)}"
        else:
            grouped.append(word)
    return grouped


def request(system: System) -> str:
    """What a hosted model is asked with."""
    hosted = system.use.hosted
    assert hosted is not None
    fields = {"model": hosted.model, **system.thinking_settings}
    return f"POST {hosted.url}/chat/completions, key from {hosted.api_key_env}: {json.dumps(fields)}"


def launches(model: ModelFile) -> Iterator[str]:
    """Every system (with thinking only where nothing else tells it apart); what a card's recipe changes, as + and -."""
    for system in model.systems():
        if system.unsupported_on():
            continue
        if system.use.hosted is not None:
            yield f"{system.name}\n  {request(system)}"
            continue
        if system.name.think and model.thinking.switch != "always":
            continue
        usual, files = command(system, None)
        told = [f"{system.name}", f"  {shlex.join(usual)}"]
        told += [f"    {name}: {' '.join(text.split())}" for name, text in files.items()]
        for card, profile in PROFILES.items():
            if fit(system, profile).can_run:
                here, there = flags(usual), flags(command(system, card)[0])
                changed = [f"-{f}" for f in here if f not in there] + [f"+{f}" for f in there if f not in here]
                told += [f"  on {card}: {'  '.join(changed)}"] if changed else []
        yield "\n".join(told)


RUNNABLE = sorted(name for name, model in CATALOG.models.items() if not (model.unsupported or model.retired))


@pytest.mark.parametrize("model", RUNNABLE)
def test_a_models_launch_commands_are_those_of_its_golden_file(model: str) -> None:
    path = GOLDEN / f"{model}.txt"
    text = "\n\n".join(launches(CATALOG.models[model])) + "\n"
    if os.environ.get("PARIBUS_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == RUNNABLE


@pytest.mark.parametrize("name", sorted(n for n, s in CATALOG.systems.items() if not s.unsupported_on()))
def test_every_system_that_can_run_is_accepted_by_its_engine_on_every_card(name: str) -> None:
    system = CATALOG.systems[name]
    adapter = engine(system.name.engine)
    for card in [None, *PROFILES]:
        if system.unsupported_on(card) is None:
            launch = planned_launch(ROOT, system, way_of(system, adapter), system.launch_on(card))
            # A file that is made of the checkpoint's own can't be made here.
            with contextlib.suppress(EnvironmentFault):
                check_launch(adapter, launch)


def test_a_setting_that_no_engine_knows_is_refused() -> None:
    system = CATALOG.systems["gemma-4-26b-a4b--bf16--vllm--plain"]
    adapter = engine("vllm")
    with pytest.raises(UsageError, match="warp_speed"):
        check_launch(adapter, planned_launch(ROOT, system, way_of(system, adapter), {"warp_speed": 9}))


def test_a_recipes_limit_on_requests_is_kept() -> None:
    text = (GOLDEN / "diffusiongemma-26b-a4b.txt").read_text(encoding="utf-8")
    usual = text.split("\n\n", maxsplit=1)[0]
    assert "--max-num-seqs 4 " in usual
    assert "--no-enable-prefix-caching" in usual
    assert "max_new_tokens" not in usual


def test_systems_of_one_model_that_write_otherwise_are_launched_otherwise() -> None:
    """Whatever makes another answer class is seen in the launch: its command, or the files beside it."""
    seen: dict[tuple[str, str], str] = {}
    for name, system in CATALOG.systems.items():
        if system.unsupported_on() or system.use.hosted is not None or not system.decoder.lossy:
            continue
        told = repr((command(system, None), engine(system.name.engine).request_fields(planned(system))))
        same = (f"{system.name.model}--{system.name.precision}--{system.name.engine}", told)
        lossy = repr(sorted(system.decoder.lossy.items()))
        assert seen.setdefault(same, lossy) == lossy, name
    assert seen


def planned(system: System) -> Launch:
    return planned_launch(Path(), system, way_of(system, engine(system.name.engine)), system.launch_on())


def test_the_file_beside_a_launch_is_shown_as_it_is_written() -> None:
    text = (GOLDEN / "diffusiongemma-26b-a4b.txt").read_text(encoding="utf-8")
    for bound in (0.05, 0.1):
        assert f'"sampler_config": {{ "entropy_bound": {bound} }}' in text
    assert "max_new_tokens" not in text
