"""Checks of a start whose server didn't start: there is nothing in it but the reason."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.catalog import Catalog
from paribus.conditions import UsageError, decoder_method
from paribus.results.findings import Report
from paribus.results.recompute import raw_traces
from paribus.results.run import Start, run_kind
from paribus.speed.rows import Row
from paribus.speed.run import around_not_started
from paribus.speed.summarise import summarise
from paribus.speed.summary import SpeedSummary


def said_not_to_start(start: Start) -> bool:
    """Whether a start says that its server didn't start."""
    return "not_started" in start.manifest.observed


def check_not_started(
    start: Start, where: str, catalog: Catalog, report: Report, *, rows: Sequence[Row], summary: SpeedSummary
) -> None:
    """Only a race's candidate beside plain decoding may have no server; then it has no request and no number."""
    manifest = start.manifest
    declared, reason = manifest.declared, manifest.observed["not_started"]
    candidate = run_kind(manifest) == "race" and decoder_method(str(declared.get("decoder"))) != "plain"
    report.expect("conditions", where, candidate, "only a race's candidate that drafts may be kept without a server")
    told = isinstance(reason, str) and bool(reason.strip())
    report.expect("conditions", where, told, "it doesn't say why its server did not start")
    report.expect("conditions", where, not manifest.counters, "it has counters of a server that did not start")
    raw = (start.folder / "requests.parquet").exists() and raw_traces(start.folder, {})
    report.expect("requests", where, not rows and not raw, "it has requests to a server that did not start")
    try:
        scenario, scale = catalog.scenario(str(declared.get("scenario"))), catalog.scale(str(declared.get("scale")))
    except UsageError as error:
        report.say("requests", where, "fails", f"this clone lacks what was measured: {error}")
        return
    _, made = summarise((), around_not_started(scenario, scale, str(reason)))
    report.same("summary", where, summary.model_dump(mode="json"), made.model_dump(mode="json"))
