"""The rows that one run gives to the database: a dictionary from table to rows, each row a dictionary."""

from __future__ import annotations

from typing import Any

from paribus.conditions import SystemName, figure_id
from paribus.results.data import RunData
from paribus.results.figures import Number, numbers
from paribus.results.items import grade, sample_rows
from paribus.results.reading import read_json_file
from paribus.results.run import StartRecord, read_start
from paribus.results.strip import strip_line, strip_of
from paribus.results.words import with_interval
from paribus.speed.rows import Row

TableRow = dict[str, Any]
Rows = dict[str, list[TableRow]]


def rows_of(data: RunData) -> Rows:
    """Everything that one sealed run says, by table."""
    quality = data.summary.quality is not None
    return {
        "runs": [_run(data)],
        "starts": [_start(data, record) for record in data.summary.starts],
        "figures": [_figure(data, one) for one in numbers(data)],
        "requests": [] if quality else [_request(data, k, row) for k, rows in _numbered(data) for row in rows],
        "kinds": [] if quality else _kinds(data),
        "flags": [
            {"run_id": data.summary.run_id, "flag": f.id, "severity": f.severity, "text": f.text}
            for f in data.summary.flags
        ],
        "scores": _scores(data),
        "items": _items(data) if quality else [],
    }


def _numbered(data: RunData) -> list[tuple[int, list[Row]]]:
    return [(rec.start, rows) for rec, rows in zip(data.summary.starts, data.rows, strict=True)]


def _run(data: RunData) -> TableRow:
    summary, declared = data.summary, data.summary.declared
    name = SystemName.parse(summary.system)
    return {
        "run_id": summary.run_id,
        "run": summary.run,
        "kind": summary.kind,
        "hardware": summary.hardware,
        "machine": summary.machine,
        "system": summary.system,
        "stack": stack_of(name),
        "model": name.model,
        "precision": name.precision,
        "engine": name.engine,
        "decoder": name.decoder,
        "think": name.think,
        "measure": summary.measure,
        "scenario_or_task": declared.get("scenario") or declared.get("task"),
        "sampling": declared.get("sampling_profile"),
        "scale": declared.get("scale"),
        "conditions": summary.hashes.get("conditions"),
        "answer_class": summary.hashes.get("answer_class"),
        "n": summary.n,
        "starts": len(summary.starts),
        "started_at": min(record.started_at for record in summary.starts),
        "ended_at": max(record.ended_at for record in summary.starts),
        "ranked": summary.ranked and not data.place.demo,
        "origin": summary.origin,
        "demo": data.place.demo,
        "superseded_by": None,
        "card": _text(summary.observed.get("card") or summary.observed.get("cpu")),
        "contributor": summary.starts[0].contributor,
        "trust": summary.trust,
        "strip": strip_line(strip_of(summary)),
        "summary": summary.model_dump(mode="json", by_alias=True),
        "declared": declared,
        "observed": summary.observed,
    }


def stack_of(name: SystemName) -> str:
    """The system's name without its decoder."""
    return "--".join(name.stack) + ("--think" if name.think else "")


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return " / ".join(map(str, value))
    return None if value is None else str(value)


def _start(data: RunData, record: StartRecord) -> TableRow:
    folder = next(f for f in data.folders if f.name == f"start-{record.start}")
    name = "score.json" if data.summary.quality is not None else "summary.json"
    return {
        "run_id": data.summary.run_id,
        "start": record.start,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "engine_start_s": record.timings.engine_start,
        "warm_up_s": record.timings.warm_up,
        "measuring_s": record.timings.measuring,
        "rest_s": record.timings.rest,
        "observed": record.observed,
        "counters": record.counters,
        "versions": record.versions,
        "summary": read_json_file(folder, name),
        "files": [entry.model_dump() for entry in read_start(folder).manifest.files],
    }


def _figure(data: RunData, one: Number) -> TableRow:
    text = f"{data.summary.system}: {one.title} {with_interval(one.estimate, one.unit)}"
    return figure_row(one, (data.summary.run_id,), data.summary.ranked and not data.place.demo, text)


