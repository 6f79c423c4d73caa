"""Checks of a speed start's numbers: rows from the raw bytes, summary from the rows, order, identities."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

from paribus.catalog import Catalog, Scale, Scenario, SetPrompt, System
from paribus.conditions import UsageError
from paribus.results.check_lost import check_lost, check_unasked, said_lost
from paribus.results.check_start import system_of
from paribus.results.check_telemetry import check_telemetry
from paribus.results.data import lite_rows
from paribus.results.findings import Report
from paribus.results.identities import row_faults, summary_faults, too_fast
from paribus.results.reading import read_model
from paribus.results.recompute import around_from, counted_then, raw_traces, same_flags
from paribus.results.run import Start
from paribus.results.seal import on_cpu
from paribus.speed.load import SECOND_NS, steady_window
from paribus.speed.order import cycles
from paribus.speed.rows import Row
from paribus.speed.run import fitting, tokenizer_of
from paribus.speed.summarise import StartPart, pool, summarise
from paribus.speed.summary import SpeedSummary
from paribus.speed.trace import Prompt, Trace

IDLE_MS = 5_000
"""A worker of a closed loop that rests longer than this after an answer may lack a request."""
MOST = 10
BY_PIECE = frozenset({"decode_tokens", "decode_speed", "throughput_native", "tokens_at_method"})
"""Columns and numbers that rest on how many of the model's tokens came with each piece."""


def check_speed(start: Start, where: str, catalog: Catalog, report: Report) -> None:
    """Everything that can be recomputed of a speed start."""
    with report.looking("requests", where):
        rows = lite_rows(start.folder)
        summary = read_model(start.folder, "summary.json", SpeedSummary)
        lost = said_lost(start)
        if lost:
            check_lost(start, where, report)
        if lost and ("not_started" in start.manifest.observed or not rows):
            check_unasked(start, where, catalog, report, rows=rows, summary=summary)
            return
        check = _SpeedCheck(start, where, catalog, report, rows, summary)
        if not lost:  # what a server that died was still to be asked is missing
            check.order()
            check_telemetry(start, where, summary, report)
        check.numbers()
        check.identities()


@dataclass(frozen=True)
class _Asked:
    """What the start was asked to measure, as this clone's catalog has it."""

    scenario: Scenario
    scale: Scale
    prompts: Sequence[SetPrompt]


