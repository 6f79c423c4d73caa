"""Settings that the server reads back: the same, another speed (recorded), another answer (a fault)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from paribus.catalog import Catalog, Decoder, System
from paribus.conditions import EnvironmentFault, SystemName
from paribus.engines import Launch
from paribus.engines.readback import differing, read_back

ROOT = Path(__file__).parents[2]
ENGINE = SimpleNamespace(name="played", deciding={})


def launch_of(settings: dict, lossy: dict | None = None) -> Launch:
    model = Catalog(ROOT).models["smollm2-135m"]
    decoder = Decoder(method="block-diffusion", parameters={"tokens": 4}, lossy=lossy or {})
    use = model.engines["llamacpp"].model_copy(update={"decoders": {"x": decoder}})
    system = System(
        model.model_copy(update={"engines": {"llamacpp": use}}), SystemName(model.model, "q4-1", "llamacpp", "x")
    )
    return Launch(ROOT, ROOT, system, ROOT, settings, 16, 1)


def test_numbers_and_words_are_compared_by_what_they_mean():
    declared = {"a": 1, "b": "entropy_bound", "c": 0.1, "d": True, "e": "on", "only": 1}
    effective = {"a": 1.0, "b": "Entropy-Bound", "c": 0.10000000149, "d": "true", "e": "off", "other": 2}
    assert differing(declared, effective) == {"e": ("on", "off")}
    assert differing({"x": True}, {"x": 1}) == {"x": (True, 1)}


def test_a_setting_that_decides_only_the_speed_is_recorded():
    launch = launch_of({"max_num_seqs": 16, "poll": 0})
    assert read_back(ENGINE, launch, {"settings": {"max_num_seqs": 4, "poll": 0}}) == {
        "effective_settings": {"max_num_seqs": 4, "poll": 0},
        "settings_differ": ["max_num_seqs 4 where 16 was declared"],
        "kv_cache": "f16 as declared, not told",
    }
    assert read_back(ENGINE, launch, {"kv_cache": "float16"}) == {"kv_cache": "f16"}, "told"


@pytest.mark.parametrize(
    ("settings", "lossy", "effective", "name"),
    [
        ({"max_model_len": 8192}, {}, {"max_model_len": 4096}, "max_model_len 8192"),
        ({}, {"canvas_length": 256}, {"canvas_length": 128}, "canvas_length 256"),
        ({"poll": 1}, {"threshold": 0.9}, {"poll": 2, "threshold": 0.95}, "threshold 0.9"),
    ],
)
def test_a_setting_that_decides_the_answers_is_a_fault(settings, lossy, effective, name):
    with pytest.raises(EnvironmentFault, match=f"declared is {name}, but played runs with"):
        read_back(ENGINE, launch_of(settings, lossy), {"settings": effective})
