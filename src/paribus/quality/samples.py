"""One row an answer: `samples.parquet`. Text stays in the journal; ids, grades, tokens and times are here.

`samples-lite.parquet` has the grades alone, and whether an answer came: small enough to be kept where the rest isn't,
for all that is decided by two runs' answers to the same questions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.conditions import CheckFailed
from paribus.conditions.thinking import apart, thought
from paribus.machine.files import write_atomic
from paribus.quality.journal import Entry
from paribus.wire.tokens import standard_tokens

_TEXT, _WHOLE, _SHARE = pa.string(), pa.int64(), pa.float64()
_COLUMNS: dict[str, tuple[pa.DataType, bool]] = {
    "item": (_TEXT, False),
    "repeat": (_WHOLE, False),
    "group": (_TEXT, True),
    "correct": (_SHARE, False),
    "answer": (_TEXT, True),
    "status": (_TEXT, False),
    "error": (_TEXT, True),
    "finish_reason": (_TEXT, True),
    "seed": (pa.int64(), True),
    "prompt_tokens": (_WHOLE, True),
    "tokens": (_WHOLE, True),
    "reasoning_tokens": (_WHOLE, True),
    "ttft_ms": (_SHARE, True),
    "answer_time_ms": (_SHARE, True),
    "turns": (_WHOLE, False),
    "tool_calls": (_WHOLE, False),
    "malformed_calls": (_WHOLE, False),
    "marks": (_TEXT, False),
    "reasoning_split": (pa.bool_(), False),
    "thinking_turns": (_WHOLE, False),
    "thought_tokens": (_WHOLE, False),
}
"""Columns with their types, and whether they may be null."""

SCHEMA = pa.schema({name: kind for name, (kind, _) in _COLUMNS.items()})

SAMPLES, LITE = "samples.parquet", "samples-lite.parquet"
LITE_COLUMNS = ("item", "repeat", "correct", "status")

USER = "user"
"""Status and error of a dialogue that the user simulator broke off: no failure of the system under test."""

UNDONE = ("failed", USER)
"""Statuses without a whole answer or dialogue."""


@dataclass(frozen=True)
class Sample:
    """One answer to one question. `status`: ok, failed, capped or user; tokens and times are summed over its turns.

    `correct`: the grade as it counts, 0 where the answer isn't whole; `answer`: what was read, in a cut one too.

    `tokens` are all that the model wrote (reasoning included), `ttft_ms` is that of the first turn.
    """

    item: str
    repeat: int
    group: str | None
    correct: float
    answer: str | None
    status: str
    error: str | None
    finish_reason: str | None
    seed: int | None
    prompt_tokens: int | None
    tokens: int | None
    reasoning_tokens: int | None
    ttft_ms: float | None
    answer_time_ms: float | None
    turns: int = 1
    tool_calls: int = 0
    malformed_calls: int = 0
    marks: dict[str, float] = field(default_factory=dict)
    reasoning_split: bool = False
    """Whether reasoning tokens are split off by standard tokens, where the engine doesn't count them."""
    thinking_turns: int = 0
    """Its turns with more reasoning than an empty block has (`conditions.thinking`)."""
    thought_tokens: int = 0
    """Tokens of reasoning in these turns; standard tokens where the engine gave no usage."""

    @property
    def answer_tokens(self) -> int | None:
        """Tokens of the visible answer; null where the engine doesn't count reasoning apart."""
        if self.tokens is None or self.reasoning_tokens is None:
            return None
        return max(0, self.tokens - self.reasoning_tokens)


