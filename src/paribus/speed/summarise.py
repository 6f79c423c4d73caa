"""Summaries: a start's from its traces, a run's from its starts. Pure functions; `paribus check` calls them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from paribus.speed.counted import cached_prompt_tokens, generated
from paribus.speed.derive import row_of
from paribus.speed.flags import Facts
from paribus.speed.judging import judge, pooled
from paribus.speed.metrics.acceptance import acceptance
from paribus.speed.metrics.answer_time import answer_time
from paribus.speed.metrics.decode_speed import decode_speed
from paribus.speed.metrics.e2e import e2e
from paribus.speed.metrics.energy import energy
from paribus.speed.metrics.output_speed import output_speed, output_speed_standard, speed_of
from paribus.speed.metrics.reader_wait import reader_wait
from paribus.speed.metrics.stall import Gaps
from paribus.speed.metrics.throughput import Gathered
from paribus.speed.metrics.time_to_k import time_to_k
from paribus.speed.metrics.tokens import MARKUP, TokenCount, check_usage, reasoning, size, standard, tokens
from paribus.speed.metrics.ttfa import ttfa
from paribus.speed.metrics.ttft import ttft
from paribus.speed.pooling import mean, pooled_acceptance, pooled_engine, pooled_stall, total
from paribus.speed.rows import Row
from paribus.speed.statistics import Estimate, percentile
from paribus.speed.summary import (
    ClientLoad,
    Decode,
    EngineLoad,
    Interval,
    KindSummary,
    RequestCounts,
    SpeedSummary,
    Stall,
    Tail,
    Throughput,
)
from paribus.speed.throughputs import pooled_throughput, start_throughput
from paribus.speed.trace import Trace
from paribus.speed.window import Window

UNITS = ("standard", "native", "size")
"""What a trace counts after each piece."""


@dataclass(frozen=True)
class Around:
    """What was seen around the requests of one start, and can't be derived from them.

    `facts` carries what the flag rules need (its rows are filled in here). `window`: edges of the steady window, in
    nanoseconds since the load's start; None at one request. `counters`: the engine's, after minus before.
    """

    concurrency: int
    window: Window | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    engine: EngineLoad | None = None
    cpu_share: float | None = None
    energy_j: float | None = None
    energy_scope: str | None = None
    energy_missing: str | None = None
    facts: Facts = field(default_factory=lambda: Facts(rows=()))


def rows_of(traces: Iterable[Trace]) -> list[Row]:
    """Rows of all traces but the warm-up's, by index."""
    return [row_of(t) for t in sorted(traces, key=lambda t: t.index) if t.phase != "warm-up"]


class _Seen:
    """What a summary needs of traces beside their rows, taken in one after the other: staircases are let go."""

    def __init__(self, window: Window | None) -> None:
        self.rows: list[Row] = []
        self.speeds = Gathered(window, UNITS)
        self.gaps = Gaps()
        self.counts: list[tuple[TokenCount, int, int]] = []
        self.digests: list[tuple[str, str]] = []
        self.after_methods: set[str] = set()
        self.ends_ns: list[int] = []
        self.without_usage: set[str] = set()
        self.without_done = self.without_finish = self.revised = 0
        self.unread: Counter[str] = Counter()

    def add(self, trace: Trace) -> None:
        """Take in one trace of the load."""
        self.rows.append(row_of(trace))
        self.speeds.add(trace, {unit: getattr(trace, unit) for unit in UNITS})
        if trace.ok:
            self.ends_ns.append(trace.ended_ns)
        self.revised += trace.counted and trace.revised
        if trace.counted:
            self.unread.update(trace.unread)
        if trace.counted and trace.ok:
            self.gaps.add(trace.at_ns)
            ended = trace.finish_reason in ("stop", "tool_calls")
            unseen = ended + MARKUP * (trace.count.reasoning > 0)
            self.counts.append((replace(trace.count, after=()), int(trace.standard[-1]), unseen))
            if trace.count.usage is None:
                self.without_usage.add(trace.count.method)
            self.digests.append((trace.prompt.id, trace.digest))
            self.after_methods.add(trace.count.after_method)
            self.without_done += not trace.done
            self.without_finish += trace.finish_reason is None


