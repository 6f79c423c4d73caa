"""Checks of a start whose server didn't start, or died while it was measured: what there is of it, and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.catalog import Catalog
from paribus.conditions import UsageError, decoder_method
from paribus.results.findings import Report
from paribus.results.merge import LOST
from paribus.results.recompute import raw_traces
from paribus.results.run import Start, run_kind
from paribus.speed.rows import Row
from paribus.speed.run import around_unasked
from paribus.speed.summarise import summarise
from paribus.speed.summary import SpeedSummary


def said_lost(start: Start) -> bool:
    """Whether a start says that it had no server, or lost it."""
    return bool(set(LOST) & start.manifest.observed.keys())


def check_lost(start: Start, where: str, report: Report) -> None:
    """Only a race's candidate beside plain decoding may be kept so, with a reason and without counters."""
    manifest = start.manifest
    declared, reasons = manifest.declared, [manifest.observed[name] for name in LOST if name in manifest.observed]
    candidate = run_kind(manifest) == "race" and decoder_method(str(declared.get("decoder"))) != "plain"
    report.expect("conditions", where, candidate, "only a race's candidate that drafts may be kept without a server")
    told = len(reasons) == 1 and isinstance(reasons[0], str) and bool(reasons[0].strip())
    report.expect("conditions", where, told, "it doesn't say why it had no server to the end")
    report.expect("conditions", where, not manifest.counters, "it has counters of a server that was gone")


def check_unasked(
    start: Start, where: str, catalog: Catalog, report: Report, *, rows: Sequence[Row], summary: SpeedSummary
) -> None:
    """A lost start without requests has no number either."""
    observed, declared = start.manifest.observed, start.manifest.declared
    raw = (start.folder / "requests.parquet").exists() and raw_traces(start.folder, {})
    report.expect("requests", where, not rows and not raw, "it has requests to a server that did not start")
    try:
        scenario, scale = catalog.scenario(str(declared.get("scenario"))), catalog.scale(str(declared.get("scale")))
    except UsageError as error:
        report.say("requests", where, "fails", f"this clone lacks what was measured: {error}")
        return
    why = {name: str(observed[name]) for name in LOST if name in observed}
    _, made = summarise((), around_unasked(scenario, scale, why))
    report.same("summary", where, summary.model_dump(mode="json"), made.model_dump(mode="json"))
