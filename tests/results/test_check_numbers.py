"""A submitted start that was launched with lossy settings, or whose server told other types, is found by the check."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paribus.catalog import Catalog
from paribus.results.check_numbers import check_numbers
from paribus.results.findings import Report

OURS = Catalog(Path(__file__).resolve().parents[2])
SMOLLM, GEMMA = "smollm2-135m--q4-1--llamacpp--plain", "gemma-4-26b-a4b--fp8--vllm--plain"


def faults(system: str, observed: dict[str, Any] | None = None, **settings: Any) -> list[str]:
    known = OURS.system(system)
    declared = {"launch": {**known.launch_on(), **settings}}
    start = SimpleNamespace(manifest=SimpleNamespace(declared=declared, observed=observed or {}))
    report = Report()
    check_numbers(start, known, "start-1", OURS, report)  # type: ignore[arg-type]
    return [finding.text for finding in report.findings if finding.verdict == "fails"]


@pytest.mark.parametrize("system", [SMOLLM, GEMMA, "mercury-2.5--hosted--hosted--undisclosed"])
def test_the_catalogs_own_launch_holds(system: str) -> None:
    assert faults(system) == []


@pytest.mark.parametrize(
    ("system", "settings", "said"),
    [
        (SMOLLM, {"cache_type_k": "q4_0"}, "cache_type_k: q4_0 would change the answers"),
        (GEMMA, {"quantization": "fp8"}, "quantization: fp8 would change the answers"),
        (GEMMA, {"VLLM_PLUGINS": "x"}, "VLLM_PLUGINS is no variable that a file may set"),
    ],
)
def test_a_launch_that_the_catalog_would_refuse_fails(system: str, settings: dict[str, Any], said: str) -> None:
    [text] = faults(system, **settings)
    assert said in text


def test_other_types_than_the_precisions_fail() -> None:
    assert faults(GEMMA, {"kv_cache": "fp8_e4m3", "quantization": "compressed-tensors"}) == []
    assert faults(GEMMA, {"kv_cache": "bf16"}) == ["kv_cache is observed as bf16, not fp8"]
    assert faults(SMOLLM, {"kv_cache": "q8_0"}) == ["kv_cache is observed as q8_0, not f16"]
