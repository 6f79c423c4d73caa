"""Whether a start ran with its own numbers: no launch setting that changes the answers, no other type read back."""

from __future__ import annotations

from paribus.catalog import Catalog, System
from paribus.conditions import ParibusError
from paribus.engines.deciding import check_allowed
from paribus.engines.launching import planned_launch
from paribus.engines.numbers import declared_numbers, other_numbers
from paribus.engines.opening import way_of
from paribus.engines.registry import engine
from paribus.results.findings import Report
from paribus.results.run import Start


def check_numbers(start: Start, system: System, where: str, catalog: Catalog, report: Report) -> None:
    """A start whose launch would change the answers, or whose server told other types, inherits no quality.

    A start is measured only without such; this finds manifests that were made or changed otherwise. What was observed
    is the contributor's word.
    """
    if system.use.hosted is not None:
        return
    declared = start.manifest.declared
    try:
        adapter = engine(system.name.engine, catalog.extra)
        launch = dict(declared.get("launch") or {})
        check_allowed(adapter, planned_launch(catalog.root, system, way_of(system, adapter), launch))
    except ParibusError as error:
        report.say("conditions", where, "fails", str(error))
    other = other_numbers(system, start.manifest.observed)
    for name in declared_numbers(system):
        value, told = other.get(name, ("", ""))
        report.expect("conditions", where, name not in other, f"{name} is observed as {told}, not {value}")
