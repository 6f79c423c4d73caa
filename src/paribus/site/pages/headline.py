"""Which number leads: for a scenario, for a run, for a duel; and how runs rank by it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from paribus.site.content import Content, Figure, Run

_TIME = re.compile(r"time_to_(\d+)")
FALLBACKS = ("output_speed_standard", "throughput", "output_speed")
"""What leads where no figure is marked as the headline."""
WHOLE_RUN = "throughput_whole_run"


def lead_metric(runs: Sequence[Run]) -> str | None:
    """The metric that leads a board of these runs: the one that most of them are headed by.

    Throughput leads only where every run has a steady window; else the whole run's does, for all of them alike.
    """
    heads = Counter(m for run in runs for m, figure in run.figures.items() if figure.headline)
    if WHOLE_RUN in heads and "throughput" in heads:
        return WHOLE_RUN
    if heads:
        return min(heads, key=lambda m: (-heads[m], m))
    held = Counter(m for run in runs for m in run.figures if m in FALLBACKS)
    return min(held, key=lambda m: (-held[m], FALLBACKS.index(m)), default=None)


def shared_time(runs: Sequence[Run]) -> str | None:
    """The `time_to_k` that stands beside it: the largest k up to 300 that the most runs reach."""
    held = Counter(m for run in runs for m in run.figures if 1 < (_k(m) or 0) <= 300)
    return min(held, key=lambda m: (-held[m], -(_k(m) or 0)), default=None)


def _k(metric: str) -> int | None:
    match = _TIME.fullmatch(metric)
    return int(match.group(1)) if match else None


def lead_figure(run: Run) -> Figure | None:
    """The number a run's own page leads with."""
    metric = lead_metric([run])
    return run.figures[metric] if metric is not None else None


def speedup_of(run: Run, other: Run) -> Figure | None:
    """How many times as fast a run is as another: over the same amount of text where that can be said.

    A ratio that later runs have replaced keeps its page, and leads nothing.
    """
    found = [f for f in run.ratios if f.other_run_id == other.id and f.unit == "x" and f.superseded_by is None]
    return min(found, key=_ratio_rank, default=None)


def _ratio_rank(figure: Figure) -> tuple[bool, bool, str]:
    """The comparison's own headline first, then ratios with an interval."""
    return (not figure.headline, figure.low is None, figure.metric)


def plain_of(run: Run, runs: Sequence[Run]) -> Run | None:
    """The plain run that a run is compared with: same stack, machine, measure and origin, the last sound one."""
    same = ("stack", "hardware", "machine", "measure", "demo")
    if run.decoder_method == "plain":
        return None
    found = [r for r in runs if r.decoder_method == "plain" and all(r.row[key] == run.row[key] for key in same)]
    return max(found, key=lambda r: (r.sound, str(r.row["started_at"]), r.row["n"]), default=None)


def ratio_to_plain(run: Run, runs: Sequence[Run]) -> Figure | None:
    """How many times as fast a run is as plain decoding of the same stack, where that was computed."""
    plain = plain_of(run, runs)
    return speedup_of(run, plain) if plain is not None else None


def best_ratio(runs: Sequence[Run]) -> tuple[Run, Run, Figure] | None:
    """The board's most telling ratio: speculation beside plain decoding; published before demo, largest first."""
    found = []
    for run in runs:
        plain = plain_of(run, runs)
        figure = ratio_to_plain(run, runs)
        if plain is not None and figure is not None:
            found.append((run, plain, figure))

    def key(one: tuple[Run, Run, Figure]) -> tuple[bool, bool, bool, float, str]:
        run, plain, figure = one
        return (run.demo, not figure.ranked, not (run.sound and plain.sound), -figure.value, run.id)

    return min(found, key=key, default=None)


def ranks(runs: Sequence[Run], metric: str) -> dict[str, str]:
    """Ranks as intervals: from 1 + how many are clearly better to N - how many are clearly worse.

    Only runs that may be ranked, are neither preliminary nor of the demo, and have an interval take part; one alone
    has no rank. "Clearly": intervals apart.
    """
    figures = {
        run.id: run.figures[metric]
        for run in runs
        if metric in run.figures and run.ranked and not (run.preliminary or run.demo)
    }
    bounds = {
        name: (f.low, f.high) if f.better == "higher" else (-f.high, -f.low)
        for name, f in figures.items()
        if f.ranked and f.low is not None and f.high is not None
    }
    found: dict[str, str] = {}
    if len(bounds) < 2:
        return found
    for name, (low, high) in bounds.items():
        first = 1 + sum(other_low > high for other_low, _ in bounds.values())
        last = len(bounds) - sum(other_high < low for _, other_high in bounds.values())
        found[name] = f"{first}" if first == last else f"{first} to {last}"
    return found


def ordered(runs: Sequence[Run], metric: str | None) -> list[Run]:
    """Runs by their leading number, best first; those without it last; ranked before unranked, sound before unsound."""

    def key(run: Run) -> tuple[bool, bool, bool, float, str]:
        figure = run.figures.get(metric or "")
        if figure is None:
            return (not run.ranked, not run.sound, True, 0.0, run.id)
        value = -figure.value if figure.better == "higher" else figure.value
        return (not run.ranked, not run.sound, False, value, run.id)

    return sorted(runs, key=key)


def board_runs(content: Content, hardware: str, scenario: str) -> list[Run]:
    """Runs of one card and one scenario, at the served sampling."""
    return [
        run
        for run in content.speed_runs
        if run.row["hardware"] == hardware and run.row["scenario_or_task"] == scenario and as_served(run)
    ]


def best_of(runs: Iterable[Run]) -> Run | None:
    """The last run, a sound one before a faulty one and a whole one before one at a scale too small for a ranking."""
    return max(runs, key=lambda r: (r.sound, not r.preliminary, str(r.row["started_at"]), r.id), default=None)


def as_served(run: Run) -> bool:
    """Whether a run was asked with the model card's sampling, as all that is shown side by side."""
    return run.row["sampling"] in (None, "served")