@dataclass
class _SpeedCheck:
    start: Start
    where: str
    catalog: Catalog
    report: Report
    rows: list[Row]
    summary: SpeedSummary

    @cached_property
    def system(self) -> System | None:
        """The start's system in this clone's catalog."""
        found: System | None = system_of(self.start, self.catalog)
        return found

    @cached_property
    def asked(self) -> _Asked | None:
        """Scenario, scale and prompts; None (and a finding) when this clone doesn't have what was measured."""
        declared = self.start.manifest.declared
        try:
            scenario = self.catalog.scenario(str(declared.get("scenario")))
            scale = self.catalog.scale(str(declared.get("scale")))
            prompts = self.catalog.scenario_prompts(scenario, scale)
            digest = self.catalog.scenario_prompts_hash(scenario, scale)
        except UsageError as error:
            self.report.say("requests", self.where, "fails", f"this clone lacks what was measured: {error}")
            return None
        if digest != declared.get("prompts_hash"):
            text = f"this clone's prompts have the hash {digest}, those measured {declared.get('prompts_hash')}"
            self.report.say("requests", self.where, "fails", text)
            return None
        return _Asked(scenario, scale, prompts)

    def order(self) -> None:
        """Requests are numbered without gaps; the prompts came in the order that the start's number makes."""
        numbers = sorted(row.index for row in self.rows)
        whole = bool(numbers) and numbers == list(range(len(numbers)))
        self._expect("requests", whole, "the numbers of the requests have gaps: some are missing")
        self._no_rest()
        if self.asked is None:
            return
        prompts: Sequence[SetPrompt] = self.asked.prompts
        if self.system is not None:
            # Prompts that don't fit this system's context were left out before the load began.
            cap = int(self.start.manifest.declared.get("cap") or 0)
            prompts = [p for p in prompts if fitting([p], self._context(self.system), cap)]
        wanted = [prompt.id for prompt in islice(cycles(prompts, self.start.number), len(self.rows))]
        found = [row.prompt_id for row in sorted(self.rows, key=lambda row: row.index)]
        text = "the prompts did not come in the order of this start: requests are missing, added or swapped"
        self._expect("requests", found == wanted, text)
        due = self.asked.scale.requests_of(self.asked.scenario) if self.asked.scenario.requests > 1 else len(prompts)
        if due is not None:
            self._expect("requests", len(self.rows) == due, f"{len(self.rows)} requests were kept, {due} were due")

    def _context(self, system: System) -> int:
        return system.context_of(self.start.manifest.declared.get("launch") or {})

    def _no_rest(self) -> None:
        """In a closed loop a worker sends its next request when its last one has ended."""
        workers: dict[int, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: row.sent_ns):
            workers.setdefault(row.worker, []).append(row)
        for before, after in (pair for own in workers.values() for pair in pairwise(own)):
            gap = (after.due_ns - before.ended_ns) / 1e6
            if gap < -1:
                text = f"request {after.index} left before its worker's last one had ended"
                self.report.say("requests", self.where, "fails", text)
            elif gap > IDLE_MS and before.ok:
                text = f"a worker rested {gap / 1e3:.1f} s before request {after.index}"
                self.report.say("requests", self.where, "warning", text)

    def numbers(self) -> None:
        """Rows and summary once more: from the raw bytes where they are, else the summary from the rows."""
        raw = (self.start.folder / "requests.parquet").exists()
        if raw and self.asked is not None:
            self._from_raw(self.asked)
        else:
            if self.asked is not None:
                self.report.say("requests", self.where, "not checked", "rows are taken as they are: no raw file here")
            headline = not self.start.manifest.declared.get("prefix_caching")
            made = pool([StartPart(self.rows, self.summary)], cpu=self._cpu, headline=headline)
            self.report.same("summary", self.where, numbers_of(self.summary), numbers_of(made))

    @property
    def _cpu(self) -> bool:
        return on_cpu(self.catalog, str(self.start.manifest.declared.get("hardware")))

    def _from_raw(self, asked: _Asked) -> None:
        here = tokenizer_of(self.system, self.catalog) if self.system is not None else None
        prompts = {p.id: Prompt.of(p) for p in asked.prompts}
        traces = raw_traces(self.start.folder, prompts, counted_then(self.rows, here))
        around = around_from(self.start.manifest, self.summary, asked.scenario, asked.scale, cpu=self._cpu)
        again, made = summarise(traces, around)
        # Where each token of an answer ends is known to the tokenizer alone; how many there are was kept.
        placed = here is not None or self.summary.tokens_at_method in ("usage", "characters", None)
        if not placed:
            text = "how many tokens came with each piece: the model's tokenizer is not here"
            self.report.say("requests", self.where, "not checked", text)
        without = frozenset() if placed else BY_PIECE
        stored, fresh = ([_without(without, dataclasses.asdict(row)) for row in table] for table in (self.rows, again))
        self.report.same("requests", self.where, stored, fresh)
        whole = [_without(without, numbers_of(summary)) for summary in (self.summary, made)]
        self.report.same("summary", self.where, *whole)
        for fault in same_flags(self.summary.flags, made.flags):
            self.report.say("summary", self.where, "fails", fault)
        if not said_lost(self.start):
            self._window(asked, traces)

    def _window(self, asked: _Asked, traces: Sequence[Trace]) -> None:
        """The edges of the steady window: as the requests make them, or whole seconds around the measured ones."""
        edges = self.summary.window_ns
        if asked.scenario.requests == 1:
            self._expect("summary", edges is None, "a load of one request has no window")
        elif asked.scale.requests_of(asked.scenario) is not None:
            made = steady_window([t.ended_ns for t in traces], asked.scenario.requests)
            wanted = (made.start_ns, made.end_ns) if made else None
            self.report.same("summary", self.where, {"window_ns": edges}, {"window_ns": wanted})
        elif edges is None:
            self._expect("summary", any(f.id == "short_window" for f in self.summary.flags), "there is no window")
        else:
            whole = all(edge % SECOND_NS == 0 for edge in edges)
            self._expect("summary", whole, "the window's edges are no whole seconds")
            inside = {t.index for t in traces if edges[0] <= t.due_ns < edges[1]}
            text = "the measured requests are not those that were sent in the window"
            self._expect("summary", inside == {t.index for t in traces if t.counted}, text)

    def identities(self) -> None:
        """What no true measurement violates; and what is merely implausible."""
        counted = [row for row in self.rows if row.counted]
        faults = [fault for row in self.rows for fault in row_faults(row)]
        faults += summary_faults(self.summary, counted, self.start.manifest.counters)
        for fault in faults[:MOST]:
            self.report.say("identities", self.where, "fails", fault)
        if not faults:
            self.report.say("identities", self.where, "holds")
        odd = too_fast(self.summary, str(self.start.manifest.declared.get("hardware")), self.catalog)
        if odd:
            self.report.say("identities", self.where, "warning", odd)

    def _expect(self, subject: str, right: bool, text: str) -> None:
        self.report.expect(subject, self.where, right, text)  # type: ignore[arg-type]


def _without(names: frozenset[str], values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def numbers_of(summary: SpeedSummary) -> dict[str, Any]:
    """A summary without its flags, as JSON."""
    return summary.model_dump(mode="json", by_alias=True, exclude={"flags"})