def summarise(traces: Iterable[Trace], around: Around) -> tuple[list[Row], SpeedSummary]:
    """Rows and summary of one start; goes through the traces once and keeps none. Soak requests count only in the
    window and the whole run."""
    seen = _Seen(around.window)
    for trace in traces:
        if trace.phase != "warm-up":
            seen.add(trace)
    rows = sorted(seen.rows, key=lambda row: row.index)
    counted = [row for row in rows if row.counted]
    wall = wall_of(rows)
    speeds = {unit: seen.speeds.speed(unit, wall) for unit in UNITS}
    gaps = seen.gaps.stall()
    base = _from_rows([counted], cpu=around.facts.cpu)
    return rows, base.model_copy(
        update={
            "wall_s": wall.seconds,
            "window_s": around.window.seconds if around.window else None,
            "window_ns": (around.window.start_ns, around.window.end_ns) if around.window else None,
            "concurrency_seen": concurrency_seen(rows),
            "admitted": around.facts.admitted,
            "throughput": start_throughput(speeds["standard"], seen.ends_ns, around.window, around.concurrency),
            "throughput_native": speeds["native"].value,
            "throughput_bytes": speeds["size"].value,
            "tokens_at_method": _one_word(seen.after_methods),
            "stall_ms": gaps,
            "acceptance": acceptance(around.counters),
            "engine": around.engine,
            **_energy(rows, around.energy_j, around.energy_scope, around.energy_missing),
            "client": ClientLoad(lag_ms_p99=around.facts.lag_ms_p99, cpu_share=around.cpu_share),
            "flags": judge(_facts(seen, rows, gaps, around)),
        }
    )


def _energy(
    rows: Sequence[Row], joules: float | None, scope: str | None, missing: str | None
) -> dict[str, float | str | None]:
    """The fields of energy. Over all rows, soak included: the counter ran then too."""
    found = energy(rows, joules)
    return {
        "energy_j": joules,
        "energy_scope": scope,
        "energy_missing": None if joules is not None else missing or "nobody read an energy counter",
        "energy_per_1k_standard_tokens_j": found.per_1k_standard_tokens,
        "energy_per_answer_j": found.per_answer,
        "energy_per_checked_answer_j": found.per_checked_answer,
    }


def _pooled_energy(starts: Sequence[StartPart]) -> dict[str, float | str | None]:
    """Energy of a run: of all its starts, in one scope, or none."""
    parts = [start.summary for start in starts]
    joules = total([part.energy_j for part in parts])
    scopes = {part.energy_scope for part in parts if part.energy_scope}
    missing = next((part.energy_missing for part in parts if part.energy_missing), None)
    if len(scopes) > 1:
        joules, missing = None, f"the starts have different scopes: {', '.join(sorted(scopes))}"
    rows = [row for start in starts for row in start.rows]
    return _energy(rows, joules, scopes.pop() if joules is not None else None, missing)


def _facts(seen: _Seen, rows: Sequence[Row], gaps: Stall, around: Around) -> Facts:
    counted = [row for row in rows if row.counted]
    return replace(
        around.facts,
        rows=counted,
        concurrency=around.concurrency,
        stall_ms_p50=gaps.p50,
        seen=concurrency_seen(rows),
        asked=min(around.concurrency, len(rows)),
        usage=check_usage(seen.counts),
        generated=generated(rows, around.counters),
        cached_tokens=cached_prompt_tokens(rows, around.counters),
        drafted=_drafted(around.counters),
        digests=seen.digests,
        without_usage=frozenset(seen.without_usage),
        without_done=seen.without_done,
        without_finish=seen.without_finish,
        revised=seen.revised,
        unread=seen.unread,
    )


def _drafted(counters: Mapping[str, float]) -> tuple[float, float] | None:
    drafted, accepted = counters.get("draft_tokens"), counters.get("accepted_tokens")
    return None if drafted is None or accepted is None else (drafted, accepted)


def wall_of(rows: Sequence[Row]) -> Window:
    """From the first request's sending to the last one's end."""
    return Window(min((r.sent_ns for r in rows), default=0), max((r.ended_ns for r in rows), default=0))


def concurrency_seen(rows: Sequence[Row]) -> int:
    """The most requests that were under way at once, by their own times. What never had a connection wasn't."""
    under_way = [r for r in rows if r.error != "connect"]
    edges = sorted([(r.sent_ns, 1) for r in under_way] + [(r.ended_ns, -1) for r in under_way])
    return int(np.max(np.cumsum([step for _, step in edges]))) if edges else 0


def _interval(estimate: Estimate | None) -> Interval:
    if estimate is None:
        return Interval(value=None, low=None, high=None)
    return Interval(value=estimate.value, low=estimate.low, high=estimate.high, basis=estimate.basis)


def _one_word(words: set[str]) -> str | None:
    return words.pop() if len(words) == 1 else ("mixed" if words else None)


