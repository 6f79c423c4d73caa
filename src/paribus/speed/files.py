"""From what was spooled to a start's files: `requests.parquet`, `requests-lite.parquet`, `summary.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from paribus.catalog import PromptLine
from paribus.conditions import CheckFailed
from paribus.machine import write_atomic
from paribus.speed.metrics.tokens import Tokenizer
from paribus.speed.rows import Row, write_rows
from paribus.speed.summarise import Around, summarise
from paribus.speed.summary import SpeedSummary
from paribus.speed.trace import Prompt, Trace, trace
from paribus.wire import Outcome, Spool, read_answer, shown_words, write_outcomes

LOOKED_AT = 100
"""Requests that are read to say why none was answered."""
HINTS = {
    "http_401": "a key is read from the environment variable that --api-key-env names",
    "http_403": "a key is read from the environment variable that --api-key-env names",
    "http_404": "most servers want /v1 at the end of the address, and a model's name that they list",
}


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
    secret: str | None = None,
) -> tuple[list[Row], SpeedSummary]:
    """Derive and write a start's files, the summary last. `CheckFailed` (after writing) when nothing was answered.

    `secret`: a key that the server may repeat, of which no part is told to anybody.
    """
    write_outcomes(folder / "requests.parquet", spool)
    rows, summary = summarise(traces_of(spool, prompts, tokenizer), around)
    write_rows(folder / "requests-lite.parquet", rows)
    write_atomic(folder / "summary.json", (summary.model_dump_json(by_alias=True, indent=1) + "\n").encode())
    if needs_answers and not summary.requests.ok:
        raise CheckFailed(nothing_answered(spool, secret))
    return rows, summary


def nothing_came(outcomes: Iterable[Outcome]) -> bool:
    """Whether no server has sent a single byte: then there is nothing to keep."""
    return all(not outcome.status and not outcome.body and outcome.error != "protocol" for outcome in outcomes)


def nothing_answered(outcomes: Iterable[Outcome], secret: str | None = None, *, kept: bool = True) -> str:
    """Why a measurement has no answer, in one sentence: the errors, and what the server said most often.

    `secret`: a key that the server may repeat, of which no part is told to anybody. `kept`: the files were written.
    """
    answers = [read_answer(outcome) for outcome in islice(outcomes, LOOKED_AT)]
    errors = sorted({answer.error for answer in answers if answer.error})
    said = Counter(shown_words(answer.detail, secret) for answer in answers if answer.detail)
    words = said.most_common(1)[0][0] if said else ""
    told = f"no request was answered ({', '.join(errors) or 'none was sent'})"
    told += f": the server says {words!r}" if words else ""
    hints = [hint for error, hint in HINTS.items() if error in errors]
    where = "the raw answers are in requests.parquet" if kept else "nothing was written"
    return "; ".join([told, *hints, where])
