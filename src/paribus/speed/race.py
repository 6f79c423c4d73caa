"""The race between the decoders of one stack: equal budgets on tuning prompts, every candidate kept and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from paribus.catalog import Candidate, Race, Verdict
from paribus.catalog.faults import one_sentence
from paribus.conditions import CheckFailed, Flag
from paribus.speed.rows import Row, read_rows
from paribus.speed.speedup import largest_k, level, reached_by_all
from paribus.speed.summarise import StartPart, pool
from paribus.speed.summary import Interval, SpeedSummary

UNIT = "standard tokens/s"


@dataclass(frozen=True)
class Entry:
    """One candidate: its decoder, its run's path below the results folder, and its starts.

    `speculative`: whether its decoder guesses ahead (plain decoding does not).
    """

    decoder: str
    run: str
    speculative: bool
    starts: Sequence[StartPart]


def decide(
    race: Race, scenario: str, requests: int, entries: Sequence[Entry], *, decided_at: str, cpu: bool = False
) -> Verdict:
    """The verdict of a race: the fastest speculative candidate without an invalid flag.

    At one request the metric is `speed_to_<k>`: k / time to k (geometric mean over kinds of text, equal weight), at the
    largest k that every candidate reaches at half of the prompts or more, over the prompts where all reach it. The
    winner is then measured by `time_to_k`, and a decoder that wins by looping through longer answers, as it can by
    tokens a second, gains nothing. Where not even the first token is shared, `output_speed` stands in. At several
    requests it is `throughput` of the steady window; where any candidate has none, that of the whole run
    (`throughput_whole_run`), for all candidates alike. All are in standard tokens a second, higher is better.
    Where no candidate speculates, the best of all wins. `CheckFailed` when no candidate is valid.
    """
    pooled = {entry.decoder: pool(entry.starts, cpu=cpu) for entry in entries}
    reasons = {entry.decoder: _left_out(pooled[entry.decoder]) for entry in entries}
    valid = [entry for entry in entries if reasons[entry.decoder] is None]
    metric, values = _values(valid, pooled, requests)
    for entry in valid:
        if values[entry.decoder].value is None:
            reasons[entry.decoder] = f"no {metric}"
    standing = [entry for entry in valid if reasons[entry.decoder] is None]
    if not standing:
        words = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise CheckFailed(f"the race {scenario} of {race.stack} has no valid candidate: {words}")

    def speed(entry: Entry) -> float:
        return values[entry.decoder].value or 0.0

    speculative = [entry for entry in standing if entry.speculative]
    winner = max(speculative or standing, key=speed)
    plain = [speed(entry) for entry in standing if not entry.speculative]
    return Verdict(
        stack=race.stack,
        scenario=scenario,
        measure=race.measure,
        metric=metric,
        unit=UNIT,
        candidates=[_candidate(e, pooled[e.decoder], values.get(e.decoder), reasons[e.decoder]) for e in entries],
        winner=winner.decoder,
        plain_is_faster=bool(speculative) and bool(plain) and max(plain) > speed(winner),
        not_tried=race.not_tried,
        runs=race.runs,
        decided_at=decided_at,
    )


_NOTHING = Interval(value=None, low=None, high=None)


def _values(
    entries: Sequence[Entry], pooled: dict[str, SpeedSummary], requests: int
) -> tuple[str, dict[str, Interval]]:
    if requests > 1:
        return _throughputs({e.decoder: pooled[e.decoder] for e in entries})
    runs = [_rows(entry) for entry in entries]
    k = largest_k(runs)
    if k is None:
        return "output_speed_standard", {e.decoder: pooled[e.decoder].output_speed_standard for e in entries}
    common = reached_by_all(runs, k)
    return f"speed_to_{k}", {e.decoder: _speed(rows, k, common) for e, rows in zip(entries, runs, strict=True)}


def _throughputs(pooled: dict[str, SpeedSummary]) -> tuple[str, dict[str, Interval]]:
    # All by the window, or all by the whole run: never one kind beside the other.
    if any(summary.throughput.value is None for summary in pooled.values()):
        whole = {name: summary.throughput.whole_run for name, summary in pooled.items()}
        return "throughput_whole_run", {name: Interval(value=v, low=None, high=None) for name, v in whole.items()}
    return "throughput", {name: summary.throughput for name, summary in pooled.items()}


def _rows(entry: Entry) -> list[list[Row]]:
    return [[row for row in start.rows if row.counted] for start in entry.starts]


def _speed(starts: Sequence[Sequence[Row]], k: int, common: set[str]) -> Interval:
    found = level(starts, k, common)
    if found is None:
        return _NOTHING
    return Interval(
        value=k / found.seconds,
        low=k / found.high if found.high else None,
        high=k / found.low if found.low else None,
        basis=found.basis,
    )


def _left_out(summary: SpeedSummary) -> str | None:
    """Why a candidate can't win: its invalid flags, in their own words."""
    invalid = [flag.text for flag in summary.flags if flag.severity == "invalid"]
    return " ".join(invalid) or None


def _candidate(entry: Entry, summary: SpeedSummary, value: Interval | None, reason: str | None) -> Candidate:
    value = value or _NOTHING
    flags: list[Flag] = summary.flags
    return Candidate(
        decoder=entry.decoder,
        run=entry.run,
        value=value.value,
        low=value.low,
        high=value.high,
        acceptance_length=summary.acceptance.acceptance_length if summary.acceptance else None,
        flags=[flag.id for flag in flags],
        left_out=reason,
    )


def read_part(folder: Path) -> StartPart:
    """One start's rows and summary from its folder. `CheckFailed` in one sentence when they can't be read."""
    path = folder / "summary.json"
    try:
        summary = SpeedSummary.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CheckFailed(f"{path} is not a speed summary: {one_sentence(error)}") from error
    except OSError as error:
        raise CheckFailed(f"can't read {path}: {error.strerror}") from error
    return StartPart(read_rows(folder / "requests-lite.parquet"), summary)
