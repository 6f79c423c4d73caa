"""A start's rows and summary, made again from its raw observations alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from paribus.conditions import CheckFailed, UsageError
from paribus.results.reading import open_parquet, shown
from paribus.speed.metrics.tokens import Tokenizer
from paribus.speed.trace import Prompt, Trace, trace
from paribus.wire import read_outcomes


def raw_traces(folder: Path, prompts: Mapping[str, Prompt], tokenizer: Tokenizer | None = None) -> list[Trace]:
    """The traces in a start's `requests.parquet`, written by anybody."""
    path = open_parquet(folder, "requests.parquet")
    try:
        return [trace(outcome, prompts, tokenizer) for outcome in read_outcomes(path)]
    except (UsageError, ValueError, KeyError, TypeError, OverflowError, pa.ArrowException) as error:
        raise CheckFailed(f"{shown(path)} can't be read: {' '.join(str(error).split())[:200]}") from error
