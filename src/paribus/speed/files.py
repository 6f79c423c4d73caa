"""From what was spooled to a start's files: `requests.parquet`, `requests-lite.parquet`, `summary.json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from paribus.catalog import PromptLine
from paribus.conditions import CheckFailed
from paribus.machine import write_atomic
from paribus.speed.metrics.tokens import Tokenizer
from paribus.speed.rows import Row, write_rows
from paribus.speed.summarise import Around, summarise
from paribus.speed.summary import SpeedSummary
from paribus.speed.trace import Prompt, Trace, trace
from paribus.wire import Outcome, Spool, write_outcomes
from paribus.wire.tokens import forget_tables


def traces_of(
    outcomes: Iterable[Outcome], prompts: Iterable[PromptLine], tokenizer: Tokenizer | None = None
) -> Iterator[Trace]:
    """Read outcomes one after the other; nothing of one is kept when the next is read."""
    known = {line.id: Prompt.of(line) for line in prompts}
    return (trace(outcome, known, tokenizer) for outcome in outcomes)


def finish(
    folder: Path,
    spool: Spool,
    prompts: Iterable[PromptLine],
    around: Around,
    tokenizer: Tokenizer | None = None,
    *,
    needs_answers: bool = True,
) -> tuple[list[Row], SpeedSummary]:
    """Derive and write a start's files, the summary last. `CheckFailed` (after writing) when nothing was answered.

    Answers are read first and the raw file is written next, whatever the reading came to: the tokenizer's tables
    (120 MB) and Arrow (60 MB) need not be there at once.
    """
    try:
        rows, summary = summarise(traces_of(spool, prompts, tokenizer), around)
    finally:
        forget_tables()
        write_outcomes(folder / "requests.parquet", spool)
    write_rows(folder / "requests-lite.parquet", rows)
    write_atomic(folder / "summary.json", (summary.model_dump_json(by_alias=True, indent=1) + "\n").encode())
    if needs_answers and not summary.requests.ok:
        raise CheckFailed(nothing_answered(rows))
    return rows, summary


def nothing_answered(rows: Iterable[Row]) -> str:
    """One sentence on a measurement without a single answer."""
    errors = sorted({row.error for row in rows if row.error})
    return f"no request was answered ({', '.join(errors) or 'none was sent'}); the raw answers are in requests.parquet"
