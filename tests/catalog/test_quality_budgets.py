"""How often a question is asked: `standard` by default, `full` on request, and both are other runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.catalog import Catalog, HardwareFile
from paribus.catalog.configuration import Configuration, configure, read_overrides
from paribus.catalog.declare import Place, declare_task
from paribus.catalog.select import _tasks
from paribus.catalog.surroundings import Surroundings
from paribus.conditions import UsageError

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)


def profile() -> HardwareFile:
    return CATALOG.hardware("cpu")


def configuration(**settings: str) -> Configuration:
    return configure(CATALOG, profile(), read_overrides({"scale": "full", **settings}))


def run_of(task: str, config: Configuration) -> tuple[int, str]:
    """Repeats and path of a task's run under plain decoding of the CPU's model."""
    system = next(s for s in CATALOG.systems.values() if s.decoder.method == "plain" and s.use.launch)
    planned = declare_task(CATALOG, config, CATALOG.task(task)).planned(
        system, "abcdef012345", system.use.launch, Place("cpu", "m-test", 1)
    )
    return planned.declared["repeats"], planned.run


@pytest.mark.parametrize(("task", "standard", "full"), [("aime-2024-2026", 4, 8), ("livecodebench-v6", 1, 4)])
def test_the_budget_decides_the_repeats_and_the_run(task: str, standard: int, full: int) -> None:
    usual, asked, more = (
        run_of(task, configuration(**settings))
        for settings in ({}, {"quality_budget": "standard"}, {"quality_budget": "full"})
    )
    assert usual == asked
    assert (usual[0], more[0]) == (standard, full)
    assert usual[1] != more[1]


def test_a_scale_may_ask_less_often_than_the_budget() -> None:
    assert run_of("aime-2024-2026", configuration(scale="quick", quality_budget="full"))[0] == 1


def test_an_unknown_budget_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"quality_budget.*'standard' or 'full'"):
        read_overrides({"quality_budget": "huge"})


@pytest.mark.parametrize(
    ("measures", "planned"),
    [("*", False), ("mmlu-pro", False), ("mmlu-pro-full", True), ("mmlu-pro*", True), ("c1-*", False)],
)
def test_all_of_mmlu_pro_is_planned_only_when_it_is_named(measures: str, planned: bool) -> None:
    config = configuration(measures=measures)
    around = Surroundings.observe(CATALOG, "m-test")
    found = _tasks(CATALOG, config, CATALOG.scale("full"), around, [])
    assert ("mmlu-pro-full" in {task.task for task in found}) is planned
