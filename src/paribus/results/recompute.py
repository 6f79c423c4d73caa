"""A start's rows and summary, made again from its raw observations alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from paribus.catalog import Scale, Scenario
from paribus.conditions import CheckFailed, Flag, Manifest, UsageError
from paribus.machine.proof import power_limited
from paribus.results.reading import open_parquet, shown
from paribus.speed.flags import Facts
from paribus.speed.metrics.tokens import Tokenizer
from paribus.speed.rows import Row
from paribus.speed.run import of_the_server
from paribus.speed.summarise import Around
from paribus.speed.summary import SpeedSummary
from paribus.speed.trace import Prompt, Trace, trace
from paribus.speed.window import Window
from paribus.wire import read_outcomes

NOT_IN_THE_REQUESTS = frozenset(
    {
        "not_stationary",
        "short_window",
        "busy",
        "throttled",
        "energy_disagrees",
        "sampler_unverified",
        "sampler_mismatch",
        "possibly_seen",
    }
)
"""Flags whose facts lie outside the requests: taken as they are here. Telemetry and window have checks of their own;
what the warm-up and the sampler's fingerprint showed is not kept request by request."""


def raw_traces(
    folder: Path, prompts: Mapping[str, Prompt], tokenizer: Callable[[int], Tokenizer | None] = lambda _: None
) -> list[Trace]:
    """The traces in a start's `requests.parquet`, written by anybody. `tokenizer`: the one for request number n."""
    path = open_parquet(folder, "requests.parquet")
    try:
        return [trace(outcome, prompts, tokenizer(outcome.index)) for outcome in read_outcomes(path)]
    except (UsageError, ValueError, KeyError, TypeError, OverflowError, pa.ArrowException) as error:
        raise CheckFailed(f"{shown(path)} can't be read: {' '.join(str(error).split())[:200]}") from error


def counted_then(rows: Sequence[Row], here: Tokenizer | None = None) -> Callable[[int], Tokenizer | None]:
    """By request, what counts its text: the model's own tokenizer, else what it counted when this was measured.

    Nothing, where it counted nothing then.
    """
    counted = {row.index: row.text_tokens for row in rows}
    own = here if any(each is not None for each in counted.values()) else None
    return lambda index: own or (lambda _: counted.get(index))


def around_from(manifest: Manifest, summary: SpeedSummary, scenario: Scenario, scale: Scale, *, cpu: bool) -> Around:
    """What was seen around a start's requests: from its manifest and catalog, and what only the summary keeps."""
    declared, observed = manifest.declared, manifest.observed
    sampling, accepted = declared.get("sampling") or {}, observed.get("sampling_accepted") or []
    synthetic = f"the scenario {scenario.scenario}" if scenario.synthetic else ""
    if declared.get("acceptance_method") == "synthetic" and not synthetic:
        synthetic = "faked acceptance"
    facts = Facts(
        rows=(),
        cpu=cpu,
        headline=scenario.headline and not scenario.prefix_caching,
        hosted=manifest.origin == "endpoint",
        thinking=declared.get("thinking"),
        **of_the_server(observed),
        synthetic=synthetic,
        preliminary_scale=scale.scale if scale.preliminary else None,
        lag_ms_p99=summary.client.lag_ms_p99,
        admitted=summary.admitted,
        left_out=sorted(set(sampling) - set(accepted)),
        power_limited=power_limited(observed),
        also=[flag for flag in summary.flags if flag.id in NOT_IN_THE_REQUESTS],
    )
    return Around(
        concurrency=scenario.requests,
        window=Window(*summary.window_ns) if summary.window_ns else None,
        counters=manifest.counters,
        engine=summary.engine,
        cpu_share=summary.client.cpu_share,
        energy_j=summary.energy_j,
        energy_scope=summary.energy_scope,
        energy_missing=summary.energy_missing,
        facts=facts,
    )


def same_flags(stored: Sequence[Flag], made: Sequence[Flag]) -> Iterator[str]:
    """Every flag that is missing, or should not be there, or says something else."""
    one, two = ({flag.id: flag for flag in flags} for flags in (stored, made))
    if len(one) != len(stored):
        yield "a flag stands there twice"
    for id in sorted(one.keys() | two.keys()):
        if id not in one:
            yield f"the flag {id} is missing: {two[id].text}"
        elif id not in two:
            yield f"the flag {id} is there without a reason"
        elif one[id] != two[id]:
            yield f"the flag {id} says {one[id].severity}: {one[id].text!r}; it should say {two[id].text!r}"