def figure_row(one: Number, run_ids: tuple[str, ...], ranked: bool, sentence: str) -> TableRow:
    """One row of `figures`: of one run, or of two (first over second)."""
    kinds = one.detail.get("kinds") or {}
    return {
        "figure_id": figure_id(list(run_ids), one.metric),
        "run_id": run_ids[0],
        "other_run_id": run_ids[1] if len(run_ids) > 1 else None,
        "metric": one.metric,
        "title": one.title,
        "unit": one.unit,
        "better": one.better,
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "basis": one.basis,
        "coverage": one.coverage,
        "headline": one.headline,
        "kind_low": min(kinds.values()) if kinds else None,
        "kind_high": max(kinds.values()) if kinds else None,
        "ranked": ranked,
        "superseded_by": None,
        "sentence": sentence,
        "detail": one.detail,
    }


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


def _request(data: RunData, start: int, row: Row) -> TableRow:
    return {
        "run_id": data.summary.run_id,
        "start": start,
        "index": row.index,
        "prompt_id": row.prompt_id,
        "kind": row.kind,
        "length": row.length,
        "counted": row.counted,
        "ok": row.ok,
        "error": row.error,
        "finish_reason": row.finish_reason,
        "capped": row.capped,
        "degenerate": row.degenerate,
        "sent_ms": _ms(row.sent_ns),
        "late_ms": _ms(row.sent_ns - row.due_ns),
        "tokens": row.tokens,
        "standard_tokens": row.standard_tokens,
        "prompt_tokens": row.prompt_tokens,
        "arrivals": row.arrivals,
        "ttft_ms": _ms(row.ttft_ns),
        "ttfa_ms": _ms(row.ttfa_ns),
        "e2e_ms": _ms(row.e2e_ns),
        "check": row.check_passed,
        **{f"time_to_{k}_ms": _ms(row.time_to(k)) for k in (32, 100, 300, 800)},
    }


def _kinds(data: RunData) -> list[TableRow]:
    speed = data.summary.speed
    return [
        {
            "run_id": data.summary.run_id,
            "kind": kind,
            "ok": one.ok,
            "output_speed": one.output_speed,
            "standard_tokens_mean": one.standard_tokens_mean,
            "checked": one.checked,
            "check_passed": one.check_passed,
            **{f"time_to_{k}_ms": t.mean if (t := one.time_to_k_ms.get(str(k))) else None for k in (32, 100, 300, 800)},
        }
        for kind, one in (speed.kinds.items() if speed else ())
    ]


def _scores(data: RunData) -> list[TableRow]:
    quality = data.summary.quality
    if quality is None:
        return []
    rows: list[TableRow] = [
        {
            "name": s.name,
            "title": s.title,
            "value": s.value,
            "low": s.low,
            "high": s.high,
            "headline": s.headline,
            "group": False,
        }
        for s in quality.scores
    ]
    for name, one in quality.by_group.items():
        group = {"headline": False, "group": True}
        rows.append({"name": name, "title": name, "value": one.value, "low": one.low, "high": one.high, **group})
        if one.majority is not None:
            title = f"{name}, majority"
            rows.append({"name": title, "title": title, "value": one.majority, "low": None, "high": None, **group})
    return [{"run_id": data.summary.run_id, "position": place, **row} for place, row in enumerate(rows, 1)]


def _items(data: RunData) -> list[TableRow]:
    """Answers of a quality run. `samples.parquet` may lie in the raw store only: then there are their grades here."""
    found = []
    for record, folder in zip(data.summary.starts, data.folders, strict=True):
        for row in sample_rows(folder):
            found.append({"run_id": data.summary.run_id, "start": record.start, "correct": grade(row), **_sample(row)})
    return found


def _sample(row: TableRow) -> TableRow:
    grades = ("item", "repeat", "answer", "status", "finish_reason")
    account = ("prompt_tokens", "tokens", "reasoning_tokens", "ttft_ms", "answer_time_ms")
    return {name: row.get(name) for name in (*grades, *account)}
