"""Checks of an ad-hoc measurement (`paribus speed --base-url ... --out DIR`): no manifest, no rank, the same sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.catalog import Catalog, PromptLine, SetPrompt, prompts_hash, read_prompt_set
from paribus.results.check_speed import numbers_of
from paribus.results.data import lite_rows
from paribus.results.findings import Report
from paribus.results.identities import row_faults, summary_faults
from paribus.results.reading import read_json_file, read_model
from paribus.results.recompute import NOT_IN_THE_REQUESTS, counted_then, raw_traces, same_flags
from paribus.speed.adhoc import is_local
from paribus.speed.flags import Facts
from paribus.speed.rows import Row
from paribus.speed.summarise import Around, summarise
from paribus.speed.summary import SpeedSummary
from paribus.speed.synthetic import synthetic_words
from paribus.speed.trace import Prompt
from paribus.speed.window import Window
from paribus.wire import Endpoint


def is_endpoint_folder(folder: Path) -> bool:
    """Whether a folder holds an ad-hoc measurement."""
    return (folder / "conditions.json").is_file() and (folder / "summary.json").is_file()


def check_endpoint(folder: Path, catalog: Catalog, report: Report) -> None:
    """Rows from the raw bytes, summary from the rows, identities."""
    where = folder.name
    with report.looking("requests", where):
        conditions = read_json_file(folder, "conditions.json")
        rows, summary = lite_rows(folder), read_model(folder, "summary.json", SpeedSummary)
        if "tokenizer" in (summary.tokens_method, summary.tokens_at_method):
            report.say("requests", where, "not checked", "the tokenizer that counted the tokens is not here")
            return
        prompts = _Prompts.of(catalog, conditions, rows)
        if not prompts.known:
            text = "your own prompts are not here: verified answers are taken as they are"
            report.say("requests", where, "not checked", text)
        again, made = summarise(raw_traces(folder, prompts.table, counted_then(rows)), _around(conditions, summary))
        stored, fresh = ([_row(row, prompts.known) for row in table] for table in (rows, again))
        report.same("requests", where, stored, fresh)
        one, two = (_without_checks(numbers_of(each), prompts.known) for each in (summary, made))
        report.same("summary", where, one, two)
        for fault in same_flags(summary.flags, made.flags):
            report.say("summary", where, "fails", fault)
        faults = [fault for row in rows for fault in row_faults(row)]
        faults += summary_faults(summary, [row for row in rows if row.counted], {})
        for fault in faults[:10]:
            report.say("identities", where, "fails", fault)
        if not faults:
            report.say("identities", where, "holds")


@dataclasses.dataclass(frozen=True)
class _Prompts:
    """The prompts that were asked: with their checks where they are shipped, else by name only."""

    known: bool
    table: Mapping[str, Prompt]

    @classmethod
    def of(cls, catalog: Catalog, conditions: Mapping[str, Any], rows: list[Row]) -> _Prompts:
        shipped: dict[str, PromptLine] = {}
        for path in sorted((catalog.root / "tasks" / "speed" / "prompts").glob("*.jsonl")):
            shipped |= {prompt.id: prompt for prompt in read_prompt_set(path)}
        lines = [p for p in shipped.values() if isinstance(p, SetPrompt) and p.split == "measured"]
        for length in ("long", "short"):
            chosen = [p for p in lines if p.length == length]
            if chosen and prompts_hash(chosen) == conditions.get("prompts_hash"):
                return cls(True, {p.id: Prompt.of(p) for p in chosen})
        return cls(False, {row.prompt_id: Prompt(row.prompt_id, row.kind, row.length) for row in rows})


def _around(conditions: Mapping[str, Any], summary: SpeedSummary) -> Around:
    """What was seen around the requests: from what was asked, and what only the summary keeps."""
    sent = conditions.get("extra_body")
    facts = Facts(
        rows=(),
        synthetic=synthetic_words(sent) if isinstance(sent, dict) else "",
        hosted=not is_local(Endpoint(str(conditions.get("base_url")), "model")),
        planned=int(conditions.get("requests") or 0),
        lag_ms_p99=summary.client.lag_ms_p99,
        also=[flag for flag in summary.flags if flag.id in NOT_IN_THE_REQUESTS],
    )
    return Around(
        concurrency=int(conditions.get("requests_at_once") or 1),
        window=Window(*summary.window_ns) if summary.window_ns else None,
        cpu_share=summary.client.cpu_share,
        facts=facts,
    )


def _row(row: Row, known: bool) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(row).items() if known or name != "check_passed"}


def _without_checks(numbers: dict[str, Any], known: bool) -> dict[str, Any]:
    if known:
        return numbers

    def strip(part: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in part.items() if name not in ("checked", "check_passed")}

    kinds = {kind: strip(part) for kind, part in numbers["kinds"].items()}
    return {**numbers, "requests": strip(numbers["requests"]), "kinds": kinds}