def accounts(entries: tuple[Entry, ...]) -> dict[str, Any]:
    """Status, tokens and times of one answer out of its requests, as `Sample` takes them."""
    failed = next((entry.error for entry in entries if entry.error), None)
    capped = any(entry.capped for entry in entries)
    first, last = entries[0], entries[-1]
    spent = _total([entry.e2e_ns for entry in entries])
    parts = [_parts(entry) for entry in entries]
    counted = [_reasoning(*each) for each in zip(entries, parts, strict=True)]
    pairs = zip(parts, counted, strict=True)
    found = thought(standard_tokens(reasoning) if each is None else each for (reasoning, _), each in pairs)
    return {
        "status": "failed" if failed else "capped" if capped else "ok",
        "error": failed,
        "finish_reason": last.finish_reason,
        "seed": first.seed,
        "prompt_tokens": _total([entry.prompt_tokens for entry in entries]),
        "tokens": _total([entry.completion_tokens for entry in entries]),
        "reasoning_tokens": _total(counted),
        "reasoning_split": any(_split(*each) for each in zip(entries, parts, strict=True)),
        "ttft_ms": None if first.ttft_ns is None else first.ttft_ns / 1e6,
        "answer_time_ms": None if spent is None else spent / 1e6,
        "turns": len(entries),
        "thinking_turns": found.thought,
        "thought_tokens": round(found.tokens),
    }


BY_THEIR_RULES = frozenset({"official", "guesses", "answered"})
"""Marks that a cut answer keeps: a benchmark's own rules take it for what it says, and something was found in it."""


def counted(correct: float, marks: Mapping[str, float], status: str) -> tuple[float, dict[str, float]]:
    """Grade and marks as they count: an answer that isn't whole is wrong by every rule of ours, whatever it says."""
    if status == "ok":
        return correct, dict(marks)
    return 0.0, {name: value if name in BY_THEIR_RULES else 0.0 for name, value in marks.items()}


def _reasoning(entry: Entry, parts: tuple[str, str]) -> int | None:
    """Reasoning tokens of one request: as counted by the engine; none where there is no reasoning to be seen.

    An engine that sends reasoning and doesn't count it (vLLM), or counts none of it: the answer's tokens, split in
    proportion to the standard tokens of both texts. Not by the model's own tokenizer, so that a journal gives the same
    account on every machine.
    """
    if entry.reasoning_tokens:
        return entry.reasoning_tokens
    reasoning, answer = parts
    if not reasoning:
        return 0
    if entry.completion_tokens is None:
        return None
    thought, said = standard_tokens(reasoning), standard_tokens(answer)
    return round(entry.completion_tokens * thought / max(1, thought + said))


def _split(entry: Entry, parts: tuple[str, str]) -> bool:
    """Whether a request's reasoning tokens are our split."""
    return not entry.reasoning_tokens and entry.completion_tokens is not None and bool(parts[0])


def _parts(entry: Entry) -> tuple[str, str]:
    """Reasoning and the rest of what was delivered; reasoning may come inline."""
    calls = "".join(text for call in entry.tool_calls for text in call.values())
    inline, rest = apart(entry.text)
    return entry.reasoning + inline, rest + calls


def _total(values: list[int | None]) -> int | None:
    """The sum; null when any part is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def write_samples(folder: Path, samples: list[Sample]) -> None:
    """Write a start's samples and their grades (sorted by item and repeat; the same samples give the same bytes)."""
    ordered = sorted(samples, key=lambda sample: (sample.item, sample.repeat))
    rows = [asdict(sample) | {"marks": json.dumps(sample.marks, sort_keys=True)} for sample in ordered]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    for name, each in ((SAMPLES, table), (LITE, table.select(LITE_COLUMNS))):
        sink = pa.BufferOutputStream()
        pq.write_table(each, sink, compression="zstd")
        write_atomic(folder / name, sink.getvalue().to_pybytes())


def read_samples(path: Path) -> list[Sample]:
    """The samples of a start. Raises `CheckFailed` for a file of another form."""
    try:
        rows = pq.read_table(path, schema=SCHEMA).to_pylist()
        return [Sample(**{**row, "marks": json.loads(row["marks"])}) for row in rows]
    except (pa.ArrowException, OSError, ValueError, TypeError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise CheckFailed(f"{path.parent.name}/{path.name} holds no samples: {said}") from error