def _from_rows(starts: Sequence[Sequence[Row]], *, cpu: bool) -> SpeedSummary:
    """Everything that follows from counted rows alone; the rest is left empty."""
    rows = [row for start in starts for row in start]
    decode, coverage = decode_speed(starts)
    method = _one_word({row.tokens_method for row in rows if row.ok}) or "usage"
    lateness = [max(row.sent_ns - row.due_ns, 0) / 1e6 for row in rows]
    return SpeedSummary(
        schema_version=1,
        requests=counts(rows),
        wall_s=0.0,
        window_s=None,
        concurrency_seen=0,
        admitted=None,
        tokens=tokens(rows),
        reasoning_tokens=reasoning(rows),
        standard_tokens=standard(rows),
        bytes=size(rows),
        tokens_method=_method(method),
        ttft_ms=ttft(rows),
        ttfa_ms=ttfa(rows),
        e2e_ms=e2e(rows),
        late_ms=Tail(p99=percentile(lateness, 0.99)),
        connect_ms=Tail(p99=percentile([row.connect_ns / 1e6 for row in rows], 0.99)),
        time_to_k_ms=time_to_k(rows),
        reader_wait_s=reader_wait(rows),
        output_speed=_interval(output_speed(starts)),
        output_speed_standard=_interval(output_speed_standard(starts)),
        output_speed_bytes=_interval(speed_of(starts, lambda row: float(row.bytes))),
        answer_time_ms=answer_time(rows),
        decode_speed=Decode(**_interval(decode).model_dump(), coverage=coverage),
        throughput=Throughput(value=None, low=None, high=None, raw_arrival=None, whole_run=None),
        stall_ms=Stall(p50=None, p99=None, max=None),
        kinds={kind: _kind([r for r in rows if r.kind == kind]) for kind in sorted({r.kind for r in rows})},
        client=ClientLoad(lag_ms_p99=None, cpu_share=None),
        flags=judge(Facts(rows=rows, cpu=cpu), ()),
    )


def _method(word: str) -> Literal["usage", "tokenizer", "standard", "mixed"]:
    table: dict[str, Literal["usage", "tokenizer", "standard", "mixed"]] = {
        "usage": "usage",
        "tokenizer": "tokenizer",
        "standard": "standard",
    }
    return table.get(word, "mixed")


def counts(rows: Sequence[Row]) -> RequestCounts:
    """How the requests ended. `ok + failed` is their number."""
    return RequestCounts(
        ok=sum(r.ok for r in rows),
        failed=sum(not r.ok for r in rows),
        cut=sum(r.cut for r in rows),
        capped=sum(r.capped for r in rows),
        unanswered=sum(r.unanswered for r in rows),
        degenerate=sum(r.degenerate for r in rows),
        checked=sum(r.check_passed is not None for r in rows),
        check_passed=sum(r.check_passed is True for r in rows),
    )


def _kind(rows: Sequence[Row]) -> KindSummary:
    speed = output_speed_standard([rows])
    return KindSummary(
        ok=sum(r.ok for r in rows),
        time_to_k_ms=time_to_k(rows),
        output_speed=speed.value if speed else None,
        standard_tokens_mean=standard(rows).mean,
        checked=sum(r.check_passed is not None for r in rows),
        check_passed=sum(r.check_passed is True for r in rows),
    )


@dataclass(frozen=True)
class StartPart:
    """One start of a run, as it lies on disk: its rows (`requests-lite.parquet`) and its `summary.json`."""

    rows: Sequence[Row]
    summary: SpeedSummary


def pool(starts: Sequence[StartPart], *, cpu: bool = False, headline: bool = True) -> SpeedSummary:
    """The summary of a run from its starts (at least one).

    Requests are pooled. Throughput is the mean of the starts with t over starts (a single start keeps its own
    interval over batches); medians and 99th percentiles of gaps are means over starts; lag, concurrency and window
    are the worst; wall time, counted tokens and energy are sums. Row rules are judged over all requests.
    """
    parts = [part.summary for part in starts]
    counted = [[row for row in part.rows if row.counted] for part in starts]
    facts = Facts(rows=[row for rows in counted for row in rows], cpu=cpu, headline=headline)
    flags = pooled([part.flags for part in parts], facts)
    if 3 <= len(parts) <= 4 and not any(f.id == "preliminary" for f in flags):
        from paribus.conditions import flag

        flags.append(flag("limited", str(len(parts))))
    windows = [p.window_s for p in parts if p.window_s is not None]
    return _from_rows(counted, cpu=cpu).model_copy(
        update={
            "wall_s": sum(p.wall_s for p in parts),
            "window_s": min(windows) if len(windows) == len(parts) else None,
            "window_ns": parts[0].window_ns if len(parts) == 1 else None,
            "concurrency_seen": min(p.concurrency_seen for p in parts),
            "admitted": min((p.admitted for p in parts if p.admitted is not None), default=None),
            "throughput": pooled_throughput([p.throughput for p in parts]),
            "throughput_native": mean([p.throughput_native for p in parts]),
            "throughput_bytes": mean([p.throughput_bytes for p in parts]),
            "tokens_at_method": _one_word({p.tokens_at_method for p in parts if p.tokens_at_method}),
            "stall_ms": pooled_stall([p.stall_ms for p in parts]),
            "acceptance": pooled_acceptance([p.acceptance for p in parts]),
            "engine": pooled_engine([p.engine for p in parts]),
            **_pooled_energy(starts),
            "client": ClientLoad(
                lag_ms_p99=max((p.client.lag_ms_p99 for p in parts if p.client.lag_ms_p99 is not None), default=None),
                cpu_share=max((p.client.cpu_share for p in parts if p.client.cpu_share is not None), default=None),
            ),
            "flags": flags,
        }
    )


__all__ = [
    "Around",
    "StartPart",
    "concurrency_seen",
    "counts",
    "pool",
    "rows_of",
    "summarise",
    "wall_of",
]
